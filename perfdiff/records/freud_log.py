"""Freud's binary logs, `idcm_*.bin`, as sample tables and back (Freud §3.1). The instrumenter for Java writes them, too.

Their times are whole microseconds, so a call shorter than that takes 0, and they know no absent value. What was not collected is 0
in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perfdiff.errors import DamageError, RecordingError, UsageError
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.freud_blocks import Block, decode, encode, freud_name
from perfdiff.records.schema import Branch, Feature, Origin, SampleTable, Side

RESOLUTION_NS = 1000.0
LARGEST_BYTES = 4 * 2**30  # a log is held in memory as a whole
# Outcomes of one branch written per call; where there are more, their share is kept. A byte each, loops would fill the disk.
MOST_OUTCOMES = 4096

_LOCKED = slice(2, 4)  # holding and waiting, of a block's metrics

_BRANCH = re.compile(r"branch ([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class FreudLog:
    """All that one file holds: the calls of each function by its name, and who called whom.

    `edges`: (caller, callee) -> number of calls and their ns. `elsewhere`: function -> how many of its callees' calls are not in the
    file; its `self_ns` holds their time.
    """

    tables: Mapping[str, SampleTable]
    edges: Mapping[tuple[str, str], tuple[int, float]]
    elsewhere: Mapping[str, int]


def read(path: Path, *, run: int = 0) -> FreudLog:
    """Read a log; all its rows are of `run`. Raise RecordingError with the byte's offset where it is damaged or cut off.

    Features that a call lacks are NaN, `enum` types are categories, and features without a type are the system's. `page_faults` are
    minor and major ones, `self_ns` is without the callees that are in the same file.
    """
    try:
        blocks = decode(_content(path))
    except DamageError as damage:
        raise RecordingError(
            f"{path}: byte {damage.offset:,}: {damage}; copy the log again, record it anew, or leave it out", slug="log-damaged"
        ) from damage
    functions = list(dict.fromkeys(block.function for block in blocks))
    family = _family(blocks, functions)
    parts: dict[str, list[SampleTable]] = {name: [] for name in functions}
    start = 0
    for block in blocks:
        rows = slice(start, start + len(block))
        start += len(block)
        first = sum(len(part) for part in parts[block.function]) + 1
        parts[block.function].append(_table(block, functions.index(block.function) + 1, run, family.self_us[rows], first))
    return FreudLog({name: joined(tables) for name, tables in parts.items()}, family.edges, family.elsewhere)


def write(path: Path, tables: Mapping[str, SampleTable]) -> None:
    """Write the calls of functions by their names as one log; raise UsageError where the file cannot be written.

    Kept are times cut to µs, bytes, locks, faults, features as whole numbers and branches; calls without a time are left out. No call
    waits for locks, or holds any, for longer than it takes, and names of features are `freud_name`s: Freud's program ends at others.
    """
    blocks = []
    uid = 1
    for function, table in tables.items():
        blocks.append(_block(function, table, uid))
        uid += len(blocks[-1])
    try:
        path.write_bytes(encode(blocks))
    except OSError as error:
        raise UsageError(f"the log cannot be written to '{path}': {error.strerror}", slug="output-unwritable") from error


def joined(tables: Sequence[SampleTable]) -> SampleTable:
    """Return the rows of all tables under the first one's number, with every feature and branch that any of them has."""
    first = tables[0]
    if len(tables) == 1:
        return first
    features: dict[str, Feature] = {}
    for feature in (feature for table in tables for feature in table.features):
        merged = features.setdefault(feature.name, feature)
        labels = {**feature.labels, **merged.labels}
        features[feature.name] = replace(merged, category=merged.category or feature.category, labels=labels)
    branches = list(dict.fromkeys(branch for table in tables for branch in table.branches))
    names = list(features)

    def column(name: str) -> Ints:
        return np.concatenate([getattr(table, name) for table in tables])

    def counts(name: str) -> Floats:
        parts = [(getattr(table, name), [branches.index(branch) for branch in table.branches]) for table in tables]
        return _stacked(parts, len(branches), 0.0)

    return replace(
        first,
        metrics={
            name: np.concatenate([table.metrics.get(name, np.full(len(table), np.nan)) for table in tables])
            for name in dict.fromkeys(name for table in tables for name in table.metrics)
        },
        features=tuple(features.values()),
        values=_stacked(
            [(table.values, [names.index(feature.name) for feature in table.features]) for table in tables], len(names), np.nan
        ),
        branches=tuple(branches),
        executed=counts("executed"),
        taken=counts("taken"),
        run=column("run"),
        point=column("point"),
        thread=column("thread"),
        call=column("call"),
        weight=np.concatenate([table.weight for table in tables]),
    )


def _stacked(parts: Sequence[tuple[Floats, list[int]]], width: int, absent: float) -> Floats:
    """Return blocks of columns below each other, each column at the place that goes with its block."""
    whole = np.full((sum(len(part) for part, _ in parts), width), absent)
    row = 0
    for part, places in parts:
        whole[row : row + len(part), places] = part
        row += len(part)
    return whole


def _content(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise RecordingError(f"{path} is no file; name a log, such as idcm_f_1.bin", slug="log-unreadable")
        if path.stat().st_size > LARGEST_BYTES:
            raise RecordingError(f"{path} is larger than {LARGEST_BYTES:,} bytes; give its calls in several logs", slug="log-unreadable")
        return path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}; check its permissions", slug="log-unreadable") from error


