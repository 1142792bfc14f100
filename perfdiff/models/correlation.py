"""One feature by Pearson's correlation, a polynomial in it, else clusters of costs: the selection of HotCloud, §3.

*Performance Annotations for Cloud Computing* (Rogora et al., HotCloud 2017) gives the steps and none of their thresholds; those here are
ours, with their reasons. Calls are taken as they are: the paper leaves no outlier out and weighs none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

import numpy as np

from perfdiff.models.annotation import Annotation, CostClass, Factors, Scope, Term
from perfdiff.models.digits import rounded_coefficients, six_digits
from perfdiff.models.observations import columns_of
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Origin, SampleTable

# "greater than some threshold": from here on the feature explains half of what the metric varies (0.7² = 0.49).
LEAST_PCC = 0.7
# "if the relative error is greater than a threshold": a line through a parabola from 0 leaves 22 % of the mean, noise of times about 5 %.
MOST_ERROR = 0.1
# "from degree 1 (linear) to degree 3 (cubic)".
DEGREES = (1, 2, 3)
# "until the ratio between the errors in subsequent runs is below a threshold": two halves of normal costs have 2.75 times less error
# (1 / (1 - 2/π)) without being clusters; two of three modes that lie evenly apart, 4 times. Costs that are spread evenly fall apart in two.
ELBOW = 3.0
MOST_CLUSTERS = 10
# A feature that fewer of the calls know is not one of theirs.
KNOWN_SHARE = 1 / 2
# Of the mean: what arithmetic leaves of a cost that is always the same.
_EQUAL = 1e-9
_LLOYD_STEPS = 100
# Inputs of the call: the paper's features come from parameters. What they hold counts, as sizes of collections do.
ORIGINS = (Origin.ARGUMENT, Origin.FIELD, Origin.DERIVED)
_FACTORS = ("x", "x2", "x3")


class CorrelationKind(StrEnum):
    """The kinds of Figure 1, and one that the paper has no example of."""

    LINEAR = "linear"
    SUPERLINEAR = "superlinear"
    SUBLINEAR = "sublinear"  # a polynomial that flattens
    CONSTANT = "constant"
    UNCORRELATED = "not correlated"


@dataclass(frozen=True, slots=True)
class CorrelationSelection:
    """What the paper's steps make of one metric of a function.

    `pcc` is the correlation of `feature`, or the highest that was seen where none is above the threshold; None where no feature varies.
    `error` is the root of the mean squared error over the mean cost, of the polynomial, the constant or the clusters. `lowest` is the most
    negative correlation with its feature, which the paper's highest value passes over.
    """

    kind: CorrelationKind
    annotation: Annotation
    feature: str | None
    pcc: float | None
    degree: int
    error: float
    best: str | None = None
    lowest: tuple[str, float] | None = None
    polynomial_error: float | None = None

    @property
    def clusters(self) -> tuple[Scope, ...]:
        """Return the clusters, none where a polynomial or one constant serves."""
        return self.annotation.scopes if self.kind is CorrelationKind.UNCORRELATED else ()


@dataclass(frozen=True, slots=True)
class _Costs:
    """The costs (n,) of a function's calls in one metric, with the feature that correlates best and the most negative correlation."""

    function: str
    metric: str
    cost: Floats
    best: str | None = None
    pcc: float | None = None
    lowest: tuple[str, float] | None = None


def select(table: SampleTable, metric: str, *, function: str = "") -> CorrelationSelection:
    """Return the paper's selection for a metric; raise ValueError if no call has it.

    Step by step: the feature of the highest correlation, if above `LEAST_PCC`; a polynomial of the lowest degree whose relative error is at
    most `MOST_ERROR`; else a constant where its relative error is as small, else clusters.
    """
    present = np.isfinite(table.metrics[metric])
    cost = table.metrics[metric][present]
    if not len(cost):
        raise ValueError(f"function {table.function} has no record with {metric}")
    seen = _Costs(function or f"f{table.function}", metric, cost)
    if _is_constant(cost):
        return _constant(seen)
    columns = {name: column[present] for name, column in _features(table).items()}
    seen = _correlated(seen, columns)
    error = None
    if seen.best is not None and seen.pcc is not None and seen.pcc > LEAST_PCC:
        chosen = _regressed(seen, columns[seen.best])
        if chosen.error <= MOST_ERROR:
            return chosen
        error = chosen.error
    if _relative(cost - cost.mean(), cost) <= MOST_ERROR:
        return _constant(seen)
    return _clustered(seen, error)


