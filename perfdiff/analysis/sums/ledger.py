"""The exact sums of an experiment as matrices: per point and side, runs × functions, and calls from function to function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiff.analysis.stats.runs import Group, Runs
from perfdiff.config import CompareConfig
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.schema import Experiment, Phase, Run, Side, Totals


@dataclass(frozen=True, slots=True)
class Book:
    """All runs of one point on one side: r runs, and f functions in the order of `Ledger.ids`.

    `calls`, `self_ns`, `wall_ns` and the metrics in `other` are sums by run and function (r, f), 0 where a function did not run. `edges`
    has the calls in each run (r,) of every pair of callee and caller that occurred, by their columns; f as the caller is the start of a
    thread. `edges_ns` has what these calls took in each run (r,), callees included; where a function calls itself, its outermost calls
    alone count. The rest is worked out of these, once: each run's `blocks` (r,) of the schedule and `machines` (r,), what a run costs
    (`cost_ns`), and by metric the medians over runs of each function's sums (`medians`, (f,)) and of a run's largest sum (`largest`).
    """

    runs: tuple[Run, ...]
    calls: Floats
    self_ns: Floats
    wall_ns: Floats
    other: Mapping[str, Floats]
    edges: Mapping[tuple[int, int], Floats]
    edges_ns: Mapping[tuple[int, int], Floats]
    blocks: Ints = field(init=False)
    machines: Ints = field(init=False)
    cost_ns: float = field(init=False)
    medians: Mapping[str, Floats] = field(init=False)
    largest: Mapping[str, float] = field(init=False)

    def __post_init__(self) -> None:
        """Work out what every function's comparison asks for."""
        by_metric = {"calls": self.calls, "self_ns": self.self_ns, "wall_ns": self.wall_ns, **self.other}
        largest = {metric: float(np.median(sums.max(axis=1))) for metric, sums in by_metric.items() if sums.size}
        object.__setattr__(self, "blocks", np.array([run.block for run in self.runs], dtype=np.int64))
        object.__setattr__(self, "machines", np.array([run.machine for run in self.runs], dtype=np.int64))
        object.__setattr__(self, "cost_ns", _cost_ns(self.runs))
        object.__setattr__(self, "medians", {metric: np.median(sums, axis=0) for metric, sums in by_metric.items() if len(sums)})
        object.__setattr__(self, "largest", largest)

    @property
    def are_together(self) -> bool:
        """Return whether all runs were made at the same time as the other side's."""
        return all(run.together for run in self.runs)

    def sums(self, metric: str) -> Floats | None:
        """Return the sums (r, f) of a metric over all calls of a run, or the number of calls; None where it was not kept."""
        match metric:
            case "calls":
                return self.calls
            case "wall_ns":
                return self.wall_ns
            case "self_ns":
                return self.self_ns
            case _:
                return self.other.get(metric)

    def group(self, values: Floats) -> Group:
        """Return `values` (r,) with the blocks of their runs; runs without a value are left out."""
        present = np.isfinite(values)
        return Group(values[present], self.blocks[present], self.machines[present])


@dataclass(frozen=True, slots=True)
class Grid:
    """The runs of one side as an array of points × runs, which statistics of runs are laid out in.

    `point` and `place` tell where a run stands, by its number; -1 where it is none of these. `blocks` (points, runs) are of the schedule;
    `together` (points,) tells where all runs were made at the same time as another side's, `machines` (points, runs) on which of several.
    """

    point: Ints
    place: Ints
    blocks: Ints
    together: Bools
    machines: Ints | None = None

    def runs(self, values: Floats) -> Runs:
        """Return `values` (points, k, runs) as the runs of a panel."""
        return Runs(values, self.blocks, self.together, self.machines)

    def spread(self, runs: Ints, statistics: Floats) -> Floats:
        """Return `statistics` (k, g) of some `runs` (g,) as (points, k, runs); NaN for all other runs."""
        values = np.full((len(self.blocks), len(statistics), self.blocks.shape[1]), np.nan)
        inside = self.point[runs] >= 0
        values[self.point[runs[inside]], :, self.place[runs[inside]]] = statistics[:, inside].T
        return values


