"""Experiments on disk: one folder, JSON for what was compared, Parquet for what was recorded.

The layout and its version history stand in `docs/formats.md`:

    experiment.json            everything but the bulk data
    totals.parquet             exact sums per run and function
    edges.parquet              calls between probed functions per run
    samples/<id>-<side>.parquet   single calls of one function on one side
    samples/function=<id>/side=<side>/part-<number>.parquet   the same, in parts of which each fits into memory
    counts.parquet             sums of counted runs, where there are any
    library.parquet            calls of counted runs that leave the project's code, where there are any
    counts/<id>-<side>.parquet    single calls of counted runs
    lines/base, lines/head     how often lines ran, each as `placestore` keeps it, where they were counted
    lines/heads.parquet        the place of head that each place of base is, below 0 for those that are gone
    digests.json               of all these files, so that damage is told and not analysed
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from perfdiff.errors import RecordingError
from perfdiff.records import bounds, codec, placestore, tables
from perfdiff.records.arrays import Floats
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.remote import Folder
from perfdiff.records.reservoir import joined
from perfdiff.records.schema import Branch, Edges, Experiment, Feature, LibraryCalls, Revision, SampleTable, Side, Totals

T = TypeVar("T", Feature, Branch)

EXPERIMENT_SCHEMA = "perfdiff.experiment/1"
PARTED_SCHEMA = "perfdiff.experiment/2"  # where tables are folders of parts, which a reader of the first would not find
SAMPLES_SCHEMA = "perfdiff.samples/1"

_SAMPLES, _COUNTS = "samples", "counts"  # folders of sample tables
_COUNTED, _LIBRARY = "counts.parquet", "library.parquet"
_LINES, _HEADS = "lines", "lines/heads.parquet"
_BULK = ("totals", "edges", "counts", "library")  # of an experiment
_TOTALS = ("run", "function", "calls", "wall_ns", "self_ns")
_LIBRARY_CALLS = ("run", "function", "callee", "calls", "timed", "wall_ns")
_LATER = ("timed", "wall_ns")  # of these: columns that older tables lack
_PER_ROW = ("run", "point", "thread", "call", "weight")
# Rows of a part: some 6 MB on disk and 15 MB in memory, of some ten features and metrics. A table of no more is analysed as a whole.
PART_ROWS = 2**16


def save(  # noqa: PLR0913 (what is kept, where and how)
    folder: Folder,
    experiment: Experiment,
    samples: Iterable[SampleTable],
    counts: Iterable[SampleTable] = (),
    lines: PlaceExperiment | None = None,
    *,
    part_rows: int | None = None,
) -> None:
    """Write an experiment, its sample tables, those of counted runs and the counts of lines to `folder`; raise StoreError.

    It appears whole or not at all. With `part_rows`, a table is a folder of parts with so many rows at most, and several tables of one
    function and side are one.
    """
    with tables.written(folder) as draft:
        for kind in (_SAMPLES, _COUNTS):
            (draft / kind).mkdir()
        _write_experiment(draft, experiment, EXPERIMENT_SCHEMA if part_rows is None else PARTED_SCHEMA)
        for kind, kind_tables in ((_SAMPLES, samples), (_COUNTS, counts)):
            numbers: Counter[tuple[int, Side]] = Counter()
            for table in kind_tables:
                if part_rows is None:
                    _write_samples(draft / _table_name(kind, table.function, table.side), table)
                    continue
                for part in _parts(table, part_rows):
                    _write_part(draft, kind, part, numbers[table.function, table.side])
                    numbers[table.function, table.side] += 1
        if lines is not None:
            for side, counted in lines.sides.items():
                placestore.save(draft / _LINES / side, counted)
            tables.write_columns(draft / _HEADS, {"head": lines.heads})


def write_parted(draft: Path, experiment: Experiment) -> None:
    """Write an experiment whose tables are parts to a draft (`tables.written`), before or after its parts; raise OSError."""
    _write_experiment(draft, experiment, PARTED_SCHEMA)


def write_part(draft: Path, part: SampleTable, number: int) -> None:
    """Write a part of a function's calls to a draft, as several processes may do at a time; raise OSError."""
    _write_part(draft, _SAMPLES, part, number)


