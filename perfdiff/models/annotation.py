"""Performance annotations: how a metric of a function follows from features of its input (Freud §2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from perfdiff.models.distribution import Distribution, Normal
from perfdiff.records.arrays import Bools, Floats

Factors = tuple[tuple[str, str], ...]

LEAST_DIVISOR = 1e-45  # below, features count as 0: an inverse, and its square, are numbers

PHASE = "phase of the run"  # the feature that tells calls while a function warms up from later ones
STEADY, STEADY_CODE = "steady", 0.0  # its label and value for those, which is meant where a prediction names no phase


class CostClass(StrEnum):
    """The growth of a cost, in rising order, be it timed or counted."""

    INVERSE = "inverse"  # of work that is shared out: a cost that falls like 1 / n
    CONSTANT = "constant"
    LOGARITHMIC = "logarithmic"
    LINEAR = "linear"
    N_LOG_N = "n log n"
    QUADRATIC = "quadratic"
    CUBIC = "cubic"
    POWER = "power law"  # of counts: an exponent that none of the above has
    PIECEWISE = "piecewise"
    MIXTURE = "mixture"  # of times
    NONE = "none"  # of counts: no feature tells it


# Classes by growth; the others have no order.
RISING = (
    CostClass.INVERSE,
    CostClass.CONSTANT,
    CostClass.LOGARITHMIC,
    CostClass.LINEAR,
    CostClass.N_LOG_N,
    CostClass.QUADRATIC,
    CostClass.CUBIC,
)
GROWING = RISING[1:]  # those that what a call does may have as well: work that is shared out falls for none but who waits for it
ANNOTATED = (*RISING, CostClass.PIECEWISE, CostClass.MIXTURE)  # what an annotation may have


class Trend(StrEnum):
    """Which calls a scope's terms describe: all, only the fastest at each input, or only the many that lie close together there."""

    MEAN = "mean"
    LOWER_BOUND = "lower bound"
    MAIN_TREND = "main trend"


class Operator(StrEnum):
    """How a condition looks at its feature. Each operator has its negation, so that every record meets exactly one of the two."""

    IN = "in"
    NOT_IN = "not in"
    AT_MOST = "<="
    ABOVE = ">"
    ABSENT = "absent"
    PRESENT = "present"


