"""Two experiments as one: what the first recorded of base against what the second recorded of head."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.errors import UsageError
from perfdiff.records.arrays import Ints
from perfdiff.records.differences import SkippedFunction, other_reason
from perfdiff.records.recorded import RECORDED_APART, RecordedExperiment, Samples
from perfdiff.records.schema import Change, Edges, Experiment, FunctionInfo, Machine, Note, Point, Run, SampleTable, Side, Source, Totals

# The caches that a count depends on may differ from one recording to the other.
COUNTS_APART = Note("counts-apart", "what the software PMU counted is left out: counts are compared within one comparison only")

Name = tuple[str, str]  # of a function, and of its file where several share the name


@dataclass(frozen=True, slots=True)
class _Half:
    """One side of an experiment on its way to being `side` of another: old numbers to new ones."""

    recorded: RecordedExperiment
    origin: Side
    side: Side
    functions: Mapping[Name, FunctionInfo]
    numbers: Mapping[int, int]
    points: Mapping[int, int]
    runs: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Source:
    """What finding a table takes of a half, and no more: it goes to other processes."""

    samples: Samples
    origin: Side
    numbers: Mapping[int, int]
    points: Mapping[int, int]
    runs: Mapping[int, int]


def paired(base: RecordedExperiment, head: RecordedExperiment) -> RecordedExperiment:
    """Return base's side of one experiment against head's of the other; an experiment of one side gives that.

    Functions are the same by name, and by file where several share it; points by workload and parameters. UsageError where the two
    have no function or no point in common.
    """
    experiments = (base.experiment, head.experiment)
    counts = [Counter(info.name for info in experiment.functions) for experiment in experiments]
    repeated = {name for count in counts for name, times in count.items() if times > 1}
    functions = [
        {(info.name, info.file if info.name in repeated else ""): info for info in experiment.functions} for experiment in experiments
    ]
    shared = sorted(functions[0].keys() & functions[1].keys())
    origins = [side if side in recorded.sides else recorded.sides[0] for recorded, side in zip((base, head), Side, strict=True)]
    run_at = [_points_run(experiment, origin) for experiment, origin in zip(experiments, origins, strict=True)]
    points = [point for point in run_at[0] if any(_same(point, other) for other in run_at[1])]
    if not shared or not points:
        what = "workload point" if shared else "function"
        raise UsageError(f"the two sets of samples have no {what} in common; record the same workloads on both", slug="samples-apart")
    halves: list[_Half] = []
    for recorded, origin, side, infos in zip((base, head), origins, Side, functions, strict=True):
        place = {other.id: at for at, point in enumerate(points) for other in recorded.experiment.points if _same(point, other)}
        run_ids = [run.id for run in recorded.experiment.runs if run.side is origin and run.point in place]
        runs = {run: number for number, run in enumerate(run_ids, start=sum(len(half.runs) for half in halves))}
        numbers = {infos[name].id: number for number, name in enumerate(shared, start=1)}
        halves.append(_Half(recorded, origin, side, infos, numbers, place, runs))
    experiment = _experiment(halves[0], halves[1], shared, points)
    sources = {half.side: _Source(half.recorded.samples, half.origin, half.numbers, half.points, half.runs) for half in halves}
    return RecordedExperiment(experiment, functools.partial(_table, sources))


def _points_run(experiment: Experiment, side: Side) -> list[Point]:
    """Return the points that have runs on a side."""
    run = {run.point for run in experiment.runs if run.side is side}
    return [point for point in experiment.points if point.id in run]


def _same(point: Point, other: Point) -> bool:
    return (point.workload, point.parameters) == (other.workload, other.parameters)


def _experiment(base: _Half, head: _Half, shared: Sequence[Name], points: Sequence[Point]) -> Experiment:
    first, second = base.recorded.experiment, head.recorded.experiment
    numbers = dict(enumerate(shared, start=1))
    machines = tuple(dict.fromkeys(map(_undated, (*first.machines, *second.machines)))) if first.machines and second.machines else ()
    blocks = 1 + max((run.block for run in first.runs), default=0)
    return Experiment(
        base=first.base if base.origin is Side.BASE else first.head,
        head=second.base if head.origin is Side.BASE else second.head,
        environment=second.environment,
        workloads=tuple(dict.fromkeys((*first.workloads, *second.workloads))),
        points=tuple(replace(point, id=at) for at, point in enumerate(points)),
        functions=tuple(_info(number, base, head, name) for number, name in numbers.items()),
        skipped=tuple(dict.fromkeys((*first.skipped, *second.skipped, *_one_sided(base, shared), *_one_sided(head, shared)))),
        # No block is common to both sides: they were not recorded next to each other.
        runs=(*_runs(base, 0, machines), *_runs(head, blocks, machines)),
        totals=_totals(base, head),
        edges=_edges(base, head),
        machines=machines,
        notes=(
            RECORDED_APART,
            *([] if machines else _machines(first, second)),
            *_counts_left_out(first, second),
            *dict.fromkeys((*first.notes, *second.notes)),
        ),
        compared=second.compared,
    )


def _machines(base: Experiment, head: Experiment) -> Iterator[Note]:
    for what in ("cpu", "compiler"):
        before, after = getattr(base.environment, what), getattr(head.environment, what)
        if before != after:
            yield Note("machines-differ", f"base was recorded with another {what} ({before}) than head ({after})")


def _counts_left_out(base: Experiment, head: Experiment) -> Iterator[Note]:
    if base.counts is not None or head.counts is not None:
        yield COUNTS_APART


def _info(number: int, base: _Half, head: _Half, name: Name) -> FunctionInfo:
    """Return what both know of a function. Its text tells whether it changed; whatever it depends on may have."""
    infos = base.functions[name], head.functions[name]
    texts = _text(infos[0], base.origin), _text(infos[1], head.origin)
    differs = texts[0] is None or texts[1] is None or texts[0].text != texts[1].text
    reason = "its text differs" if differs else "its text is the same; what it depends on was not compared"
    calls = {
        half.numbers[callee] for half, info in zip((base, head), infos, strict=True) for callee in info.calls if callee in half.numbers
    }
    return replace(
        infos[1],
        id=number,
        change=Change.CHANGED if differs else Change.AFFECTED,
        reasons=(other_reason(reason),),
        culprits=(),
        base=texts[0],
        head=texts[1],
        calls=frozenset(calls),
        reads=infos[0].reads | infos[1].reads,
        writes=infos[0].writes | infos[1].writes,
    )


def _text(info: FunctionInfo, side: Side) -> Source | None:
    return info.base if side is Side.BASE else info.head


def _one_sided(half: _Half, shared: Sequence[Name]) -> Iterator[SkippedFunction]:
    for name, info in half.functions.items():
        if name not in shared:
            yield SkippedFunction(info.name, info.file, f"only {half.side} has samples of it")


def _runs(half: _Half, first_block: int, machines: Sequence[Machine]) -> Iterator[Run]:
    """Yield the runs of a half under new numbers; its machines' are their places in `machines`, all 0 where there are none."""
    of = {number: machines.index(_undated(machine)) for number, machine in enumerate(half.recorded.experiment.machines)} if machines else {}
    for run in half.recorded.experiment.runs:
        if run.id in half.runs:
            new = half.runs[run.id]
            place = half.points[run.point]
            yield replace(run, id=new, side=half.side, point=place, block=first_block + run.block, machine=of.get(run.machine, 0))


