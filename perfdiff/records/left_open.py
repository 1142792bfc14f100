"""What a counted process had open when it ended, as its runtime writes it (`open.c`)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from perfdiff.errors import DamageError
from perfdiff.records.kernel_use import LeftOpen

_OPEN = struct.Struct("<2Q")


def parse(blocks: Sequence[tuple[int, bytes]]) -> LeftOpen | None:
    """Return what a process had open, given its blocks with their offsets in the file, None where it wrote none; raise DamageError."""
    for offset, block in blocks:
        if len(block) < _OPEN.size:
            raise DamageError(offset, "a block of what was open is too short")
        return LeftOpen(*_OPEN.unpack_from(block))
    return None


def of_run(processes: Sequence[LeftOpen | None]) -> LeftOpen | None:
    """Return what all processes of a run had open, None where one of them does not tell."""
    telling = [process for process in processes if process is not None]
    if not telling or len(telling) < len(processes):
        return None
    return LeftOpen(*(sum(getattr(process, of) for process in telling) for of in LeftOpen.__slots__))
