"""What a counted process still had allocated when it ended by exit, by the call that allocated it.

The runtime writes a block of the recording for each such call (`pmu/lines.h`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from perfdiff.errors import DamageError
from perfdiff.records.hot_lines import CodeAddress

_LASTING = struct.Struct("<II4Q")


@dataclass(frozen=True, slots=True)
class LastingBlocks:
    """The `blocks` of memory, of `bytes` in all, that one call of an allocating function in the code asked for.

    `site` is that call, None where it lies in no file; `probe` that of the innermost call that was open, 0 where none was.
    """

    site: CodeAddress | None
    probe: int
    blocks: int
    bytes: int


def parse(blocks: Sequence[tuple[int, bytes]]) -> tuple[LastingBlocks, ...]:
    """Return what the blocks hold, given with their offsets in the file; raise DamageError at the first that cannot be."""
    return tuple(_lasting(offset, block) for offset, block in blocks)


def _lasting(offset: int, block: bytes) -> LastingBlocks:
    if len(block) < _LASTING.size:
        raise DamageError(offset, "a block of lasting memory is too short")
    probe, _, blocks, size, inside, length = _LASTING.unpack_from(block)
    if length > len(block) - _LASTING.size:
        raise DamageError(offset, f"a path of {length} bytes does not fit into the block of lasting memory")
    path = block[_LASTING.size : _LASTING.size + length].decode(errors="replace")
    return LastingBlocks(CodeAddress(path, inside) if path else None, probe, blocks, size)