def _correlated(costs: _Costs, columns: Mapping[str, Floats]) -> _Costs:
    pcc = dict(_correlations(columns, costs.cost))
    if not pcc:
        return costs
    best, lowest = max(pcc, key=pcc.__getitem__), min(pcc, key=pcc.__getitem__)
    return replace(costs, best=best, pcc=pcc[best], lowest=(lowest, pcc[lowest]) if pcc[lowest] < 0 else None)


def _features(table: SampleTable) -> dict[str, Floats]:
    """Return the columns that may be correlated: numbers that come from a call's parameters."""
    columns = columns_of(table)
    chosen = (feature.name for feature in table.features if not feature.category and feature.origin in ORIGINS)
    return {name: columns[name] for name in chosen}


def _correlations(columns: Mapping[str, Floats], cost: Floats) -> Iterator[tuple[str, float]]:
    """Yield each feature's correlation with the cost (Pearson), where both vary among the calls that know it."""
    for name, column in columns.items():
        finite = np.isfinite(column)
        if finite.sum() < max(3, KNOWN_SHARE * len(column)):
            continue
        x, y = _standard(column[finite]), _standard(cost[finite])
        if x is not None and y is not None:
            yield name, float(np.clip(np.mean(x * y), -1.0, 1.0))


def _standard(values: Floats) -> Floats | None:
    """Return values with mean 0 and deviation 1; None where all are the same."""
    scale = float(np.abs(values).max())
    if scale == 0 or np.ptp(values) <= _EQUAL * scale:
        return None
    centred = values / scale - np.mean(values / scale)
    return np.asarray(centred / np.sqrt(np.mean(centred**2)))


def _is_constant(cost: Floats) -> bool:
    return bool(np.ptp(cost) <= _EQUAL * np.abs(cost).max())


def _relative(residuals: Floats, cost: Floats) -> float:
    """Return the root of the mean squared error over the mean of the costs' amounts."""
    scale = float(np.mean(np.abs(cost)))
    return float(np.sqrt(np.mean((residuals / scale) ** 2))) if scale else 0.0


def _regressed(costs: _Costs, column: Floats) -> CorrelationSelection:
    """Return the polynomial of the lowest degree that is exact enough, else that of the smallest error."""
    finite = np.isfinite(column)
    x, y = column[finite], costs.cost[finite]
    distinct = len(np.unique(x))
    tried = [_polynomial(costs, x, y, degree) for degree in DEGREES if degree < distinct]
    enough = [polynomial for polynomial in tried if polynomial.error <= MOST_ERROR]
    return enough[0] if enough else min(tried, key=lambda polynomial: polynomial.error)


def _polynomial(costs: _Costs, x: Floats, y: Floats, degree: int) -> CorrelationSelection:
    assert costs.best is not None, "a polynomial has a feature"
    scale = float(np.abs(x).max())
    powers = np.column_stack([(x / scale) ** power for power in range(degree + 1)])
    solution = rounded_coefficients(powers, np.asarray(np.linalg.lstsq(powers, y, rcond=None)[0], dtype=np.float64))
    solution[np.abs(solution) <= _EQUAL * np.abs(y).max()] = 0.0
    residuals = y - powers @ solution
    factors: list[Factors] = [(), *(((costs.best, _FACTORS[power - 1]),) for power in range(1, degree + 1))]
    terms = tuple(Term(float(value) / scale**power, factors[power]) for power, value in enumerate(solution))
    kind = _kind(solution, degree, float(x.min()) / scale, float(x.max()) / scale)
    cost_class = (CostClass.LINEAR, CostClass.QUADRATIC, CostClass.CUBIC)[degree - 1]
    scope = Scope(cost_class, terms, _sigma(residuals, y), 1.0, len(y))
    annotation = replace(
        _annotation(costs, cost_class, (scope,)),
        features=(costs.best,),
        ranges={costs.best: (float(x.min()), float(x.max()))},
        r2=six_digits(_explained(residuals, y)),
        n=len(y),
    )
    return CorrelationSelection(kind, annotation, costs.best, costs.pcc, degree, _relative(residuals, y), costs.best)


def _sigma(residuals: Floats, cost: Floats) -> float:
    """Return the standard deviation of residuals; 0 where they are no more than arithmetic leaves."""
    sigma = float(np.sqrt(np.mean(residuals**2)))
    return six_digits(sigma) if sigma > _EQUAL * float(np.abs(cost).max()) else 0.0


def _kind(solution: Floats, degree: int, low: float, high: float) -> CorrelationKind:
    """Return how a polynomial grows between its ends: it bends upward if its slope is higher at the upper end."""
    if degree == 1:
        return CorrelationKind.LINEAR

    def slope(at: float) -> float:
        return float(sum(power * solution[power] * at ** (power - 1) for power in range(1, degree + 1)))

    return CorrelationKind.SUPERLINEAR if slope(high) > slope(low) else CorrelationKind.SUBLINEAR