def _undated(machine: Machine) -> Machine:
    """Return what makes a machine the same one in another recording."""
    return replace(machine, environment=replace(machine.environment, created="", flags=()))


def _totals(base: _Half, head: _Half) -> Totals:
    parts = []
    for half in (base, head):
        totals = half.recorded.experiment.totals
        run, function = _renumbered(totals.run, half.runs), _renumbered(totals.function, half.numbers)
        is_shared = (run >= 0) & (function >= 0)
        sums = {name: getattr(totals, name)[is_shared] for name in ("calls", "wall_ns", "self_ns")}
        parts.append((run[is_shared], function[is_shared], sums, {name: values[is_shared] for name, values in totals.other.items()}))
    (run, function, sums, other), (run_head, function_head, sums_head, other_head) = parts
    return Totals(
        np.concatenate([run, run_head]),
        np.concatenate([function, function_head]),
        **{name: np.concatenate([sums[name], sums_head[name]]) for name in sums},
        other={name: np.concatenate([other[name], other_head[name]]) for name in other if name in other_head},
    )


def _edges(base: _Half, head: _Half) -> Edges:
    columns = []
    for half in (base, head):
        edges = half.recorded.experiment.edges
        numbers = {0: 0, **half.numbers}
        ends = _renumbered(edges.run, half.runs), _renumbered(edges.caller, numbers), _renumbered(edges.callee, half.numbers)
        is_shared = np.all([end >= 0 for end in ends], axis=0)
        columns.append([column[is_shared] for column in (*ends, edges.calls, edges.wall_ns)])
    return Edges(*(np.concatenate(pair) for pair in zip(*columns, strict=True)))


def _table(sources: Mapping[Side, _Source], function: int, side: Side) -> SampleTable | None:
    source = sources[side]
    old = {new: old for old, new in source.numbers.items()}.get(function)
    table = source.samples(old, source.origin) if old is not None else None
    if table is None:
        return None
    run, point = _renumbered(table.run, source.runs), _renumbered(table.point, source.points)
    rows = np.flatnonzero((run >= 0) & (point >= 0))
    return replace(table.rows(rows), function=function, side=side, run=run[rows], point=point[rows])


def _renumbered(column: Ints, numbers: Mapping[int, int]) -> Ints:
    """Return new numbers for old ones; -1 for those that have none."""
    old = np.array(sorted(numbers), np.int64)
    new = np.array([numbers[key] for key in sorted(numbers)], np.int64)
    place = np.minimum(np.searchsorted(old, column), len(old) - 1)
    return np.where(old[place] == column, new[place], -1)
