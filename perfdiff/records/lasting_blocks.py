"""What a counted process still had allocated when it ended by exit, by the call that allocated it.

The runtime writes a block of the recording for each such call, or line of an interpreter's program (`recording.h`).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from perfdiff.errors import DamageError
from perfdiff.records.hot_lines import CodeAddress

_LASTING = struct.Struct("<II4Q")


@dataclass(frozen=True, slots=True)
class InterpretedLine:
    """A line of a source file of the project, by the file's absolute path."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class LastingBlocks:
    """The `blocks` of memory, of `bytes` in all, that one call of an allocating function in the code asked for.

    `site` is that call, None where it lies in no file, or the line that an interpreter tells of; `probe` that of the innermost call that
    was open, 0 where none was.
    """

    site: CodeAddress | InterpretedLine | None
    probe: int
    blocks: int
    bytes: int


def parse(blocks: Sequence[tuple[int, bytes]]) -> tuple[LastingBlocks, ...]:
    """Return what the blocks hold, given with their offsets in the file; raise DamageError at the first that cannot be."""
    return tuple(_lasting(offset, block) for offset, block in blocks)


def _lasting(offset: int, block: bytes) -> LastingBlocks:
    if len(block) < _LASTING.size:
        raise DamageError(offset, "a block of lasting memory is too short")
    probe, is_line, blocks, size, inside, length = _LASTING.unpack_from(block)
    if length > len(block) - _LASTING.size:
        raise DamageError(offset, f"a path of {length} bytes does not fit into the block of lasting memory")
    raw = block[_LASTING.size : _LASTING.size + length]
    if is_line:
        return LastingBlocks(InterpretedLine(os.fsdecode(raw), inside), probe, blocks, size)
    return LastingBlocks(CodeAddress(raw.decode(errors="replace"), inside) if raw else None, probe, blocks, size)
