"""Freud's logs of one version, or of two, as an experiment: each log is a run.

Logs say nothing of workloads, sources or machines. Logs that share functions belong to one workload point; functions that were logged
apart, a file each, have a point each, so that none looks as if it had not been called in the others' runs.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perfdiff import __version__
from perfdiff.errors import RecordingError, UsageError
from perfdiff.records import freud_log
from perfdiff.records.differences import SkippedFunction, other_reason
from perfdiff.records.freud_log import FreudLog
from perfdiff.records.recorded import RECORDED_APART, RecordedExperiment
from perfdiff.records.schema import (
    Change,
    Edges,
    Environment,
    Experiment,
    FunctionInfo,
    Note,
    Phase,
    Point,
    Revision,
    Run,
    SampleTable,
    Side,
    Totals,
    Workload,
)

_WORKLOAD = "logs"
_UNTOLD = "not told by logs"
_LONGEST_NAME = 150  # of a function in that of a log; file systems take 255 bytes
_SUMMED = ("alloc_bytes", "lock_wait_ns", "lock_hold_ns")
_ENVIRONMENT = Environment(_UNTOLD, 0, _UNTOLD, None, _UNTOLD, False, "whole microseconds", __version__, _UNTOLD)


@dataclass(frozen=True, slots=True)
class _LogRun:
    """A log's calls of the functions that are compared, by name, with its run."""

    log: FreudLog
    tables: Mapping[str, SampleTable]
    run: Run


def from_logs(files: Mapping[Side, Sequence[Path]]) -> RecordedExperiment:
    """Return the experiment that the logs of each side make; functions are the same where their names are.

    Functions that only one of two sides has are skipped. UsageError where the sides share none, RecordingError where a log is damaged
    or none holds a call.
    """
    logs = {side: [freud_log.read(path) for path in paths] for side, paths in files.items()}
    called = {side: {name for log in of_side for name, table in log.tables.items() if len(table)} for side, of_side in logs.items()}
    for side, paths in files.items():
        if not called[side]:
            raise RecordingError(f"{label(paths)} holds no calls; name logs with samples", slug="samples-empty")
    shared = set.intersection(*called.values())
    if not shared:
        raise UsageError("the two sets of samples have no function in common; give logs of the same functions", slug="samples-apart")
    numbers = {name: number for number, name in enumerate(sorted(shared), start=1)}
    points = _points([{*log.tables} & shared for of_side in logs.values() for log in of_side])
    entries = list(_entries(logs, points))
    revisions = {side: Revision(label(paths), None, "") for side, paths in files.items()}
    first = next(iter(revisions.values()))
    experiment = Experiment(
        base=revisions.get(Side.BASE, first),
        head=revisions.get(Side.HEAD, first),
        environment=_ENVIRONMENT,
        workloads=(Workload(_WORKLOAD, _UNTOLD),),
        points=tuple(Point(number, _WORKLOAD, {}, _UNTOLD) for number in sorted(set(points.values()))),
        functions=tuple(_info(name, numbers, entries) for name in numbers),
        skipped=tuple(_skipped(called)),
        runs=tuple(entry.run for entry in entries),
        totals=_totals(entries, numbers),
        edges=_edges(entries, numbers),
        notes=tuple(_notes(entries, two_sided=len(files) > 1)),
    )
    tables = {(number, side): _table(name, number, side, entries) for name, number in numbers.items() for side in files}
    return RecordedExperiment(experiment, functools.partial(_loaded, tables))


def _loaded(tables: Mapping[tuple[int, Side], SampleTable], function: int, side: Side) -> SampleTable | None:
    return tables.get((function, side))


def to_logs(recorded: RecordedExperiment, side: Side, folder: Path) -> None:
    """Write the calls of one side to `folder`, a log for each function and run; raise UsageError where that cannot be."""
    for info in recorded.experiment.functions:
        table = recorded.samples(info.id, side)
        if table is not None:
            name = re.sub(r"[^A-Za-z0-9.-]+", "_", info.name)[-_LONGEST_NAME:]
            for run in np.unique(table.run).tolist():
                path = folder / f"idcm_{name}_{info.id}_{run}.bin"
                freud_log.write(path, {info.name: table.rows(np.flatnonzero(table.run == run))})


def label(paths: Sequence[Path]) -> str:
    """Return the name of a set of logs: the file's, or the folder's that they lie in."""
    return str(paths[0]) if len(paths) == 1 else f"{paths[0].parent} ({len(paths)} logs)"


