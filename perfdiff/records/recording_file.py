"""The blocks of a recording's file, checked byte by byte (layout: `docs/architecture/records.md`, the recording)."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag

import numpy as np
import numpy.typing as npt

from perfdiff.errors import DamageError
from perfdiff.records.type_names import readable

VERSION = 3
LENGTHS = 32  # classes of calls by length
SAMPLE_WORDS = 9  # of a record, ahead of its counters, mask and cells
TIME_UNITS = 256.0  # to a tick
LIBRARY = 2**31  # the callee of an edge that leaves the project's code, less the number of a function's name
TIMED = 2**30  # added to it: of those of these calls that were timed
EDGE = np.dtype([("caller", "<u4"), ("callee", "<u4"), ("calls", "<u8"), ("wall", "<i8")])

_MAGIC = b"PDREC1\0\0"
_BYTE_ORDER = 0x01020304
_HEADER = struct.Struct("<8s8I6Q2Q5Q1024s1024sII")
_COUNTER = struct.Struct("<56sII")
_COUNTERS = 24  # places in the header
_COSTS = 5  # of probes, in the header
_EXTENT = struct.Struct("<IIQ")
_EXTENT_MAGIC = 0x58454450
_BLOCK = struct.Struct("<IIQ")
_EDGES = struct.Struct("<II")
_SAMPLES = struct.Struct("<IIII")
_TYPE = struct.Struct("<QII")
_FUNCTION = struct.Struct("<IIQ")
_MOST_CELLS = 3 * (2**16 - 1)  # of a record: a plan has at most so many features, and branches of two cells each


class Flag(IntFlag):
    """What the header says of the recording as a whole."""

    ENDED = 1
    FULL = 2
    SEES_ALLOCATIONS = 4
    SEES_LOCKS = 8
    SEES_WAITS = 16  # for locks, not how long they are held
    KNOWS_LASTING = 32  # what was still allocated at its end by exit


class CounterFlag(IntFlag):
    """What the header says of a counter."""

    EXACT = 1
    MULTIPLEXED = 2


class _BlockKind(IntEnum):
    NONE = 0
    TOTALS = 1
    EDGES = 2
    SAMPLES = 3
    TYPE = 4
    LINE = 6
    FUNCTION = 7
    LASTING = 8
    OPEN = 9


_KINDS = frozenset(_BlockKind)


@dataclass(frozen=True, slots=True)
class Header:
    """The header's fields, as far as reading needs them; `costs` in 1/256 ticks, `ns_per_tick` NaN where no time passed."""

    size: int
    flags: Flag
    pid: int | None
    parent_pid: int | None
    probes: int
    ns_per_tick: float
    started_unix_ns: int | None
    end: int
    costs: tuple[int, ...]
    program: str
    counters: tuple[tuple[str, CounterFlag], ...] = ()


@dataclass(frozen=True, slots=True)
class _Block:
    thread: int
    kind: _BlockKind
    start: int  # of what follows the block's header
    end: int


@dataclass(slots=True)
class Contents:
    """The contents of a recording's blocks while they are read, one block after the other."""

    totals: dict[tuple[int, int], np.void] = field(default_factory=dict)  # by probe and thread, as `totals_layout` has them
    edges: list[npt.NDArray[np.void]] = field(default_factory=list)
    samples: dict[int, list[tuple[int, int, npt.NDArray[np.uint64]]]] = field(
        default_factory=dict
    )  # by probe: thread, cells a record, records
    library: list[tuple[int, npt.NDArray[np.void]]] = field(default_factory=list)  # where they lie, and edges to functions of libraries
    timed: list[tuple[int, npt.NDArray[np.void]]] = field(default_factory=list)  # the same of those of their calls that were timed
    functions: dict[int, tuple[str, bool]] = field(default_factory=dict)  # these by number: name, and whether some calls are not seen
    types: dict[int, str] = field(default_factory=dict)
    lines: list[tuple[int, bytes]] = field(default_factory=list)  # where it lies, and what `hot_lines` reads
    lasting: list[tuple[int, bytes]] = field(default_factory=list)  # the same of `lasting_blocks`
    opened: list[tuple[int, bytes]] = field(default_factory=list)  # the same of `left_open`


