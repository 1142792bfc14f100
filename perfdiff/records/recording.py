"""The recording of one probed process, as the runtime leaves it on disk (see `docs/architecture.md`).

Whatever the file holds, reading ends in a `Recording` or a `RecordingError` that names the byte, and takes memory in
proportion to the file. A process that was killed leaves a recording that is read as far as it is whole.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from pathlib import Path

import numpy as np
import numpy.typing as npt

from perfdiff.errors import RecordingError
from perfdiff.records.plan import Mode
from perfdiff.records.schema import Floats, Ints
from perfdiff.records.type_names import readable

VERSION = 1

_MAGIC = b"PDREC1\0\0"
_BYTE_ORDER = 0x01020304
_HEADER = struct.Struct("<8s8I6Q2Q5Q1024s1024s")
_EXTENT = struct.Struct("<IIQ")
_EXTENT_MAGIC = 0x58454450
_BLOCK = struct.Struct("<IIQ")
_TOTALS = struct.Struct("<II6Q2q4QQ3Q")
_EDGES = struct.Struct("<II")
_EDGE = np.dtype([("caller", "<u4"), ("callee", "<u4"), ("calls", "<u8"), ("wall", "<i8")])
_SAMPLES = struct.Struct("<IIII")
_SAMPLE_WORDS = 11  # struct pd_sample
_TYPE = struct.Struct("<QII")
_TIME_UNITS = 256.0  # to a tick
_ABSENT = np.uint64(2**64 - 1)

Cells = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]


class _Flag(IntFlag):
    ENDED = 1
    FULL = 2
    SEES_ALLOCATIONS = 4
    SEES_LOCKS = 8


class _Kind(IntEnum):
    NONE = 0
    TOTALS = 1
    EDGES = 2
    SAMPLES = 3
    TYPE = 4


@dataclass(frozen=True, slots=True)
class ProbeCosts:
    """What one probed call cost beyond its function, as its caller sees it and (`inner`) between its own time stamps; ns.

    They were taken off all times already.
    """

    counted_ns: float
    timed_ns: float
    timed_inner_ns: float
    sampled_ns: float
    sampled_inner_ns: float


@dataclass(frozen=True, slots=True)
class RecordedTotals:
    """Sums over all threads, one row a probe that was called (m rows).

    `calls` is exact. Times and resources are of finished calls, scaled from the timed ones where only some were timed; NaN for a
    probe that is counted only. `wall_ns`, allocations and locks count recursive calls once. `unfinished` calls were left by `longjmp`
    or the like (no time), or were open when the process ended (time until then). `cpu_ns`, `page_faults` and `switches` are sums over
    the `flagged` calls only.
    """

    probe: Ints
    calls: Floats
    timed: Floats
    unfinished: Floats
    wall_ns: Floats
    self_ns: Floats
    alloc_bytes: Floats
    alloc_count: Floats
    lock_wait_ns: Floats
    lock_hold_ns: Floats
    flagged: Floats
    cpu_ns: Floats
    page_faults: Floats
    switches: Floats

    def __len__(self) -> int:
        return len(self.probe)


@dataclass(frozen=True, slots=True)
class RecordedEdges:
    """Calls from probe to probe, m rows; `caller` 0 is the start of a thread. `wall_ns` over all callers of a callee is its total."""

    caller: Ints
    callee: Ints
    calls: Floats
    wall_ns: Floats

    def __len__(self) -> int:
        return len(self.caller)


@dataclass(frozen=True, slots=True)
class RecordedSamples:
    """Single calls of one probe, n rows. NaN means absent.

    `call` counts the probe's calls in its thread, from 1; `weight` is how many calls a row stands for. `cells` (n, c) hold the raw 64
    bits of features, then executed and taken counts of each branch; `read` (n, c) tells which were read.
    """

    thread: Ints
    call: Ints
    weight: Floats
    wall_ns: Floats
    self_ns: Floats
    cpu_ns: Floats
    alloc_bytes: Floats
    alloc_count: Floats
    callee_calls: Floats
    lock_wait_ns: Floats
    lock_hold_ns: Floats
    page_faults: Floats
    switches: Floats
    cells: Cells
    read: Bools

    def __len__(self) -> int:
        return len(self.call)


@dataclass(frozen=True, slots=True)
class Recording:
    """All that one process recorded. `complete` is False where it was killed or recording had to stop.

    `types` maps a vtable pointer, as a cell holds it, to the type's name.
    """

    pid: int
    parent_pid: int
    program: str
    started_unix_ns: int
    complete: bool
    ns_per_tick: float
    costs: ProbeCosts
    totals: RecordedTotals
    edges: RecordedEdges
    samples: Mapping[int, RecordedSamples]
    types: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class _Header:
    size: int
    flags: _Flag
    pid: int
    parent_pid: int
    probes: int
    ns_per_tick: float
    started_unix_ns: int
    end: int
    costs: tuple[int, ...]
    program: str


@dataclass(frozen=True, slots=True)
class _Block:
    thread: int
    kind: _Kind
    start: int  # of what follows the block's header
    end: int


@dataclass(slots=True)
class _Contents:
    """What the blocks hold, as it is collected."""

    totals: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)  # by probe and thread
    edges: list[npt.NDArray[np.void]] = field(default_factory=list)
    samples: dict[int, list[tuple[int, int, Cells]]] = field(default_factory=dict)  # by probe: thread, cells a record, records
    types: dict[int, str] = field(default_factory=dict)


def read(path: Path) -> Recording:
    """Read a recording; raise RecordingError with the byte's offset where it is damaged or of another version."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}", slug="recording-unreadable") from error
    try:
        header = _header(data)
        contents = _Contents()
        for block in _blocks(data, header):
            _collect(data, block, header, contents)
    except _DamageError as damage:
        raise RecordingError(f"{path}: byte {damage.offset}: {damage}", slug=damage.slug) from damage
    totals = _totals(header, contents)
    return Recording(
        pid=header.pid,
        parent_pid=header.parent_pid,
        program=header.program,
        started_unix_ns=header.started_unix_ns,
        complete=_Flag.ENDED in header.flags and _Flag.FULL not in header.flags and header.end <= len(data),
        ns_per_tick=header.ns_per_tick,
        costs=ProbeCosts(*(cost / _TIME_UNITS * header.ns_per_tick for cost in header.costs)),
        totals=totals,
        edges=_edges(header, contents, totals),
        samples={probe: _samples(header, contents, probe) for probe in sorted(contents.samples)},
        types=contents.types,
    )


