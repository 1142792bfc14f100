"""What costs are at inputs that were not measured, with what is not known of them: growth class, coefficients, drift and scatter.

A prediction is made of draws. Each takes a growth class, by Burnham and Anderson's weights (2002) over those whose BIC lies within the
margin; coefficients, by a jackknife over runs and over inputs; and a drift of the cost beyond the measured range, as large as the one that
shows where the largest inputs are left out of the fit (rolling origin, Tashman 2000). Single calls scatter about that.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiff.models import noise
from perfdiff.models.annotation import Annotation, CostClass, Factors, Scope, Term, Trend, inputs, membership
from perfdiff.models.growth import SHAPES, dominant_class, order
from perfdiff.models.middle import median
from perfdiff.models.modes import members
from perfdiff.models.observations import Observations, observe
from perfdiff.models.regression import EXACT, NOISY, Regime, Tolerance, matrix
from perfdiff.models.selection import MARGIN, Basis, Contest
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import SampleTable

DRAWS = 20_000
LEVEL = 0.95  # of intervals
# By how much the logarithm of a cost drifts beyond the measured range, a random walk over that of the input: by 0.15 a time is off by a
# quarter at ten times the range, as where data outgrow a cache, which shows in no smaller input.
DRIFT_NOISY, DRIFT_EXACT = 0.15, 0.015
_HALVINGS = 3  # of the measured range, above which inputs are left out
_FEWEST = 8  # rows below that
_LEAST_SPAN = math.log(2.0)  # a drift over less than a doubling tells of noise
_BLOCKS = 10  # of like inputs, which are left out one after the other
_SLIGHT = 0.01  # a class of less weight is left out


@dataclass(frozen=True, slots=True)
class GrowthModel:
    """A model of a scope that fits about as well as any: `coefficients` (k,) of its terms, their `covariance` (k, k) and its `freedom`."""

    cost_class: CostClass
    factors: tuple[Factors, ...]
    coefficients: Floats
    covariance: Floats
    freedom: int
    weight: float

    def draws(self, values: Mapping[str, Floats], many: int, rng: np.random.Generator) -> Floats:
        """Return expected costs (many,) at one input, as far as the coefficients are known."""
        row = matrix(self.factors, values, 1)[0]
        spread = math.sqrt(max(float(row @ self.covariance @ row), 0.0))
        return np.asarray(row @ self.coefficients + spread * rng.standard_t(self.freedom, many))


@dataclass(frozen=True, slots=True)
class ScopeModel:
    """A scope, or a mode of one, with the candidates for it; `drift` is that of the cost beyond the range, `scatter` draws calls.

    `scatter` takes expected costs (n,) and a generator.
    """

    scope: Scope
    candidates: Callable[[frozenset[str]], tuple[GrowthModel, ...]]
    drift: float
    scatter: Callable[[Floats, np.random.Generator], Floats]


@dataclass(frozen=True, slots=True)
class Forecast:
    """A cost at an input, by draws (DRAWS,) of the expected one, and of single calls; intervals hold with probability `LEVEL`.

    `beyond` tells, by feature, how many times the end of its measured range is left; `classes` which growth may go on, by weight.
    """

    draws: Floats
    calls: Floats
    beyond: Mapping[str, float]
    classes: Mapping[CostClass, float]

    @property
    def expected(self) -> float:
        """Return the median of the expected costs."""
        return float(np.median(self.draws))

    @property
    def interval(self) -> tuple[float, float]:
        """Return the ends between which the expected cost lies."""
        low, _, high = summary(self.draws)
        return low, high

    @property
    def call_interval(self) -> tuple[float, float]:
        """Return the ends between which a single new call lies."""
        low, _, high = summary(self.calls)
        return low, high

    def times(self, factor: float) -> Forecast:
        """Return the forecast with each draw multiplied by `factor`."""
        return replace(self, draws=self.draws * factor, calls=self.calls * factor)

    def varied(self, deviation: float, rng: np.random.Generator) -> Forecast:
        """Return the same with single calls that vary besides, by a standard deviation."""
        return replace(self, calls=np.maximum(self.calls + deviation * rng.standard_normal(DRAWS), 0.0)) if deviation else self

    def plus(self, added: Floats) -> Forecast:
        """Return the same with an amount added to each draw (DRAWS,), down to nothing."""
        return replace(self, draws=np.maximum(self.draws + added, 0.0), calls=np.maximum(self.calls + added, 0.0))


def mixed(forecasts: Sequence[Forecast]) -> Forecast:
    """Return the cost of calls at several inputs, of which each is met as often: what is expected of all, and single calls at any."""
    calls = np.array([forecast.calls for forecast in forecasts])
    beyond = {name: max(forecast.beyond.get(name, 1.0) for forecast in forecasts) for forecast in forecasts for name in forecast.beyond}
    classes = dict.fromkeys((kind for forecast in forecasts for kind in forecast.classes), 0.0)
    for forecast in forecasts:
        for kind, weight in forecast.classes.items():
            classes[kind] += weight / len(forecasts)
    mean = np.mean([forecast.draws for forecast in forecasts], axis=0)
    return Forecast(mean, calls[np.arange(DRAWS) % len(forecasts), np.arange(DRAWS)], beyond, classes)


def summary(draws: Floats) -> tuple[float, float, float]:
    """Return the low end of the interval of some draws, their median, and the high end."""
    tail = (1 - LEVEL) / 2
    low, middle, high = np.quantile(draws, (tail, 0.5, 1 - tail)).tolist()
    return low, middle, high


@dataclass(frozen=True, slots=True)
class CostModel:
    """An annotation that predicts: its parts, the measured `ranges` of all numeric features, those included that it does not use, and the
    codes of categories that were `seen`.
    """

    annotation: Annotation
    parts: tuple[ScopeModel, ...]
    ranges: Mapping[str, tuple[float, float]]
    seen: Mapping[str, frozenset[float]] = field(default_factory=dict)

    def forecast(self, given: Mapping[str, float], *, seed: int, version: int = 0) -> Forecast | None:
        """Return the cost at an input; features that are not given are as they typically are.

        None where no scope holds, or no call was seen in such a mode. Draws of several versions of a function, told apart by their
        number, share the drift: they run on one machine.
        """
        rng, drifts = np.random.default_rng((seed, version)), np.random.default_rng(seed).standard_normal(DRAWS)
        values = {name: np.array([value]) for name, value in given.items()}
        weights = np.array([float(membership((part.scope,), values, 1)[0]) * part.scope.probability for part in self.parts])
        if not weights.sum() > 0 or any(value not in self.seen.get(name, {value}) for name, value in given.items()):
            return None
        weights /= weights.sum()
        filled, _ = inputs(self.annotation, values)
        left = {name: far for name, value in given.items() if (far := _left(value, self.ranges.get(name))) > 1}
        distance = sum(math.log(far) for far in left.values())
        mean, classes = np.zeros(DRAWS), dict[CostClass, float]()
        calls, which = np.zeros(DRAWS), rng.choice(len(self.parts), DRAWS, p=weights)
        for place, (part, weight) in enumerate(zip(self.parts, weights, strict=True)):
            if weight == 0:
                continue
            candidates = part.candidates(frozenset(left))
            drawn = _drawn(candidates, filled, rng) * np.exp(part.drift * math.sqrt(distance) * drifts)
            drawn = np.maximum(drawn, 0.0)
            mean += weight * drawn
            chosen = which == place
            calls[chosen] = np.maximum(part.scatter(drawn[chosen], rng), 0.0)
            for candidate in candidates:
                growth = candidate.cost_class
                classes[growth] = classes.get(growth, 0.0) + float(weight) * candidate.weight
        return Forecast(mean, calls, left, dict(sorted(classes.items(), key=lambda weighed: -weighed[1])))


def learnt(annotation: Annotation, table: SampleTable) -> CostModel:
    """Return a cost model from an annotation and the calls that it was fitted to."""
    rows = observe(table, annotation.metric)
    tolerance = NOISY if metric_of(annotation.metric).noisy else EXACT
    parts = []
    for conditions in dict.fromkeys(scope.conditions for scope in annotation.scopes):
        modes = [scope for scope in annotation.scopes if scope.conditions == conditions]
        for scope, index in zip(modes, members(modes, rows), strict=True):
            if len(index):
                parts.append(_part(scope, Regime(rows.rows(index), tolerance), is_mode=len(modes) > 1))
    numeric = {*rows.numeric, *(twin for twins in rows.twins.values() for twin in twins)}
    finite = {name: rows.columns[name][np.isfinite(rows.columns[name])] for name in numeric}
    ranges = {name: (float(column.min()), float(column.max())) for name, column in finite.items() if len(column)}
    seen = {feature.name: frozenset(table.values[:, place].tolist()) for place, feature in enumerate(table.features) if feature.category}
    return CostModel(annotation, tuple(parts), {**ranges, **annotation.ranges}, seen)


def written(annotation: Annotation) -> CostModel:
    """Return what predicts by an annotation alone, as a file holds it: of its coefficients no more is known than how runs lie about it."""
    levels = annotation.levels
    spread = math.hypot(levels.spread / math.sqrt(max(levels.runs, 1)), levels.misfit) if levels else 0.0
    drift = DRIFT_NOISY if metric_of(annotation.metric).noisy else DRIFT_EXACT
    freedom = max((levels.runs if levels else annotation.n) - 1, 1)

    def part(scope: Scope) -> ScopeModel:
        coefficients = np.array([term.coefficient for term in scope.terms])
        covariance = np.outer(coefficients, coefficients) * spread**2
        only = GrowthModel(scope.cost_class, tuple(term.factors for term in scope.terms), coefficients, covariance, freedom, 1.0)

        def scatter(expected: Floats, rng: np.random.Generator) -> Floats:
            return scope.scatter.quantile(expected, rng.random(len(expected)))

        return ScopeModel(scope, lambda _: (only,), drift, scatter)

    return CostModel(annotation, tuple(part(scope) for scope in annotation.scopes if scope.probability > 0), annotation.ranges)


def _left(value: float, measured: tuple[float, float] | None) -> float:
    """Return how many times the nearer end of a measured range a value is; 1 within it, and where nothing is known of the range."""
    if measured is None or measured[0] <= value <= measured[1]:
        return 1.0
    ends = (measured[1], value) if value > measured[1] else (value, measured[0])
    low, high = (max(end, 1.0) for end in ends)  # no input of a size is less
    return high / low


def _drawn(candidates: Sequence[GrowthModel], values: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
    which = rng.choice(len(candidates), DRAWS, p=[candidate.weight for candidate in candidates])
    drawn = np.zeros(DRAWS)
    for place, candidate in enumerate(candidates):
        chosen = which == place
        drawn[chosen] = candidate.draws(values, int(chosen.sum()), rng)
    return drawn


def _part(scope: Scope, regime: Regime, *, is_mode: bool) -> ScopeModel:
    rows = regime.rows
    factors = tuple(term.factors for term in scope.terms)
    expected = scope.expected(rows.columns, len(rows))
    law = noise.estimate(expected, rows.cost - expected, floor=0.0)
    standardised = (rows.cost - expected) / law.deviation(expected)

    def scatter(costs: Floats, rng: np.random.Generator) -> Floats:
        return costs + law.deviation(costs) * rng.choice(standardised, len(costs)) if len(costs) else costs

    @functools.cache
    def candidates(beyond: frozenset[str]) -> tuple[GrowthModel, ...]:
        is_settled = is_mode or scope.trend is not Trend.MEAN
        weighed = {factors: 1.0} if is_settled else _weights(regime, factors, beyond)
        return tuple(_candidate(regime, terms, weight) for terms, weight in weighed.items())

    return ScopeModel(scope, candidates, _drift(regime, factors), scatter)


def _weights(regime: Regime, chosen: tuple[Factors, ...], beyond: frozenset[str]) -> dict[tuple[Factors, ...], float]:
    """Return the terms that the rows leave possible, each set with its weight: the chosen ones, and others over features beyond."""
    used = tuple(dict.fromkeys(name for factors in chosen if len(factors) > 1 for name, _ in factors))
    free = [name for name in regime.candidates().shapes if name in beyond and name not in used]
    candidates = regime.candidates(used) if used else regime.candidates()
    if not free or any(factors not in candidates.index for factors in chosen):
        return {chosen: 1.0}
    sets = [chosen]
    for name in free:
        others = tuple(factors for factors in chosen if all(feature != name for feature, _ in factors))
        power = max((order(factors)[0] for factors in chosen if factors not in others), default=0)
        sets += [
            (*others, *shape) for shape in _shapes(name, regime, candidates) if abs(max(order(term)[0] for term in shape) - power) <= 1
        ]
        sets += [others] if power <= 1 else []
    sets = list(dict.fromkeys(tuple(sorted(terms)) for terms in sets))
    scores = Contest(candidates, regime.rows.cost, regime.setting).bic([[candidates.index[term] for term in terms] for terms in sets])
    weights = np.where(scores <= scores.min() + MARGIN, np.exp((scores.min() - scores) / 2), 0.0)
    weights = np.where(weights >= _SLIGHT * weights.sum(), weights, 0.0)
    return {terms: float(weight) for terms, weight in zip(sets, weights / weights.sum(), strict=True) if weight}


def _shapes(name: str, regime: Regime, candidates: Basis) -> Iterator[tuple[Factors, ...]]:
    """Yield the shapes that a feature's values leave possible, those included that meet the mean cost of every value."""
    distinct = len(np.unique(regime.rows.columns[name]))
    for shape in SHAPES:
        terms = tuple(((name, function),) for function in shape)
        if len(terms) < distinct and all(term in candidates.index for term in terms):
            yield terms


