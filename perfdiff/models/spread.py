"""Inputs that vary from call to call, as `LogNormal(1000, 0.5)`: some values that stand for equally many calls each."""

from __future__ import annotations

import re

import numpy as np

from perfdiff.records.arrays import Floats

VALUES = 50  # for equally many calls each
FORMS = "Uniform(low, high), Norm(mean, deviation), LogNormal(median, deviation of the logarithm) or Exp(mean)"
_NUMBER = r"\s*([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*"
_WRITTEN = re.compile(rf"(Uniform|Norm|LogNormal|Exp)\({_NUMBER}(?:,{_NUMBER})?\)")


def values(text: str, rng: np.random.Generator) -> Floats | None:
    """Return the values (VALUES,), in random order, of what is written as a distribution; None where it is none.

    Each is the middle of an equal share of the distribution (a Latin hypercube where several inputs vary: McKay, Beckman and Conover 1979).
    """
    from scipy import stats

    written = _WRITTEN.fullmatch(text.strip())
    if written is None:
        return None
    name, first, second = written[1], float(written[2]), None if written[3] is None else float(written[3])
    shares = (rng.permutation(VALUES) + 0.5) / VALUES
    match name, second:
        case "Exp", None if first > 0:
            drawn = stats.expon.ppf(shares, scale=first)
        case "Uniform", float() if second > first:
            drawn = stats.uniform.ppf(shares, first, second - first)
        case "Norm", float() if second > 0:
            drawn = stats.norm.ppf(shares, first, second)
        case "LogNormal", float() if first > 0 and second > 0:
            drawn = stats.lognorm.ppf(shares, second, scale=first)
        case _:
            return None
    return np.asarray(drawn)
