"""The lines of a counted process that its threads took from each other, and the pages that came from other nodes, most events first.

The runtime writes them as the process ends (`pmu/lines.h`), each as a block of the recording.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from perfdiff.errors import DamageError

_LINE = struct.Struct("<6QII")
_CORE = struct.Struct("<II3Q")
_PLACE = struct.Struct("<II4Q")
_OTHERS = 2**32 - 1  # stands for all threads beyond those that are told apart
_LARGEST = 4096  # bytes of a page; the masks of a core are one line's


class _PlaceKind(IntEnum):
    OBJECT = 1
    HEAP = 2
    STACK = 3


@dataclass(frozen=True, slots=True)
class Touch:
    """What one thread did in a line at the events that were seen: bit i of `read` and `written` is byte i.

    `thread` is the number of its core, from 0 in the order of first accesses; None for all threads beyond those that are told apart.
    """

    thread: int | None
    events: int
    read: int
    written: int


@dataclass(frozen=True, slots=True)
class CodeAddress:
    """A place in an object file, by its path and the address that the file's own symbols have."""

    object: str
    offset: int


@dataclass(frozen=True, slots=True)
class Variable:
    """The line lies in the data of an object file; `spot` is where it begins."""

    spot: CodeAddress


@dataclass(frozen=True, slots=True)
class Allocation:
    """A block of memory that touched the line; `site` is the call that allocated it, None where that lies in no file."""

    address: int
    size: int
    site: CodeAddress | None


@dataclass(frozen=True, slots=True)
class Stack:
    """The stack, or the thread-local data, of a thread."""

    thread: int


Place = Variable | Allocation | Stack


@dataclass(frozen=True, slots=True)
class HotLine:
    """A cache line, or a page of memory if `size` is a page's.

    `hitm` counts how often a thread found it modified by another one, `hitm_false` those of them in which the other had written other
    bytes, `remote` how often it came from the memory of another node. Up to `missed` events came before it was watched. `places` is
    what it lies in, several where small allocations share it, none where it is not known.
    """

    address: int
    size: int
    hitm: int
    hitm_false: int
    remote: int
    missed: int
    touches: tuple[Touch, ...]
    places: tuple[Place, ...]


def parse(blocks: Sequence[tuple[int, bytes]]) -> tuple[HotLine, ...]:
    """Return what the blocks hold, given with their offsets in the file; raise DamageError at the first that cannot be."""
    return tuple(_line(offset, block) for offset, block in blocks)


def _line(offset: int, block: bytes) -> HotLine:
    if len(block) < _LINE.size:
        raise DamageError(offset, "a block of a line is too short")
    address, size, hitm, hitm_false, remote, missed, cores, places = _LINE.unpack_from(block)
    end = _LINE.size + cores * _CORE.size
    if end > len(block):
        raise DamageError(offset, f"{cores} cores do not fit into the block of a line")
    if size > _LARGEST or hitm_false > hitm:
        raise DamageError(offset, "impossible numbers of a line")
    touches = tuple(_touch(block, place) for place in range(_LINE.size, end, _CORE.size))
    return HotLine(address, size, hitm, hitm_false, remote, missed, touches, tuple(_places(offset, block, end, places)))


def _touch(block: bytes, place: int) -> Touch:
    core, _, events, read, written = _CORE.unpack_from(block, place)
    return Touch(None if core == _OTHERS else core, events, read, written)


def _places(offset: int, block: bytes, start: int, places: int) -> Iterator[Place]:
    for _ in range(places):
        if start + _PLACE.size > len(block):
            raise DamageError(offset, f"{places} places do not fit into the block of a line")
        kind, core, address, size, inside, length = _PLACE.unpack_from(block, start)
        start += _PLACE.size
        if length > len(block) - start:
            raise DamageError(offset, f"a path of {length} bytes does not fit into the block of a line")
        path = block[start : start + length].decode(errors="replace")
        start += -(-length // 8) * 8
        yield _place(offset, kind, core, Allocation(address, size, CodeAddress(path, inside) if path else None))


def _place(offset: int, kind: int, core: int, allocation: Allocation) -> Place:
    if kind == _PlaceKind.HEAP:
        return allocation
    if kind == _PlaceKind.STACK:
        return Stack(core)
    if kind == _PlaceKind.OBJECT and allocation.site is not None:
        return Variable(allocation.site)
    raise DamageError(offset, f"a place of kind {kind} in the block of a line")