def _candidate(regime: Regime, terms: tuple[Factors, ...], weight: float) -> GrowthModel:
    rows = regime.rows
    columns, fit = regime.fitted(terms)
    blocks = _blocks(columns @ fit.coefficients, regime.alike.inputs)
    jackknives = [_jackknifed(columns, rows.cost, fit.weights, groups) for groups in (rows.run, blocks)]
    covariance = np.sum([jackknife.covariance for jackknife in jackknives], axis=0)
    freedom = min((jackknife.groups - 1 for jackknife in jackknives if jackknife.groups), default=max(len(rows) - len(terms), 1))
    fitted = [Term(float(value), factors) for value, factors in zip(fit.coefficients, terms, strict=True)]
    growth = dominant_class(fitted, rows.columns, len(rows))
    return GrowthModel(growth, terms, fit.coefficients, covariance, freedom, weight)


def _blocks(expected: Floats, same: Ints) -> Ints:
    """Return the block of each row (n,): rows of the `same` inputs in one, at most `_BLOCKS` blocks of as many inputs, by expected cost."""
    ids, index = np.unique(same, return_inverse=True)
    order = np.argsort(np.bincount(index, weights=expected) / np.bincount(index), kind="stable")
    block = np.empty(len(ids), dtype=np.int64)
    block[order] = np.arange(len(ids)) * min(_BLOCKS, len(ids)) // len(ids)
    return np.asarray(block[index])


