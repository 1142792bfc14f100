"""The recording of one probed process, as the runtime leaves it on disk (see `docs/architecture/records.md`).

Whatever the file holds, reading ends in a `Recording` or a `RecordingError` that names the byte, and takes memory in
proportion to the file. A process that was killed leaves a recording that is read as far as it is whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from perfdiff.errors import DamageError, RecordingError
from perfdiff.records import bounds, hot_lines, lasting_blocks, left_open
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.hot_lines import HotLine
from perfdiff.records.kernel_use import LeftOpen
from perfdiff.records.lasting_blocks import LastingBlocks
from perfdiff.records.plan import Mode
from perfdiff.records.recording_file import (
    EDGE,
    LIBRARY,
    SAMPLE_WORDS,
    TIME_UNITS,
    TIMED,
    Contents,
    CounterFlag,
    Flag,
    Header,
    decode,
    has_begun,
    not_begun,
    totals_layout,
)
from perfdiff.records.standing import RunningSums, since

_ABSENT = np.uint64(2**64 - 1)
# What is known of probes' own cost is some ns amiss a callee, which may leave less than no time. More than this is a wait for a CPU that
# was taken off twice, once of a callee: how long the call itself took is not known.
AMISS_NS = 1000.0
AMISS_OF_A_CALLEE_NS = 30.0

Cells = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class ProbeCallCosts:
    """The probes' own cost of one call in ns: all that its caller sees, and (`inner`) the part between its own time stamps.

    All times of the recording have had them subtracted.
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
    or the like (no time), or were open when the process ended (time until then). Reading the cells of `read` calls took
    `reading_ns`. `lengths` (m, 32) are the calls that timed ones stand for, by the binary logarithm of their wall time in ticks, where
    the plan asked for it, else 0. `counters` are sums over the `flagged` calls only, NaN where one was absent in any of them.
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
    read: Floats
    reading_ns: Floats
    lengths: Floats
    flagged: Floats
    counters: Mapping[str, Floats]

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
    alloc_bytes: Floats
    alloc_count: Floats
    callee_calls: Floats
    lock_wait_ns: Floats
    lock_hold_ns: Floats
    counters: Mapping[str, Floats]
    cells: Cells
    read: Bools

    def __len__(self) -> int:
        return len(self.call)

    def metric(self, name: str) -> Floats | None:
        """Return a metric or counter (n,) by its name, or None where the process had none of this name."""
        values: Floats | None = getattr(self, name) if name in MEASURED else self.counters.get(name)
        return values

    def rows(self, keep: Bools | slice) -> RecordedSamples:
        """Return the rows where `keep` (n,) holds, or those of a slice."""
        columns = {name: getattr(self, name)[keep] for name in self.__slots__ if name != "counters"}
        return RecordedSamples(**columns, counters={name: values[keep] for name, values in self.counters.items()})


# What is measured of every call, whatever counters there are.
MEASURED = ("wall_ns", "self_ns", "alloc_bytes", "alloc_count", "callee_calls", "lock_wait_ns", "lock_hold_ns")


@dataclass(frozen=True, slots=True)
class Recording:
    """The recording of one process. `complete` is False if it was killed or recording stopped early, `whole` only if the latter.

    `types` maps a vtable pointer, as a cell holds it, to the type's name; `multiplexed` names counters that were scaled from a part of
    the time. `lines` are those that a counted process's threads took from each other, or from other nodes, most events first.
    `threads` is the number of threads that called anything. `library` holds the calls of a counted process that left the project's code, by
    the probe that was open (0: none) and the symbol called, and `library_ns` of some of these how many were timed, and their time in all;
    `unseen` are symbols some of whose calls were not counted. `lasting` is what a counted process had still allocated when it ended by
    exit, None where that is not known, and `left_open` what it had open then.
    """

    pid: int | None
    parent_pid: int | None
    program: str
    started_unix_ns: int | None
    complete: bool
    ns_per_tick: float
    costs: ProbeCallCosts
    totals: RecordedTotals
    edges: RecordedEdges
    samples: Mapping[int, RecordedSamples]
    types: Mapping[int, str]
    multiplexed: frozenset[str] = frozenset()
    lines: tuple[HotLine, ...] = ()
    threads: int = 1
    library: Mapping[tuple[int, str], float] = field(default_factory=dict)
    library_ns: Mapping[tuple[int, str], tuple[float, float]] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()
    whole: bool = True
    lasting: tuple[LastingBlocks, ...] | None = None
    left_open: LeftOpen | None = None


