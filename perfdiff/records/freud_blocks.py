"""The blocks of Freud's binary logs as columns, checked byte by byte (layout: `docs/formats.md`; Freud §3.1).

Reading takes memory in proportion to the file, whatever it holds: every count is checked against what is left of it.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from perfdiff.errors import DamageError
from perfdiff.records.arrays import Bools, Floats, Ints

# Features, and branches, of one function: as many as Freud's own statistics take. They bound the tables made of a small file.
MOST_COLUMNS = 512
# Larger counts lose digits in a float; as a time in µs, this is 285 years.
LARGEST = 2**53

_ENUM = "enum "
_U16, _U32 = struct.Struct("<H"), struct.Struct("<I")
_SAMPLE = np.dtype([("uid", "<u4"), ("metrics", "<u8", (6,)), ("features", "<u4")])
_FEATURE = np.dtype([("name", "<u8"), ("type", "<u8"), ("value", "<i8")])
_BRANCH = np.dtype([("id", "<u2"), ("outcomes", "<u4")])
_COUNT = np.dtype("<u4")
_LEAST_SAMPLE = _SAMPLE.itemsize + 2 * _COUNT.itemsize  # one without features, branches and children
_METRICS = ("time", "memory", "lock holding time", "waiting time", "minor page faults", "major page faults")


@dataclass(frozen=True, slots=True)
class Block:
    """n calls of one function.

    `metrics` (n, 6): time in µs, bytes allocated, µs of holding and of waiting for locks, minor and major page faults. `features` (p) are
    names, `values` (n, p) NaN where a call lacks one; `category` and `system` (p,) tell what is an enum and what belongs to the
    machine. `branches` (b) are numbers, with `executed` and `taken` (n, b). Child `child[i]` was called by row `parent[i]`.
    """

    function: str
    uid: Ints
    metrics: Floats
    features: tuple[str, ...]
    values: Floats
    category: Bools
    system: Bools
    branches: tuple[int, ...]
    executed: Floats
    taken: Floats
    parent: Ints
    child: Ints

    def __len__(self) -> int:
        return len(self.uid)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the n samples of a block stand: their starts, their branches (m,) with row and taken outcomes, their counts of children."""

    starts: Ints
    branches: Ints
    rows: Ints
    taken: Ints
    tails: Ints


def decode(data: bytes) -> tuple[Block, ...]:
    """Return the blocks of a log; raise DamageError at the first byte that cannot be."""
    if not data:
        raise DamageError(0, "expected a function's name, found an empty file")
    blocks = []
    at = 0
    while at < len(data):
        block, at = _block(data, at)
        blocks.append(block)
    return tuple(blocks)


def encode(blocks: Iterable[Block]) -> bytes:
    """Return a log of these blocks, with the offsets of each block counted from the start of the whole."""
    log = bytearray()
    for block in blocks:
        _append(log, block)
    return bytes(log)


def _block(data: bytes, at: int) -> tuple[Block, int]:
    """Return the block that begins at a byte, and where it ends."""
    length = _number(data, at, "the length of a function's name")
    if not 0 < length <= len(data) - at - 4:
        raise DamageError(at, f"expected the length of a function's name, found {length:,} with {len(data) - at - 4:,} bytes to come")
    function = _text(data[at + 4 : at + 4 + length])
    names, at = _names(data, at + 4 + length, "features")
    types, at = _names(data, at, "types")
    count = _number(data, at, "the number of samples")
    if count * _LEAST_SAMPLE > len(data) - at - 4:
        fit = (len(data) - at - 4) // _LEAST_SAMPLE
        raise DamageError(at, f"expected the number of samples, at most {fit:,} of which fit into the rest of the file, found {count:,}")
    layout, end = _layout(data, at + 4, count, len(names))
    heads = _gathered(data, _SAMPLE, layout.starts)[:, 0]
    metrics = heads["metrics"]
    wrong = np.argwhere(metrics >= LARGEST)
    if len(wrong):
        row, column = wrong[0]
        offset = int(layout.starts[row]) + 4 + 8 * int(column)
        raise DamageError(offset, f"expected the {_METRICS[column]} of sample {row + 1}, found {metrics[row, column]:,}")
    features, values, category, system = _features(data, layout.starts, heads["features"], names, types)
    branches, executed, taken = _branches(data, layout)
    parent, child = _children(data, layout.tails)
    block = Block(
        function, heads["uid"].astype(np.int64), metrics.astype(np.float64), features, values, category, system,
        branches, executed, taken, parent, child,
    )  # fmt: skip
    return block, end


def _number(data: bytes, at: int, says: str) -> int:
    if at + 4 > len(data):
        raise DamageError(at, f"expected {says} in 4 bytes, found the end of the file after {len(data) - at}")
    return int(_U32.unpack_from(data, at)[0])


