"""Scopes: partition the calls until one regime explains each part (Freud §3.2, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from perfdiff.models.annotation import Condition, Factors, Operator
from perfdiff.models.modes import split_modes
from perfdiff.models.observations import Observations, ranks
from perfdiff.models.regression import Choice, Regime, Tolerance, decide, matrix, survey
from perfdiff.models.selection import MARGIN, Setting
from perfdiff.records.schema import Floats

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
    """A scope's rows: indices into the observations, and one set of terms per mode with the rows of that mode."""

    conditions: tuple[Condition, ...]
    rows: npt.NDArray[np.int64]
    modes: tuple[tuple[tuple[Factors, ...], npt.NDArray[np.int64]], ...]


@dataclass(frozen=True, slots=True)
class Split:
    """A condition, and where it holds (n,). A border cuts the range of a numeric feature where nothing but the costs tells it to."""

    condition: Condition
    holds: npt.NDArray[np.bool_]
    border: bool = False


def grow(observations: Observations, tolerance: Tolerance) -> list[Leaf]:
    """Return the scopes; together they hold every row once."""
    return list(_grow(observations, np.arange(len(observations)), (), tolerance))


def _grow(
    observations: Observations, index: npt.NDArray[np.int64], conditions: tuple[Condition, ...], tolerance: Tolerance
) -> Iterator[Leaf]:
    rows = observations.rows(index)
    if len(rows) < 2:
        yield Leaf(conditions, index, ((((),), index),))
        return
    regime = Regime(rows, tolerance)
    setting = survey(regime)
    choice = decide(regime, setting)
    split = best_split(regime, setting, choice) if len(conditions) < DEPTH else None
    if split is None:
        modes = split_modes(regime, choice.terms)
        yield Leaf(conditions, index, tuple((terms, index[which]) for terms, which in modes))
        return
    yield from _grow(observations, index[split.holds], _narrowed(conditions, split.condition), tolerance)
    yield from _grow(observations, index[~split.holds], _narrowed(conditions, split.condition.negated()), tolerance)


def _narrowed(conditions: tuple[Condition, ...], added: Condition) -> tuple[Condition, ...]:
    """Return the conditions with one added; those on the same feature that it makes idle are dropped."""
    implied = {Operator.AT_MOST: Operator.AT_MOST, Operator.ABOVE: Operator.ABOVE, Operator.IN: Operator.NOT_IN}.get(added.operator)
    return (*(c for c in conditions if not (c.feature == added.feature and c.operator is implied)), added)


def best_split(regime: Regime, setting: Setting, whole: Choice) -> Split | None:
    """Return the split that lowers BIC by the margin and takes away a material share of the misfit, or None.

    All splits are ranked by one regression with free coefficients on both sides; the best is then judged with terms chosen anew
    on each side, under the setting of the whole. The search itself is paid for: 2·log of the number of splits tried.
    """
    rows = regime.rows
    splits = list(_splits(regime, whole))
    if not splits:
        return None
    ranked = _ranked(regime, setting, whole)
    total = ranked.T @ ranked
    left = np.array([_left(ranked, total, split.holds) for split in splits])
    best = splits[int(np.argmax(left <= left.min() * _PLAINNESS))]
    if best.border:
        best = _refined(best, rows, ranked, total)
    sides = [decide(Regime(rows.rows(which), regime.tolerance), setting.rows(which)) for which in (best.holds, ~best.holds)]
    misfit = sum(side.misfit for side in sides)
    terms = sum(len(side.terms) for side in sides) + 1
    gain = setting.bic(np.array([whole.misfit]), len(whole.terms)) - setting.bic(np.array([misfit]), terms) - 2 * np.log(len(splits))
    return best if gain >= MARGIN and _material(best, whole, sides, setting.unexplained) else None


def _material(split: Split, whole: Choice, sides: list[Choice], unexplained: float) -> bool:
    """Return whether a split takes away enough: a border of the whole misfit, any other of the misfit on its smaller side.

    A rare mode is a small part of the whole, where outliers weigh more.
    """
    before = [(whole.residuals[which] ** 2).sum() + unexplained * which.sum() for which in (split.holds, ~split.holds)]
    after = [side.misfit + unexplained * len(side.residuals) for side in sides]
    if split.border:
        return bool(sum(after) <= (1 - MATERIAL_BORDER) * sum(before))
    smaller = int(split.holds.mean() > 0.5)
    return bool(after[smaller] <= (1 - MATERIAL_SPLIT) * before[smaller])


