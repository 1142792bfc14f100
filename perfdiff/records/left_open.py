"""What a counted process had open when it ended, as its runtime writes it (`open.c`)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from perfdiff.errors import DamageError

_OPEN = struct.Struct("<2Q")


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """File descriptors and threads that the processes of a run had when they ended, those of their start and of the runtime among them."""

    descriptors: int
    threads: int


def parse(blocks: Sequence[tuple[int, bytes]]) -> LeftOpen | None:
    """Return what a process had open, given its blocks with their offsets in the file, None where it wrote none; raise DamageError."""
    for offset, block in blocks:
        if len(block) < _OPEN.size:
            raise DamageError(offset, "a block of what was open is too short")
        return LeftOpen(*_OPEN.unpack_from(block))
    return None


def of_run(processes: Sequence[LeftOpen | None]) -> LeftOpen | None:
    """Return what all processes of a run had open, None where one of them does not tell."""
    if not processes or None in processes:
        return None
    told = [process for process in processes if process is not None]
    return LeftOpen(sum(process.descriptors for process in told), sum(process.threads for process in told))
