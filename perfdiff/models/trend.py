"""What a trend is: how a count follows from features of whole runs, with intervals and predictions (trend-prof §4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Interval = tuple[float, float]


class Growth(StrEnum):
    """Classes of growth that counts of whole runs are told apart by, in rising order."""

    CONSTANT = "constant"
    LOGARITHMIC = "logarithmic"
    LINEAR = "linear"
    N_LOG_N = "n log n"
    QUADRATIC = "quadratic"
    CUBIC = "cubic"
    POWER = "power law"  # an exponent that none of the above has
    PIECEWISE = "piecewise"  # two phases
    NONE = "none"  # no feature tells it


@dataclass(frozen=True, slots=True)
class Prediction:
    """The cost that a trend predicts at a feature's value `at`, with its 95 % interval."""

    at: float
    cost: float
    ci: Interval


@dataclass(frozen=True, slots=True)
class Fit:
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
    predictions: tuple[Prediction, ...]
    growth: Growth
    says: str
    diagnosis: str = ""


@dataclass(frozen=True, slots=True)
class Joint:
    """A cost over several features at once: `says` the terms with coefficients ("2.1·n·m"); `r2` of the logarithms."""

    features: tuple[str, ...]
    says: str
    r2: float
