"""Memory that a function has an interpreter or a virtual machine allocate more than before, and the collections that this sets off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perfdiff.analysis.claims import Claim, Fact, claim
from perfdiff.analysis.counts.memory import MemoryEvidence, compared
from perfdiff.analysis.counts.own_work import work_finding
from perfdiff.analysis.findings import Cause, CountFinding, Evidence
from perfdiff.analysis.policy import POLICY
from perfdiff.models.prices import DEAREST_NS

OBJECTS, BYTES, HEAP, COLLECTIONS, PEAK = "objects", "object_bytes", "heap_bytes", "collections", "peak_bytes"
_MEMORY = (OBJECTS, BYTES, HEAP), (PEAK,)  # what a call asks for, and what it holds of that


def asked(place: MemoryEvidence, lines: Claim | None) -> Iterator[tuple[float, Cause]]:
    """Yield what a call asks for beyond what its further work does, each with the ns of a run that it may explain at most."""
    found, held = (
        [place.counts[each] for each in names if each in place.counts and _grew_beyond_work(place.counts, each)] for names in _MEMORY
    )
    if found:
        # What the code makes itself is told first: a runtime's own counter has what others make for it as well.
        first = max([each for each in found if each.counter != HEAP] or found, key=_dearest_ns)
        at_once = tuple(claim("up-to-at-once", base=each.base, head=each.head) for each in held)
        facts: dict[str, Fact] = {**compared(first), "at_once": at_once, "lines": lines}
        says = claim("makes-allocations", **facts) if first.counter == OBJECTS else claim("allocates", **facts)
        yield _dearest_ns(first), Cause("more-allocation", says, tuple(map(_evidence, found + held)))
    for each in held if not found else ():
        says = claim("more-memory", **compared(each), lines=lines)
        yield each.extra * DEAREST_NS[BYTES], Cause("more-memory", says, (_evidence(each),))
    yield from _collected(place, lines)


def _collected(place: MemoryEvidence, lines: Claim | None) -> Iterator[tuple[float, Cause]]:
    found = place.counts.get(COLLECTIONS)
    if found is None or not _grew_beyond_work(place.counts, COLLECTIONS):
        return
    base_ns, head_ns = found.took_ns or (0.0, 0.0)
    most_ns = (head_ns - base_ns) * found.extra / (found.head - found.base) if head_ns > base_ns and found.extra else _dearest_ns(found)
    spent = Evidence("time of collections, ns a call", base_ns, head_ns)
    says = claim("garbage-collection", **compared(found), base_ns=base_ns, head_ns=head_ns, lines=lines)
    yield most_ns, Cause("garbage-collection", says, (_evidence(found), spent) if head_ns else (_evidence(found),))


def _grew_beyond_work(counts: Mapping[str, CountFinding], name: str) -> bool:
    found, work = counts[name], work_finding(counts)
    usual = work.head / work.base if work is not None and work.grew and work.base else 1.0
    return found.grew and found.head > (1 + POLICY.telling) * max(usual, 1.0) * found.base


def _dearest_ns(found: CountFinding) -> float:
    return found.extra * DEAREST_NS[found.counter]


def _evidence(found: CountFinding) -> Evidence:
    return Evidence(found.counter, found.base, found.head)