def _names(data: bytes, at: int, says: str) -> tuple[dict[int, str], int]:
    """Return names by the offsets they are referred to by, and where they end."""
    count = _number(data, at, f"the number of {says}")
    if count > MOST_COLUMNS:
        raise DamageError(at, f"expected the number of {says}, {MOST_COLUMNS} at most, found {count:,}")
    at += 4
    names = {}
    for number in range(1, count + 1):
        if at + 2 > len(data) or at + 2 + _U16.unpack_from(data, at)[0] > len(data):
            raise DamageError(at, f"expected name {number} of {count} {says}, found the end of the file after {len(data) - at} bytes")
        (length,) = _U16.unpack_from(data, at)
        names[at] = _text(data[at + 2 : at + 2 + length])
        at += 2 + length
    return names, at


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _layout(data: bytes, at: int, count: int, most_features: int) -> tuple[_Layout, int]:
    """Return where all samples of a block stand and where they end.

    Each sample's length follows from four or more counts in it, so this loop is what reading costs: about 1 µs a sample.
    """
    starts, branches, numbers, taken, tails = (array("q") for _ in range(5))
    number = _U32.unpack_from
    try:
        for _ in range(count):
            starts.append(at)
            (features,) = number(data, at + 52)
            if features > most_features:
                _broken(data, starts, most_features)
            at += 56 + 24 * features
            (several,) = number(data, at)
            numbers.append(several)
            at += 4
            for _ in range(several):
                branches.append(at)
                (outcomes,) = number(data, at + 2)
                at += 6 + outcomes
                taken.append(outcomes - data.count(0, at - outcomes, at))
            tails.append(at)
            at += 4 + 4 * number(data, at)[0]
    except struct.error:
        _broken(data, starts, most_features)
    if at > len(data):
        _broken(data, starts, most_features)
    rows = np.repeat(np.arange(count), np.array(numbers, np.int64))
    return _Layout(np.array(starts), np.array(branches), rows, np.array(taken), np.array(tails)), at