@functools.cache
def totals_layout(counters: int) -> np.dtype[np.void]:
    """Return the layout of one probe's totals in one thread: `struct pd_totals`."""
    sums = ("calls", "finished", "outer_finished", "timed", "weight", "outer_weight", "unfinished")
    return np.dtype(
        [
            ("probe", "<u4"),
            ("mode", "<u4"),
            *((name, "<u8") for name in sums),
            ("wall", "<i8"),
            ("self", "<i8"),
            ("resources", "<u8", (4,)),
            ("lengths", "<u4", (LENGTHS,)),
            ("read", "<u8"),
            ("reading", "<u8"),
            ("flagged", "<u8"),
            ("counters", "<u8", (counters,)),
        ]
    )


def decode(data: bytes) -> tuple[Header, Contents]:
    """Decode all complete blocks of the file; raise DamageError at the first byte that cannot be right."""
    header = _header(data)
    contents = Contents()
    for block in _blocks(data, header):
        _collect(data, block, header, contents)
    for kind, edge_blocks in ((LIBRARY, contents.library), (LIBRARY + TIMED, contents.timed)):
        for offset, edges in edge_blocks:
            if not set((edges["callee"] - kind).tolist()) <= set(contents.functions):
                raise DamageError(offset, "an edge to a function without a name")
    return header, contents


def has_begun(data: bytes) -> bool:
    """Return whether a process wrote the header, whose first bytes come last; one that was killed before leaves nothing, or zeros."""
    return any(data[: len(_MAGIC)])


def not_begun(pid: int | None) -> Header:
    """Return the header of a process that was killed before it wrote anything."""
    return Header(
        size=0,
        flags=Flag(0),
        pid=pid,
        parent_pid=None,
        probes=0,
        ns_per_tick=math.nan,
        started_unix_ns=None,
        end=0,
        costs=(0,) * _COSTS,
        program="",
    )


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode(errors="replace")


def _header(data: bytes) -> Header:
    least = _HEADER.size + _COUNTERS * _COUNTER.size
    if len(data) < least:
        raise DamageError(len(data), f"the file ends within the header of {least} bytes")
    fields = _HEADER.unpack_from(data)
    magic, version, byte_order, size, flags, pid, parent_pid, probes, newest = fields[:9]
    ticks, ns, *latest = fields[9:15]
    started_unix_ns, end = fields[15:17]
    program, argv0, counters, _ = fields[22:]
    if magic != _MAGIC:
        raise DamageError(0, "not a recording")
    if version != VERSION or byte_order != _BYTE_ORDER:
        raise DamageError(8, f"a recording of version {version} with byte order {byte_order:#x}", slug="recording-version")
    if size < least or size % 8 or newest > 1 or end < size or counters > _COUNTERS:
        raise DamageError(16, "impossible sizes in the header")
    ticks_passed, ns_passed = latest[2 * newest] - ticks, latest[2 * newest + 1] - ns
    if ticks_passed < 0 or ns_passed < 0:
        raise DamageError(40, "the clock runs backwards")
    return Header(
        size=size,
        flags=Flag(flags & sum(Flag)),
        pid=pid,
        parent_pid=parent_pid,
        probes=probes,
        ns_per_tick=ns_passed / ticks_passed if ticks_passed and ns_passed else math.nan,
        started_unix_ns=started_unix_ns,
        end=end,
        costs=fields[17:22],
        program=_text(program) or _text(argv0),
        counters=tuple(_counter(data, _HEADER.size + place * _COUNTER.size) for place in range(counters)),
    )


def _counter(data: bytes, offset: int) -> tuple[str, CounterFlag]:
    name, flags, _ = _COUNTER.unpack_from(data, offset)
    return _text(name), CounterFlag(flags & sum(CounterFlag))


def _blocks(data: bytes, header: Header) -> Iterator[_Block]:
    """Yield the blocks that lie wholly in the file."""
    limit = min(header.end, len(data))
    offset = header.size
    while offset + _EXTENT.size <= limit:
        magic, thread, size = _EXTENT.unpack_from(data, offset)
        if magic != _EXTENT_MAGIC or size < _EXTENT.size or size % 8 or offset + size > header.end:
            raise DamageError(offset, "not an extent")
        yield from _blocks_of_extent(data, thread, offset + _EXTENT.size, offset + size)
        offset += size


def _blocks_of_extent(data: bytes, thread: int, offset: int, end: int) -> Iterator[_Block]:
    while offset + _BLOCK.size <= min(end, len(data)):
        kind, _, size = _BLOCK.unpack_from(data, offset)
        if kind == _BlockKind.NONE:
            return
        if kind not in _KINDS or size < _BLOCK.size or size % 8 or offset + size > end:
            raise DamageError(offset, f"not a block (kind {kind}, {size} bytes)")
        if offset + size > len(data):
            return
        yield _Block(thread, _BlockKind(kind), offset + _BLOCK.size, offset + size)
        offset += size


