"""Waiting for other processes, the network or the disk, as a cause."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.analysis.claims import claim
from perfdiff.analysis.compare.waits import Waits
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.findings import Cause, Evidence


def waiting(waits: Waits, departures: Sequence[Departure]) -> Cause:
    """Tell how long a call waits, for the answers of which queries, where it sends some, and what part of the longer time that is."""
    base_ns = max(0.0, waits.base_ns)
    says = claim(
        "waits-outside",
        queries=tuple(dict.fromkeys(departure.name for departure in departures if departure.is_query and departure.head > 0)),
        at=waits.point,
        base_ns=base_ns,
        head_ns=waits.head_ns,
        part=waits.more_ns / waits.extra_ns if waits.extra_ns > waits.more_ns else None,
    )
    return Cause("waits-outside", says, (Evidence("waiting, ns a call", base_ns, waits.head_ns),))
