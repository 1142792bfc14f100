"""Results of both sides as an experiment: a benchmark is a function, its parameters are points, and each repetition is a run.

Repetitions of one process follow each other, and neighbours are alike; where there are many, stretches of them are the runs (batch means:
Law and Kelton 2000, §9.5.3). Where a file tells several processes apart, each of these is a run, and where a side has several files, each
file is, with a layout of its own.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff import __version__, units
from perfdiff.config import RUNS_FOR_TIME
from perfdiff.errors import UsageError
from perfdiff.records.differences import SkippedFunction, other_reason
from perfdiff.records.recorded import RECORDED_APART, RecordedExperiment, TablesInMemory
from perfdiff.records.results.series import BenchmarkSeries, ToolResults, Value
from perfdiff.records.schema import (
    Change,
    ComparedUnit,
    Edges,
    Environment,
    Experiment,
    Feature,
    FunctionInfo,
    Note,
    Origin,
    Phase,
    Point,
    Revision,
    Run,
    SampleTable,
    Side,
    Totals,
    Workload,
)

MOST_FILES = 1000  # of a side
MOST_RUNS = 20  # that the repetitions of one process make: intervals of more are hardly narrower, and of less correlated ones wrong
_SHOWN = 3  # names that a sentence lists before it only counts
_UNTOLD = "not told by results"

Place = tuple[str, tuple[tuple[str, Value], ...]]  # a benchmark with its parameters


@dataclass(frozen=True, slots=True)
class _PointRuns:
    """A benchmark at one point on one side: the ns of its runs, what its file lacks, and the numbers of files, where each run is one."""

    ns: tuple[float, ...]
    lacks: str
    files: tuple[int, ...] = ()


def from_results(sides: Mapping[Side, Sequence[ToolResults]], names: Mapping[Side, str]) -> RecordedExperiment:
    """Return the experiment that results of both sides make.

    Benchmarks are the same by their names and parameters; those of one side alone are skipped. Raise UsageError where none is on both.
    """
    base, head = sides[Side.BASE], sides[Side.HEAD]
    if base[0].tool != head[0].tool:
        raise UsageError(f"results of {base[0].tool} cannot be compared with those of {head[0].tool}", slug="results-apart")
    measured = {side: _measured(sessions) for side, sessions in sides.items()}
    if base[0].names_are_commands:
        measured[Side.HEAD] = _by_the_only_name(measured[Side.BASE], measured[Side.HEAD])
    shared = [place for place in measured[Side.BASE] if place in measured[Side.HEAD]]
    if not shared:
        first = {side: next(iter(places))[0] for side, places in measured.items()}
        raise UsageError(
            f"no benchmark is in both: base has '{first[Side.BASE]}', and head '{first[Side.HEAD]}'; give results of the same benchmarks",
            slug="results-apart",
        )
    points = {place: number for number, place in enumerate(shared)}
    functions = {name: number for number, name in enumerate(dict.fromkeys(name for name, _ in shared), start=1)}
    runs, tables = _recorded(points, functions, measured)
    nobody = np.empty(0, np.int64)
    experiment = Experiment(
        base=Revision(names[Side.BASE], None, ""),
        head=Revision(names[Side.HEAD], None, ""),
        environment=_environment(head),
        workloads=tuple(Workload(name, base[0].tool, tuple(_parameters(name, shared))) for name in functions),
        points=tuple(_point(place, points[place], base[0].tool) for place in shared),
        functions=tuple(_info(name, number, base[0].tool) for name, number in functions.items()),
        skipped=tuple(_skipped(sides, measured)),
        runs=runs,
        totals=_totals(tables),
        edges=Edges(nobody, nobody, nobody, np.empty(0), np.empty(0)),
        notes=(RECORDED_APART, *_notes(sides, {side: [places[place] for place in shared] for side, places in measured.items()}, shared)),
        compared=ComparedUnit.RESULTS,
    )
    return RecordedExperiment(experiment, TablesInMemory(tables))


def _measured(sessions: Sequence[ToolResults]) -> dict[Place, _PointRuns]:
    """Return what files of one side hold, by benchmark and parameters."""
    places: dict[Place, dict[int, BenchmarkSeries]] = {}
    for number, session in enumerate(sessions):
        for series in session.series:
            places.setdefault((series.name, tuple(sorted(series.parameters.items()))), {})[number] = series
    return {place: _of_files(parts) for place, parts in places.items()}


def _of_files(parts: Mapping[int, BenchmarkSeries]) -> _PointRuns:
    """Return the runs that one place has in files by their numbers: these, or processes, or stretches of the repetitions of one."""
    lacks = next((part.lacks for part in parts.values() if part.lacks), "")
    if len(parts) >= RUNS_FOR_TIME:
        means = (statistics.fmean(ns for process in part.processes for ns in process) for part in parts.values())
        return _PointRuns(tuple(means), "", tuple(parts))
    processes = [process for part in parts.values() for process in part.processes if process]
    if len(processes) >= RUNS_FOR_TIME:
        return _PointRuns(tuple(map(statistics.fmean, processes)), lacks)
    return _PointRuns(tuple(ns for process in processes for ns in _stretches(process)), lacks)


def _stretches(process: Sequence[float]) -> Iterator[float]:
    for stretch in np.array_split(np.array(process), min(MOST_RUNS, len(process))):
        yield float(stretch.mean())


def _by_the_only_name(base: Mapping[Place, _PointRuns], head: Mapping[Place, _PointRuns]) -> dict[Place, _PointRuns]:
    """Return head's results, by base's name where each side has one command alone, which may lie elsewhere there."""
    names = [{name for name, _ in places} for places in (base, head)]
    if any(len(of_side) != 1 for of_side in names):
        return dict(head)
    (name,) = names[0]
    return {(name, parameters): measured for (_, parameters), measured in head.items()}


def _recorded(
    points: Mapping[Place, int], functions: Mapping[str, int], measured: Mapping[Side, Mapping[Place, _PointRuns]]
) -> tuple[tuple[Run, ...], list[SampleTable]]:
    """Return all runs, of which those of one file share a block and those of two sides never, and a table of each function and side."""
    runs: list[Run] = []
    tables: list[SampleTable] = []
    for name, function in functions.items():
        own = [place for place in points if place[0] == name]
        for number, (side, places) in enumerate(measured.items()):
            first = len(runs)
            rows = [(place, ns) for place in own for ns in places[place].ns]
            files = [file for place in own for file in places[place].files or [None] * len(places[place].ns)]
            for (place, ns), file in zip(rows, files, strict=True):
                block = len(Side) * MOST_FILES + len(runs) if file is None else number * MOST_FILES + file
                run = Run(len(runs), Phase.TIMED, points[place], side, block, ns, ns, math.nan, None, None, "", layout=file or 0)
                runs.append(run)
            tables.append(_table(function, side, rows, _features(own), runs[first:]))
    return tuple(runs), tables


def _table(function: int, side: Side, rows: Sequence[tuple[Place, float]], features: Sequence[Feature], runs: Sequence[Run]) -> SampleTable:
    count, ns = len(rows), np.array([ns for _, ns in rows])
    columns = [_column(feature, [place for place, _ in rows]) for feature in features]
    return SampleTable(
        function=function,
        side=side,
        metrics={"wall_ns": ns, "self_ns": ns},
        features=tuple(features),
        values=np.array(columns, float).T.reshape(count, len(features)),
        branches=(),
        executed=np.empty((count, 0)),
        taken=np.empty((count, 0)),
        run=np.array([run.id for run in runs], np.int64),
        point=np.array([run.point for run in runs], np.int64),
        thread=np.zeros(count, np.int64),
        call=np.arange(1, count + 1),
        weight=np.ones(count),
    )


def _features(own: Sequence[Place]) -> list[Feature]:
    """Return the parameters of a benchmark: numbers as they are, and as categories those of which any is a text, alike on both sides."""
    names = dict.fromkeys(name for _, parameters in own for name, _ in parameters)
    values = {name: [dict(parameters)[name] for _, parameters in own if name in dict(parameters)] for name in names}
    features = []
    for name, of_name in values.items():
        is_category = any(isinstance(value, str) for value in of_name)
        labels = dict(enumerate(sorted({str(value) for value in of_name}))) if is_category else {}
        features.append(Feature(name, Origin.WORKLOAD, is_category, labels))
    return features


def _column(feature: Feature, rows: Sequence[Place]) -> list[float]:
    """Return the value of a parameter at each of the places, NaN where one does not have it."""
    codes = {text: float(code) for code, text in feature.labels.items()}
    given = [dict(parameters).get(feature.name) for _, parameters in rows]
    return [math.nan if value is None else codes[str(value)] if feature.category else float(value) for value in given]


def _totals(tables: Sequence[SampleTable]) -> Totals:
    run = np.concatenate([table.run for table in tables])
    ns = np.concatenate([table.metrics["wall_ns"] for table in tables])
    return Totals(run, np.concatenate([np.full(len(table), table.function) for table in tables]), np.ones(len(run)), ns, ns, {})


def _info(name: str, number: int, tool: str) -> FunctionInfo:
    reasons = (other_reason(f"{tool} measured it, and its source was not given"),)
    return FunctionInfo(number, name, "", 0, "", Change.CHANGED, reasons)


def _parameters(name: str, shared: Sequence[Place]) -> Iterator[str]:
    yield from dict.fromkeys(key for benchmark, parameters in shared if benchmark == name for key, _ in parameters)


def _environment(sessions: Sequence[ToolResults]) -> Environment:
    processor = next((session.context["CPU"] for session in sessions if "CPU" in session.context), _UNTOLD)
    return Environment(processor, 0, _UNTOLD, None, "", False, _UNTOLD, __version__, _UNTOLD)


def _point(place: Place, number: int, tool: str) -> Point:
    return Point(number, place[0], dict(place[1]), tool)


def _label(place: Place) -> str:
    return _point(place, 0, "").label


def _skipped(sides: Mapping[Side, Sequence[ToolResults]], measured: Mapping[Side, Mapping[Place, _PointRuns]]) -> Iterator[SkippedFunction]:
    for side, places in measured.items():
        others = set[Place]().union(*(places for other, places in measured.items() if other is not side))
        yield from (SkippedFunction(_label(place), "", f"only {side} has results of it") for place in places if place not in others)
        for name, why in dict(pair for session in sides[side] for pair in session.unread.items()).items():
            yield SkippedFunction(name, "", f"not read in {side}: {why}")


def _notes(
    sides: Mapping[Side, Sequence[ToolResults]], measured: Mapping[Side, Sequence[_PointRuns]], shared: Sequence[Place]
) -> Iterator[Note]:
    contexts = {side: {key: value for session in sessions for key, value in session.context.items()} for side, sessions in sides.items()}
    for what, before in contexts[Side.BASE].items():
        after = contexts[Side.HEAD].get(what, before)
        if before != after:
            yield Note("machines-differ", f"base was measured with another {what} ({before}) than head ({after})")
    for side, sessions in sides.items():
        for remark in dict.fromkeys(remark for session in sessions for remark in session.remarks):
            yield Note("results-doubtful", f"{side}: {remark}")
    lacking = {place: entry.lacks for entries in measured.values() for place, entry in zip(shared, entries, strict=True) if entry.lacks}
    for lacks in dict.fromkeys(lacking.values()):
        labels = [_label(place) for place, own in lacking.items() if own == lacks]
        yield Note("results-lacking", f"of {units.listed(labels, _SHOWN)} there are {lacks}: one number a side tells nothing of chance")
