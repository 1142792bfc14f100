"""A part of a recording of a program in use: what one host recorded of one revision for a while, as it leaves that host.

A part holds features and times alone. What could hold a text of the user's has no place in it: no command, no path, no source, nothing that
the program read, printed or was given. What is text in it: names of functions, files of the project, features and types, labels, and the
names of the host, its processor, kernel, compiler and libraries.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from perfdiff.errors import RecordingError
from perfdiff.records import bounds, codec, tables
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Edges, Environment, Feature, Revision, SampleTable, Side, Totals

SCHEMA = "perfdiff.part/1"
FILE = "part.json"
_TOTALS, _EDGES, _SAMPLES = "totals.parquet", "edges.parquet", "samples.parquet"
_SUMS = ("function", "calls", "wall_ns", "self_ns")
_ENDS = ("caller", "callee", "calls", "wall_ns")
_ROWS = ("function", "thread", "call", "weight")
_FEATURE = "feature:"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}(?:[~^][0-9~^]*)?")  # of a revision; others, as `:/words`, may hold texts
_HARMLESS_FLAG = re.compile(r"-(?:O\w*|g\w*|f[\w-]+(?:=[\w-]+)?|m[\w.-]+(?:=[\w.+-]+)?|std=[\w+]+|pthread)")


@dataclass(frozen=True, slots=True)
class PartFunction:
    """A function that had a probe: `code` digests its text, `calls` are ids of functions it can call, `features` what its calls tell."""

    id: int
    name: str
    file: str
    line: int
    language: str
    code: str
    calls: frozenset[int] = frozenset()
    features: tuple[Feature, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """The description of a part. `id` is unique; `session` is shared by all parts that one command recorded.

    `tree` is the content of the revision, digested, `build` what it was compiled with. Times of day are those of the host's own clock;
    `elapsed_s` is by a clock that nobody sets. `cpu_s` is what the command took of a CPU meanwhile, as far as the kernel tells.
    """

    id: str
    session: str
    number: int
    host: str
    environment: Environment
    revision: Revision
    tree: str
    build: str
    labels: Mapping[str, str]
    started_unix_ns: int
    ended_unix_ns: int
    elapsed_s: float
    cpu_s: float
    processes: int
    functions: tuple[PartFunction, ...] = ()

    @property
    def runs_backwards(self) -> bool:
        """Return whether its host's clock was set while it was recorded."""
        return self.ended_unix_ns < self.started_unix_ns


@dataclass(frozen=True, slots=True)
class PartSums:
    """The exact sums of a part, one row a function and one row a pair of functions; `other` holds further metrics by name."""

    function: Ints
    calls: Floats
    wall_ns: Floats
    self_ns: Floats
    other: Mapping[str, Floats]
    caller: Ints
    callee: Ints
    made: Floats
    took_ns: Floats


@dataclass(frozen=True, slots=True)
class Numbers:
    """All numbers of a part: its sums, and single calls of each function that has some, as of run 0 at point 0 of `side`."""

    sums: PartSums
    samples: Mapping[int, SampleTable] = field(default_factory=dict)


def without_texts(environment: Environment) -> Environment:
    """Return what a host tells of itself, without what its user wrote: of flags those alone that decide how code is made."""
    harmless = (" ".join(_HARMLESS_FLAG.findall(flags)) for flags in environment.flags)
    return replace(
        environment,
        compiler=Path(environment.compiler).name if environment.compiler.startswith("/") else environment.compiler,
        flags=tuple(dict.fromkeys(filter(None, harmless))),
        libraries=tuple(library for library in environment.libraries if "/" not in library),
    )


def revision(recorded: Revision) -> Revision:
    """Return a revision without the text of its commit; one that was asked for by words goes by its commit."""
    name = (
        recorded.rev
        if _PLAIN_NAME.fullmatch(recorded.rev) and not Path(recorded.rev).is_absolute()
        else (recorded.commit or "working tree")[:12]
    )
    return Revision(name, recorded.commit, "")


def new_id() -> str:
    """Return a name that no other part or session has."""
    return uuid.uuid4().hex


