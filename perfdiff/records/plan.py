"""The plan file that tells a probed process what each probe records (see `docs/architecture.md`)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

_MAGIC = b"PDPLAN1\0"
_HEADER = struct.Struct("<8sII")
_ENTRY = struct.Struct("<BBHHHII")


class Mode(IntEnum):
    """What a probe records."""

    OFF = 0
    COUNT = 1
    TIME = 2
    SAMPLE = 3  # count, time, and keep single calls with their features


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """What one probe records.

    One call in `period` is timed; up to `reservoir` of the timed calls are kept per thread (mode SAMPLE). `features` and `branches` are
    the numbers of cells that the probe's text was written for. `usage` adds CPU time, page faults and context switches.
    """

    mode: Mode
    features: int = 0
    branches: int = 0
    period: int = 1
    reservoir: int = 0
    usage: bool = False


def write_plan(path: Path, entries: Mapping[int, PlanEntry]) -> None:
    """Write the plan for probes by number, from 1; numbers without an entry are off.

    Raises ValueError for a number below 1 or a value that the format cannot hold.
    """
    if any(number < 1 for number in entries):
        raise ValueError("probe numbers start at 1")
    off = PlanEntry(Mode.OFF)
    count = max(entries, default=0) + 1
    lines = [_encoded(off)] + [_encoded(entries.get(number, off)) for number in range(1, count)]
    path.write_bytes(_HEADER.pack(_MAGIC, count, 0) + b"".join(lines))


def _encoded(entry: PlanEntry) -> bytes:
    if entry.period < 1:
        raise ValueError(f"a period is at least 1, not {entry.period}")
    try:
        return _ENTRY.pack(entry.mode, int(entry.usage), entry.features, entry.branches, 0, entry.period, entry.reservoir)
    except struct.error as error:
        raise ValueError(f"the plan file cannot hold {entry}: {error}") from error
