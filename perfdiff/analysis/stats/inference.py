"""Two-sample inference on runs: does head differ from base, by how much, and what could have been seen at all.

The run is the unit: calls of one run share its address layout, its neighbours and its clock, so only runs count as independent.
All values are logarithms of ratios, so that noise is additive and an effect is a factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from perfdiff.analysis.stats import panel
from perfdiff.analysis.stats.panel import Panel
from perfdiff.analysis.stats.runs import Contrast, Group, PointRuns, Runs
from perfdiff.records.arrays import Bools, Floats

# Chance at which counts that vary count as moved: of a function's thirty features at three points, one in a hundred would by chance.
CLEAR = 1e-4
LEAST_RUNS = 2  # of a side: one alone tells nothing of how counts vary
ROUNDING = 1e-9  # of a count's mean: less is the arithmetic's
# Inputs may be any number, as of memory that nobody wrote to: beyond this the fourth power of a difference, as Welch has it, is none.
LARGEST = 1e70


def contrast(pairs: Sequence[PointRuns]) -> Contrast | None:
    """Return head minus base over `pairs`, each point with the same weight, or None if no point has two runs a side.

    Outliers are pulled in, the variances of both sides pooled per point unless one side clearly scatters more, and errors combined
    with Welch and Satterthwaite's degrees of freedom.
    """
    return contrasts(_panel(pairs))[0] if pairs else None


def contrasts(of: Panel) -> list[Contrast | None]:
    """Return `contrast` of every question of a panel."""
    effects = panel.effects(of)
    rows = zip(*(getattr(effects, field.name).tolist() for field in fields(Contrast)), strict=True)
    return [Contrast(*row) if points else None for row, points in zip(rows, effects.points.tolist(), strict=True)]


def contrasts_at_point(base: Group, head: Group) -> list[Contrast | None]:
    """Return `contrast` of each of k statistics of the same runs at one point by itself; `values` are (k, n), all finite."""
    several = any(group.machines is not None and group.machines.any() for group in (base, head))
    machines = [np.zeros(len(group.blocks), dtype=np.int64) if group.machines is None else group.machines for group in (base, head)]
    sides = (
        Runs(group.values[None], group.blocks[None], np.zeros(1, dtype=bool), of[None] if several else None)
        for group, of in zip((base, head), machines, strict=True)
    )
    return contrasts(panel.panel(*sides))


def noise_floor(pairs: Sequence[PointRuns], *, seed: int) -> float:
    """Return the effect that base shows against base, and head against head, by chance alone (log scale): `panel.noise_floor`."""
    return panel.noise_floor(_panel(pairs), 0, seed=seed) if pairs else math.inf


def _panel(pairs: Sequence[PointRuns]) -> Panel:
    """Return pairs as the panel of one question."""
    groups = [group for pair in pairs for group in (pair.base, pair.head)]
    several = any(group.machines is not None and group.machines.any() for group in groups)
    return panel.panel(*(_runs(side, several=several) for side in ([pair.base for pair in pairs], [pair.head for pair in pairs])))


def _runs(groups: Sequence[Group], *, several: bool) -> Runs:
    """Return groups as the runs of one side, with their machines where these are `several`."""
    longest = max(1, *(len(group.values) for group in groups))
    values, blocks = np.full((len(groups), 1, longest), np.nan), np.zeros((len(groups), longest), dtype=np.int64)
    machines = np.full((len(groups), longest), -1, dtype=np.int64)
    for place, group in enumerate(groups):
        values[place, 0, : len(group.values)] = group.values
        blocks[place, : len(group.blocks)] = group.blocks
        machines[place, : len(group.values)] = 0 if group.machines is None else group.machines
    return Runs(values, blocks, np.zeros(len(groups), dtype=bool), machines if several else None)


def false_discovery(p: Sequence[float]) -> Floats:
    """Return Benjamini and Hochberg's q-value of each p-value (1995, step-up).

    `scipy.stats.false_discovery_control` does the same, and importing it costs 0.6 s of CPU in each process that studies functions.
    """
    values = np.asarray(p, dtype=np.float64)
    if not len(values):
        return values
    order = np.argsort(values)
    stepped = values[order] * len(values) / np.arange(1, len(values) + 1)
    q = np.empty_like(values)
    q[order] = np.minimum(np.minimum.accumulate(stepped[::-1])[::-1], 1.0)
    return q


def clear_shift(base: Floats, head: Floats) -> bool:
    """Return whether counts of runs, (n,) and (m,), moved beyond any doubt; no counts that are not finite did."""
    if not (np.isfinite(base).all() and np.isfinite(head).all()) or min(len(base), len(head)) < LEAST_RUNS:
        return False
    is_one_count = base.min() == base.max() == head.min() == head.max()  # most often; the test says the same, for a hundred times the time
    return not is_one_count and bool(clear_shifts(base[None], head[None])[0])


def clear_shifts(base: Floats, head: Floats) -> Bools:
    """Return which counts of runs, (k, n) and (k, m), moved beyond any doubt; values that are not finite are left out.

    Counts of deterministic code do not vary at all, and every difference is clear; of counts that depend on timing the means must differ
    by Welch's t-test (1947) at `CLEAR`. Simulated, a shift by five standard deviations is seen in half of all pairs at five runs a side,
    in all from eight runs on.
    """
    from scipy.special import stdtr

    base, head = (np.where(np.isfinite(side), np.clip(side, -LARGEST, LARGEST), np.nan) for side in (base, head))
    counts = np.array([np.isfinite(side).sum(axis=-1) for side in (base, head)])
    (mean_base, of_base), (mean_head, of_head) = (panel.moments(side) for side in (base, head))
    apart = np.abs(mean_head - mean_base)
    finite = [np.where(np.isfinite(side), side, 0.0) for side in (base, head)]
    rounding = ROUNDING * np.maximum(*(np.abs(side).max(axis=-1, initial=0.0) for side in finite))
    still = np.maximum(*(_range(side) for side in (base, head))) <= rounding
    variances = np.array([of_base, of_head]) / np.maximum(counts, 1)
    spent = (variances**2 / np.maximum(counts - 1, 1)).sum(axis=0)
    total = np.where(spent > 0, variances.sum(axis=0), 1.0)
    freedom = total**2 / np.where(spent > 0, spent, 1.0)
    moved = np.where(still | (spent <= 0), apart > rounding, 2 * stdtr(freedom, -apart / np.sqrt(total)) <= CLEAR)
    return np.asarray(moved & (counts.min(axis=0) >= LEAST_RUNS))


def _range(values: Floats) -> Floats:
    """Return largest minus smallest value over the last axis, of the finite ones; 0 where there are none."""
    finite = np.isfinite(values)
    highest = np.where(finite, values, -np.inf).max(axis=-1, initial=-np.inf)
    lowest = np.where(finite, values, np.inf).min(axis=-1, initial=np.inf)
    return np.asarray(np.where(finite.any(axis=-1), highest, 0.0) - np.where(finite.any(axis=-1), lowest, 0.0))
