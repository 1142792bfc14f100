"""Experiments that are larger than memory, read once: what is analysed of them fits a folder of this machine.

A table in several parts becomes some calls of each run that stand for all of it. Its parts are read by the engine's tasks, some at a time,
and what each task keeps is merged; the same calls are kept whoever reads them, and in whatever order.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from perfdiff import temporary
from perfdiff.engines.engine import Engine
from perfdiff.engines.processes import Processes
from perfdiff.engines.tables import chosen
from perfdiff.errors import RecordingError
from perfdiff.records import recorded, store, tables
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.remote import Folder
from perfdiff.records.reservoir import Reservoir
from perfdiff.records.schema import SampleTable, Side

# Parts that a task reads, one after the other: enough that what it keeps is much less than what it read.
PARTS = 8
# With fewer, processes would take longer to start than they save.
PARALLEL_FROM = 4 * PARTS
ROWS = 2**20  # of a part at most; each is held in memory as a whole


@dataclass(frozen=True, slots=True)
class Piece:
    """Some parts of one function's calls on one side; `whole` if they are all parts."""

    function: int
    side: Side
    names: tuple[str, ...]
    whole: bool


def condensed(folder: Folder, engine: Engine | None = None) -> RecordedExperiment:
    """Return the experiment in a folder, or behind a URL, with tables of a size that models learn from; raise RecordingError.

    Tables of a single part, and experiments that have no others, stay as they are. Sums over runs are of all calls in any case.
    """
    whole = recorded.load(folder)
    pieces = [*_pieces(folder, whole)]
    if all(piece.whole for piece in pieces):
        return whole
    engine = _reader(engine, folder, sum(len(piece.names) for piece in pieces))
    quotas = recorded.quotas(whole.experiment)
    read_pieces = engine.map(_read, pieces, folder, quotas)
    room = temporary.make()
    try:
        counts = (table for info in whole.experiment.functions for side in Side if (table := whole.counts(info.id, side)) is not None)
        store.save(room / "experiment", whole.experiment, _merged(pieces, read_pieces), counts)
        loaded = recorded.load(room / "experiment")
    except BaseException:
        temporary.remove(room)
        raise
    lasting = _Room(room)
    return replace(loaded, samples=_Lasting(loaded.samples, lasting), counts=_Lasting(loaded.counts, lasting), lines=whole.lines)


class _Room:
    """A folder that lasts as long as somebody holds this, and no longer than the process."""

    def __init__(self, folder: Path) -> None:
        weakref.finalize(self, temporary.remove, folder)


@dataclass(frozen=True, slots=True)
class _Lasting:
    """A loader of tables in a folder that goes with it; other processes are given the loader that it holds."""

    load: recorded.Samples
    room: _Room

    def __call__(self, function: int, side: Side) -> SampleTable | None:
        return self.load(function, side)

    def __reduce__(self) -> tuple[Callable[..., recorded.Samples], tuple[recorded.Samples]]:
        return _itself, (self.load,)


def _itself(load: recorded.Samples) -> recorded.Samples:
    return load


def _pieces(folder: Folder, whole: RecordedExperiment) -> Iterator[Piece]:
    for info in whole.experiment.functions:
        for side in Side:
            names = tuple(store.sample_parts(folder, info.id, side))
            for first in range(0, len(names), PARTS):
                yield Piece(info.id, side, names[first : first + PARTS], len(names) == 1)


def _reader(engine: Engine | None, folder: Folder, parts: int) -> Engine:
    """Return who reads the parts: an engine whose workers see the folder."""
    local = Processes(least=PARALLEL_FROM)
    if engine is None or not engine.agree(functools.partial(_seal, folder)):
        return chosen(local, parts)
    return chosen(engine, parts)


def _seal(folder: Folder) -> str:
    return blake2b(repr(sorted(tables.digests(folder).items())).encode(), digest_size=16).hexdigest()


def _read(piece: Piece, folder: Folder, quotas: Mapping[Side, int]) -> Reservoir | SampleTable:
    """Return what is kept of some parts, or the only part of a table as it is."""
    parts = (store.part(folder, name, piece.function, piece.side) for name in piece.names)
    if piece.whole:
        return next(parts)
    reservoir = Reservoir(quotas[piece.side], recorded.SEED)
    for part in parts:
        if len(part) > ROWS:
            raise RecordingError(
                f"{folder} has a part of {len(part):,} rows of function {piece.function}; {ROWS:,} at most are read at a time",
                slug="damaged-recording",
            )
        reservoir = reservoir.added(part)
    return reservoir


def _merged(pieces: list[Piece], reservoirs: Iterator[Reservoir | SampleTable]) -> Iterator[SampleTable]:
    """Yield the table of each function and side, whose pieces stand next to each other."""
    open_piece: Piece | None = None
    merged: Reservoir | None = None
    for piece, rows in zip(pieces, reservoirs, strict=True):
        if merged is not None and open_piece is not None and (open_piece.function, open_piece.side) != (piece.function, piece.side):
            yield from _table(merged)
            merged = None
        if isinstance(rows, SampleTable):
            yield rows
        else:
            merged = rows if merged is None else merged.merged(rows)
        open_piece = piece
    if merged is not None:
        yield from _table(merged)


def _table(reservoir: Reservoir) -> Iterator[SampleTable]:
    table = reservoir.table()
    if table is not None:
        yield table