def _splits(regime: Regime, whole: Choice) -> Iterator[Split]:
    """Yield the possible splits, plainest first: categories, branches, absence, then borders of numeric features."""
    rows = regime.rows
    least = max(SMALLEST, SMALLEST_SHARE * len(rows))
    for split in (*_category_splits(rows), *_branch_splits(regime), *_absence_splits(rows), *_border_splits(regime, whole)):
        if min(split.holds.sum(), (~split.holds).sum()) >= least:
            yield split


def _category_splits(rows: Observations) -> Iterator[Split]:
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
            yield Split(condition, condition.holds(column))


def _branch_splits(regime: Regime) -> Iterator[Split]:
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
                yield Split(decider or condition, decider.holds(usable[decider.feature]) if decider else holds)


def _decider(usable: Mapping[str, Floats], holds: npt.NDArray[np.bool_]) -> Condition | None:
    """Return the border of a feature that separates the rows as `holds` does, or its reverse."""
    for name, column in usable.items():
        for side in (holds, ~holds):
            low, high = float(column[side].max()), float(column[~side].min())
            if low < high:
                return Condition(name, Operator.AT_MOST, (low,))
    return None


def _absence_splits(rows: Observations) -> Iterator[Split]:
    for name, column in rows.columns.items():
        if np.isnan(column).any():
            condition = Condition(name, Operator.ABSENT)
            yield Split(condition, condition.holds(column))


def _border_splits(regime: Regime, whole: Choice) -> Iterator[Split]:
    """Yield quantiles of the features that explain the cost of the whole: where costs jump they also grow.

    A few calls beyond a border may pass for outliers of a constant; the feature that orders the costs best is tried as well.
    """
    explaining = [name for factors in whole.terms for name, _ in factors]
    for name in dict.fromkeys([*explaining, *_ordering(regime)]):
        column = regime.rows.columns[name]
        if len(np.unique(column)) < _DISTINCT:
            continue
        for bound in np.unique(np.quantile(column, np.linspace(0, 1, _BORDERS + 2)[1:-1], method="lower")):
            condition = Condition(name, Operator.AT_MOST, (float(bound),))
            yield Split(condition, condition.holds(column), border=True)


def _ordering(regime: Regime) -> list[str]:
    """Return the numeric feature with the strongest rank correlation with the cost, if there is any feature."""
    cost = ranks(regime.rows.cost)
    varying = {name: ranked for name, column in regime.usable.items() if np.ptp(ranked := ranks(column)) > 0}
    if not varying or np.ptp(cost) == 0:
        return []
    ranked = np.array(list(varying.values())) - cost.mean()  # ranks of whatever values have one mean
    strength = np.abs(ranked @ (cost - cost.mean())) / np.sqrt((ranked**2).sum(axis=1))
    return [list(varying)[int(strength.argmax())]]


def _refined(split: Split, rows: Observations, ranked: Floats, total: Floats) -> Split:
    """Return the border moved to where it leaves least, halving the step over the distinct values around it as long as there are any."""
    column = rows.columns[split.condition.feature]
    values = np.unique(column)
    at = int(np.searchsorted(values, split.condition.values[0]))
    step = max(1, len(values) // _BORDERS)
    best, least = split, _left(ranked, total, split.holds)
    while step:
        for near in (at - step, at + step):
            if not 0 <= near < len(values) - 1:
                continue
            condition = replace(split.condition, values=(float(values[near]),))
            moved = replace(split, condition=condition, holds=condition.holds(column))
            left = _left(ranked, total, moved.holds)
            if left < least:
                best, least, at = moved, left, near
        step //= 2
    return best


def _ranked(regime: Regime, setting: Setting, whole: Choice) -> Floats:
    """Return the standardised columns (n, k + 1) by which splits are ranked: intercept, likely terms, and the cost last."""
    rows, usable = regime.rows, regime.usable
    linear = [((name, "x"),) for name in usable]
    terms = tuple(dict.fromkeys([(), *whole.terms, *linear[:_RANKED_FEATURES]]))
    root = np.sqrt(setting.weights) / setting.deviation
    columns = np.column_stack([matrix(terms, usable, len(rows)), rows.cost]) * root[:, None]
    return np.asarray(columns / np.maximum(np.sqrt((columns**2).sum(axis=0)), 1e-300))


def _left(columns: Floats, total: Floats, holds: npt.NDArray[np.bool_]) -> float:
    """Return the sum of squares left by regressions of the last column on the others, apart where `holds` and elsewhere.

    `total` is the Gram matrix of all rows.
    """
    held = columns[holds]
    inner = held.T @ held
    sides = np.stack([inner, total - inner])
    target = sides[:, :-1, -1]
    solution = np.linalg.solve(sides[:, :-1, :-1] + _RIDGE * np.eye(len(total) - 1), target[..., None])[..., 0]
    return float(np.maximum(sides[:, -1, -1] - (solution * target).sum(axis=1), 0.0).sum())