@dataclass(frozen=True, slots=True)
class _AtExit:
    """What a counted process writes as it ends: its hot lines, its lasting memory and what it has open."""

    lines: tuple[HotLine, ...] = ()
    lasting: tuple[LastingBlocks, ...] = ()
    left_open: LeftOpen | None = None


def read(path: Path, *, sums_only: bool = False) -> Recording:
    """Read a recording; raise RecordingError with the byte's offset where it is damaged or of another version.

    That of a process that was killed before it wrote anything is empty and incomplete. Without its single calls, of which nothing is made
    where `sums_only` are asked for, it is read in a quarter of the time.
    """
    header, contents, ending, size = _contents(path)
    return _recording(header, replace(contents, samples={}) if sums_only else contents, ending, size)


def read_since(path: Path, before: RunningSums | None) -> tuple[Recording, RunningSums]:
    """Return what a recording, whose process may be running, has gained since it was `before`, and how it stands now; see `read`."""
    header, contents, _, size = _contents(path)
    gained, now = since(contents, before)
    return _recording(header, gained, _AtExit(), size), now


def _contents(path: Path) -> tuple[Header, Contents, _AtExit, int]:
    """Return what a file holds, and its size; nothing of a process that was killed before it wrote anything."""
    try:
        data = bounds.content(path)
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}", slug="recording-unreadable") from error
    except bounds.BoundError as error:
        raise RecordingError(f"{path}: {error}", slug="recording-unreadable") from error
    if not has_begun(data):
        process = path.name.partition("-")[0]
        return not_begun(int(process) if process.isdecimal() else None), Contents(), _AtExit(), len(data)
    try:
        header, contents = decode(data)
        ending = _AtExit(hot_lines.parse(contents.lines), lasting_blocks.parse(contents.lasting), left_open.parse(contents.opened))
    except DamageError as damage:
        raise RecordingError(f"{path}: byte {damage.offset}: {damage}", slug=damage.slug) from damage
    return header, contents, ending, len(data)


def _recording(header: Header, contents: Contents, ending: _AtExit, size: int) -> Recording:
    totals = _totals(header, contents)
    is_whole = Flag.FULL not in header.flags and header.end <= size
    return Recording(
        pid=header.pid,
        parent_pid=header.parent_pid,
        program=header.program,
        started_unix_ns=header.started_unix_ns,
        complete=Flag.ENDED in header.flags and is_whole,
        ns_per_tick=header.ns_per_tick,
        costs=ProbeCallCosts(*(cost / TIME_UNITS * header.ns_per_tick for cost in header.costs)),
        totals=totals,
        edges=_edges(header, contents, totals),
        samples=_samples(header, contents),
        types=contents.types,
        multiplexed=frozenset(name for name, flags in header.counters if CounterFlag.MULTIPLEXED in flags),
        lines=ending.lines,
        threads=len({thread for _, thread in contents.totals}),
        library=_library(contents),
        library_ns=_library_ns(header, contents),
        unseen=frozenset(name for name, unseen in contents.functions.values() if unseen),
        whole=is_whole,
        lasting=ending.lasting if Flag.KNOWS_LASTING in header.flags else None,
        left_open=ending.left_open,
    )