@dataclass(frozen=True, slots=True)
class _Jackknife:
    """The `covariance` (k, k) of coefficients by leaving out one of so many `groups` after the other; of none where that tells nothing."""

    covariance: Floats
    groups: int


def _jackknifed(columns: Floats, cost: Floats, weights: Floats, groups: Ints) -> _Jackknife:
    """Leave out one group of rows after the other; that tells nothing where a group's rows are needed to tell the terms apart."""
    ids, index = np.unique(groups, return_inverse=True)
    terms = columns.shape[1]
    nothing = _Jackknife(np.zeros((terms, terms)), 0)
    if len(ids) < 2:
        return nothing
    root = np.sqrt(weights)
    scale = np.maximum(np.sqrt(((columns * root[:, None]) ** 2).sum(axis=0)), 1e-300)
    scaled, target = columns * root[:, None] / scale, cost * root
    without = []
    for group in range(len(ids)):
        rest = index != group
        solution, _, rank, _ = np.linalg.lstsq(scaled[rest], target[rest], rcond=1e-9)
        if rank < terms:
            return nothing
        without.append(solution / scale)
    apart = np.array(without) - np.mean(without, axis=0)
    return _Jackknife((len(ids) - 1) / len(ids) * apart.T @ apart, len(ids))


def _drift(regime: Regime, terms: tuple[Factors, ...]) -> float:
    """Return by how much a cost drifts beyond the range that it was learnt from, per square root of the logarithm of the distance."""
    prior = DRIFT_NOISY if regime.tolerance.robust else DRIFT_EXACT
    names = dict.fromkeys(name for factors in terms for name, _ in factors) or regime.usable
    errors = [error for name in names for error in _errors(regime.rows, terms, name, regime.tolerance)]
    return math.hypot(prior, math.sqrt(sum(error**2 for error in errors) / max(len(errors), 1)))


def _errors(rows: Observations, terms: tuple[Factors, ...], name: str, tolerance: Tolerance) -> Iterator[float]:
    """Yield the drifts that show where the largest values of a feature are left out of the fit."""
    column = rows.columns[name]
    for halving in range(1, _HALVINGS + 1):
        low = column <= column.max() / 2**halving
        if low.sum() < _FEWEST or len(np.unique(column[low])) < max(len(terms), 2):
            return
        _, fit = Regime(rows.rows(low), tolerance).fitted(terms)
        end = float(column[low].max())
        above = (column > end) & (column <= end * 4)
        if end <= 0 or not above.any():
            continue
        expected = matrix(terms, rows.columns, len(rows)) @ fit.coefficients
        before, after = median(expected[above]), median(rows.cost[above])
        if before > 0 and after > 0:
            yield math.log(after / before) / math.sqrt(max(math.log(median(column[above]) / end), _LEAST_SPAN))
