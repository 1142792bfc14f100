"""Scopes: partition the calls until one regime explains each part (Freud §3.2, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.models.annotation import PHASE, STEADY, Condition, Factors, Operator
from perfdiff.models.middle import median
from perfdiff.models.modes import split_modes
from perfdiff.models.observations import Observations, ranks
from perfdiff.models.regression import Regime, TermChoice, Tolerance, decide, matrix
from perfdiff.models.selection import MARGIN, ContestSetting
from perfdiff.models.warmup import LEAST_FACTOR
from perfdiff.records.arrays import Bools, Floats, Ints

# A scope must take away this share of what the common regime leaves unexplained in it: modes that differ less than the noise are one.
MATERIAL_SPLIT = 0.25
# A border within a numeric feature must take away more, and of the whole: two lines bend like any curve.
MATERIAL_BORDER = 0.60
# No scope for fewer rows: below, a handful of slow calls would become a regime.
SMALLEST = 10
SMALLEST_SHARE = 0.02
# Scopes nest this deep at most; Freud's examples nest once.
DEPTH = 3
# Categories with more labels than this are identifiers, not modes.
_LABELS = 16
_BORDERS = 15  # quantiles tried as borders of a numeric feature
_DISTINCT = 12  # a border needs this many distinct values, else a shape over the values says the same
_RANKED_FEATURES = 6  # features, by screening order, beside the pilot's terms when splits are ranked
_RIDGE = 1e-10  # keeps constant or collinear columns of a side solvable
_PLAINNESS = 1.02  # a plainer split wins unless another leaves 2 % less


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scope's rows: indices into the observations, as a regime, and one set of terms per mode with the rows of that mode."""

    conditions: tuple[Condition, ...]
    rows: Ints
    regime: Regime
    modes: tuple[tuple[tuple[Factors, ...], Ints], ...]


@dataclass(frozen=True, slots=True)
class ScopeSplit:
    """A condition, and where it holds (n,). A border cuts the range of a numeric feature where nothing but the costs tells it to."""

    condition: Condition
    holds: Bools
    border: bool = False


def grow(observations: Observations, tolerance: Tolerance) -> list[Leaf]:
    """Return the scopes; together they hold every row once.

    Calls while a function warms up have scopes of their own where the model of the later ones falls short of them: over few calls of a
    run they weigh so much that no shape of all calls together is sure.
    """
    rows = np.arange(len(observations))
    phases = _phases(observations, tolerance)
    if phases is None:
        return list(_grow(Regime(observations, tolerance), rows, ()))
    split, steady = phases
    warming = Regime(observations.rows(split.holds), tolerance)
    return [
        *_grow(warming, rows[split.holds], (split.condition,)),
        *_grow(steady, rows[~split.holds], (split.condition.negated(),)),
    ]


def _phases(rows: Observations, tolerance: Tolerance) -> tuple[ScopeSplit, Regime] | None:
    """Return the split into calls while a function warms up and later ones, with the latter; None where the cost shows no such thing."""
    if not tolerance.robust or PHASE not in rows.codes:
        return None
    label = next(label for label in rows.codes[PHASE].values() if label != STEADY)
    value = next(float(value) for value, name in rows.codes[PHASE].items() if name == label)
    condition = Condition(PHASE, Operator.IN, (value,), (label,))
    warming = condition.holds(rows.columns[PHASE])
    if min(warming.sum(), (~warming).sum()) < max(SMALLEST, SMALLEST_SHARE * len(rows)):
        return None
    steady = Regime(rows.rows(~warming), tolerance)
    terms = decide(steady, steady.setting).terms
    if any(not np.isfinite(rows.columns[name]).all() for factors in terms for name, _ in factors):
        return None
    expected = matrix(terms, rows.rows(warming).columns, int(warming.sum())) @ steady.fitted(terms)[1].coefficients
    excess = median(rows.cost[warming] - LEAST_FACTOR * np.maximum(expected, 0.0))
    return (ScopeSplit(condition, warming), steady) if excess > 0 else None


def _grow(regime: Regime, index: Ints, conditions: tuple[Condition, ...]) -> Iterator[Leaf]:
    """Yield the scopes of a regime's rows, which stand at `index` (n,) in all observations."""
    if len(index) < 2:
        yield Leaf(conditions, index, regime, ((((),), index),))
        return
    setting = regime.setting
    choice = decide(regime, setting)
    parted = best_split(regime, setting, choice) if len(conditions) < DEPTH else None
    if parted is None:
        modes = split_modes(regime, choice.terms)
        yield Leaf(conditions, index, regime, tuple((terms, index[which]) for terms, which in modes))
        return
    split, (inside, outside) = parted
    yield from _grow(inside, index[split.holds], _narrowed(conditions, split.condition))
    yield from _grow(outside, index[~split.holds], _narrowed(conditions, split.condition.negated()))