def _totals(header: Header, contents: Contents) -> RecordedTotals:
    """Sum over threads and scale what was timed to all finished calls."""
    rows = np.array(list(contents.totals.values()), totals_layout(len(header.counters)))
    counts = np.where(rows["counters"] == _ABSENT, np.nan, rows["counters"])
    probe, place = np.unique(rows["probe"].astype(np.int64), return_inverse=True)

    def summed(values: Cells | Ints | Floats) -> Floats:
        sums = np.zeros((len(probe), *values.shape[1:]))
        np.add.at(sums, place, values.astype(np.float64))
        return sums

    never_timed = np.isin(probe, rows["probe"][rows["mode"] == Mode.COUNT])
    calls, finished, flagged = summed(rows["calls"]), summed(rows["finished"]), summed(rows["flagged"])
    unit = header.ns_per_tick / TIME_UNITS
    inner = np.where(never_timed, np.nan, _ratio(finished, summed(rows["weight"])))
    outer = np.where(never_timed, np.nan, _ratio(summed(rows["outer_finished"]), summed(rows["outer_weight"])))
    resources = _resources(header, summed(rows["resources"])) * outer
    counters = np.where(flagged > 0, summed(counts).T, np.nan)
    return RecordedTotals(
        probe=probe,
        calls=calls,
        timed=summed(rows["timed"]),
        unfinished=np.maximum(summed(rows["unfinished"]), calls - finished),
        wall_ns=np.maximum(summed(rows["wall"]), 0.0) * unit * outer,
        self_ns=np.maximum(summed(rows["self"]), 0.0) * unit * inner,
        alloc_bytes=resources[0],
        alloc_count=resources[1],
        lock_wait_ns=resources[2],
        lock_hold_ns=resources[3],
        read=summed(rows["read"]),
        reading_ns=summed(rows["reading"]) * header.ns_per_tick,
        lengths=summed(rows["lengths"]),
        flagged=flagged,
        counters={name: counters[i] for i, (name, _) in enumerate(header.counters)},
    )


def _ratio(whole: Floats, part: Floats) -> Floats:
    """Return whole / part; 0 where there is no part, as a sum over nothing is."""
    return np.divide(whole, part, out=np.zeros_like(whole), where=part > 0)


def _resources(header: Header, raw: Floats) -> Floats:
    """Return (4, n): bytes, allocations, ns of waiting and of holding locks; NaN where the process did not see them."""
    columns: Floats = raw.astype(np.float64).T.copy()
    columns[2:] *= header.ns_per_tick
    if Flag.SEES_ALLOCATIONS not in header.flags:
        columns[:2] = np.nan
    if Flag.SEES_LOCKS not in header.flags:
        columns[2 if Flag.SEES_WAITS not in header.flags else 3 :] = np.nan
    return columns


def _edges(header: Header, contents: Contents, totals: RecordedTotals) -> RecordedEdges:
    """Sum over threads; times of calls left out by a period are spread over callers so that they add up to the callee's total."""
    rows = np.concatenate([*contents.edges, np.empty(0, EDGE)])
    exact = dict(zip(totals.probe.tolist(), totals.wall_ns.tolist(), strict=True))
    pairs, place = np.unique(rows[["caller", "callee"]], return_inverse=True)
    calls, wall = np.zeros(len(pairs)), np.zeros(len(pairs))
    np.add.at(calls, place, rows["calls"].astype(np.float64))
    np.add.at(wall, place, rows["wall"].astype(np.float64))
    callee = pairs["callee"].astype(np.int64)
    wall = np.maximum(wall, 0.0) * (header.ns_per_tick / TIME_UNITS)
    callees, place = np.unique(callee, return_inverse=True)
    sums = np.zeros(len(callees))
    np.add.at(sums, place, wall)
    totals_ns = np.array([exact.get(number, math.nan) for number in callees.tolist()])
    scale = np.where(np.isnan(totals_ns), np.nan, _ratio(totals_ns, sums))
    return RecordedEdges(pairs["caller"].astype(np.int64), callee, calls, wall * scale[place])


def _library(contents: Contents) -> dict[tuple[int, str], float]:
    """Sum calls that leave the project's code over threads, and over the versions of a symbol."""
    calls: dict[tuple[int, str], float] = {}
    for _, edges in contents.library:
        for caller, callee, count in zip(edges["caller"].tolist(), edges["callee"].tolist(), edges["calls"].tolist(), strict=True):
            key = caller, contents.functions[callee - LIBRARY][0]
            calls[key] = calls.get(key, 0.0) + count
    return calls