def _points(functions: Sequence[set[str]]) -> dict[str, int]:
    """Return the point of each function: the same one for all that logs with several functions join."""
    groups: list[set[str]] = []
    for names in filter(None, functions):
        met = [group for group in groups if group & names]
        groups = [group for group in groups if not group & names] + [names.union(*met)]
    return {name: number for number, group in enumerate(sorted(groups, key=min)) for name in group}


def _entries(logs: Mapping[Side, Sequence[FreudLog]], points: Mapping[str, int]) -> Iterator[_LogRun]:
    """Yield the logs that have calls to compare, with their runs. Sides were not recorded in turn, so they share no block."""
    number = block = 0
    for side, of_side in logs.items():
        for log in of_side:
            tables = {name: table for name, table in log.tables.items() if name in points and len(table)}
            if tables:
                point = points[next(iter(tables))]
                own_ns = sum(float(table.metrics["self_ns"].sum()) for table in tables.values())
                yield _LogRun(log, tables, Run(number, Phase.TIMED, point, side, block, own_ns, own_ns, math.nan, None, None, ""))
                number += 1
            block += 1


def _table(name: str, number: int, side: Side, entries: Sequence[_LogRun]) -> SampleTable:
    parts = []
    for entry in entries:
        if entry.run.side is side and name in entry.tables:
            part = entry.tables[name]
            run, point = np.full(len(part), entry.run.id), np.full(len(part), entry.run.point)
            parts.append(replace(part, function=number, side=side, run=run, point=point))
    return freud_log.joined(parts)


def _info(name: str, numbers: Mapping[str, int], entries: Sequence[_LogRun]) -> FunctionInfo:
    called = frozenset(
        numbers[callee] for entry in entries for caller, callee in entry.log.edges if caller == name and callee in entry.tables
    )
    reasons = (other_reason("its source was not given: any function may have changed"),)
    return FunctionInfo(numbers[name], name, "", 0, "", Change.CHANGED, reasons, calls=called)


def _skipped(called: Mapping[Side, set[str]]) -> Iterator[SkippedFunction]:
    everywhere = set.intersection(*called.values())
    for side, names in called.items():
        for name in sorted(names - everywhere):
            yield SkippedFunction(name, "", f"only {side} has samples of it")


def _totals(entries: Sequence[_LogRun], numbers: Mapping[str, int]) -> Totals:
    """Return the sums of each run; a function's direct recursion counts once in its time with callees."""
    rows = []
    for entry in entries:
        for name, table in entry.tables.items():
            _, again_ns = entry.log.edges.get((name, name), (0, 0.0))
            sums = [float(table.metrics[metric].sum()) for metric in ("wall_ns", "self_ns", *_SUMMED)]
            rows.append((entry.run.id, numbers[name], len(table), sums[0] - again_ns, *sums[1:]))
    columns = np.array(rows, np.float64).T
    run, function = columns[:2].astype(np.int64)
    calls, wall_ns, self_ns, *other = columns[2:]
    return Totals(run, function, calls, wall_ns, self_ns, dict(zip(_SUMMED, other, strict=True)))


def _edges(entries: Sequence[_LogRun], numbers: Mapping[str, int]) -> Edges:
    """Return who called whom; calls from outside the log come from a thread's start."""
    rows: list[tuple[float, ...]] = []
    for entry in entries:
        inside = {pair: sums for pair, sums in entry.log.edges.items() if set(pair) <= entry.tables.keys()}
        rows += [(entry.run.id, numbers[caller], numbers[callee], *sums) for (caller, callee), sums in inside.items()]
        for name, table in entry.tables.items():
            calls, ns = np.sum([sums for (_, callee), sums in inside.items() if callee == name] or [(0, 0.0)], axis=0)
            rows.append((entry.run.id, 0, numbers[name], len(table) - calls, float(table.metrics["wall_ns"].sum()) - ns))
    columns = np.array(rows, np.float64).T
    return Edges(*columns[:3].astype(np.int64), *columns[3:])


def _notes(entries: Sequence[_LogRun], *, two_sided: bool) -> Iterator[Note]:
    if two_sided:
        yield RECORDED_APART
    outside = sorted({name for entry in entries for name in entry.log.elsewhere if name in entry.tables})
    if outside:
        yield Note(
            "callees-elsewhere",
            f"the own time of {', '.join(f'`{name}`' for name in outside)} holds that of callees whose calls are not in the same log",
        )
