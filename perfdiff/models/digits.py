"""The digits of an annotation that matter: six of every prediction, so that its text is short and says all that the fit knows."""

from __future__ import annotations

import numpy as np

from perfdiff.models.distribution import DIGITS, Binomial, Distribution, Exponential, Normal
from perfdiff.records.arrays import Floats


def six_digits(value: float) -> float:
    """Return the number with six significant digits."""
    return float(f"{value:.6g}")


def rounded_coefficients(columns: Floats, coefficients: Floats) -> Floats:
    """Return the coefficients (k,), rounded so that no prediction of `columns` (n, k) changes by more than `DIGITS` of itself.

    Where terms nearly cancel, it takes more than six.
    """
    expected = np.abs(columns @ coefficients)[:, None]
    with np.errstate(over="ignore"):  # a column of next to nothing asks for no digits
        reach = np.divide(expected, np.abs(columns), out=np.full(columns.shape, np.inf), where=(columns != 0) & (expected > 0))
    steps = DIGITS / columns.shape[1] * reach.min(axis=0, initial=np.inf)
    return np.array([_rounded(float(value), float(step)) for value, step in zip(coefficients, steps, strict=True)])


def rounded_distribution(law: Distribution) -> Distribution:
    """Return the distribution with six digits a parameter; `start` and `step` are costs as measured."""
    match law:
        case Normal(sigma, relative):
            return Normal(six_digits(sigma), six_digits(relative))
        case Exponential(mean):
            return Exponential(six_digits(mean))
        case Binomial(chance, trials, start, step):
            return Binomial(six_digits(chance), trials, start, step)


def _rounded(value: float, step: float) -> float:
    """Return a number to the decimal place that lies within `step`; as it is where no step is known."""
    if not (np.isfinite(step) and step > 0):
        return value
    return round(value, -int(np.floor(np.log10(step)))) + 0.0  # no minus zero
