"""Times of several machines at the pace of one of them, so that what is learnt over all of them has no steps between them.

Each machine has a factor at each point, for each function one of its own as far as its calls tell it. It is found from base's and head's
calls alike, at equal inputs, so that no ratio of head to base on a machine changes. Counts are as exact as before, and stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.claims import Claim
from perfdiff.analysis.stats.rows import same_cost
from perfdiff.analysis.sums.park import Park, machines_of, park_of
from perfdiff.models.noise import NORMAL_MAD
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.kinds import MachinePart
from perfdiff.records.metrics import metric_of
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import Edges, Experiment, LibraryCalls, Phase, Run, SampleTable, Side, Totals

CALLS = 40  # of one run that tell its pace; more say the same
ROUNDS = 4  # of medians over inputs and machines in turn (median polish: Tukey 1977); what is left after them is below 1 %
VALUES = 16  # of a feature that are inputs of their own; of more, parts of equal size are
BINNED = 2  # features, those that the cost goes with most


@dataclass(frozen=True, slots=True)
class LevelledExperiment:
    """An experiment with its `samples` at one pace; its runs' machines are places of `parts`, from 1 on. As it was without any."""

    experiment: Experiment
    samples: Samples
    parts: tuple[MachinePart, ...] = ()
    notes: tuple[Claim, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of parts by the numbers of runs' machines."""
        return ("", *(part.name for part in self.parts))

    def of(self, part: int) -> LevelledExperiment:
        """Return the runs of one part alone, as an experiment of one machine."""
        runs = tuple(replace(run, machine=0) for run in self.experiment.runs if run.machine in (part, 0))
        return LevelledExperiment(_only(self.experiment, runs), _Only(self.samples, frozenset(run.id for run in runs)))


def levelled(experiment: Experiment, samples: Samples) -> LevelledExperiment:
    """Return an experiment with the times of all machines at the pace of that with most runs; unchanged where there is one machine."""
    park = park_of(experiment)
    if park is None:
        return LevelledExperiment(_of_one(experiment), samples)
    paces = _paces(experiment, samples, park)
    comparable = _only(experiment, tuple(paces.of_run(run) for run in park.runs))
    totals = paces.of_totals(comparable.totals)
    edges = replace(
        comparable.edges, wall_ns=comparable.edges.wall_ns * np.exp(-paces.logs(comparable.edges.run, comparable.edges.callee)[1])
    )
    at_one_pace = replace(comparable, totals=totals, edges=edges)
    return LevelledExperiment(at_one_pace, _LevelledSamples(samples, paces, frozenset(run.id for run in park.runs)), park.parts, park.notes)


def _of_one(experiment: Experiment) -> Experiment:
    """Return an experiment of one machine, which may have another one's number and be another one than built and counted."""
    if not any(run.machine for run in experiment.runs):
        return experiment
    (machine,) = machines_of(experiment) or (0,)
    environment = experiment.machines[machine].environment if machine < len(experiment.machines) else experiment.environment
    return replace(experiment, environment=environment, runs=tuple(replace(run, machine=0) for run in experiment.runs))


@dataclass(frozen=True, slots=True)
class _Paces:
    """How many times as long runs take on their machines as on the one that all are told at, as logarithms.

    `column` maps runs (by their ids) to columns, -1 for runs without one; `common` (c,) is a machine's pace, `own` and `whole` (f, c) are
    those of functions' time without and with callees, by `row`; `plain` are the paces of plain runs.
    """

    column: Ints
    common: Floats
    row: Mapping[int, int]
    own: Floats
    whole: Floats
    plain: Mapping[int, float]

    def logs(self, runs: Ints, functions: Ints | int) -> tuple[Floats, Floats]:
        """Return the logarithms of own time and of time with callees, of functions in runs."""
        columns = self.column[runs]
        rows = np.array([self.row.get(function, -1) for function in np.atleast_1d(functions).tolist()], dtype=np.int64)
        rows = np.broadcast_to(rows, columns.shape)
        has_own = (rows >= 0) & (columns >= 0)
        common = np.where(columns >= 0, self.common[columns], 0.0)
        own, whole = (np.where(has_own, paces[rows, columns], common) for paces in (self.own, self.whole))
        return own, whole

    def of_run(self, run: Run) -> Run:
        """Return a run with its times at the pace of all."""
        column = int(self.column[run.id])
        log = self.plain.get(run.id, float(self.common[column]) if column >= 0 else 0.0)
        return replace(run, wall_ns=run.wall_ns * float(np.exp(-log)), cpu_ns=run.cpu_ns * float(np.exp(-log)))

    def of_totals(self, totals: Totals) -> Totals:
        """Return sums with their times at the pace of all."""
        own, whole = (np.exp(-logs) for logs in self.logs(totals.run, totals.function))
        other = {name: values * whole if metric_of(name).unit == "ns" else values for name, values in totals.other.items()}
        return replace(totals, self_ns=totals.self_ns * own, wall_ns=totals.wall_ns * whole, other=other)


@dataclass(frozen=True, slots=True)
class _LevelledSamples:
    """A loader of sample tables, which processes that study functions are given."""

    samples: Samples
    paces: _Paces
    runs: frozenset[int]

    def __call__(self, function: int, side: Side) -> SampleTable | None:
        table = _of_runs(self.samples(function, side), self.runs)
        if table is None:
            return None
        own, whole = (np.exp(-logs) for logs in self.paces.logs(table.run, function))
        times = {
            name: values * (own if name == "self_ns" else whole) for name, values in table.metrics.items() if metric_of(name).unit == "ns"
        }
        return replace(table, metrics={**table.metrics, **times})


@dataclass(frozen=True, slots=True)
class _Only:
    """A loader of the calls of some runs."""

    samples: Samples
    runs: frozenset[int]

    def __call__(self, function: int, side: Side) -> SampleTable | None:
        return _of_runs(self.samples(function, side), self.runs)


def _of_runs(table: SampleTable | None, runs: frozenset[int]) -> SampleTable | None:
    if table is None:
        return None
    rows = np.isin(table.run, [*runs])
    return table if rows.all() else table.rows(np.flatnonzero(rows)) if rows.any() else None


def _only(experiment: Experiment, runs: tuple[Run, ...]) -> Experiment:
    """Return an experiment with some of its runs alone."""
    ids = np.array([run.id for run in runs], dtype=np.int64)
    counts, library = experiment.counts, experiment.library
    return replace(
        experiment,
        runs=runs,
        totals=totals_of(experiment.totals, ids),
        edges=edges_of(experiment.edges, ids),
        counts=None if counts is None else totals_of(counts, ids),
        library=None if library is None else _calls(library, ids),
    )


def totals_of(totals: Totals, runs: Ints) -> Totals:
    """Return the sums of some runs, by their ids."""
    rows = np.isin(totals.run, runs)
    columns = {name: getattr(totals, name)[rows] for name in ("run", "function", "calls", "wall_ns", "self_ns")}
    return Totals(**columns, other={name: values[rows] for name, values in totals.other.items()})


def edges_of(edges: Edges, runs: Ints) -> Edges:
    """Return the calls of some runs, by their ids."""
    rows = np.isin(edges.run, runs)
    return Edges(edges.run[rows], edges.caller[rows], edges.callee[rows], edges.calls[rows], edges.wall_ns[rows])


def _calls(library: LibraryCalls, runs: Ints) -> LibraryCalls:
    rows = np.isin(library.run, runs)
    columns = {name: getattr(library, name)[rows] for name in ("run", "function", "callee", "calls", "timed", "wall_ns")}
    return replace(library, **columns)


def _paces(experiment: Experiment, samples: Samples, park: Park) -> _Paces:
    """Return the paces of all machines at all points."""
    timed = [run for run in park.runs if run.id in park.units and run.phase is not Phase.PLAIN]
    keys = sorted({(run.point, park.units[run.id]) for run in timed})
    places = {key: place for place, key in enumerate(keys)}
    column = np.full(max((run.id for run in experiment.runs), default=0) + 1, -1, dtype=np.int64)
    for run in timed:
        column[run.id] = places[run.point, park.units[run.id]]
    part_of = {(run.point, park.units[run.id]): run.machine for run in timed}
    points, parts = np.array([point for point, _ in keys], dtype=np.int64), np.array([part_of[key] for key in keys], dtype=np.int64)
    first = _Columns(column, points, parts)
    paces: dict[int, tuple[_Pace, _Pace]] = {}
    for info in experiment.functions:
        tables = [table for side in Side if (table := samples(info.id, side)) is not None and len(table)]
        if tables:
            own = _pace(tables, "self_ns", first)
            paces[info.id] = own, own if same_cost(tables) else _pace(tables, "wall_ns", first)
    common = _common(park, first, {function: own for function, (own, _) in paces.items()})
    row = {function: place for place, function in enumerate(paces)}
    shape = len(paces), len(keys)
    logs = [np.array([pair[place].towards(common) for pair in paces.values()]).reshape(shape) for place in range(2)]
    return _Paces(column, common, row, logs[0], logs[1], _plain(park))


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of paces, one a point and unit: that of each run, by its id, and each one's point and part (c,)."""

    of_run: Ints
    points: Ints
    parts: Ints

    def against_first(self, logs: Floats) -> Floats:
        """Return logarithms (c,) at each point less those of the first part that has any there."""
        relative: Floats = logs.copy()
        for point in np.unique(self.points):
            at = (self.points == point) & np.isfinite(logs)
            if at.any():
                relative[self.points == point] -= np.median(logs[at & (self.parts == self.parts[at].min())])
        return relative


@dataclass(frozen=True, slots=True)
class _Pace:
    """What the calls of a function say of the pace of each column (c,), NaN where nothing, with standard errors, and their `weight`."""

    logs: Floats
    errors: Floats
    weight: Floats

    def towards(self, common: Floats) -> Floats:
        """Return paces, drawn towards what all functions have in common as far as chance can make the difference (James and Stein 1961)."""
        apart = np.where(np.isfinite(self.logs), self.logs - common, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(apart != 0, np.maximum(0.0, 1 - self.errors**2 / apart**2), 0.0)
        drawn: Floats = common + np.where(np.isfinite(share), share, 0.0) * apart
        return drawn


def _pace(tables: list[SampleTable], metric: str, columns: _Columns) -> _Pace:
    """Return how much slower than the first part's the calls of a function are at equal inputs, by column."""
    rows = [_few(table, metric, columns.of_run) for table in tables]
    costs = [table.metrics[metric][of] for table, of in zip(tables, rows, strict=True)]
    logs = np.log(np.concatenate(costs))
    runs = np.concatenate([table.run[of] for table, of in zip(tables, rows, strict=True)])
    count = len(columns.points)
    if not len(logs):
        absent = np.full(count, np.nan)
        return _Pace(absent, absent, np.zeros(count))
    sides = np.repeat(np.arange(len(tables)), [len(of) for of in rows])
    column = columns.of_run[runs]
    names = [feature.name for feature in tables[0].features if all(feature in table.features for table in tables)]
    inputs = [_values(table, names)[of] for table, of in zip(tables, rows, strict=True)]
    cell = _numbers(columns.points[column], sides, _bins(np.concatenate(inputs), logs))
    run_names, run = np.unique(runs, return_inverse=True)
    of_run = columns.of_run[run_names]
    side_of = np.zeros(len(run_names), dtype=np.int64)
    side_of[run] = sides
    place = of_run * len(Side) + side_of  # of a column and side
    pace, by_run = np.zeros(count), np.zeros(len(run_names))
    for _ in range(ROUNDS):
        inputs_cost = _medians(logs - pace[column], cell)
        by_run = _medians(logs - inputs_cost[cell], run)
        both = np.full(count * len(Side), np.nan)
        both[: place.max() + 1] = _medians(by_run, place)
        with np.errstate(invalid="ignore"):
            pace = np.nan_to_num(_mean_of_known(both.reshape(count, len(Side))))
    has_runs = np.isin(np.arange(count), of_run)
    scatter = NORMAL_MAD * float(np.median(np.abs(by_run - both[place])))
    runs_of = np.bincount(of_run, minlength=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(has_runs, 1.25 * scatter / np.sqrt(runs_of), np.nan)  # 1.25: of a median, by a mean's
    weight = np.bincount(column, np.exp(logs), minlength=count).astype(np.float64)
    return _Pace(columns.against_first(np.where(has_runs, pace, np.nan)), errors, weight)


def _few(table: SampleTable, metric: str, of_run: Ints) -> Ints:
    """Return rows of a table that have a cost, `CALLS` of each run at most, spread over its calls."""
    cost = table.metrics[metric]
    rows = np.flatnonzero(
        np.isfinite(cost) & (cost > 0) & (of_run[np.minimum(table.run, len(of_run) - 1)] >= 0) & (table.run < len(of_run))
    )
    rows = rows[np.argsort(table.run[rows], kind="stable")]
    _, first, counts = np.unique(table.run[rows], return_index=True, return_counts=True)
    rank = np.arange(len(rows)) - np.repeat(first, counts)
    step = np.repeat(np.maximum(-(-counts // CALLS), 1), counts)
    few: Ints = rows[rank % step == 0]
    return few


def _values(table: SampleTable, names: list[str]) -> Floats:
    place = {feature.name: column for column, feature in enumerate(table.features)}
    values: Floats = table.values[:, [place[name] for name in names]]
    return values


def _bins(values: Floats, logs: Floats) -> Ints:
    """Return a number for the inputs of each call (n,): the values, or parts of these, of the features that costs go with most."""
    ranks = _ranks(logs)
    scores = []
    for name in range(values.shape[1]):
        column = np.nan_to_num(values[:, name])
        if np.ptp(column) > 0:
            scores.append((-abs(float(np.corrcoef(_ranks(column), ranks)[0, 1])) if np.ptp(ranks) > 0 else 0.0, name))
    codes = np.zeros(len(logs), dtype=np.int64)
    for _, name in sorted(scores)[:BINNED]:
        column = np.nan_to_num(values[:, name])
        distinct, code = np.unique(column, return_inverse=True)
        if len(distinct) > VALUES:
            code = np.searchsorted(np.unique(np.quantile(column, np.arange(1, VALUES) / VALUES)), column, side="right")
        codes = codes * (int(code.max()) + 1) + code
    return codes


def _ranks(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place], dtype=np.float64)


def _numbers(*codes: Ints) -> Ints:
    """Return one number, from 0 on, for each combination of codes (n,)."""
    _, number = np.unique(np.column_stack(codes), axis=0, return_inverse=True)
    return np.asarray(number.reshape(-1), dtype=np.int64)


def _medians(values: Floats, groups: Ints) -> Floats:
    """Return the median of each group of values (n,), by its number; NaN of those without any."""
    order = np.lexsort((values, groups))
    counts = np.bincount(groups)
    first = np.cumsum(counts) - counts
    ordered = np.append(values[order], np.nan)
    low, high = (ordered[np.where(counts > 0, first + half, len(values))] for half in (np.maximum(counts - 1, 0) // 2, counts // 2))
    return np.asarray(0.5 * (low + high))


def _mean_of_known(pairs: Floats) -> Floats:
    """Return the mean of base's and head's value, of these that are known (c, 2); NaN where neither is."""
    finite: Bools = np.isfinite(pairs)
    return np.asarray(np.where(finite, pairs, 0.0).sum(axis=1) / finite.sum(axis=1))


def _common(park: Park, columns: _Columns, paces: Mapping[int, _Pace]) -> Floats:
    """Return the pace of each column (c,): the median over functions, by their time; the runs' own where no calls tell it."""
    by_runs = _by_runs([run for run in park.runs if columns.of_run[run.id] >= 0], columns)
    if not paces:
        return by_runs
    logs, weights = (np.array([getattr(pace, name) for pace in paces.values()]) for name in ("logs", "weight"))
    weights = np.where(np.isfinite(logs), weights, 0.0)
    order = np.argsort(np.where(np.isfinite(logs), logs, np.inf), axis=0)
    upto = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    middle = (upto < upto[-1] / 2).sum(axis=0)
    typical = np.take_along_axis(logs, np.take_along_axis(order, np.minimum(middle, len(logs) - 1)[None], axis=0), axis=0)[0]
    return np.where(np.isfinite(typical), typical, by_runs)


def _by_runs(runs: list[Run], columns: _Columns) -> Floats:
    """Return how much more CPU time runs take than on the first part, by column, the mean of both sides."""
    count = len(columns.points)
    both = np.full(count * len(Side), np.nan)
    if runs:
        place = np.array([columns.of_run[run.id] * len(Side) + (run.side is Side.HEAD) for run in runs], dtype=np.int64)
        both[: place.max() + 1] = _medians(np.log([max(run.cpu_ns, 1.0) for run in runs]), place)
    with np.errstate(invalid="ignore"):
        means = _mean_of_known(both.reshape(count, len(Side)))
    return np.nan_to_num(columns.against_first(means))


def _plain(park: Park) -> dict[int, float]:
    """Return the logarithm by which plain runs are slower on their machine than on the first part, by run."""
    runs = [run for run in park.runs if run.phase is Phase.PLAIN]
    keys = sorted({(run.point, park.units[run.id]) for run in runs})
    places = {key: place for place, key in enumerate(keys)}
    part_of = {(run.point, park.units[run.id]): run.machine for run in runs}
    of_run = np.full(max((run.id for run in runs), default=0) + 1, -1, dtype=np.int64)
    for run in runs:
        of_run[run.id] = places[run.point, park.units[run.id]]
    points, parts = np.array([point for point, _ in keys], dtype=np.int64), np.array([part_of[key] for key in keys], dtype=np.int64)
    logs = _by_runs(runs, _Columns(of_run, points, parts))
    return {run.id: float(logs[of_run[run.id]]) for run in runs}