class _DamageError(Exception):
    def __init__(self, offset: int, says: str, slug: str = "recording-damaged") -> None:
        super().__init__(says)
        self.offset = offset
        self.slug = slug


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode(errors="replace")


def _header(data: bytes) -> _Header:
    if len(data) < _HEADER.size:
        raise _DamageError(len(data), f"the file ends within the header of {_HEADER.size} bytes")
    fields = _HEADER.unpack_from(data)
    magic, version, byte_order, size, flags, pid, parent_pid, probes, newest = fields[:9]
    ticks, ns, *latest = fields[9:15]
    started_unix_ns, end = fields[15:17]
    program, argv0 = fields[22:]
    if magic != _MAGIC:
        raise _DamageError(0, "not a recording")
    if version != VERSION or byte_order != _BYTE_ORDER:
        raise _DamageError(8, f"a recording of version {version} with byte order {byte_order:#x}", slug="recording-version")
    if size < _HEADER.size or size % 8 or newest > 1 or end < size:
        raise _DamageError(16, "impossible sizes in the header")
    ticks_passed, ns_passed = latest[2 * newest] - ticks, latest[2 * newest + 1] - ns
    if ticks_passed < 0 or ns_passed < 0:
        raise _DamageError(40, "the clock runs backwards")
    return _Header(
        size=size,
        flags=_Flag(flags & sum(_Flag)),
        pid=pid,
        parent_pid=parent_pid,
        probes=probes,
        ns_per_tick=ns_passed / ticks_passed if ticks_passed else math.nan,
        started_unix_ns=started_unix_ns,
        end=end,
        costs=fields[17:22],
        program=_text(program) or _text(argv0),
    )


def _blocks(data: bytes, header: _Header) -> Iterator[_Block]:
    """Yield the blocks that lie wholly in the file."""
    limit = min(header.end, len(data))
    offset = header.size
    while offset + _EXTENT.size <= limit:
        magic, thread, size = _EXTENT.unpack_from(data, offset)
        if magic != _EXTENT_MAGIC or size < _EXTENT.size or size % 8 or offset + size > header.end:
            raise _DamageError(offset, "not an extent")
        yield from _blocks_of_extent(data, thread, offset + _EXTENT.size, offset + size)
        offset += size