def write(folder: Path, part: Part, totals: Totals, edges: Edges, samples: Iterable[SampleTable]) -> Path:
    """Write a part below `folder` and return where it lies; it appears whole or not at all. Raise StoreError."""
    began = datetime.fromtimestamp(part.started_unix_ns / 1e9, UTC)
    place = folder / f"{began:%Y%m%dT%H%M%SZ}-{part.id[:16]}"
    with tables.written(place) as draft:
        table_by_function = {table.function: table for table in samples}
        functions = [
            replace(function, features=table_by_function[function.id].features) if function.id in table_by_function else function
            for function in part.functions
        ]
        document = {"schema": SCHEMA, "part": codec.encode(replace(part, functions=tuple(functions)))}
        (draft / FILE).write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        names = ("function", "calls", "wall_ns", "self_ns")
        tables.write_columns(draft / _TOTALS, {name: getattr(totals, name) for name in names} | dict(totals.other))
        tables.write_columns(draft / _EDGES, {name: getattr(edges, name) for name in _ENDS})
        tables.write_columns(draft / _SAMPLES, _columns(table_by_function))
    return place


def _columns(table_by_function: Mapping[int, SampleTable]) -> dict[str, Any]:
    """Return the calls of all functions in one table, whose i-th feature is the i-th of each function's."""
    ordered = [table_by_function[function] for function in sorted(table_by_function)]
    metrics = sorted({name for table in ordered for name in table.metrics})
    features = max((table.values.shape[1] for table in ordered), default=0)

    def joined(columns: Iterable[Any], kind: type) -> Any:
        return np.concatenate([*columns, np.empty(0, kind)]).astype(kind)

    def of_all(column: Any) -> Any:
        return joined((column(table) for table in ordered), float)

    return {
        "function": joined((np.full(len(table), table.function) for table in ordered), np.int64),
        "thread": joined((table.thread for table in ordered), np.int64),
        "call": joined((table.call for table in ordered), np.int64),
        "weight": of_all(lambda table: table.weight),
        **{name: of_all(lambda table, name=name: table.metrics.get(name, np.full(len(table), np.nan))) for name in metrics},
        **{f"{_FEATURE}{place}": of_all(lambda table, place=place: _value(table, place)) for place in range(features)},
    }


def _value(table: SampleTable, place: int) -> Floats:
    return table.values[:, place] if place < table.values.shape[1] else np.full(len(table), np.nan)


def is_part(folder: Path) -> bool:
    """Return whether a folder is a part, whole or damaged, whatever its file is."""
    return os.path.lexists(folder / FILE)


def below(folder: Path) -> Iterator[Path]:
    """Yield the folders of parts at and below a folder, in the order of their names; those that are being written are left alone."""
    if is_part(folder):
        yield folder
        return
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                yield from below(path)


def load(folder: Path) -> Part:
    """Return the description of a part; raise RecordingError if it is damaged or of another version."""
    try:
        document = bounds.parsed(bounds.content(folder / FILE).decode())
    except (OSError, ValueError) as error:
        raise RecordingError(f"{folder} holds no readable part: {error}", slug="damaged-recording") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise RecordingError(f"{folder} is of format {schema!r}; this perfdiff reads {SCHEMA}", slug="format-version")
    tables.content(folder, FILE)
    part = codec.decode(Part, document.get("part"))
    try:
        bounds.check_numbers([function.id for function in part.functions], "functions")
    except bounds.BoundError as error:
        raise RecordingError(f"{folder} is damaged: {error}", slug="damaged-recording") from error
    return part