@dataclass(frozen=True, slots=True)
class Ledger:
    """The books of all points on both sides, or on one alone; `ids` (f,) are the functions' probe numbers, `place` maps them to columns.

    `labels` name the points, `grids` lay out the runs of a side. `block_of` and `machine_of` are those of the runs by their ids; all runs
    are of one machine where the latter is empty. At points that are `clocked` a clock ends runs, and sums are by what they repeat.
    `min_effects` are the smallest effects of interest of points that have one of their own.
    """

    ids: tuple[int, ...]
    place: Mapping[int, int]
    books: Mapping[tuple[int, Side], Book]
    points: tuple[int, ...]
    block_of: Mapping[int, int]
    labels: Mapping[int, str] = field(default_factory=dict)
    grids: Mapping[Side, Grid] = field(default_factory=dict)
    machine_of: Mapping[int, int] = field(default_factory=dict)
    clocked: frozenset[int] = frozenset()
    min_effects: Mapping[int, float] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the names of the metrics that sums are kept of; the number of calls is one."""
        return tuple(dict.fromkeys(metric for book in self.books.values() for metric in book.medians))

    def blocks(self, runs: Ints) -> Ints:
        """Return the block of each run by its id."""
        return np.array([self.block_of.get(run, -1) for run in runs.tolist()], dtype=np.int64)

    def machines(self, runs: Ints) -> Ints:
        """Return the machine of each run by its id."""
        return np.array([self.machine_of.get(run, 0) for run in runs.tolist()], dtype=np.int64)

    def pair(self, point: int) -> tuple[Book, Book]:
        """Return base's and head's books of a point."""
        return self.books[point, Side.BASE], self.books[point, Side.HEAD]

    def runs(self, side: Side, statistics: Sequence[Floats]) -> Runs:
        """Return a statistic of runs (k, r) at each point as the runs of a panel; what is not finite says nothing."""
        grid = self.grids[side]
        values = np.full((len(statistics), len(statistics[0]), grid.blocks.shape[1]), np.nan)
        for place, statistic in enumerate(statistics):
            values[place, :, : statistic.shape[1]] = np.where(np.isfinite(statistic), statistic, np.nan)
        return grid.runs(values)

    def judging(self, config: CompareConfig, points: Iterable[int]) -> CompareConfig:
        """Return how to judge what is seen at some points."""
        return config.at(*map(self.min_effects.get, points))

    def judging_function(self, config: CompareConfig, function: int) -> CompareConfig:
        """Return how to judge what a function shows: at the points where it is called."""
        if not self.min_effects:  # as a rule, and programs have thousands of functions
            return config
        column = self.place[function]
        called = {point for (point, _), book in self.books.items() if book.calls[:, column].any()}
        return self.judging(config, called or self.points)

    def cost_ns(self, point: int) -> float:
        """Return the cost of a whole run at a point: what a function's cost must be a material share of."""
        return max(book.cost_ns for book in self.pair(point))

    def without_edges(self) -> Ledger:
        """Return the ledger without the calls from function to function, its largest part."""
        return replace(self, books={key: replace(book, edges={}, edges_ns={}) for key, book in self.books.items()})

    def calls(self, function: int, side: Side) -> float | None:
        """Return the calls of a function in one run of each point, or None if it never ran on that side."""
        return self.of_a_run("calls", side, function).item() or None

    def of_a_run(self, metric: str, side: Side, only: int | None = None) -> Floats:
        """Return a metric in one run of each point, medians over runs: (f,), or (1,) of `only` one function; 0 where it was not kept."""
        columns = slice(None) if only is None else slice(self.place[only], self.place[only] + 1)
        total = np.zeros(len(self.ids[columns]))
        for point in self.points:
            medians = self.books[point, side].medians.get(metric)
            if medians is not None:
                total += medians[columns]
        return total

    def at_points(self, metric: str, side: Side, function: int) -> Floats:
        """Return a function's metric in one run of each point, medians over runs: (points,); every point must keep sums of it."""
        column = self.place[function]
        return np.array([self.books[point, side].medians[metric][column] for point in self.points])


def _cost_ns(runs: Sequence[Run]) -> float:
    """Return the cost of a run: the median CPU time, and the least that any run waited; what waited longer waited for a CPU."""
    if not runs:
        return 0.0
    waited = min(run.took_ns - run.cpu_ns for run in runs)
    return float(np.median([run.cpu_ns for run in runs])) + max(0.0, waited)


def open_ledger(experiment: Experiment, sides: Sequence[Side] = tuple(Side)) -> Ledger:
    """Return the experiment's sums of the timed runs (of the survey's runs if nothing was timed) at points with runs on all `sides`."""
    phase = Phase.TIMED if any(run.phase is Phase.TIMED for run in experiment.runs) else Phase.SURVEY
    return _ledger(experiment, phase, experiment.totals, sides)


def open_counts(experiment: Experiment) -> Ledger | None:
    """Return the sums of the counted runs, or None where nothing was counted; calls from function to function are not among them."""
    counts = experiment.counts
    if counts is None:
        return None
    counted = _without_endless(experiment, counts)
    whole = {name: values for name, values in counted.items() if np.isfinite(values).all()}  # a counter absent somewhere says nothing
    return _ledger(experiment, Phase.COUNTED, replace(counts, other=whole), tuple(Side))