def _blocks_of_extent(data: bytes, thread: int, offset: int, end: int) -> Iterator[_Block]:
    while offset + _BLOCK.size <= min(end, len(data)):
        kind, _, size = _BLOCK.unpack_from(data, offset)
        if kind == _Kind.NONE:
            return
        if kind > max(_Kind) or size < _BLOCK.size or size % 8 or offset + size > end:
            raise _DamageError(offset, f"not a block (kind {kind}, {size} bytes)")
        if offset + size > len(data):
            return
        yield _Block(thread, _Kind(kind), offset + _BLOCK.size, offset + size)
        offset += size


def _fields(data: bytes, block: _Block, layout: struct.Struct) -> tuple[int, ...]:
    if block.start + layout.size > block.end:
        raise _DamageError(block.start, f"a block of kind {block.kind.name} is too short")
    return layout.unpack_from(data, block.start)


def _collect(data: bytes, block: _Block, header: _Header, contents: _Contents) -> None:
    match block.kind:
        case _Kind.TOTALS:
            fields = _fields(data, block, _TOTALS)
            probe = _probe(fields[0], block, header)
            if (probe, block.thread) in contents.totals:
                raise _DamageError(block.start, f"a second block of totals of probe {probe} in thread {block.thread}")
            contents.totals[probe, block.thread] = fields[1:]
        case _Kind.EDGES:
            contents.edges.append(_edges_block(data, block, header))
        case _Kind.SAMPLES:
            _collect_samples(data, block, header, contents)
        case _Kind.TYPE:
            vtable, length, _ = _fields(data, block, _TYPE)
            name = data[block.start + _TYPE.size : block.end][:length]
            contents.types[vtable] = readable(_text(name))
        case _Kind.NONE:
            pass


def _probe(number: int, block: _Block, header: _Header) -> int:
    if not 0 < number < header.probes:
        raise _DamageError(block.start, f"probe {number} of {header.probes}")
    return number


def _edges_block(data: bytes, block: _Block, header: _Header) -> npt.NDArray[np.void]:
    capacity, _ = _fields(data, block, _EDGES)
    start = block.start + _EDGES.size
    if capacity * _EDGE.itemsize > block.end - start:
        raise _DamageError(block.start, f"{capacity} edges do not fit into their block")
    edges = np.frombuffer(data, _EDGE, capacity, start)
    edges = edges[edges["calls"] > 0]
    if np.any(edges["callee"] == 0) or np.any(edges["caller"] >= header.probes) or np.any(edges["callee"] >= header.probes):
        raise _DamageError(start, f"an edge between probes that are not among {header.probes}")
    return edges