def _broken(data: bytes, starts: Sequence[int], most_features: int) -> NoReturn:
    """Raise DamageError with the count that leads beyond the file: it is in the last sample that begins within."""
    sample, at = max((number, start) for number, start in enumerate(starts[-2:], start=max(len(starts) - 1, 1)) if start <= len(data))
    if at + _SAMPLE.itemsize > len(data):
        raise DamageError(at, f"expected sample {sample}, found the end of the file after {len(data) - at} bytes")
    features = _number(data, at + 52, f"the number of features of sample {sample}")
    _check_count(data, at + 52, features, f"the number of features of sample {sample}", min(most_features, (len(data) - at - 56) // 24))
    at += 56 + 24 * features
    branches = _number(data, at, f"the number of branches of sample {sample}")
    _check_count(data, at, branches, f"the number of branches of sample {sample}", (len(data) - at - 4) // 6)
    at += 4
    for branch in range(1, branches + 1):
        says = f"the number of outcomes of branch {branch} in sample {sample}"
        outcomes = _number(data, at + 2, says)
        _check_count(data, at + 2, outcomes, says, len(data) - at - 6)
        at += 6 + outcomes
    children = _number(data, at, f"the number of children of sample {sample}")
    _check_count(data, at, children, f"the number of children of sample {sample}", (len(data) - at - 4) // 4)
    raise DamageError(at, f"expected a whole sample {sample}")


def _check_count(data: bytes, at: int, count: int, says: str, most: int) -> None:
    if count > most:
        raise DamageError(at, f"expected {says}, {max(most, 0):,} at most, found {count:,} with {len(data) - at - 4:,} bytes to come")


def _gathered(data: bytes, kind: np.dtype[np.void] | np.dtype[np.uint32], offsets: Ints, width: int = 1) -> npt.NDArray[np.void]:
    """Return the `width` records that stand one after the other at each of `offsets` (n,), as (n, width)."""
    shape = (len(data) - kind.itemsize * width + 1, width)
    everywhere: npt.NDArray[np.void] = np.ndarray(shape, kind, data, strides=(1, kind.itemsize)) if len(offsets) else np.empty((0, 1), kind)
    return everywhere[offsets]


def _features(
    data: bytes, starts: Ints, counts: npt.NDArray[np.uint32], names: Mapping[int, str], types: Mapping[int, str]
) -> tuple[tuple[str, ...], Floats, Bools, Bools]:
    """Return names (p), values (n, p), and which of them are enums, and the machine's (p,); a name given twice counts once."""
    columns = {name: column for column, name in enumerate(dict.fromkeys(names.values()))}
    named = np.array(sorted(names), np.uint64)
    column_of = np.array([columns[names[offset]] for offset in sorted(names)], np.int64)
    typed = np.array(sorted({0, *types}), np.uint64)
    enums = np.array([types.get(offset, "").startswith(_ENUM) for offset in sorted({0, *types})], bool)
    values = np.full((len(starts), len(columns)), np.nan)
    category, own, seen = (np.zeros(len(columns), bool) for _ in range(3))
    for width in np.unique(counts[counts > 0]).tolist():
        rows = np.flatnonzero(counts == width)
        offsets = starts[rows] + _SAMPLE.itemsize
        records = _gathered(data, _FEATURE, offsets, width)
        # From the last to the first: of a feature that a sample holds twice, the first value counts.
        for place in reversed(range(width)):
            at, record = offsets + _FEATURE.itemsize * place, records[:, place]
            column = column_of[_places_of(record["name"], named, at, "the offset of a feature's name in this block")]
            kind = _places_of(record["type"], typed, at + 8, "the offset of a type's name in this block, or 0")
            values[rows, column] = record["value"]
            seen[column] = True
            own[column[kind > 0]] = True
            category[column[enums[kind]]] = True
    return tuple(columns), values, category, seen & ~own


def _places_of(wanted: npt.NDArray[np.uint64], ordered: npt.NDArray[np.uint64], offsets: Ints, says: str) -> Ints:
    """Return the places of `wanted` among those that are `ordered`."""
    places = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    missing = np.flatnonzero(ordered[places] != wanted)
    if len(missing):
        first = missing[np.argmin(offsets[missing])]
        raise DamageError(int(offsets[first]), f"expected {says}, found {wanted[first]:,}")
    return places.astype(np.int64)


def _branches(data: bytes, layout: _Layout) -> tuple[tuple[int, ...], Floats, Floats]:
    """Return the numbers of all branches (b), how often each call executed them and how often they were taken (n, b)."""
    count = len(layout.starts)
    records = _gathered(data, _BRANCH, layout.branches)[:, 0]
    ids, column = np.unique(records["id"], return_inverse=True)
    if len(ids) > MOST_COLUMNS:
        first = np.flatnonzero(column == MOST_COLUMNS)[0]
        raise DamageError(int(layout.branches[first]), f"expected one of {MOST_COLUMNS} branches at most, found number {len(ids)}")
    cell, cells = layout.rows * len(ids) + column, count * len(ids)
    executed, taken = (np.bincount(cell, weights, cells).astype(np.float64) for weights in (records["outcomes"], layout.taken))
    return tuple(ids.tolist()), executed.reshape(count, len(ids)), taken.reshape(count, len(ids))


def _children(data: bytes, tails: Ints) -> tuple[Ints, Ints]:
    """Return (c,) rows of callers and (c,) uids of what they called."""
    counts = _gathered(data, _COUNT, tails)[:, 0].astype(np.int64)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    child = _gathered(data, _COUNT, np.repeat(tails + 4, counts) + 4 * within)[:, 0]
    return np.repeat(np.arange(len(tails)), counts), child.astype(np.int64)


def freud_name(name: str) -> str:
    """Return a feature's name as Freud's program takes it: `:` and `^` join and raise features there, and blanks end a name."""
    return re.sub(r"\s", "_", name.replace(":", ".").replace("^", "~"))


def _append(log: bytearray, block: Block) -> None:
    name = block.function.encode()
    log += _U32.pack(len(name)) + name
    names = _append_names(log, block.features)
    kinds = _append_names(log, ("long", _ENUM + "value"))
    types = [0 if system else kinds[int(category)] for system, category in zip(block.system, block.category, strict=True)]
    log += _U32.pack(len(block))
    last = np.searchsorted(block.parent, np.arange(len(block)), side="right")
    first = np.searchsorted(block.parent, np.arange(len(block)), side="left")
    for row in range(len(block)):
        log += struct.pack("<I6Q", int(block.uid[row]), *map(int, block.metrics[row]))
        present = np.flatnonzero(np.isfinite(block.values[row])).tolist()
        log += _U32.pack(len(present))
        for column in present:
            log += struct.pack("<QQq", names[column], types[column], int(block.values[row, column]))
        log += _U32.pack(len(block.branches))
        for column, number in enumerate(block.branches):
            executed, taken = int(block.executed[row, column]), int(block.taken[row, column])
            log += struct.pack("<HI", number, executed) + b"\1" * taken + b"\0" * (executed - taken)
        children = block.child[first[row] : last[row]]
        log += _U32.pack(len(children)) + children.astype(_COUNT).tobytes()


def _append_names(log: bytearray, names: Iterable[str]) -> list[int]:
    """Append names behind their number; return the offset of each."""
    offsets = []
    encoded = [name.encode() for name in names]
    log += _U32.pack(len(encoded))
    for name in encoded:
        offsets.append(len(log))
        log += _U16.pack(len(name)) + name
    return offsets
