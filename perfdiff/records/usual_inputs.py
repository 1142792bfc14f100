"""What a call takes in each run at the inputs that are usual over all runs: direct sums would tell of the inputs that each run met.

Cost is taken as (inputs) × (run), both unknown: cells of inputs and runs have a factor each, found in turn on logarithms (a two-way
additive fit by backfitting: Buja, Hastie and Tibshirani 1989), so that neither slow hosts with large inputs nor a slower revision bias
what inputs cost. A run's cost is then what its calls took by what calls at their inputs usually take, the ratio estimator of survey
sampling (Cochran 1977).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import SampleTable

BINS = 32  # of a feature, of equally many calls
FEATURES = 2  # that make cells together: those that tell most of the cost
FEWEST_ROWS = 4  # of a run, to tell what its calls take
TELLING = 0.1  # of the variance of costs within runs: inputs that tell less than this are as good as none
_ROUNDS = 60  # of turns at most: runs whose inputs hardly overlap need many
_SETTLED = 1e-4  # less than this of a factor moves no result
_FLOOR_NS = 1.0


def costs(tables: Sequence[SampleTable], metric: str) -> dict[int, float]:
    """Return by run what a call takes at usual inputs, of the tables of one function; nothing where inputs do not tell of it."""
    measured = [
        np.flatnonzero(np.isfinite(table.metrics[metric])) if metric in table.metrics else np.empty(0, np.int64) for table in tables
    ]
    ns = np.concatenate([np.empty(0), *(table.metrics[metric][rows] for table, rows in zip(tables, measured, strict=True) if len(rows))])
    run = np.concatenate([np.empty(0, np.int64), *(table.run[rows] for table, rows in zip(tables, measured, strict=True))])
    weight = np.concatenate([np.empty(0), *(table.weight[rows] for table, rows in zip(tables, measured, strict=True))])
    shared = [feature.name for feature in tables[0].features if all(feature.name in _names(table) for table in tables)] if tables else []
    if not len(ns) or not shared:
        return {}
    values = np.concatenate(
        [table.values[rows][:, [_names(table).index(name) for name in shared]] for table, rows in zip(tables, measured, strict=True)]
    )
    runs, place = np.unique(run, return_inverse=True)
    logs = np.log(np.maximum(ns, _FLOOR_NS))
    cells = _cells(values, logs - _means(logs, place, len(runs))[place])
    if cells is None:
        return {}
    usual = np.exp(_factors(logs, cells, place, len(runs)))
    expected = np.bincount(place, weight * usual, len(runs)) / np.bincount(place, weight, len(runs))
    ratio = np.bincount(place, weight * ns, len(runs)) / np.bincount(place, weight * usual, len(runs))
    is_known = np.bincount(place, minlength=len(runs)) >= FEWEST_ROWS
    typical = float(np.mean(expected))
    return {int(run_id): float(cost) * typical for run_id, cost, tells in zip(runs, ratio, is_known, strict=True) if tells}


def _names(table: SampleTable) -> list[str]:
    return [feature.name for feature in table.features]


def _cells(values: Floats, rest: Floats) -> Ints | None:
    """Return in which cell of inputs each call is, None where no input tells of its cost; `rest` is the cost within runs, a logarithm."""
    cells: Ints | None = None
    left = [_binned(values[:, place]) for place in range(values.shape[1])]
    best_share = 0.0
    for _ in range(FEATURES):
        crossed = [bins if cells is None else np.unique(cells * (BINS + 1) + bins, return_inverse=True)[1] for bins in left]
        shares = [_share(cell_numbers, rest) for cell_numbers in crossed]
        best = int(np.argmax(shares))
        if shares[best] < best_share + TELLING:
            break
        cells, best_share = crossed[best], shares[best]
    return cells


def _binned(column: Floats) -> Ints:
    """Return the part of a feature's values that each is in; absent ones have one of their own."""
    finite = column[np.isfinite(column)]
    edges = np.unique(np.quantile(finite, np.arange(1, BINS) / BINS)) if len(finite) else np.empty(0)
    return np.where(np.isfinite(column), np.searchsorted(edges, column, side="right"), BINS).astype(np.int64)


def _share(cells: Ints, rest: Floats) -> float:
    """Return how much of the variance cells tell, as of so many cells that many rows would by chance."""
    count = int(cells.max()) + 1
    within = rest - _means(rest, cells, count)[cells]
    used = len(np.unique(cells))
    spare = len(rest) - used
    total = float(np.var(rest))
    return 1.0 - float(np.mean(within**2)) / total * len(rest) / spare if total > 0 and spare > 0 else 0.0


def _factors(logs: Floats, cells: Ints, place: Ints, runs: int) -> Floats:
    """Return the logarithm of what calls of each row's inputs take, up to a constant, whatever runs they were made in."""
    count = int(cells.max()) + 1
    of_cells = np.zeros(count)
    for _ in range(_ROUNDS):
        of_runs = _means(logs - of_cells[cells], place, runs)
        before, of_cells = of_cells, _means(logs - of_runs[place], cells, count)
        moved = of_cells - before
        if np.ptp(moved) < _SETTLED:
            break
    return of_cells[cells]


def _means(values: Floats, group: Ints, count: int) -> Floats:
    """Return the mean of each group, 0 of those without values."""
    sums, sizes = np.bincount(group, values, count), np.bincount(group, minlength=count)
    return sums / np.maximum(sizes, 1)
