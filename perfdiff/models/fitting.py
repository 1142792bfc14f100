"""Fit an annotation to a sample table (Freud §3.2; HotCloud §3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from perfdiff.models.annotation import Annotation, Condition, CostClass, Factors, Operator, Scope, Term, Trend, design
from perfdiff.models.digits import rounded_coefficients, rounded_distribution, six_digits
from perfdiff.models.distribution import Binomial, Distribution, Exponential, Normal
from perfdiff.models.envelope import SELECTABLE, refined, selected
from perfdiff.models.growth import completed, dominant_class
from perfdiff.models.likelihood import DistributionFit, bounded, counted, scattered, trending
from perfdiff.models.modes import members
from perfdiff.models.observations import Observations, observe
from perfdiff.models.regression import EXACT, NOISY, Regime, Tolerance, fit_terms, left_out, matrix
from perfdiff.models.scopes import Leaf, grow
from perfdiff.models.threads import one_thread
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.metrics import METRICS, metric_of
from perfdiff.records.schema import Feature, Origin, SampleTable

# Terms are chosen on at most this many rows, taken evenly over the sorted costs; coefficients are fitted on all.
_SEARCHED = 2500
_FOLDS = 5
# Noise adds to these and never takes away.
_DELAYED = frozenset(name for name, metric in METRICS.items() if metric.unit == "ns")


@one_thread()
def fit(
    table: SampleTable, metric: str, *, seed: int, points: Mapping[int, Mapping[str, float | str]] | None = None, function: str = ""
) -> Annotation:
    """Learn how a metric of a function follows from its inputs.

    `points` holds workload parameters by point, added as features where the table lacks them; `function` is the name in the text. `seed`
    deals runs into the folds of the cross-validation; all else is deterministic. Rows without the metric are ignored; ValueError
    where none is left.
    """
    observations = _observed(_joined(table, points or {}), metric)
    tolerance = _tolerance(metric)
    searched = observations.rows(_thinned(observations.cost))
    leaves = grow(searched, tolerance)
    scopes = []
    for leaf in leaves:
        for terms, rows in leaf.modes:
            alone = len(leaf.modes) == 1
            regime = leaf.regime if alone else Regime(searched.rows(rows), tolerance)
            refinement = refined(regime, terms) if alone and metric in _DELAYED else None
            empty = tuple(Term(0.0, factors) for factors in completed(refinement.terms if refinement else terms, regime.rows.columns))
            scope = Scope(CostClass.CONSTANT, empty, 0.0, 0.0, 0, leaf.conditions, trend=refinement.trend if refinement else Trend.MEAN)
            # Modes need coefficients before rows can be given to the nearest.
            scopes.append(scope if alone else _fitted(scope, regime, alone=False)[0])
    leaf_by_conditions = {leaf.conditions: leaf for leaf in leaves if len(leaf.modes) == 1} if len(searched) == len(observations) else {}
    return _annotated(scopes, _FitSubject(observations, metric, function or f"f{table.function}", seed, leaf_by_conditions))


@one_thread()
def refit(annotation: Annotation, table: SampleTable, metric: str, *, seed: int = 1) -> Annotation:
    """Return the same structure with the coefficients of another table; a scope without records there keeps its own, with share 0."""
    return _annotated(annotation.scopes, _FitSubject(_observed(table, metric), metric, annotation.function, seed))


@dataclass(frozen=True, slots=True)
class _FitSubject:
    """The `rows` that an annotation of a `metric` is fitted to; `leaves` holds those of them that the search for scopes fitted already."""

    rows: Observations
    metric: str
    function: str
    seed: int
    leaves: Mapping[tuple[Condition, ...], Leaf] = field(default_factory=dict)

    def regime(self, scope: Scope, index: Ints) -> Regime:
        """Return the rows of a scope, which stand at `index`, with the fits that are known of them."""
        leaf = self.leaves.get(scope.conditions)
        if leaf is not None and np.array_equal(leaf.rows, index):
            return leaf.regime
        return Regime(self.rows.rows(index), _tolerance(self.metric))


def _observed(table: SampleTable, metric: str) -> Observations:
    observations = observe(table, metric)
    if not len(observations):
        raise ValueError(f"function {table.function} has no record with {metric}")
    return observations


def _tolerance(metric: str) -> Tolerance:
    return NOISY if metric_of(metric).noisy else EXACT


def _joined(table: SampleTable, points: Mapping[int, Mapping[str, float | str]]) -> SampleTable:
    """Return the table with the workload parameters that it lacks; texts become categories."""
    present = {feature.name for feature in table.features}
    features, columns = [], []
    for name in dict.fromkeys(name for parameters in points.values() for name in parameters if name not in present):
        values = [points.get(int(point), {}).get(name) for point in table.point]
        texts = sorted({value for value in values if isinstance(value, str)})
        features.append(Feature(name, Origin.WORKLOAD, bool(texts), dict(enumerate(texts))))
        columns.append([np.nan if v is None else float(texts.index(v)) if isinstance(v, str) else v for v in values])
    if not features:
        return table
    return replace(table, features=(*table.features, *features), values=np.column_stack([table.values, *columns]))


def _thinned(cost: Floats) -> Ints:
    """Return the rows to search, as they stand in the table: all, or every k-th by cost, so that rare large calls keep their part."""
    if len(cost) <= _SEARCHED:
        return np.arange(len(cost))
    places = np.linspace(0, len(cost) - 1, _SEARCHED).round().astype(np.int64)
    return np.sort(np.argsort(cost, kind="stable")[places])


def _fitted(scope: Scope, regime: Regime, *, alone: bool) -> tuple[Scope, Floats]:
    """Return the scope with coefficients and distribution from a regime's rows, and the rows' final weights (n,).

    The components of a mixture, which are not `alone`, are normal: what lies between them has been dealt to the nearest.
    """
    rows = regime.rows
    factors = tuple(term.factors for term in scope.terms)
    columns, estimate = _verdict(scope, regime, factors, alone=alone)
    law = rounded_distribution(estimate.distribution)
    values = rounded_coefficients(columns, estimate.coefficients)
    if isinstance(law, Binomial) and law.trials is not None:
        values = np.array([law.expected])
    terms = tuple(Term(float(value), own_factors) for value, own_factors in zip(values, factors, strict=True))
    learnt = replace(
        scope,
        cost_class=dominant_class(terms, rows.columns, len(rows)),
        terms=terms,
        sigma=_sigma(law, (rows.cost - columns @ values)[estimate.weights > 0]),
        n=len(rows),
        trimmed=six_digits(float(np.mean(estimate.weights == 0))),
        distribution=None if isinstance(law, Normal) and not law.relative else law,
    )
    return learnt, estimate.weights


def _verdict(scope: Scope, regime: Regime, factors: tuple[Factors, ...], *, alone: bool) -> tuple[Floats, DistributionFit]:
    """Return the columns (n, k) of a scope's terms, and their coefficients and distribution, from the rows that its trend describes."""
    rows, tolerance = regime.rows, regime.tolerance
    if scope.trend is not Trend.MEAN:
        columns = matrix(factors, rows.columns, len(rows))
        feature = next(rows.columns[name] for own_factors in factors for name, _ in own_factors)
        chosen = selected(scope.trend, feature, rows.cost) if len(rows) >= SELECTABLE else np.arange(len(rows))
        solution = fit_terms(columns[chosen], rows.cost[chosen], tolerance).coefficients
        return columns, (bounded if scope.trend is Trend.LOWER_BOUND else trending)(columns, rows.cost, solution)
    columns, result = regime.fitted(factors)
    counts = counted(columns, rows.cost, result.coefficients) if alone and not tolerance.robust else None
    estimate = counts or scattered(columns, rows.cost, result.coefficients, result.weights, skewed=alone and tolerance.robust)
    return columns, estimate


