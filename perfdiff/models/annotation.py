"""Performance annotations: how a metric of a function follows from features of its input (Freud §2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from perfdiff.records.schema import Floats


class CostClass(StrEnum):
    """The growth of a cost, in rising order."""

    CONSTANT = "constant"
    LOGARITHMIC = "logarithmic"
    LINEAR = "linear"
    N_LOG_N = "n log n"
    QUADRATIC = "quadratic"
    CUBIC = "cubic"
    PIECEWISE = "piecewise"
    MIXTURE = "mixture"


@dataclass(frozen=True, slots=True)
class Term:
    """A product of transformed features with its coefficient; no factors means the intercept. `function` is one of x, log, xlogx, x2, x3."""

    coefficient: float
    factors: tuple[tuple[str, str], ...] = ()  # (feature name, function)


@dataclass(frozen=True, slots=True)
class Scope:
    """One regime of a function: `[condition] Norm(expression, sigma)`; `condition` is "" where one scope serves all records."""

    condition: str
    cost_class: CostClass
    terms: tuple[Term, ...]
    sigma: float
    share: float  # of records
    n: int


@dataclass(frozen=True, slots=True)
class Annotation:
    """A fitted annotation. `ranges` are the features' measured ranges; `twins` lists, per feature, the others it cannot be told from."""

    function: str
    metric: str
    cost_class: CostClass
    scopes: tuple[Scope, ...]
    features: tuple[str, ...]
    twins: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, tuple[float, float]]
    r2: float
    cv_r2: float
    n: int

    def predict(self, values: Mapping[str, Floats]) -> Floats:
        """Return the predicted metric (n,) at columns of feature values (n,)."""
        raise NotImplementedError