def _require(size: int, block: _Block) -> None:
    if block.start + size > block.end:
        raise DamageError(block.start, f"a block of kind {block.kind.name} is too short")


def _fields(data: bytes, block: _Block, layout: struct.Struct) -> tuple[int, ...]:
    _require(layout.size, block)
    return layout.unpack_from(data, block.start)


def _collect(data: bytes, block: _Block, header: Header, contents: Contents) -> None:
    match block.kind:
        case _BlockKind.TOTALS:
            layout = totals_layout(len(header.counters))
            _require(layout.itemsize, block)
            totals = np.frombuffer(data, layout, 1, block.start)[0]
            probe = _probe(int(totals["probe"]), block, header)
            if (probe, block.thread) in contents.totals:
                raise DamageError(block.start, f"a second block of totals of probe {probe} in thread {block.thread}")
            contents.totals[probe, block.thread] = totals
        case _BlockKind.EDGES:
            edges = _edges_block(data, block, header)
            leaves, timed = edges["callee"] >= LIBRARY, edges["callee"] >= LIBRARY + TIMED
            contents.edges.append(edges[~leaves])
            contents.library.append((block.start, edges[leaves & ~timed]))
            contents.timed.append((block.start, edges[timed]))
        case _BlockKind.SAMPLES:
            _collect_samples(data, block, header, contents)
        case _BlockKind.TYPE:
            vtable, length, _ = _fields(data, block, _TYPE)
            name = data[block.start + _TYPE.size : block.end][:length]
            contents.types[vtable] = readable(_text(name))
        case _BlockKind.FUNCTION:
            number, unseen, length = _fields(data, block, _FUNCTION)
            if length > block.end - block.start - _FUNCTION.size:
                raise DamageError(block.start, f"a name of {length} bytes does not fit into its block")
            name = data[block.start + _FUNCTION.size : block.start + _FUNCTION.size + length]
            contents.functions[number] = (_text(name), bool(unseen))
        case _BlockKind.LINE:
            contents.lines.append((block.start, data[block.start : block.end]))
        case _BlockKind.OPEN:
            contents.opened.append((block.start, data[block.start : block.end]))
        case _BlockKind.LASTING:
            contents.lasting.append((block.start, data[block.start : block.end]))
        case _BlockKind.NONE:
            pass


def _probe(number: int, block: _Block, header: Header) -> int:
    if not 0 < number < header.probes:
        raise DamageError(block.start, f"probe {number} of {header.probes}")
    return number


def _edges_block(data: bytes, block: _Block, header: Header) -> npt.NDArray[np.void]:
    capacity, _ = _fields(data, block, _EDGES)
    start = block.start + _EDGES.size
    if capacity * EDGE.itemsize > block.end - start:
        raise DamageError(block.start, f"{capacity} edges do not fit into their block")
    edges = np.frombuffer(data, EDGE, capacity, start)
    edges = edges[edges["calls"] > 0]
    between = edges["callee"][edges["callee"] < LIBRARY]
    if np.any(between == 0) or np.any(between >= header.probes) or np.any(edges["caller"] >= header.probes):
        raise DamageError(start, f"an edge between probes that are not among {header.probes}")
    return edges


def _collect_samples(data: bytes, block: _Block, header: Header, contents: Contents) -> None:
    fields = _fields(data, block, _SAMPLES)
    probe = _probe(fields[0], block, header)
    _, capacity, cells = fields[1:]
    words = SAMPLE_WORDS + len(header.counters) + -(-cells // 64) + cells
    start = block.start + _SAMPLES.size
    # Cells are columns, which take memory even where there is no record.
    if capacity * words * 8 > block.end - start or cells > _MOST_CELLS:
        raise DamageError(block.start, f"{capacity} records of {words} words do not fit into their block")
    if (probe, block.thread) not in contents.totals:
        raise DamageError(block.start, f"records of probe {probe} without its totals in thread {block.thread}")
    segments = contents.samples.setdefault(probe, [])
    if segments and segments[0][1] != cells:
        raise DamageError(block.start, f"records of probe {probe} with {cells} cells, after records with {segments[0][1]}")
    records = np.frombuffer(data, "<u8", capacity * words, start).reshape(capacity, words)
    segments.append((block.thread, cells, records[records[:, 0] > 0]))