def _narrowed(conditions: tuple[Condition, ...], added: Condition) -> tuple[Condition, ...]:
    """Return the conditions with one added; those on the same feature that it makes idle are dropped."""
    implied = {Operator.AT_MOST: Operator.AT_MOST, Operator.ABOVE: Operator.ABOVE, Operator.IN: Operator.NOT_IN}.get(added.operator)
    return (*(c for c in conditions if not (c.feature == added.feature and c.operator is implied)), added)


def best_split(regime: Regime, setting: ContestSetting, whole: TermChoice) -> tuple[ScopeSplit, tuple[Regime, Regime]] | None:
    """Return the split that lowers BIC by the margin and takes away a material share of the misfit, with its two sides, or None.

    All splits are ranked by one regression with free coefficients on both sides; the best is then judged with terms chosen anew
    on each side, under the setting of the whole. The search itself is paid for: 2·log of the number of splits tried.
    """
    rows = regime.rows
    splits = list(_splits(regime, whole))
    if not splits:
        return None
    ranked = _Ranking(regime, setting, whole)
    left = ranked.left([split.holds for split in splits])
    best = splits[int(np.argmax(left <= left.min() * _PLAINNESS))]
    if best.border:
        best = _refined(best, rows, ranked)
    parts = [Regime(rows.rows(which), regime.tolerance) for which in (best.holds, ~best.holds)]
    sides = [decide(part, setting.rows(which)) for part, which in zip(parts, (best.holds, ~best.holds), strict=True)]
    misfit = sum(side.misfit for side in sides)
    terms = sum(len(side.terms) for side in sides) + 1
    gain = setting.bic(np.array([whole.misfit]), len(whole.terms)) - setting.bic(np.array([misfit]), terms) - 2 * np.log(len(splits))
    if gain < MARGIN or not _material(best, whole, sides, setting.unexplained):
        return None
    return best, (parts[0], parts[1])


def _material(split: ScopeSplit, whole: TermChoice, sides: list[TermChoice], unexplained: float) -> bool:
    """Return whether a split takes away enough: a border of the whole misfit, any other of the misfit on its smaller side.

    A rare mode is a small part of the whole, where outliers weigh more.
    """
    before = [(whole.residuals[which] ** 2).sum() + unexplained * which.sum() for which in (split.holds, ~split.holds)]
    after = [side.misfit + unexplained * len(side.residuals) for side in sides]
    if split.border:
        return bool(sum(after) <= (1 - MATERIAL_BORDER) * sum(before))
    smaller = int(split.holds.mean() > 0.5)
    return bool(after[smaller] <= (1 - MATERIAL_SPLIT) * before[smaller])


def _splits(regime: Regime, whole: TermChoice) -> Iterator[ScopeSplit]:
    """Yield the possible splits, plainest first: categories, branches, absence, then borders of numeric features."""
    rows = regime.rows
    least = max(SMALLEST, SMALLEST_SHARE * len(rows))
    for split in (*_category_splits(rows), *_branch_splits(regime), *_absence_splits(rows), *_border_splits(regime, whole)):
        if min(split.holds.sum(), (~split.holds).sum()) >= least:
            yield split


def _category_splits(rows: Observations) -> Iterator[ScopeSplit]:
    """Yield each value against the rest, and the sets below each cut when values are ordered by mean cost (Breiman 1984, §4.2.2)."""
    for name, labels in rows.codes.items():
        column = rows.columns[name]
        values, index = np.unique(column[np.isfinite(column)], return_inverse=True)
        if not 2 <= len(values) <= _LABELS:
            continue
        means = np.bincount(index, weights=rows.cost[np.isfinite(column)]) / np.bincount(index)
        ordered = values[np.argsort(means, kind="stable")]
        sets = [(value,) for value in values[::-1]][: 1 if len(values) == 2 else None]
        sets += [tuple(sorted(ordered[cut:])) for cut in range(2, len(values) - 1)]
        for chosen in sets:
            named = tuple(labels.get(int(value), f"{value:g}") for value in chosen) if labels else ()
            condition = Condition(name, Operator.IN, tuple(float(value) for value in chosen), named)
            yield ScopeSplit(condition, condition.holds(column))


def _branch_splits(regime: Regime) -> Iterator[ScopeSplit]:
    """Yield, per branch, the calls that took it at all, and those that always did.

    Where a feature decides the branch, its border stands for it (Freud §4.3): it says the same of inputs, on any version.
    """
    rows, usable = regime.rows, regime.usable
    for name in rows.branches:
        column = rows.columns[name]
        for condition in (Condition(name, Operator.ABOVE, (0.0,), ("true",)), Condition(name, Operator.IN, (1.0,))):
            holds = condition.holds(column)
            if np.isfinite(column).all() and 0 < holds.sum() < len(rows):
                decider = _decider(usable, holds)
                yield ScopeSplit(decider or condition, decider.holds(usable[decider.feature]) if decider else holds)


