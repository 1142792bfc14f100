"""What counts of the memory system add to the time that was measured: fetches whose price depends on the machine that runs the program.

Time alone misses them where threads happen to share a core, or memory has one node; the counts are those of the accesses themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff import units
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.counts.tallies import work_finding
from perfdiff.analysis.findings import Cause, CountFinding, Evidence
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig
from perfdiff.models.prices import LEAST_NS
from perfdiff.models.workcounter import WORK_METRICS, plain
from perfdiff.records.schema import FunctionInfo, HotSpot, Side

_SAID = 2  # things that a line holds, in a sentence
MISSES = ("llc_misses", "l2_misses", "l1d_misses")  # dearest first
LEVELS = {"llc_misses": "the last-level cache", "l2_misses": "the L2 cache", "l1d_misses": "the L1 cache"}

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
    found = []
    for counter, price in LEAST_NS.items():
        finding = counts.get(counter)
        if finding is None or not is_denser(finding, config) or finding.point.id not in ledger.points:
            continue
        cost = finding.extra * price
        own = float(np.median(ledger.books[finding.point.id, Side.BASE].self_ns[:, ledger.place[function]]))
        if cost >= POLICY.material * ledger.cost_ns(finding.point.id) and cost > config.min_effect * own:
            found.append(counter)
    return tuple(found)


def waits(counters: Sequence[str]) -> str:
    """Say what a function waits for, as the clause of a sentence."""
    said = {"hitm": "its threads get in each other's way", "remote_dram": "its data lie in another node's memory"}
    return " and ".join(said[counter] for counter in counters)


def is_denser(finding: CountFinding, config: CompareConfig) -> bool:
    """Return whether a counter grew, and grew by more than the accesses that it comes with: more of the same work is no other cause."""
    return finding.grew and (math.isnan(finding.rate) or finding.rate > 1 + config.min_effect)


def contention(place: MemoryEvidence, counter: str, who: str, lines: str) -> Cause:
    """Say which lines a function fetches from other cores or nodes; `who` begins the sentence ("it ", "the unchanged `f` ")."""
    found = place.counts[counter]
    numbers = f"{_count(found.head)} a call, {_count(found.base)} before, at {found.point.label}"
    lines = f"{_spot(place, found)}{lines}"
    if counter == "remote_dram":
        says = f"{who}fetches {numbers}, from another node's memory: the thread that first writes to a page decides where it lies{lines}"
        return Cause("remote-memory", says, _evidence(place, ("remote_dram", "llc_misses")))
    if is_false(place.counts):
        why = "threads write different bytes of the same lines"
        says = f"{who}fetches {numbers}, that another thread had modified elsewhere: {why}{lines}"
        return Cause("false-sharing", says, _evidence(place, ("hitm", "hitm_false")))
    says = f"{who}fetches {numbers}, that another thread had modified: threads write the same data{lines}"
    return Cause("true-sharing", says, _evidence(place, ("hitm", "hitm_false")))


def _spot(place: MemoryEvidence, found: CountFinding) -> str:
    """Say what lies in the line, or page, that most of the fetches are of."""
    counter = {"hitm": "hitm", "remote_dram": "remote"}[found.counter]
    here = [spot for spot in place.spots if spot.point == found.point.id and spot.side is Side.HEAD and spot.says]
    hottest = max(here, key=lambda spot: int(getattr(spot, counter)), default=None)
    if hottest is None or not getattr(hottest, counter):
        return ""
    what = "page" if counter == "remote" else "line"
    return f"; the hottest {what} holds {' and '.join(hottest.says[:_SAID])}"


def is_false(counts: Counts) -> bool:
    """Return whether most of the lines that are fetched more often were modified in other bytes."""
    shared, other = counts["hitm"], counts.get("hitm_false")
    return other is not None and other.point == shared.point and other.extra > shared.extra / 2


def locality(place: MemoryEvidence, counter: str, who: str, lines: str) -> Cause:
    """Say that a function misses a cache more often per access."""
    found = place.counts[counter]
    often = f"{_times(found.head)} a call at {found.point.label}, {_times(found.base)} before"
    says = f"{who}misses {LEVELS[counter]} {often}, though it does no more work{lines}"
    return Cause("locality", says, _evidence(place, MISSES))


def work(place: MemoryEvidence, who: str, lines: str) -> Cause:
    """Say how much a function executes, of which some was counted."""
    found = work_finding(place.counts)
    assert found is not None
    exactly = ", the same in every run" if found.exact else ""
    return Cause("more-work", f"{who}{executes(found)}{exactly}{lines}", _evidence(place, (*WORK_METRICS, "loads", "stores")))


def executes(found: CountFinding) -> str:
    """Say how much work a function executes on both sides, as the end of a sentence."""
    return f"executes {worked(found)}"


def worked(found: CountFinding) -> str:
    """Say how much work a call is on both sides."""
    return compared(found, f"{plain(found.counter)} a call")


def ordered(place: MemoryEvidence, who: str, lines: str) -> Cause:
    """Say how many atomic operations a function makes."""
    found = place.counts["atomics"]
    what = "atomic operation a call" if found.head == 1 else "atomic operations a call"
    says = f"{who}makes {compared(found, what)}, each of which waits for those before it{lines}"
    return Cause("atomic-operations", says, _evidence(place, ("atomics", "loads", "stores")))


def divided(place: MemoryEvidence, who: str, lines: str) -> Cause:
    """Say how many divisions a function makes."""
    found = place.counts["divisions"]
    what = "division or square root a call" if found.head == 1 else "divisions and square roots a call"
    return Cause("divisions", f"{who}makes {compared(found, what)}{lines}", _evidence(place, ("divisions", *WORK_METRICS)))


def compared(found: CountFinding, what: str) -> str:
    """Return a count per call on both sides as the end of a sentence; `what` is counted."""
    return f"{units.count(found.head)} {what} at {found.point.label}, {units.count(found.base)} before"


def _evidence(place: MemoryEvidence, counters: tuple[str, ...]) -> tuple[Evidence, ...]:
    return tuple(Evidence(counter, found.base, found.head) for counter in counters if (found := place.counts.get(counter)))


def _count(lines: float) -> str:
    return "no lines" if lines == 0 else f"{units.count(lines)} lines"


def _times(count: float) -> str:
    return "never" if count == 0 else f"{units.count(count)} times"