@dataclass(frozen=True, slots=True)
class _Family:
    """Who called whom in a file; `self_us` of all calls, blocks one after the other."""

    self_us: Floats
    edges: Mapping[tuple[str, str], tuple[int, float]]
    elsewhere: Mapping[str, int]


def _family(blocks: Sequence[Block], functions: list[str]) -> _Family:
    """Look the children up among all calls of a file; a uid that several calls have names none of them."""
    starts = np.cumsum([0, *(len(block) for block in blocks)])
    wall = np.concatenate([block.metrics[:, 0] for block in blocks])
    function = np.concatenate([np.full(len(block), functions.index(block.function)) for block in blocks])
    parent = np.concatenate([block.parent + start for block, start in zip(blocks, starts[:-1], strict=True)])
    child = np.concatenate([block.child for block in blocks])
    if not len(child):
        return _Family(wall, {}, {})
    uids, rows, counts = np.unique(np.concatenate([block.uid for block in blocks]), return_index=True, return_counts=True)
    place = np.minimum(np.searchsorted(uids, child), len(uids) - 1)
    here = (uids[place] == child) & (counts[place] == 1)
    caller, callee = parent[here], rows[place[here]]
    spent = np.bincount(caller, wall[callee], len(wall))
    pairs, pair = np.unique(np.column_stack([function[caller], function[callee]]), axis=0, return_inverse=True)
    calls = np.bincount(pair.ravel(), minlength=len(pairs)).tolist()
    ns = (np.bincount(pair.ravel(), wall[callee], len(pairs)) * RESOLUTION_NS).tolist()
    return _Family(
        np.maximum(wall - spent, 0.0),
        {(functions[a], functions[b]): sums for (a, b), sums in zip(pairs.tolist(), zip(calls, ns, strict=True), strict=True)},
        {functions[number]: count for number, count in enumerate(np.bincount(function[parent[~here]]).tolist()) if count},
    )


def _table(block: Block, function: int, run: int, self_us: Floats, first: int) -> SampleTable:
    count = len(block)
    time, memory, hold, wait, minor, major = block.metrics.T
    origins = [Origin.SYSTEM if system else Origin.ARGUMENT for system in block.system]
    zeros: Ints = np.zeros(count, np.int64)
    return SampleTable(
        function=function,
        side=Side.BASE,
        metrics={
            "wall_ns": time * RESOLUTION_NS,
            "self_ns": self_us * RESOLUTION_NS,
            "alloc_bytes": memory.copy(),
            "callee_calls": np.bincount(block.parent, minlength=count).astype(np.float64),
            "lock_wait_ns": wait * RESOLUTION_NS,
            "lock_hold_ns": hold * RESOLUTION_NS,
            "page_faults": minor + major,
        },
        features=tuple(
            Feature(name, origin, bool(category)) for name, origin, category in zip(block.features, origins, block.category, strict=True)
        ),
        values=block.values,
        branches=tuple(Branch(f"branch {number}", 0) for number in block.branches),
        executed=block.executed,
        taken=block.taken,
        run=np.full(count, run, np.int64),
        point=zeros,
        thread=zeros,
        call=np.arange(first, first + count),
        weight=np.ones(count),
        resolution_ns=RESOLUTION_NS,
    )


def _block(function: str, table: SampleTable, uid: int) -> Block:
    rows = np.flatnonzero(np.isfinite(table.metrics["wall_ns"]))
    values = np.trunc(table.values[rows])
    outcomes = np.maximum(table.executed[rows], 1.0)
    executed = np.minimum(table.executed[rows], MOST_OUTCOMES)
    absent = np.zeros(len(rows))
    metrics = [
        np.nan_to_num(table.metrics[name][rows] / unit) if name in table.metrics else absent
        for name, unit in (
            ("wall_ns", RESOLUTION_NS),
            ("alloc_bytes", 1.0),
            ("lock_hold_ns", RESOLUTION_NS),
            ("lock_wait_ns", RESOLUTION_NS),
            ("page_faults", 1.0),
        )
    ]
    whole = np.maximum(np.floor(np.column_stack([*metrics, absent])), 0.0)
    # Of two locks that are held both count, of one that a caller took all of its time, and a wait may take what the probe did not.
    whole[:, _LOCKED] = np.minimum(whole[:, _LOCKED], whole[:, :1])
    return Block(
        function=function,
        uid=np.arange(uid, uid + len(rows)),
        metrics=whole,
        features=tuple(_distinct(freud_name(feature.name) for feature in table.features)),
        values=np.where(np.abs(values) < 2.0**63, values, np.nan),
        category=np.array([feature.category for feature in table.features], bool),
        system=np.array([feature.origin is Origin.SYSTEM for feature in table.features], bool),
        branches=tuple(_numbers(table.branches)),
        executed=executed,
        taken=np.floor(table.taken[rows] * executed / outcomes),
        parent=np.empty(0, np.int64),
        child=np.empty(0, np.int64),
    )


def _distinct(names: Iterable[str]) -> list[str]:
    """Return names, with an underscore and more behind those that stand there already."""
    distinct: dict[str, None] = {}
    for name in names:
        free = name
        while free in distinct:
            free += "_"
        distinct[free] = None
    return list(distinct)


def _numbers(branches: Sequence[Branch]) -> Iterator[int]:
    """Yield a number for each branch: that of its name where a log gave it, else its place."""
    matches = [_BRANCH.fullmatch(branch.text) for branch in branches]
    numbers = [int(match[1]) for match in matches if match]
    given = len(set(numbers)) == len(branches) and max(numbers, default=0) < 2**16
    yield from numbers if given else range(len(branches))
