"""What a trend is: how a count follows from features of whole runs, with intervals and predictions (trend-prof §4.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.models.annotation import CostClass
from perfdiff.records.arrays import Floats

Interval = tuple[float, float]

# The paper predicts at so many times the 95th percentile of the feature.
FAR = (2.0, 10.0)
PERCENTILE = 95.0
# What a logarithm adds to an exponent is 1 / ln n: more than this as long as n is below 5·10^8.
LEAST_SHIFT = 0.05


@dataclass(frozen=True, slots=True)
class TrendPrediction:
    """The cost that a trend predicts at a feature's value `at`, with its 95 % interval."""

    at: float
    cost: float
    ci: Interval


@dataclass(frozen=True, slots=True)
class Law:
    """The power law a·x^b of a cost over a feature, by least squares of logarithms, and what is beside it.

    `r2` is that of the logarithms. `ignored` points have no cost or no feature above 0, and have no logarithm; `n` are left. `ci_a` and
    `ci_b` are 95 % bootstrap intervals. `growth` is the class that describes the cost best over this feature alone, and `says` puts it
    into words with its coefficients ("0.5·n·log n"). `diagnosis` tells what the residuals show ("curved: a lower-order term or a
    logarithm"), "" where they show nothing.
    """

    feature: str
    a: float
    b: float
    ci_a: Interval
    ci_b: Interval
    r2: float
    n: int
    ignored: int
    predictions: tuple[TrendPrediction, ...]
    growth: CostClass
    says: str
    diagnosis: str = ""

    def at(self, x: float) -> float:
        """Return the cost by the power law at a value of the feature."""
        return float(self.a * x**self.b)


@dataclass(frozen=True, slots=True)
class JointLaw:
    """A cost over several features at once: `says` the terms with coefficients ("2.1·n·m"); `r2` of the logarithms."""

    features: tuple[str, ...]
    says: str
    r2: float


def far_values(x: Floats) -> tuple[float, ...]:
    """Return the values of a feature at which costs are predicted: 2·f95 and 10·f95 (trend-prof §4.2); none where no value is above 0."""
    usable = x[np.isfinite(x) & (x > 0)]
    return tuple(factor * float(np.percentile(usable, PERCENTILE)) for factor in FAR) if len(usable) else ()