def _without_endless(experiment: Experiment, counts: Totals) -> Mapping[str, Floats]:
    """Return counts (m,) by metric in which functions have none whose calls never end on either side: the loops that servers wait in.

    They are called once, or once a thread, and their counts are nobody's; where one ends on a side, what it counts there is missing on the
    other, and nothing is filled in.
    """
    if not experiment.points or not all(point.served for point in experiment.points):
        return counts.other
    filled = {}
    for name, values in counts.other.items():
        counted = np.unique(counts.function[np.isfinite(values)])
        filled[name] = np.where(np.isin(counts.function, counted), values, 0.0) if len(counted) else values
    return filled


def _ledger(experiment: Experiment, phase: Phase, totals: Totals, sides: Sequence[Side]) -> Ledger:
    runs: dict[tuple[int, Side], list[Run]] = {}
    for run in experiment.runs:
        if run.phase is phase:
            runs.setdefault((run.point, run.side), []).append(run)
    points = tuple(point.id for point in experiment.points if all((point.id, side) in runs for side in sides))
    ids = tuple(function.id for function in experiment.functions)
    place = {function: column for column, function in enumerate(ids)}
    columns = _lookup(place)
    books = {(point, side): _book(experiment, totals, runs[point, side], columns, len(ids)) for point in points for side in sides}
    labels = {point.id: point.label for point in experiment.points}
    grids = {side: _grid([books[point, side] for point in points], experiment.runs) for side in sides}
    machines = {run.id: run.machine for run in experiment.runs if run.machine}
    blocks = {run.id: run.block for run in experiment.runs}
    effects = {point.id: point.min_effect for point in experiment.points if point.min_effect is not None}
    return Ledger(ids, place, books, points, blocks, labels, grids, machines, min_effects=effects)


def _grid(books: Sequence[Book], runs: Sequence[Run]) -> Grid:
    """Return where the runs of one side stand, of the books of its points; runs are in the order of a book's rows."""
    numbers = max((run.id for run in runs), default=0) + 1
    point, place = np.full(numbers, -1, dtype=np.int64), np.full(numbers, -1, dtype=np.int64)
    blocks = np.zeros((len(books), max((len(book.runs) for book in books), default=0)), dtype=np.int64)
    for row, book in enumerate(books):
        ids = [run.id for run in book.runs]
        point[ids], place[ids] = row, np.arange(len(ids))
        blocks[row, : len(ids)] = book.blocks
    return Grid(
        point,
        place,
        blocks,
        np.array([book.are_together for book in books], dtype=bool),
        _machines(books, blocks) if any(run.machine for run in runs) else None,
    )


def _machines(books: Sequence[Book], blocks: Ints) -> Ints:
    """Return the machine of each run of one side (points, runs), -1 where there is none."""
    machines = np.full(blocks.shape, -1, dtype=np.int64)
    for row, book in enumerate(books):
        machines[row, : len(book.runs)] = book.machines
    return machines


def _lookup(place: Mapping[int, int]) -> Ints:
    """Return probe number -> column; -1 for numbers that are no function's."""
    table = np.full(max(place, default=0) + 2, -1, dtype=np.int64)
    table[list(place)] = list(place.values())
    return table


def _book(experiment: Experiment, totals: Totals, runs: list[Run], columns: Ints, width: int) -> Book:
    rows = np.full(max(run.id for run in experiment.runs) + 1, -1, dtype=np.int64)
    rows[[run.id for run in runs]] = np.arange(len(runs))
    edges = experiment.edges

    def column(ids: Ints) -> Ints:
        numbers: Ints = columns[np.minimum(ids, len(columns) - 1)]
        return numbers

    keep = (rows[totals.run] >= 0) & (column(totals.function) >= 0)
    at = (rows[totals.run[keep]], column(totals.function[keep]))

    def matrix(values: Floats) -> Floats:
        sums = np.zeros((len(runs), width))
        np.add.at(sums, at, np.nan_to_num(values[keep]))
        return sums

    start = width
    caller = np.where(edges.caller == 0, start, column(edges.caller))
    callee = column(edges.callee)
    counted = (rows[edges.run] >= 0) & (caller >= 0) & (callee >= 0) & (edges.calls > 0)
    pairs, index = np.unique(np.column_stack([callee, caller])[counted], axis=0, return_inverse=True)

    def by_pair(values: Floats) -> dict[tuple[int, int], Floats]:
        sums = np.zeros((len(pairs), len(runs)))
        np.add.at(sums, (index.ravel(), rows[edges.run[counted]]), np.nan_to_num(values[counted]))
        return {(int(to), int(by)): pair_sums for (to, by), pair_sums in zip(pairs, sums, strict=True)}

    return Book(
        runs=tuple(runs),
        calls=matrix(totals.calls),
        self_ns=matrix(totals.self_ns),
        wall_ns=matrix(totals.wall_ns),
        other={name: matrix(values) for name, values in totals.other.items()},
        edges=by_pair(edges.calls),
        edges_ns=by_pair(edges.wall_ns),
    )