def _sigma(law: Distribution, residuals: Floats) -> float:
    """Return the standard deviation over the scope's rows."""
    match law:
        case Exponential(mean):
            return mean
        case Normal(sigma, 0.0):
            return sigma
        case Binomial(_, trials) if trials is not None:
            return law.sigma
    return six_digits(float(np.sqrt(np.mean(residuals**2))))


def _annotated(scopes: Sequence[Scope], subject: _FitSubject) -> Annotation:
    """Fit every scope to its rows and measure the quality of the whole."""
    rows = subject.rows
    fitted: list[Scope] = []
    whole: list[tuple[Regime, list[Factors]]] = []
    weights = np.zeros(len(rows))
    for _, group in groupby(scopes, key=lambda scope: scope.conditions):
        modes = list(group)
        dealt = members(modes, rows)
        within = sum(len(index) for index in dealt)
        for scope, index in zip(modes, dealt, strict=True):
            if len(index) == 0:
                fitted.append(replace(scope, share=0.0, n=0, probability=0.0 if within else scope.probability))
                continue
            regime = subject.regime(scope, index)
            learned, weights[index] = _fitted(scope, regime, alone=len(modes) == 1)
            whole.append((regime, [term.factors for term in learned.terms]))
            if len(modes) > 1:  # the mean over modes is what inputs predict, so no mode may outweigh another
                weights[index] = (weights[index] > 0) / max(float(np.mean(rows.cost**2)), 1e-300)
            fitted.append(replace(learned, share=six_digits(len(index) / len(rows)), probability=six_digits(len(index) / within)))
    names = dict.fromkeys(name for scope in fitted for name in _names(scope))
    finite = {name: rows.columns[name][np.isfinite(rows.columns[name])] for name in names}
    annotation = Annotation(
        function=subject.function,
        metric=subject.metric,
        cost_class=_overall(fitted),
        scopes=tuple(fitted),
        features=tuple(names),
        twins={name: rows.twins[name] for name in names if name in rows.twins},
        ranges={name: (float(column.min()), float(column.max())) for name, column in finite.items() if len(column)},
        r2=0.0,
        cv_r2=0.0,
        n=len(rows),
        origins={name: rows.origins[name].value for name in names if name in rows.origins},
        typical={
            name: float(np.median(finite[name])) for scope in fitted for t in scope.terms for name, _ in t.factors if len(finite[name])
        },
        further=next(filter(None, (left_out(regime, factors) for regime, factors in whole)), None),
    )
    columns = design(annotation, rows.columns)
    return replace(
        annotation,
        r2=_explained(rows.cost, annotation.predict(rows.columns), weights > 0),
        cv_r2=_explained(rows.cost, _held_out(columns, rows, weights, subject.seed), weights > 0),
    )


