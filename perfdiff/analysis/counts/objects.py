"""Memory that a function has an interpreter or a virtual machine allocate more than before, and the collections that this sets off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perfdiff.analysis.claims import Claim, Fact, claim
from perfdiff.analysis.counts.memory import MemoryEvidence, compared
from perfdiff.analysis.counts.own_work import work_finding
from perfdiff.analysis.findings import Cause, CauseFigure, CountFinding
from perfdiff.analysis.policy import POLICY
from perfdiff.models.prices import DEAREST_NS

OBJECTS, BYTES, HEAP, COLLECTIONS, PEAK = "objects", "object_bytes", "heap_bytes", "collections", "peak_bytes"
_MEMORY = (OBJECTS, BYTES, HEAP), (PEAK,)  # what a call asks for, and what it holds of that


def memory_causes(place: MemoryEvidence, lines: Claim | None) -> Iterator[tuple[float, Cause]]:
    """Yield what a call asks for beyond what its further work does, each with the ns of a run that it may explain at most."""
    allocated, held = (
        [place.counts[counter] for counter in names if counter in place.counts and _grew_beyond_work(place.counts, counter)]
        for names in _MEMORY
    )
    if allocated:
        # What the code makes itself is told first: a runtime's own counter has what others make for it as well.
        first = max([finding for finding in allocated if finding.counter != HEAP] or allocated, key=_dearest_ns)
        at_once = tuple(claim("up-to-at-once", base=finding.base, head=finding.head) for finding in held)
        facts: dict[str, Fact] = {**compared(first), "at_once": at_once, "lines": lines}
        says = claim("makes-allocations", **facts) if first.counter == OBJECTS else claim("allocates", **facts)
        yield _dearest_ns(first), Cause("more-allocation", says, tuple(map(_evidence, allocated + held)))
    for finding in held if not allocated else ():
        says = claim("more-memory", **compared(finding), lines=lines)
        yield finding.extra * DEAREST_NS[BYTES], Cause("more-memory", says, (_evidence(finding),))
    yield from _collected(place, lines)


def _collected(place: MemoryEvidence, lines: Claim | None) -> Iterator[tuple[float, Cause]]:
    count = place.counts.get(COLLECTIONS)
    if count is None or not _grew_beyond_work(place.counts, COLLECTIONS):
        return
    base_ns, head_ns = count.took_ns or (0.0, 0.0)
    most_ns = (head_ns - base_ns) * count.extra / (count.head - count.base) if head_ns > base_ns and count.extra else _dearest_ns(count)
    spent = CauseFigure("time of collections, ns a call", base_ns, head_ns)
    says = claim("garbage-collection", **compared(count), base_ns=base_ns, head_ns=head_ns, lines=lines)
    yield most_ns, Cause("garbage-collection", says, (_evidence(count), spent) if head_ns else (_evidence(count),))


def _grew_beyond_work(counts: Mapping[str, CountFinding], name: str) -> bool:
    finding, work = counts[name], work_finding(counts)
    usual = work.head / work.base if work is not None and work.grew and work.base else 1.0
    return finding.grew and finding.head > (1 + POLICY.telling) * max(usual, 1.0) * finding.base


def _dearest_ns(finding: CountFinding) -> float:
    return finding.extra * DEAREST_NS[finding.counter]


def _evidence(finding: CountFinding) -> CauseFigure:
    return CauseFigure(finding.counter, finding.base, finding.head)