_NEGATIONS = {
    Operator.IN: Operator.NOT_IN,
    Operator.NOT_IN: Operator.IN,
    Operator.AT_MOST: Operator.ABOVE,
    Operator.ABOVE: Operator.AT_MOST,
    Operator.ABSENT: Operator.PRESENT,
    Operator.PRESENT: Operator.ABSENT,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of one feature; `labels` name the values of a category, in the same order, each by a name of its own.

    A bound has no label, but for that of a branch, which is "true" above 0.
    """

    feature: str
    operator: Operator
    values: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()

    def negated(self) -> Condition:
        """Return the condition that holds exactly where this one does not."""
        return Condition(self.feature, _NEGATIONS[self.operator], self.values, self.labels)

    def holds(self, column: Floats) -> Bools:
        """Return where the condition holds (n,); an absent value (NaN) is in no set and below no bound."""
        match self.operator:
            case Operator.IN:
                return np.isin(column, self.values)
            case Operator.AT_MOST:
                return np.asarray(column <= self.values[0])
            case Operator.ABSENT:
                return np.isnan(column)
            case _:
                return ~self.negated().holds(column)

    def text(self, symbol: str) -> str:
        """Return the condition as a C-like expression over `symbol`."""
        match self.operator:
            case Operator.ABSENT:
                return f"absent({symbol})"
            case Operator.PRESENT:
                return f"!absent({symbol})"
        if self.labels == ("true",):
            return symbol if self.operator in (Operator.IN, Operator.ABOVE) else f"!{symbol}"
        names = self.labels or tuple(f"{value:.6g}" for value in self.values)
        if self.operator in (Operator.AT_MOST, Operator.ABOVE):
            return f"{symbol} {self.operator} {names[0]}"
        equal, joiner = ("==", " || ") if self.operator is Operator.IN else ("!=", " && ")
        text = joiner.join(f"{symbol} {equal} {name}" for name in names)
        return f"({text})" if len(names) > 1 and self.operator is Operator.IN else text


@dataclass(frozen=True, slots=True)
class Term:
    """A product of transformed features with its coefficient; no factors means the intercept. `transformed` has the functions."""

    coefficient: float
    factors: Factors = ()  # (feature name, function)


@dataclass(frozen=True, slots=True)
class Scope:
    """One regime of a function: `[conditions] Norm(terms, sigma)`; no conditions where one scope serves all records.

    The terms give the expected cost, `sigma` the standard deviation over the scope's records, and `distribution` how they scatter
    where that is not `Norm(terms, sigma)`. Scopes with the same conditions are the components of a mixture: each holds with its
    `probability`. `share` is the part of all records that the scope explains, `trimmed` the part of its own records left out of the
    fit as upward outliers. `trend` tells which records the terms were learnt from.
    """

    cost_class: CostClass
    terms: tuple[Term, ...]
    sigma: float
    share: float
    n: int
    conditions: tuple[Condition, ...] = ()
    probability: float = 1.0
    trimmed: float = 0.0
    distribution: Distribution | None = None
    trend: Trend = Trend.MEAN

    @property
    def scatter(self) -> Distribution:
        """Return how the records scatter about the expected cost."""
        return self.distribution or Normal(self.sigma)

    def expected(self, values: Mapping[str, Floats], rows: int) -> Floats:
        """Return the expected cost (rows,) wherever the conditions may hold."""
        parts = [term.coefficient * product(term.factors, values, rows) for term in self.terms]
        return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

    @property
    def is_warming(self) -> bool:
        """Return whether the scope is of calls while the function warms up."""
        phases = [condition for condition in self.conditions if condition.feature == PHASE]
        return any((condition.operator is Operator.IN) is (condition.labels != (STEADY,)) for condition in phases)

    @property
    def condition(self) -> str:
        """Return the conditions as text over feature names; "" where there are none."""
        return " && ".join(condition.text(condition.feature) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Levels:
    """How the runs that an annotation was learnt from scatter about it; other runs are tested against that.

    A run's level is the logarithm of its cost over the annotated one. `mean` is over the workload points, `spread` the standard
    deviation of the runs of one point, `misfit` that of the points' means, which the annotation's terms do not meet.
    """

    runs: int
    points: int
    mean: float
    spread: float
    misfit: float


@dataclass(frozen=True, slots=True)
class Annotation:
    """A fitted annotation. `ranges` are the features' measured ranges; `twins` lists, per feature, the others it cannot be told from.

    `origins` tells where each feature comes from, `typical` its median, which stands in where a prediction names no value. `levels`
    is None where nothing is known of single runs. `by_counts` is the growth of counts where it is told instead of the cost's own.
    `further` is the feature that would tell most beside those of a scope, which has as many as a model may have.
    """

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
    origins: Mapping[str, str] = field(default_factory=dict)
    typical: Mapping[str, float] = field(default_factory=dict)
    levels: Levels | None = None
    by_counts: CostClass | None = None
    further: str | None = None

    @property
    def growth(self) -> CostClass:
        """Return how the cost grows: its class, or where modes that no input separates all grow alike in the same features, theirs.

        Such modes are several speeds of the same growth, as on a machine with other work, or of the same constant.
        """
        if self.by_counts is not None:
            return self.by_counts
        steady = self.steady
        alike = {(scope.cost_class, frozenset(name for term in scope.terms for name, _ in term.factors)) for scope in steady}
        bounded = any(condition.operator in (Operator.AT_MOST, Operator.ABOVE) for scope in steady for condition in scope.conditions)
        return steady[0].cost_class if self.cost_class is CostClass.MIXTURE and len(alike) == 1 and not bounded else self.cost_class

    @property
    def steady(self) -> tuple[Scope, ...]:
        """Return the scopes of calls after the warm-up: all of them where no phases are told apart."""
        return tuple(scope for scope in self.scopes if not scope.is_warming) or self.scopes

    def predict(self, values: Mapping[str, Floats]) -> Floats:
        """Return the predicted metric (n,) at columns of feature values (n,)."""
        return np.asarray(design(self, values) @ coefficients(self), dtype=np.float64)


def transformed(function: str, x: Floats) -> Floats:
    """Return a column under x, log (base 2), xlogx, x2, x3 or inv (1 / x).

    0·log 0 = 0, and a logarithm or an inverse of x ≤ 0 counts as 0.
    """
    match function:
        case "x":
            return x
        case "inv":
            return np.asarray(1.0 / np.where(x >= LEAST_DIVISOR, x, np.inf))
        case "x2":
            return x * x
        case "x3":
            return x * x * x
    logarithm = np.log2(np.where(x > 0, x, 1.0))
    return logarithm if function == "log" else np.asarray(x * logarithm)


def product(factors: Factors, values: Mapping[str, Floats], rows: int) -> Floats:
    """Return the column (rows,) of a term without its coefficient."""
    if not factors:
        return np.ones(rows)
    first, *others = (transformed(function, np.asarray(values[name], dtype=np.float64)) for name, function in factors)
    for column in others:
        first = first * column
    return first


def inputs(annotation: Annotation, values: Mapping[str, Floats]) -> tuple[dict[str, Floats], int]:
    """Return columns (n,) of values, typical ones for the features that are not given, and n."""
    rows = max((len(column) for column in values.values()), default=1)
    return {name: np.full(rows, value) for name, value in annotation.typical.items()} | dict(values), rows


def design(annotation: Annotation, values: Mapping[str, Floats]) -> Floats:
    """Return the terms (n, k) that the annotation is linear in, one block of columns per scope condition.

    Rows outside a block's condition are 0 in it; where a condition's feature is not given, blocks count by their share of records.
    The components of a mixture share one block, since inputs cannot tell them apart. Features that are not given take their typical
    value. `coefficients` and `term_names` follow the same columns.
    """
    filled, rows = inputs(annotation, values)
    columns = []
    for scopes in blocks(annotation):
        inside = membership(scopes, values, rows)
        for factors in _factors(scopes):
            columns.append(np.where(inside > 0, product(factors, filled, rows), 0.0) * inside)
    return np.column_stack(columns)


def coefficients(annotation: Annotation) -> Floats:
    """Return the coefficients (k,) of `design`; a mixture's are the means over its components."""
    return np.array(
        [
            sum(scope.probability * term.coefficient for scope in scopes for term in scope.terms if term.factors == factors)
            for scopes in blocks(annotation)
            for factors in _factors(scopes)
        ]
    )


def term_names(annotation: Annotation) -> tuple[str, ...]:
    """Return a name for each column of `design`, such as `n*log2(n)` or `[mode == FAST] 1`."""
    names = []
    for scopes in blocks(annotation):
        prefix = f"[{scopes[0].condition}] " if scopes[0].conditions else ""
        names += [prefix + product_text("1", factors, {}).removeprefix("1*") for factors in _factors(scopes)]
    return tuple(names)


def blocks(annotation: Annotation) -> list[tuple[Scope, ...]]:
    """Return the scopes that share their conditions: one alone, or the components of a mixture."""
    by_conditions: dict[tuple[Condition, ...], tuple[Scope, ...]] = {}
    for scope in annotation.scopes:
        by_conditions[scope.conditions] = (*by_conditions.get(scope.conditions, ()), scope)
    return list(by_conditions.values())


def _factors(scopes: tuple[Scope, ...]) -> list[Factors]:
    return list(dict.fromkeys(term.factors for scope in scopes for term in scope.terms))


def membership(scopes: tuple[Scope, ...], values: Mapping[str, Floats], rows: int) -> Floats:
    """Return where the scopes' common conditions hold (n,), as 0 or 1; their share of records where a feature is not given.

    Calls are after the warm-up where their phase is not given: a mean over both phases is what no call costs.
    """
    conditions = scopes[0].conditions
    if any(condition.feature == PHASE for condition in conditions) and PHASE not in values:
        return membership(scopes, {**values, PHASE: np.full(rows, STEADY_CODE)}, rows)
    if any(condition.feature not in values for condition in conditions):
        return np.full(rows, sum(scope.share for scope in scopes))
    member = np.ones(rows)
    for condition in conditions:
        member = member * condition.holds(np.asarray(values[condition.feature], dtype=np.float64))
    return member


_POWERS = {"x": "*{0}", "log": "*log2({0})", "xlogx": "*{0}*log2({0})", "x2": "*{0}^2", "x3": "*{0}^3", "inv": "/{0}"}


def product_text(coefficient: str, factors: Factors, symbols: Mapping[str, str]) -> str:
    """Return a coefficient times transformed features, such as `3*n*log2(n)` or `80/n`; features without a symbol go by their names."""
    return coefficient + "".join(_POWERS[function].format(symbols.get(name, name)) for name, function in factors)


_SHAPES = {"x": "·{}", "log": "·log2({})", "xlogx": "·{0}·log2({0})", "x2": "·{}²", "x3": "·{}³", "inv": "/{}"}


def shape(term: Term) -> str:
    """Return what a term's coefficient is multiplied with, as people write it: `n`, `n·log2(n)`, `1/n`; "" of a constant."""
    text = "".join(_SHAPES[function].format(name) for name, function in term.factors)
    return text.removeprefix("·") if not text.startswith("/") else f"1{text}"


def scaled(coefficient: str, grows: str) -> str:
    """Return a coefficient times a `shape`: `3·n`, `80/n`."""
    return coefficient + (grows.removeprefix("1") if grows.startswith("1/") else f"·{grows}" if grows else "")
