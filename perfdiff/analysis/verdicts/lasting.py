"""Whether more stays allocated at the ends of head's runs than of base's, by exact counts, and which lines asked for it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfdiff.analysis.lasting import Keeper, LastingFinding, LastingPoint
from perfdiff.analysis.peaks import MemoryStanding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.memory import growth_lines
from perfdiff.records.lasting import LastingMemory, LastingSite
from perfdiff.records.schema import Point, Run, Side


def lasting_finding(points: Sequence[Point], runs: Sequence[Run], memories: Sequence[LastingMemory]) -> LastingFinding | None:
    """Return what stays allocated at the ends of counted runs, whose `memories` are known, None where that is too few at each point."""
    cells = {run.id: (run.point, run.side) for run in runs}
    ends: dict[tuple[int, Side], list[LastingMemory]] = {}
    for memory in memories:
        for run in memory.runs:
            ends.setdefault(cells[run], []).append(memory)
    all_pairs = [_Ends(point, *(tuple(ends.get((point.id, side), ())) for side in Side)) for point in points]
    pairs = [pair for pair in all_pairs if min(len(pair.base), len(pair.head)) >= POLICY.runs_alike]
    if not pairs:
        return None
    unknown = tuple(pair.point.label for pair in all_pairs if pair not in pairs)
    compared = [pair.compared for pair in pairs]
    lines = tuple(growth_lines(compared))
    growth = {line.workload: line.head[1] - line.base[1] for line in lines}
    judged = tuple(_judged(point, growth.get(point.point.workload, 0.0)) for point in compared)
    finding = LastingFinding(judged, lines, unknown=unknown)
    ended = next((pair for pair in pairs if finding.utmost and pair.point == finding.utmost.point), None)
    return replace(finding, keepers=tuple(ended.keepers())) if ended else finding


def _judged(point: LastingPoint, growth: float) -> LastingPoint:
    """Return a point with its standing, where head has so many bytes more for each unit of a parameter."""
    spread = point.high - point.low
    more, less = (spread + (1 if grows >= POLICY.least_growth_bytes else POLICY.least_lasting_bytes) for grows in (growth, -growth))
    if point.low >= more:
        return replace(point, standing=MemoryStanding.MORE)
    if -point.high >= less:
        return replace(point, standing=MemoryStanding.LESS)
    return replace(point, standing=MemoryStanding.NOT_MORE if point.high < POLICY.least_lasting_bytes else MemoryStanding.OPEN)


@dataclass(frozen=True, slots=True)
class _Ends:
    """What the runs of both sides had at their ends, at a point."""

    point: Point
    base: tuple[LastingMemory, ...]
    head: tuple[LastingMemory, ...]

    @property
    def compared(self) -> LastingPoint:
        """Return the bytes of both sides, before they are judged."""
        base, head = ([memory.bytes for memory in memories] for memories in (self.base, self.head))
        low, high = min(head) - max(base), max(head) - min(base)
        return LastingPoint(self.point, statistics.median_low(base), statistics.median_low(head), low, high, MemoryStanding.OPEN)

    def keepers(self) -> Iterator[Keeper]:
        """Yield the functions whose bytes differ, in the middle one of each side's runs, those that differ most first."""
        of_base, of_head = (_by_function(_middle(memories)) for memories in (self.base, self.head))
        keepers = [_keeper(of_base.get(name, ()), of_head.get(name, ())) for name in dict.fromkeys((*of_head, *of_base))]
        yield from sorted((keeper for keeper in keepers if keeper.extra_bytes), key=lambda keeper: -abs(keeper.extra_bytes))


def _middle(memories: Sequence[LastingMemory]) -> LastingMemory:
    return sorted(memories, key=lambda memory: memory.bytes)[(len(memories) - 1) // 2]


def _by_function(memory: LastingMemory) -> Mapping[tuple[str, str], Sequence[LastingSite]]:
    functions: dict[tuple[str, str], list[LastingSite]] = {}
    for site in memory.sites:
        functions.setdefault((site.function, site.file), []).append(site)
    return functions


def _keeper(base: Sequence[LastingSite], head: Sequence[LastingSite]) -> Keeper:
    """Return one function's memory on both sides; lines are the same where their texts are, as others above them move them."""
    base_bytes, head_bytes = (sum(site.bytes for site in sites) for sites in (base, head))
    own, others = (head, base) if head_bytes > base_bytes or not base else (base, head)
    line = max(own, key=lambda site: site.bytes - sum(other.bytes for other in others if other.text == site.text))
    blocks = (sum(site.blocks for site in sites) for sites in (base, head))
    return Keeper(line.function, line.file, line.line, line.text, base_bytes, head_bytes, *blocks)
