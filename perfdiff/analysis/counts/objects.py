"""Memory that a function asks an interpreter for more than before, and the collections of garbage that this sets off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perfdiff import units
from perfdiff.analysis.counts.memory import Place, compared
from perfdiff.analysis.counts.tallies import work_finding
from perfdiff.analysis.findings import Cause, CountFinding, Evidence
from perfdiff.analysis.policy import TELLING
from perfdiff.models.prices import DEAREST_NS

# Counted runs are few, and other work stretches their times.
_LONGER = 1.5
OBJECTS, BYTES, COLLECTIONS, COLLECTING = "objects", "object_bytes", "collections", "collecting_ns"


def asked(place: Place, who: str, lines: str) -> Iterator[tuple[float, Cause]]:
    """Yield what a call asks for beyond what its further work does, each with the ns of a run that it may explain at most."""
    found = [place.counts[name] for name in (OBJECTS, BYTES) if name in place.counts and _grew_beyond_work(place.counts, name)]
    if found:
        first = max(found, key=_dearest_ns)
        yield _dearest_ns(first), Cause("more-allocation", f"{who}{_says(first)}{lines}", tuple(map(_evidence, found)))
    yield from _collected(place, who, lines)


def _collected(place: Place, who: str, lines: str) -> Iterator[tuple[float, Cause]]:
    often, spent = (place.counts.get(name) for name in (COLLECTIONS, COLLECTING))
    evidence = tuple(_evidence(found) for found in (often, spent) if found is not None)
    took = ""
    if often is not None and spent is not None and spent.head > 0 and spent.point == often.point:
        took = f", in {units.duration(spent.head)}, {units.duration(spent.base)} before"
    if often is not None and _grew_beyond_work(place.counts, COLLECTIONS):
        says = f"{who}sets off {compared(often, 'collections of garbage a call')}{took}{lines}"
        yield max(spent.extra, 0.0) if spent is not None else _dearest_ns(often), Cause("garbage-collection", says, evidence)
    elif spent is not None and spent.head > _LONGER * spent.base and spent.extra > 0:
        says = f"{who}sets off collections of garbage that take {units.duration(spent.head)} a call at {spent.point.label}"
        yield spent.extra, Cause("garbage-collection", f"{says}, {units.duration(spent.base)} before{lines}", evidence)


def _grew_beyond_work(counts: Mapping[str, CountFinding], name: str) -> bool:
    found, work = counts[name], work_finding(counts)
    usual = work.head / work.base if work is not None and work.grew and work.base else 1.0
    return found.grew and found.head > (1 + TELLING) * max(usual, 1.0) * found.base


def _dearest_ns(found: CountFinding) -> float:
    return found.extra * DEAREST_NS[found.counter]


def _says(found: CountFinding) -> str:
    if found.counter == OBJECTS:
        return f"makes {compared(found, 'allocation a call' if found.head == 1 else 'allocations a call')}"
    return f"allocates {units.size(found.head)} a call at {found.point.label}, {units.size(found.base)} before"


def _evidence(found: CountFinding) -> Evidence:
    return Evidence(found.counter, found.base, found.head)