def _write_part(draft: Path, kind: str, part: SampleTable, number: int) -> None:
    path = draft / _part_name(kind, part.function, part.side, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_samples(path, part)


def _parts(table: SampleTable, rows: int) -> Iterator[SampleTable]:
    if len(table) <= rows:
        yield table
        return
    for first in range(0, len(table), rows):
        yield table.rows(np.arange(first, min(first + rows, len(table))))


def exists(folder: Folder) -> bool:
    """Return whether `folder` holds an experiment; it appears whole or not at all."""
    return (folder / "experiment.json").exists()


def load(folder: Folder) -> Experiment:
    """Return the experiment in `folder`; raise RecordingError where it is damaged or of another version."""
    try:
        document = bounds.parsed(bounds.content(folder / "experiment.json").decode("utf-8", "surrogatepass"))
    except FileNotFoundError as error:
        raise RecordingError(f"{folder} holds no experiment", slug="damaged-recording") from error
    except OSError as error:
        raise tables.unread(folder / "experiment.json", error) from error
    except ValueError as error:
        raise RecordingError(f"{folder} holds no readable experiment: {error}", slug="damaged-recording") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema not in (EXPERIMENT_SCHEMA, PARTED_SCHEMA):
        raise RecordingError(
            f"{folder} is of format {schema!r}; this perfdiff reads {EXPERIMENT_SCHEMA} and {PARTED_SCHEMA}", slug="format-version"
        )
    tables.content(folder, "experiment.json")
    totals, edges = tables.read_columns(folder, "totals.parquet"), tables.read_columns(folder, "edges.parquet")
    counts = tables.read_columns(folder, _COUNTED) if _COUNTED in tables.digests(folder) else None
    try:
        bulk = {
            "totals": _totals(totals),
            "counts": None if counts is None else _totals(counts),
            "library": _library(folder) if _LIBRARY in tables.digests(folder) else None,
            "edges": Edges(**{name: edges[name] for name in Edges.__slots__}),
        }
    except KeyError as error:
        raise RecordingError(f"{folder} lacks the column {error}", slug="damaged-recording") from error
    experiment = codec.decode(Experiment, document.get("experiment"), **bulk)
    try:
        _check_numbers(experiment)
    except bounds.BoundError as error:
        raise RecordingError(f"{folder} is damaged: {error}", slug="damaged-recording") from error
    return experiment


def _check_numbers(experiment: Experiment) -> None:
    """Raise BoundError where a number names nothing, or is too large to be a place in a table."""
    functions, points, runs = ([item.id for item in items] for items in (experiment.functions, experiment.points, experiment.runs))
    for says, numbers in (("functions", functions), ("points", points), ("runs", runs)):
        bounds.check_numbers(numbers, says)
    _check_known([run.point for run in experiment.runs], points, "point")
    for totals in filter(None, (experiment.totals, experiment.counts)):
        _check_known(totals.run, runs, "run")
        _check_known(totals.function, [*functions, *(folded.info.id for folded in experiment.folded)], "function")
    for behaviour in (run.behaviour for run in experiment.runs if run.behaviour is not None):
        shapes = (behaviour.output, behaviour.errors, *(behaviour.files or {}).values(), *(behaviour.inputs or {}).values())
        counts = [count for shape in shapes for count in (shape.lines, shape.bytes)]
        bounds.check_counts((abs(behaviour.exit_code), behaviour.written_bytes or 0, *counts), "what a run did")
    for use in (run.kernel for run in experiment.runs if run.kernel is not None):
        bounds.check_counts((use.reads, use.writes, use.read_bytes, use.written_bytes, use.faults), "what a run asked of the kernel")
    for left in (run.left_open for run in experiment.runs if run.left_open is not None):
        bounds.check_counts((left.descriptors, left.threads), "what a run had open")
    if experiment.library is not None:
        _check_known(experiment.library.run, runs, "run")
        _check_known(experiment.library.function, [*functions, *(folded.info.id for folded in experiment.folded)], "function")
        _check_known(experiment.library.callee, range(len(experiment.library.names)), "library function")
    _check_known(experiment.edges.run, runs, "run")
    _check_known(experiment.edges.caller, [0, *functions], "function")
    _check_known(experiment.edges.callee, functions, "function")


def _check_known(used: npt.ArrayLike, described: Sequence[int], says: str) -> None:
    numbers = np.asarray(used)
    unknown = numbers[~np.isin(numbers, described)]
    if len(unknown):
        raise bounds.BoundError(f"{says} {unknown[0]} is used, and not described")


def _totals(columns: dict[str, Any]) -> Totals:
    return Totals(**{name: columns.pop(name) for name in _TOTALS}, other=columns)


def _library(folder: Folder) -> LibraryCalls:
    """Return calls into libraries, whose names stand beside the table as the features of samples do; raise RecordingError, KeyError."""
    table = tables.read_table(folder, _LIBRARY)
    try:
        names = codec.decode(tuple[str, ...], tables.header(table) or [])
    except ValueError as error:
        raise RecordingError(f"{folder / _LIBRARY} is damaged: {error}", slug="damaged-recording") from error
    nothing = np.zeros(len(table))
    absent = set(_LATER) - set(table.column_names)
    columns: dict[str, Any] = {name: nothing if name in absent else table.column(name).to_numpy() for name in _LIBRARY_CALLS}
    return LibraryCalls(**columns, names=names)


def verify(folder: Folder) -> None:
    """Raise RecordingError where a file of an experiment is missing, or is not as it was written."""
    tables.verify(folder, "experiment.json")


def samples(folder: Folder, function: int, side: Side) -> SampleTable | None:
    """Return the recorded calls of a function on one side, or None where none were recorded; those of a table in parts as a whole."""
    return _whole(folder, _SAMPLES, function, side)


def counts(folder: Folder, function: int, side: Side) -> SampleTable | None:
    """Return the calls of a function on one side in counted runs, or None where none were counted."""
    return _whole(folder, _COUNTS, function, side)


def sample_parts(folder: Folder, function: int, side: Side) -> Sequence[str]:
    """Return the names of the parts that the calls of a function on one side are recorded in, in their order."""
    return _part_names(folder, _SAMPLES, function, side)


def part(folder: Folder, name: str, function: int, side: Side) -> SampleTable:
    """Return a part of a function's calls; raise RecordingError where it is damaged."""
    table = _table(folder, name, function, side)
    if table is None:
        raise RecordingError(f"{folder / name} is missing", slug="damaged-recording")
    return table


def _whole(folder: Folder, kind: str, function: int, side: Side) -> SampleTable | None:
    parts = [part(folder, name, function, side) for name in _part_names(folder, kind, function, side)]
    return joined(*parts) if len(parts) > 1 else next(iter(parts), None)


def _part_names(folder: Folder, kind: str, function: int, side: Side) -> Sequence[str]:
    name = _table_name(kind, function, side)
    if name in tables.digests(folder):
        return [name]
    return tables.listed(folder).get(_part_name(kind, function, side, 0).rpartition("/")[0], [])


def lines(folder: Folder, revisions: Mapping[Side, Revision]) -> PlaceExperiment | None:
    """Return how often the lines of both `revisions` ran, or None where they were not counted; raise RecordingError."""
    if _HEADS not in tables.digests(folder):
        return None
    sides = {side: placestore.load(folder / _LINES / side) for side in revisions}
    heads = tables.read_columns(folder, _HEADS).get("head")
    base, head = (sides[side] for side in Side)
    is_whole = heads is not None and len(heads) == len(base.places) and base.points == head.points
    if heads is None or not is_whole or heads.dtype.kind != "i" or (heads >= len(head.places)).any():
        raise RecordingError(f"{folder / _LINES} is damaged: its two sides do not fit each other", slug="damaged-recording")
    return PlaceExperiment(revisions, sides, heads)


def _table(folder: Folder, name: str, function: int, side: Side) -> SampleTable | None:
    if name not in tables.digests(folder):
        return None
    path = folder / name
    table = tables.read_table(folder, name)
    try:
        schema, features, branches, resolution_ns = _header(table.schema.metadata[tables.HEADER])
        if schema != SAMPLES_SCHEMA:
            raise RecordingError(f"{path} is of format {schema!r}; this perfdiff reads {SAMPLES_SCHEMA}", slug="format-version")
        column = {name: values.to_numpy() for name, values in zip(table.column_names, table.columns, strict=True)}
        counts = {"feature": len(features), "executed": len(branches), "taken": len(branches)}
        others = {*_PER_ROW, *(f"{prefix}:{i}" for prefix, count in counts.items() for i in range(count))}

        def matrix(prefix: str, count: int) -> Floats:
            return np.column_stack([column[f"{prefix}:{i}"] for i in range(count)]) if count else np.empty((table.num_rows, 0))

        return SampleTable(
            function=function,
            side=side,
            metrics={name: values for name, values in column.items() if name not in others},
            features=features,
            values=matrix("feature", len(features)),
            branches=branches,
            executed=matrix("executed", len(branches)),
            taken=matrix("taken", len(branches)),
            **{name: column[name] for name in _PER_ROW},
            resolution_ns=resolution_ns,
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordingError(f"{path} is damaged: {error}", slug="damaged-recording") from error


@functools.lru_cache(64)  # both sides of a function have the same
def _header(text: bytes) -> tuple[object, tuple[Feature, ...], tuple[Branch, ...], float]:
    """Return the format, features, branches and resolution of a table from its header; raise as `codec.decode` does.

    Of a format that is not read, only that is told.
    """
    header = bounds.parsed(text)
    if header["schema"] != SAMPLES_SCHEMA:
        return header["schema"], (), (), 0.0
    features = tuple(_described(Feature, json.dumps(item)) for item in header["features"])
    branches = tuple(_described(Branch, json.dumps(item)) for item in header["branches"])
    return header["schema"], features, branches, float(header.get("resolution_ns", 0.0))


@functools.lru_cache(4096)  # many functions look at the same data
def _described(kind: type[T], text: str) -> T:
    """Return a feature or a branch from its JSON; raise as `codec.decode` does."""
    return codec.decode(kind, json.loads(text))


def _write_experiment(folder: Path, experiment: Experiment, schema: str) -> None:
    values = {name: codec.encode(getattr(experiment, name)) for name in experiment.__slots__ if name not in _BULK}
    document = {"schema": schema, "experiment": values}
    (folder / "experiment.json").write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8", errors="surrogatepass")
    edges = experiment.edges
    for name, totals in (("totals.parquet", experiment.totals), (_COUNTED, experiment.counts)):
        if totals is not None:
            tables.write_columns(folder / name, {column: getattr(totals, column) for column in _TOTALS} | dict(totals.other))
    if (library := experiment.library) is not None:
        tables.write_columns(folder / _LIBRARY, {name: getattr(library, name) for name in _LIBRARY_CALLS}, library.names)
    tables.write_columns(folder / "edges.parquet", {name: getattr(edges, name) for name in edges.__slots__})


def _write_samples(path: Path, table: SampleTable) -> None:
    columns: dict[str, Any] = {name: getattr(table, name) for name in _PER_ROW}
    columns |= table.metrics
    for prefix, block in (("feature", table.values), ("executed", table.executed), ("taken", table.taken)):
        columns |= {f"{prefix}:{i}": block[:, i] for i in range(block.shape[1])}
    header = {
        "schema": SAMPLES_SCHEMA,
        "features": codec.encode(table.features),
        "branches": codec.encode(table.branches),
        "resolution_ns": table.resolution_ns,
    }
    tables.write_columns(path, columns, header)


def _part_name(kind: str, function: int, side: Side, number: int) -> str:
    """Return the name of a part; its folders are read as columns by whoever knows Hive's partitions."""
    return f"{kind}/function={function}/side={side}/part-{number:06}.parquet"


def _table_name(kind: str, function: int, side: Side) -> str:
    return f"{kind}/{function}-{side}.parquet"