def numbers(folder: Path, part: Part, side: Side = Side.BASE) -> Numbers:
    """Return the numbers of a part; raise RecordingError where they are damaged."""
    totals, edges, columns = (tables.read_columns(folder, name) for name in (_TOTALS, _EDGES, _SAMPLES))
    features = {function.id: function.features for function in part.functions}
    try:
        sums = PartSums(
            **{name: totals.pop(name) for name in _SUMS},
            other=totals,
            caller=edges["caller"],
            callee=edges["callee"],
            made=edges["calls"],
            took_ns=edges["wall_ns"],
        )
        samples = _samples(columns, features, side)
    except KeyError as error:
        raise RecordingError(f"{folder} lacks the column {error}", slug="damaged-recording") from error
    for used, allowed in (
        (sums.function, features),
        (sums.callee, features),
        (sums.caller, {0, *features}),
        (np.array(list(samples)), features),
    ):
        if not set(used.tolist()) <= set(allowed):
            raise RecordingError(f"{folder} is damaged: it has numbers of functions that it does not describe", slug="damaged-recording")
    if not all((np.isfinite(table.weight) & (table.weight > 0)).all() for table in samples.values()):
        raise RecordingError(f"{folder} is damaged: it has calls that stand for no number of calls", slug="damaged-recording")
    return Numbers(sums, samples)


def _samples(columns: dict[str, Any], features: Mapping[int, tuple[Feature, ...]], side: Side) -> dict[int, SampleTable]:
    """Return the calls of each function of which a metric is known; raise KeyError where a column is missing."""
    function, thread, call, weight = (columns.pop(name) for name in _ROWS)
    values = {name: columns.pop(name) for name in list(columns) if name.startswith(_FEATURE)}
    table_by_function = {}
    order = np.argsort(function, kind="stable")
    for number, index in zip(*_grouped(function, order), strict=True):
        own = features.get(number, ())
        metrics = {name: column[index] for name, column in columns.items() if not np.isnan(column[index]).all()}
        if not metrics:
            continue
        count, nothing = len(index), np.empty((len(index), 0))
        table_by_function[number] = SampleTable(
            function=number,
            side=side,
            metrics=metrics,
            features=own,
            values=np.column_stack([nothing, *(values[f"{_FEATURE}{place}"][index] for place in range(len(own)))]),
            branches=(),
            executed=nothing,
            taken=nothing,
            run=np.zeros(count, np.int64),
            point=np.zeros(count, np.int64),
            thread=thread[index],
            call=call[index],
            weight=weight[index],
        )
    return table_by_function


def _grouped(function: Ints, order: Ints) -> tuple[list[int], list[Ints]]:
    numbers, starts = np.unique(function[order], return_index=True)
    return numbers.tolist(), np.split(order, starts[1:]) if len(numbers) else []


@dataclass(frozen=True, slots=True)
class FinishedPart:
    """A finished part on its host: its folder, its size, the digest of its revision's tree, and when it began."""

    folder: Path
    bytes: int
    tree: str
    started_unix_ns: int


def bounded(folder: Path, most_bytes: int) -> int:
    """Remove parts below `folder` until all take at most `most_bytes`; return how many went.

    Of the revision whose parts take most room, that part goes whose neighbours are nearest in time: what stays is spread evenly over the
    time of each revision, and its first and newest part stay to the last.
    """
    finished = []
    for path in below(folder):
        try:
            part = load(path)
            size = sum(file.stat().st_size for file in path.iterdir())
        except (RecordingError, OSError):  # damaged, or removed by another recording to the same folder
            continue
        finished.append(FinishedPart(path, size, part.tree, part.started_unix_ns))
    removed = 0
    while finished and sum(finished_part.bytes for finished_part in finished) > most_bytes:
        gone = _least_missed(finished)
        finished.remove(gone)
        shutil.rmtree(gone.folder, ignore_errors=True)
        removed += 1
    return removed


def _least_missed(finished: list[FinishedPart]) -> FinishedPart:
    rooms: dict[str, int] = {}
    for part in finished:
        rooms[part.tree] = rooms.get(part.tree, 0) + part.bytes
    largest = max(rooms, key=lambda tree: (rooms[tree], tree))
    row = sorted((part for part in finished if part.tree == largest), key=lambda part: (part.started_unix_ns, part.folder.name))
    inner = [(after.started_unix_ns - before.started_unix_ns, middle) for before, middle, after in zip(row, row[1:], row[2:], strict=False)]
    return min(inner, key=lambda pair: pair[0])[1] if inner else row[0]
