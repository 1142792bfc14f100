"""Warm-up: the first calls of a run that cost more than later ones with the same inputs, as where code is compiled while it runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.models.middle import median
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import SampleTable

# Calls that cost less than this many times the later ones are no phase of their own: caches and branch predictors that fill make as much.
LEAST_FACTOR = 1.25
CONFIDENCE = 0.99  # of the difference being as large as that, over runs
FEWEST_RUNS = 4  # runs that have calls on both sides of a change; below, the interval of their mean is too wide to show anything
LEAST_SHARE = 0.02  # of the calls that warm up: as many may be left out of a model as outliers (`scopes.SMALLEST_SHARE`)
# Of the calls behind: fewer are no steady state that could speak for a function, whose calls they hardly are (`noise.MAX_TRIMMED`).
STEADY_SHARE = 0.10
_FEATURES = 6  # that costs may follow while the phases are told apart
_CLIPPED = 4.0  # median absolute deviations: single preempted calls must not look like a phase
_CHANGES = 8  # phases that are looked at, at most: interpreted, compiled, compiled better, and what lies between


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The first `calls` of each thread of a run cost `factor` times what later ones do at the same inputs."""

    calls: int
    factor: float


def warm_up(table: SampleTable, metric: str) -> WarmUp | None:
    """Return a function's warm-up by one of its times, None where its first calls do not clearly cost more.

    Costs are taken relative to what the later half of the calls costs at the same inputs. The change of level that leaves least squares
    within its sides (Scott & Knott 1974) is looked for, and again behind it, as long as the runs agree that calls before cost more: as in
    Barrett et al. (2017, *Virtual Machine Warmup Blows Hot and Cold*), what is steady is behind the last change; one that hardly any calls
    follow is none, as where a program ends soon after.
    """
    positive = np.isfinite(table.metrics[metric]) & (table.metrics[metric] > 0)
    index = np.flatnonzero(positive)
    index = index[np.argsort(table.call[index], kind="stable")]
    if len(index) < 2 / LEAST_SHARE:
        return None
    relative = _relative(np.log(table.metrics[metric][index]), _sizes(table, index))
    index, relative = index[np.isfinite(relative)], relative[np.isfinite(relative)]
    call, run = table.call[index], table.run[index]
    last = len(index)
    while last > (1 - STEADY_SHARE) * len(index):
        last = max(_changes(relative[:last], call[:last], run[:last]), default=0)
    if not 0 < LEAST_SHARE * len(index) <= last:
        return None
    steps = _steps(relative, run, last)
    return WarmUp(int(call[last - 1]), math.exp(median(steps))) if len(steps) else None


def _sizes(table: SampleTable, index: Ints) -> Floats:
    """Return the logarithms of numeric inputs (rows, p) of calls, those that every call has."""
    values = np.abs(table.values[index])
    numeric = [
        column
        for column, feature in enumerate(table.features)
        if not feature.category and np.isfinite(values[:, column]).all() and np.ptp(values[:, column]) > 0
    ]
    return np.log1p(values[:, numeric])


def _relative(logs: Floats, sizes: Floats) -> Floats:
    """Return the logarithms of costs (rows,) less what the later half of the calls costs at the same sizes (rows, p).

    NaN for calls whose sizes no later call had, where what they would cost later depends on how far one extrapolates: in an interpreter,
    sizes that later hardly varied made costs of e^10,000 be expected. So did sizes that later hardly varied beside each other: NaN as well
    for calls that would cost what no later call did.
    """
    later = len(logs) // 2
    if sizes.shape[1]:
        centred = sizes[later:] - sizes[later:].mean(axis=0)
        spread = np.sqrt((centred**2).sum(axis=0))
        strength = np.abs(centred.T @ (logs[later:] - logs[later:].mean())) / np.where(spread > 0, spread, np.inf)
        sizes = sizes[:, np.argsort(-strength, kind="stable")[:_FEATURES]]
    columns = np.column_stack([np.ones(len(logs)), sizes])
    solution = np.linalg.lstsq(columns[later:], logs[later:], rcond=1e-9)[0]
    within = np.clip(columns, columns[later:].min(axis=0), columns[later:].max(axis=0))
    beyond = np.abs((columns - within) @ solution)
    expected, least, most = columns @ solution, logs[later:].min(), logs[later:].max()
    outside = np.maximum(expected - most, least - expected)
    return np.where(np.maximum(beyond, outside) < math.log(LEAST_FACTOR), logs - expected, math.nan)


def _clipped(values: Floats) -> Floats:
    middle = median(values)
    return np.minimum(values, middle + _CLIPPED * median(np.abs(values - middle)))


def _changes(values: Floats, call: Ints, run: Ints) -> Iterator[int]:
    """Yield the places, rising, before which values in the order of calls are higher than behind, by what the runs say."""
    first, clipped = 0, _clipped(values)
    for _ in range(_CHANGES):
        place = first + _best(clipped[first:], call[first:])
        if place == first or not _is_clear(_steps(values[first:], run[first:], place - first)):
            return
        yield place
        first = place


def _best(values: Floats, call: Ints) -> int:
    """Return the place that parts values into two levels with least squares within, between calls of different numbers; 0: nowhere."""
    count = np.arange(1, len(values))
    before = np.cumsum(values)[:-1]
    between = before**2 / count + (values.sum() - before) ** 2 / (len(values) - count)
    between[call[1:] == call[:-1]] = -np.inf
    falls = before / count > (values.sum() - before) / (len(values) - count)
    between[~falls] = -np.inf
    return int(between.argmax()) + 1 if len(between) and np.isfinite(between.max()) else 0


def _steps(values: Floats, run: Ints, place: int) -> Floats:
    """Return by how much each run's median before a place lies above that behind it, for runs with values on both sides."""
    (runs, before), (others, behind) = _medians(values[:place], run[:place]), _medians(values[place:], run[place:])
    _, of_before, of_behind = np.intersect1d(runs, others, assume_unique=True, return_indices=True)
    return np.asarray(before[of_before] - behind[of_behind])


def _medians(values: Floats, run: Ints) -> tuple[Ints, Floats]:
    """Return the runs, rising, and the median of the values of each."""
    order = np.lexsort((values, run))
    ordered, runs = values[order], run[order]
    first = np.flatnonzero(np.concatenate([[True], runs[1:] != runs[:-1]])) if len(runs) else np.empty(0, dtype=np.int64)
    last = np.append(first[1:], len(runs))[: len(first)] - 1
    return runs[first], np.asarray(0.5 * (ordered[(first + last) // 2] + ordered[(first + last + 1) // 2]))


def _is_clear(steps: Floats) -> bool:
    """Return whether the mean step over runs is sure to be more than what counts."""
    if len(steps) < FEWEST_RUNS:
        return False
    from scipy.special import stdtrit

    error = float(steps.std(ddof=1)) / math.sqrt(len(steps))
    return float(steps.mean()) - float(stdtrit(len(steps) - 1, CONFIDENCE)) * error > math.log(LEAST_FACTOR)


def joined(warm_ups: Sequence[WarmUp | None]) -> WarmUp | None:
    """Return the longest warm-up, behind which all sides are steady; None if no side warms up."""
    return max((side for side in warm_ups if side is not None), key=lambda side: side.calls, default=None)
