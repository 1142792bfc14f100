"""Memory that a function has an interpreter or a virtual machine allocate more than before, and the collections that this sets off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perfdiff import units
from perfdiff.analysis.counts.memory import MemoryEvidence, compared
from perfdiff.analysis.counts.tallies import work_finding
from perfdiff.analysis.findings import Cause, CountFinding, Evidence
from perfdiff.analysis.policy import POLICY
from perfdiff.models.prices import DEAREST_NS

OBJECTS, BYTES, HEAP, COLLECTIONS, PEAK = "objects", "object_bytes", "heap_bytes", "collections", "peak_bytes"
_MEMORY = (OBJECTS, BYTES, HEAP), (PEAK,)  # what a call asks for, and what it holds of that


def asked(place: MemoryEvidence, who: str, lines: str) -> Iterator[tuple[float, Cause]]:
    """Yield what a call asks for beyond what its further work does, each with the ns of a run that it may explain at most."""
    found, held = (
        [place.counts[each] for each in names if each in place.counts and _grew_beyond_work(place.counts, each)] for names in _MEMORY
    )
    if found:
        # What the code makes itself is told first: a runtime's own counter has what others make for it as well.
        first = max([each for each in found if each.counter != HEAP] or found, key=_dearest_ns)
        at_once = "".join(f", up to {units.size(each.head)} in use at once ({units.size(each.base)})" for each in held)
        yield _dearest_ns(first), Cause("more-allocation", f"{who}{_says(first)}{at_once}{lines}", tuple(map(_evidence, found + held)))
    for each in held if not found else ():
        says = f"has {units.size(each.head)} of memory in use at once at {each.point.label}, {units.size(each.base)} before"
        yield each.extra * DEAREST_NS[BYTES], Cause("more-memory", f"{who}{says}{lines}", (_evidence(each),))
    yield from _collected(place, who, lines)


def _collected(place: MemoryEvidence, who: str, lines: str) -> Iterator[tuple[float, Cause]]:
    found = place.counts.get(COLLECTIONS)
    if found is None:
        return
    base_ns, head_ns = found.took_ns or (0.0, 0.0)
    most_ns = (head_ns - base_ns) * found.extra / (found.head - found.base) if head_ns > base_ns and found.extra else _dearest_ns(found)
    spent = Evidence("time of collections, ns a call", base_ns, head_ns)
    evidence = (_evidence(found), spent) if head_ns else (_evidence(found),)
    if _grew_beyond_work(place.counts, COLLECTIONS):
        took = f", in {units.duration(head_ns)}, {units.duration(base_ns)} before" if head_ns else ""
        yield (
            most_ns,
            Cause("garbage-collection", f"{who}sets off {compared(found, 'collections of garbage a call')}{took}{lines}", evidence),
        )


def _grew_beyond_work(counts: Mapping[str, CountFinding], name: str) -> bool:
    found, work = counts[name], work_finding(counts)
    usual = work.head / work.base if work is not None and work.grew and work.base else 1.0
    return found.grew and found.head > (1 + POLICY.telling) * max(usual, 1.0) * found.base


def _dearest_ns(found: CountFinding) -> float:
    return found.extra * DEAREST_NS[found.counter]


def _says(found: CountFinding) -> str:
    if found.counter == OBJECTS:
        return f"makes {compared(found, 'allocation a call' if found.head == 1 else 'allocations a call')}"
    return f"allocates {units.size(found.head)} a call at {found.point.label}, {units.size(found.base)} before"


def _evidence(found: CountFinding) -> Evidence:
    return Evidence(found.counter, found.base, found.head)