def _decider(usable: Mapping[str, Floats], holds: Bools) -> Condition | None:
    """Return the border of a feature that separates the rows as `holds` does, or its reverse."""
    for name, column in usable.items():
        for side in (holds, ~holds):
            low, high = float(column[side].max()), float(column[~side].min())
            if low < high:
                return Condition(name, Operator.AT_MOST, (low,))
    return None


def _absence_splits(rows: Observations) -> Iterator[ScopeSplit]:
    for name, column in rows.columns.items():
        if np.isnan(column).any():
            condition = Condition(name, Operator.ABSENT)
            yield ScopeSplit(condition, condition.holds(column))


def _border_splits(regime: Regime, whole: TermChoice) -> Iterator[ScopeSplit]:
    """Yield quantiles of the features that explain the cost of the whole: where costs jump they also grow.

    A few calls beyond a border may pass for outliers of a constant; the feature that orders the costs best is tried as well.
    """
    explaining = [name for factors in whole.terms for name, _ in factors]
    for name in dict.fromkeys([*explaining, *_ordering(regime)]):
        column = regime.rows.columns[name]
        ordered = np.sort(column)
        if np.count_nonzero(np.diff(ordered)) < _DISTINCT - 1:
            continue
        places = np.floor(np.linspace(0, 1, _BORDERS + 2)[1:-1] * (len(column) - 1)).astype(np.int64)
        for bound in sorted(set(ordered[places].tolist())):
            condition = Condition(name, Operator.AT_MOST, (bound,))
            yield ScopeSplit(condition, condition.holds(column), border=True)


def _ordering(regime: Regime) -> list[str]:
    """Return the numeric feature with the strongest rank correlation with the cost, if there is any feature."""
    cost = ranks(regime.rows.cost)
    varying = {name: ranked for name, column in regime.usable.items() if np.ptp(ranked := ranks(column)) > 0}
    if not varying or np.ptp(cost) == 0:
        return []
    ranked = np.array(list(varying.values())) - cost.mean()  # ranks of whatever values have one mean
    strength = np.abs(ranked @ (cost - cost.mean())) / np.sqrt((ranked**2).sum(axis=1))
    return [list(varying)[int(strength.argmax())]]


def _refined(split: ScopeSplit, rows: Observations, ranked: _Ranking) -> ScopeSplit:
    """Return the border moved to where it leaves least, halving the step over the distinct values around it as long as there are any."""
    column = rows.columns[split.condition.feature]
    values = np.unique(column)
    at = int(np.searchsorted(values, split.condition.values[0]))
    step = max(1, len(values) // _BORDERS)
    best, least = split, float(ranked.left([split.holds])[0])
    while step:
        for near in (at - step, at + step):
            if not 0 <= near < len(values) - 1:
                continue
            condition = replace(split.condition, values=(float(values[near]),))
            moved = replace(split, condition=condition, holds=condition.holds(column))
            left = float(ranked.left([moved.holds])[0])
            if left < least:
                best, least, at = moved, left, near
        step //= 2
    return best


class _Ranking:
    """What splits are ranked by: regressions of the cost on an intercept and likely terms, apart where a split holds and elsewhere."""

    def __init__(self, regime: Regime, setting: ContestSetting, whole: TermChoice) -> None:
        rows, usable = regime.rows, regime.usable
        linear = [((name, "x"),) for name in usable]
        terms = tuple(dict.fromkeys([(), *whole.terms, *linear[:_RANKED_FEATURES]]))
        root = np.sqrt(setting.weights) / setting.deviation
        columns = np.column_stack([matrix(terms, usable, len(rows)), rows.cost]) * root[:, None]
        columns = columns / np.maximum(np.sqrt((columns**2).sum(axis=0)), 1e-300)
        self._width = columns.shape[1]
        # Each row's part in the Gram matrix (n, width²), so that the matrices of all splits are one product.
        self._products = (columns[:, :, None] * columns[:, None, :]).reshape(len(columns), -1)
        self._total = self._products.sum(axis=0).reshape(self._width, self._width)

    def left(self, holds: Sequence[Bools]) -> Floats:
        """Return the sum of squares that is left by each split (s,), given by where it holds (n,)."""
        inner = (np.array(holds, dtype=np.float64) @ self._products).reshape(-1, self._width, self._width)
        sides = np.stack([inner, self._total - inner])
        target = sides[..., :-1, -1]
        solution = np.linalg.solve(sides[..., :-1, :-1] + _RIDGE * np.eye(self._width - 1), target[..., None])[..., 0]
        return np.asarray(np.maximum(sides[..., -1, -1] - (solution * target).sum(axis=-1), 0.0).sum(axis=0))