def _names(scope: Scope) -> list[str]:
    return [*(condition.feature for condition in scope.conditions), *(name for term in scope.terms for name, _ in term.factors)]


def _overall(scopes: Sequence[Scope]) -> CostClass:
    """Return the class of the whole: mixture where inputs do not separate modes, piecewise where pieces of a range or modes of
    different classes meet, else the class that all modes share. Calls while the function warms up have no part in it.
    """
    scopes = [scope for scope in scopes if not scope.is_warming] or scopes
    if any(scope.probability < 1 for scope in scopes):
        return CostClass.MIXTURE
    bounded = any(c.operator is Operator.AT_MOST and not c.labels for scope in scopes for c in scope.conditions)
    kinds = {scope.cost_class for scope in scopes if scope.n}
    return CostClass.PIECEWISE if bounded or len(kinds) != 1 else kinds.pop()


def _held_out(columns: Floats, rows: Observations, weights: Floats, seed: int) -> Floats:
    """Predict each row by a fit of other runs (n,): folds of whole runs, dealt so that every fold has runs of every point."""
    runs, index = np.unique(rows.run, return_inverse=True)
    if len(runs) < 2:
        runs, index = np.arange(len(rows)), np.arange(len(rows))
    point = np.zeros(len(runs), dtype=np.int64)
    point[index] = rows.point
    dealt = np.lexsort((np.random.default_rng(seed).permutation(len(runs)), point))
    fold = np.empty(len(runs), dtype=np.int64)
    fold[dealt] = np.arange(len(runs)) % _FOLDS
    predicted = np.full(len(rows), np.nan)
    root = np.sqrt(weights)
    if columns.shape[1] == 1:  # sums serve for all folds, as most costs are constant
        column, folds = columns[:, 0], min(_FOLDS, len(runs))
        squares, products = (np.bincount(fold[index], weights * column * factor, folds) for factor in (column, rows.cost))
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = np.where(squares.sum() > squares, (products.sum() - products) / (squares.sum() - squares), 0.0)
        return np.asarray(slopes[fold[index]] * column)
    scale = np.maximum(np.sqrt(((columns * root[:, None])[weights > 0] ** 2).sum(axis=0)), 1e-300)
    for held in range(min(_FOLDS, len(runs))):
        test = fold[index] == held
        train = ~test & (weights > 0)
        solution = np.linalg.lstsq(columns[train] * root[train, None] / scale, rows.cost[train] * root[train], rcond=1e-12)[0]
        predicted[test] = columns[test] @ (solution / scale)
    return predicted


def _explained(cost: Floats, predicted: Floats, included: Bools) -> float:
    """Return R² over the rows that were kept; 0 for a cost that does not vary, unless it is met exactly."""
    if not included.any():
        return 0.0
    left = float(((cost - predicted)[included] ** 2).sum())
    total = float(((cost - cost[included].mean())[included] ** 2).sum())
    if total <= 1e-20 * float((cost[included] ** 2).sum()):
        return 1.0 if left <= 1e-20 * float((cost[included] ** 2).sum()) else 0.0
    return round(1.0 - left / total, 6) + 0.0  # no minus zero