def _library_ns(header: Header, contents: Contents) -> dict[tuple[int, str], tuple[float, float]]:
    """Sum those of the calls that leave the project's code that were timed, and their times, over threads."""
    unit = header.ns_per_tick / TIME_UNITS
    sums: dict[tuple[int, str], tuple[float, float]] = {}
    for _, edges in contents.timed:
        for caller, callee, count, wall in edges[["caller", "callee", "calls", "wall"]].tolist():
            key = caller, contents.functions[callee - LIBRARY - TIMED][0]
            calls, ns = sums.get(key, (0.0, 0.0))
            sums[key] = calls + count, ns + max(wall, 0) * unit
    return sums


def _samples(header: Header, contents: Contents) -> dict[int, RecordedSamples]:
    """Return the single calls of all probes; probes whose records are of one width are read together, as a process may have hundreds."""
    by_width: dict[int, list[int]] = {}
    for probe in sorted(contents.samples):
        by_width.setdefault(contents.samples[probe][0][1], []).append(probe)
    samples: dict[int, RecordedSamples] = {}
    for cells, probes in by_width.items():
        segments = [(probe, thread, records) for probe in probes for thread, _, records in contents.samples[probe]]
        together = _samples_of(header, contents, cells, segments)
        lengths = [sum(len(records) for _, _, records in contents.samples[probe]) for probe in probes]
        ends = np.cumsum(lengths).tolist()
        samples |= {probe: together.rows(slice(end - length, end)) for probe, length, end in zip(probes, lengths, ends, strict=True)}
    return samples


def _samples_of(header: Header, contents: Contents, cells: int, segments: Sequence[tuple[int, int, Cells]]) -> RecordedSamples:
    """Return the calls that segments of records of so many cells hold, each of a probe and a thread."""
    masks = -(-cells // 64)
    rows = np.concatenate([records for _, _, records in segments])
    lengths = [len(records) for _, _, records in segments]
    owners = {owner: place for place, owner in enumerate(dict.fromkeys(segment[:2] for segment in segments))}
    place = np.repeat([owners[segment[:2]] for segment in segments], lengths)
    stands = rows[:, SAMPLE_WORDS - 1].astype(np.float64)
    represented = np.bincount(place, stands, len(owners))
    calls = np.array([contents.totals[owner]["calls"] for owner in owners], np.float64)
    share = np.divide(calls, represented, out=np.zeros(len(owners)), where=represented > 0)  # damaged records may stand for no call
    unit = header.ns_per_tick / TIME_UNITS
    signed = rows[:, 1:3].view(np.int64).astype(np.float64) * unit
    callee_calls = rows[:, 3].astype(np.float64)
    is_amiss = signed < -(AMISS_NS + AMISS_OF_A_CALLEE_NS * callee_calls)[:, None]
    times = np.where(is_amiss, np.nan, np.maximum(signed, 0.0))
    resources = _resources(header, rows[:, 4:8])
    first = SAMPLE_WORDS + len(header.counters)
    counters = np.where(rows[:, SAMPLE_WORDS:first] == _ABSENT, np.nan, rows[:, SAMPLE_WORDS:first].astype(np.float64))
    column = np.arange(cells)
    words = rows[:, first : first + masks][:, ::-1]
    return RecordedSamples(
        thread=np.repeat([thread for _, thread, _ in segments], lengths).astype(np.int64),
        call=rows[:, 0].astype(np.int64),
        weight=share[place] * stands,
        wall_ns=times[:, 0],
        self_ns=times[:, 1],
        alloc_bytes=resources[0],
        alloc_count=resources[1],
        callee_calls=callee_calls,
        lock_wait_ns=resources[2],
        lock_hold_ns=resources[3],
        counters={name: counters[:, i] for i, (name, _) in enumerate(header.counters)},
        cells=rows[:, first + masks :].copy(),
        read=(words[:, column // 64] >> (column % 64).astype(np.uint64) & np.uint64(1)).astype(np.bool_),
    )
