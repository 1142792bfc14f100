"""What counts of the memory system add to the time that was measured: fetches whose price depends on the machine that runs the program.

Time alone misses them where threads happen to share a core, or memory has one node; the counts are those of the accesses themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.claims import Claim, Fact, claim
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.counts.own_work import work_finding
from perfdiff.analysis.findings import Cause, CauseFigure, CountFinding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig
from perfdiff.models.prices import LEAST_NS
from perfdiff.models.workcounter import WORK_METRICS
from perfdiff.records.metrics import MISSES, included
from perfdiff.records.schema import FunctionInfo, HotSpot, Side

_SAID = 2  # things that a line holds, in a sentence
SHARING = frozenset(("false-sharing", "true-sharing"))  # names of causes

Counts = Mapping[str, CountFinding]


@dataclass(frozen=True, slots=True)
class MemoryEvidence:
    """A function whose counts show something, those counts, where the threads of head's runs met most, and what it calls outside.

    `points` are those that were counted.
    """

    info: FunctionInfo
    counts: Counts
    spots: Sequence[HotSpot] = ()
    departures: Sequence[Departure] = ()
    points: tuple[int, ...] = ()


def contended(function: int, counts: Counts, ledger: Ledger, config: CompareConfig) -> tuple[str, ...]:
    """Return the counters that say that a function now waits for other cores or nodes, by a cost that counts on machines that have them."""
    counters = []
    for counter, price in LEAST_NS.items():
        finding = counts.get(counter)
        if finding is None or not is_denser(finding, config) or finding.point.id not in ledger.points:
            continue
        cost = finding.extra * price
        own = float(np.median(ledger.books[finding.point.id, Side.BASE].self_ns[:, ledger.place[function]]))
        if cost >= POLICY.material * ledger.cost_ns(finding.point.id) and cost > config.min_effect * own:
            counters.append(counter)
    return tuple(counters)


def waits(counters: Sequence[str]) -> Claim:
    """Return a claim on what a function waits for."""
    return claim("waits-for", what=tuple(claim("shares-lines" if counter == "hitm" else "lies-far") for counter in counters))


def is_denser(finding: CountFinding, config: CompareConfig) -> bool:
    """Return whether a counter grew, and grew by more than the accesses that it comes with: more of the same work is no other cause."""
    return finding.grew and (math.isnan(finding.rate) or finding.rate > 1 + config.min_effect)


def contention(place: MemoryEvidence, counter: str, through: str | None, lines: Claim | None) -> Cause:
    """Return the cause that a function fetches lines from other cores or nodes; `through` names it if another function's change is why."""
    finding = place.counts[counter]
    facts: dict[str, Fact] = {"through": through, **compared(finding), "hottest": _hottest(place, finding), "lines": lines}
    if counter == "remote_dram":
        return Cause("remote-memory", claim("remote-memory", **facts), _evidence(place, ("remote_dram", "llc_misses")))
    if is_false(place.counts):
        return Cause("false-sharing", claim("false-sharing", **facts), _evidence(place, ("hitm", "hitm_false")))
    return Cause("true-sharing", claim("true-sharing", **facts), _evidence(place, ("hitm", "hitm_false")))


def _hottest(place: MemoryEvidence, finding: CountFinding) -> Claim | None:
    """Tell what lies in the line, or page, that most of the fetches are of."""
    counter = {"hitm": "hitm", "remote_dram": "remote"}[finding.counter]
    here = [spot for spot in place.spots if spot.point == finding.point.id and spot.side is Side.HEAD and spot.says]
    hottest = max(here, key=lambda spot: int(getattr(spot, counter)), default=None)
    if hottest is None or not getattr(hottest, counter):
        return None
    return claim("hottest-page" if counter == "remote" else "hottest-line", holds=hottest.says[:_SAID])


def is_false(counts: Counts) -> bool:
    """Return whether most of the lines that are fetched more often were modified in other bytes."""
    shared, other = counts["hitm"], counts.get("hitm_false")
    return other is not None and other.point == shared.point and other.extra > shared.extra / 2


def is_beyond_sharing(missed: CountFinding, counts: Counts) -> bool:
    """Return whether a cache is missed more often by more than the lines that threads take from each other, which miss it as well."""
    shared = counts.get("hitm")
    if shared is None or shared.point != missed.point or shared.counter not in included(missed.counter):
        return True
    return missed.extra - shared.extra > POLICY.telling * missed.extra


def missed_more(counts: Counts, config: CompareConfig) -> list[CountFinding]:
    """Return the caches that a function misses more often per access than by what other threads do, dearest first."""
    missed = [counts[counter] for counter in MISSES if counter in counts]
    return [finding for finding in missed if is_denser(finding, config) and is_beyond_sharing(finding, counts)]


def locality(place: MemoryEvidence, counter: str, lines: Claim | None) -> Cause:
    """Tell that a function misses a cache more often per access."""
    says = claim("locality", counter=counter, **compared(place.counts[counter]), lines=lines)
    return Cause("locality", says, _evidence(place, MISSES))


def work(place: MemoryEvidence, lines: Claim | None) -> Cause:
    """Tell how much a function executes, of which some was counted."""
    finding = work_finding(place.counts)
    assert finding is not None
    says = claim("executes-more", executes=executes(finding), exact=finding.exact, lines=lines)
    return Cause("more-work", says, _evidence(place, (*WORK_METRICS, "loads", "stores")))


def executed_more(place: MemoryEvidence, lines: Claim | None) -> Iterator[tuple[float, Cause]]:
    """Yield a cause for each kind of event that a function executes more of, with the ns of a run that it explains at most."""
    work_count = work_finding(place.counts)
    for finding, tell in ((place.counts.get("atomics"), ordered), (work_count, work), (place.counts.get("divisions"), divided)):
        if finding is not None and finding.grew:
            yield finding.most_ns, tell(place, lines)


def executes(finding: CountFinding) -> Claim:
    """Tell how much work a function executes on both sides."""
    return claim("executes", counter=finding.counter, **compared(finding))


def misses(finding: CountFinding) -> Claim:
    """Tell how often a function misses a cache on both sides."""
    return claim("misses", counter=finding.counter, **compared(finding))


def ordered(place: MemoryEvidence, lines: Claim | None) -> Cause:
    """Tell how many atomic operations a function makes."""
    says = claim("atomic-operations", **compared(place.counts["atomics"]), lines=lines)
    return Cause("atomic-operations", says, _evidence(place, ("atomics", "loads", "stores")))


def divided(place: MemoryEvidence, lines: Claim | None) -> Cause:
    """Tell how many divisions a function makes."""
    says = claim("divisions", **compared(place.counts["divisions"]), lines=lines)
    return Cause("divisions", says, _evidence(place, ("divisions", *WORK_METRICS)))


def compared(finding: CountFinding) -> dict[str, Fact]:
    """Return a count per call on both sides, and the point that it is told at."""
    return {"base": finding.base, "head": finding.head, "at": finding.point.label}


def _evidence(place: MemoryEvidence, counters: tuple[str, ...]) -> tuple[CauseFigure, ...]:
    return tuple(CauseFigure(counter, finding.base, finding.head) for counter in counters if (finding := place.counts.get(counter)))