def _explained(residuals: Floats, cost: Floats) -> float:
    total = float(np.sum((cost - cost.mean()) ** 2))
    return 1.0 - float(np.sum(residuals**2)) / total if total else 0.0


def _constant(costs: _Costs) -> CorrelationSelection:
    scope = _cluster(costs.cost, len(costs.cost))
    annotation = _annotation(costs, CostClass.CONSTANT, (scope,))
    return CorrelationSelection(
        CorrelationKind.CONSTANT, annotation, None, costs.pcc, 0, _relative(costs.cost - costs.cost.mean(), costs.cost), costs.best
    )


def _clustered(costs: _Costs, polynomial_error: float | None) -> CorrelationSelection:
    parts = clusters(np.sort(costs.cost))
    scopes = tuple(_cluster(part, len(costs.cost)) for part in parts)
    annotation = _annotation(costs, CostClass.MIXTURE if len(scopes) > 1 else CostClass.CONSTANT, scopes)
    error = _relative(np.concatenate([part - part.mean() for part in parts]), costs.cost)
    return CorrelationSelection(
        CorrelationKind.UNCORRELATED, annotation, None, costs.pcc, 0, error, costs.best, costs.lowest, polynomial_error
    )


def _cluster(costs: Floats, calls: int) -> Scope:
    """Return a centroid with the standard deviation about it."""
    share = six_digits(len(costs) / calls)
    terms = (Term(six_digits(float(costs.mean()))),)
    return Scope(CostClass.CONSTANT, terms, _sigma(costs - costs.mean(), costs), share, len(costs), probability=share)


def clusters(ordered: Floats) -> list[Floats]:
    """Return the clusters of rising costs by k-means (§3): one more, from 1 on, until the error falls by less than `ELBOW` times.

    Clusters of one dimension are stretches of the sorted costs: the k + 1 borders start from those of k and the best one within a stretch,
    which makes them the same for the same costs.
    """
    scale = float(np.abs(ordered).max()) or 1.0
    centred = ordered / scale - np.mean(ordered / scale)  # sums of squares of large costs would lose the small differences between them
    sums, squares = _cumulated(centred), _cumulated(centred**2)

    def error(start: int, end: int) -> float:
        return float(_errors(sums, squares, np.array([start]), np.array([end]))[0])

    borders = [0, len(ordered)]
    left = error(0, len(ordered))
    floor = _EQUAL**2 * len(ordered)
    while len(borders) <= MOST_CLUSTERS and left > floor:
        more = _settled(centred, sums, _with_another(borders, sums, squares))
        remaining = sum(error(start, end) for start, end in pairwise(more))
        if len(more) == len(borders) or left < ELBOW * remaining:
            break
        borders, left = more, remaining
    return [ordered[start:end] for start, end in pairwise(borders)]


def _cumulated(values: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])


def _errors(sums: Floats, squares: Floats, start: Ints, end: Ints) -> Floats:
    """Return the squared errors of stretches about their means (k,)."""
    count = np.maximum(end - start, 1)
    return np.asarray(np.maximum(squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / count, 0.0))


def _with_another(borders: Sequence[int], sums: Floats, squares: Floats) -> list[int]:
    """Return the borders and one more: that which leaves the smallest error."""
    best, place = 0.0, 0
    for start, end in pairwise(borders):
        between = np.arange(start + 1, end)
        if not len(between):
            continue
        whole = _errors(sums, squares, np.array([start]), np.array([end]))[0]
        left, right = np.full_like(between, start), np.full_like(between, end)
        gains = whole - _errors(sums, squares, left, between) - _errors(sums, squares, between, right)
        if gains.max() > best:
            best, place = float(gains.max()), int(between[gains.argmax()])
    return sorted({*borders, place})


def _settled(ordered: Floats, sums: Floats, borders: list[int]) -> list[int]:
    """Return borders midway between the means of their stretches (Lloyd's steps)."""
    for _ in range(_LLOYD_STEPS):
        ends = np.array(borders)
        means = (sums[ends[1:]] - sums[ends[:-1]]) / np.maximum(ends[1:] - ends[:-1], 1)
        moved = [0, *np.searchsorted(ordered, (means[1:] + means[:-1]) / 2).tolist(), len(ordered)]
        if moved == borders or len(set(moved)) < len(moved):
            break
        borders = moved
    return borders


def _annotation(costs: _Costs, cost_class: CostClass, scopes: tuple[Scope, ...]) -> Annotation:
    return Annotation(costs.function, costs.metric, cost_class, scopes, (), {}, {}, 0.0, float("nan"), len(costs.cost))