def _collect_samples(data: bytes, block: _Block, header: _Header, contents: _Contents) -> None:
    fields = _fields(data, block, _SAMPLES)
    probe = _probe(fields[0], block, header)
    _, capacity, cells = fields[1:]
    words = _SAMPLE_WORDS + -(-cells // 64) + cells
    start = block.start + _SAMPLES.size
    if capacity * words * 8 > block.end - start:
        raise _DamageError(block.start, f"{capacity} records of {words} words do not fit into their block")
    if (probe, block.thread) not in contents.totals:
        raise _DamageError(block.start, f"records of probe {probe} without its totals in thread {block.thread}")
    segments = contents.samples.setdefault(probe, [])
    if segments and segments[0][1] != cells:
        raise _DamageError(block.start, f"records of probe {probe} with {cells} cells, after records with {segments[0][1]}")
    records = np.frombuffer(data, "<u8", capacity * words, start).reshape(capacity, words)
    segments.append((block.thread, cells, records[records[:, 0] > 0]))


def _totals(header: _Header, contents: _Contents) -> RecordedTotals:
    """Sum over threads and scale what was timed to all finished calls."""
    probes = np.array([probe for probe, _ in contents.totals], np.int64)
    rows = np.array(list(contents.totals.values()), np.float64).reshape(len(probes), 17)
    probe, place = np.unique(probes, return_inverse=True)
    sums = np.zeros((len(probe), 16))
    np.add.at(sums, place, rows[:, 1:])
    never_timed = np.isin(probe, probes[rows[:, 0] == Mode.COUNT])
    calls, finished, outer_finished, timed, outer_timed, dropped, wall, self_time = sums[:, :8].T
    unit = header.ns_per_tick / _TIME_UNITS
    outer = np.where(never_timed, np.nan, _ratio(outer_finished, outer_timed))
    resources = _resources(header, sums[:, 8:12]) * outer
    flagged = sums[:, 12]
    usage = np.where(flagged > 0, sums[:, 13:16].T, np.nan)
    return RecordedTotals(
        probe=probe,
        calls=calls,
        timed=timed,
        unfinished=np.maximum(dropped, calls - finished),
        wall_ns=np.maximum(wall, 0.0) * unit * outer,
        self_ns=np.where(never_timed, np.nan, np.maximum(self_time, 0.0) * unit * _ratio(finished, timed)),
        alloc_bytes=resources[0],
        alloc_count=resources[1],
        lock_wait_ns=resources[2],
        lock_hold_ns=resources[3],
        flagged=flagged,
        cpu_ns=usage[0],
        page_faults=usage[1],
        switches=usage[2],
    )


def _ratio(whole: Floats, part: Floats) -> Floats:
    """Return whole / part; 0 where there is no part, as a sum over nothing is."""
    return np.divide(whole, part, out=np.zeros_like(whole), where=part > 0)


def _resources(header: _Header, raw: Floats) -> Floats:
    """Return (4, n): bytes, allocations, ns of waiting and of holding locks; NaN where the process did not see them."""
    columns: Floats = raw.astype(np.float64).T.copy()
    columns[2:] *= header.ns_per_tick
    if _Flag.SEES_ALLOCATIONS not in header.flags:
        columns[:2] = np.nan
    if _Flag.SEES_LOCKS not in header.flags:
        columns[2:] = np.nan
    return columns


def _edges(header: _Header, contents: _Contents, totals: RecordedTotals) -> RecordedEdges:
    """Sum over threads; times of calls left out by a period are spread over callers so that they add up to the callee's total."""
    rows = np.concatenate([*contents.edges, np.empty(0, _EDGE)])
    exact = dict(zip(totals.probe.tolist(), totals.wall_ns.tolist(), strict=True))
    pairs, place = np.unique(rows[["caller", "callee"]], return_inverse=True)
    calls, wall = np.zeros(len(pairs)), np.zeros(len(pairs))
    np.add.at(calls, place, rows["calls"].astype(np.float64))
    np.add.at(wall, place, rows["wall"].astype(np.float64))
    callee = pairs["callee"].astype(np.int64)
    wall = np.maximum(wall, 0.0) * (header.ns_per_tick / _TIME_UNITS)
    callees, place = np.unique(callee, return_inverse=True)
    sums = np.zeros(len(callees))
    np.add.at(sums, place, wall)
    totals_ns = np.array([exact.get(number, math.nan) for number in callees.tolist()])
    scale = np.where(np.isnan(totals_ns), np.nan, _ratio(totals_ns, sums))
    return RecordedEdges(pairs["caller"].astype(np.int64), callee, calls, wall * scale[place])


def _samples(header: _Header, contents: _Contents, probe: int) -> RecordedSamples:
    segments = contents.samples[probe]
    cells = segments[0][1]
    masks = -(-cells // 64)
    rows = np.concatenate([records for _, _, records in segments])
    thread = np.concatenate([np.full(len(records), thread, np.int64) for thread, _, records in segments])
    threads, place, kept = np.unique(thread, return_inverse=True, return_counts=True)
    calls = np.array([contents.totals[probe, number][1] for number in threads.tolist()], np.float64)
    unit = header.ns_per_tick / _TIME_UNITS
    times = np.maximum(rows[:, 1:3].view(np.int64).astype(np.float64), 0.0) * unit
    resources = _resources(header, rows[:, 4:8])
    usage = np.where(rows[:, 8:11] == _ABSENT, np.nan, rows[:, 8:11].astype(np.float64))
    column = np.arange(cells)
    words = rows[:, _SAMPLE_WORDS : _SAMPLE_WORDS + masks][:, ::-1]
    return RecordedSamples(
        thread=thread,
        call=rows[:, 0].astype(np.int64),
        weight=(calls / kept)[place] if len(rows) else np.empty(0),
        wall_ns=times[:, 0],
        self_ns=times[:, 1],
        cpu_ns=usage[:, 0],
        alloc_bytes=resources[0],
        alloc_count=resources[1],
        callee_calls=rows[:, 3].astype(np.float64),
        lock_wait_ns=resources[2],
        lock_hold_ns=resources[3],
        page_faults=usage[:, 1],
        switches=usage[:, 2],
        cells=rows[:, _SAMPLE_WORDS + masks :].copy(),
        read=(words[:, column // 64] >> (column % 64).astype(np.uint64) & np.uint64(1)).astype(np.bool_),
    )
