"""Waiting for other processes, the network or the disk, as a cause."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff import units
from perfdiff.analysis.compare.waits import Waits
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.findings import Cause, Evidence


def waiting(found: Waits, departures: Sequence[Departure]) -> Cause:
    """Say how long a call waits, and for the answers of which queries, where it sends some."""
    asked = dict.fromkeys(each.name for each in departures if each.is_query and each.head > 0)
    whom = f"the answers of {', '.join(f'`{name}`' for name in asked)}" if asked else "other processes, the network or the disk"
    before = units.duration(found.base_ns) if found.base_ns > 0 else "not at all"
    says = f"a call waits {units.duration(found.head_ns)} for {whom} at {found.point}, {before} before: {_of(found)}"
    return Cause("waits-outside", says, (Evidence("waiting, ns a call", max(0.0, found.base_ns), found.head_ns),))


def _of(found: Waits) -> str:
    """Say what part of the longer time is waiting."""
    if found.extra_ns <= found.more_ns:
        return "all of what it takes longer"
    return f"{found.more_ns / found.extra_ns:.0%} of what it takes longer".replace("%", " %")
