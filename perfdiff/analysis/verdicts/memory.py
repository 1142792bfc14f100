"""The peak memory of whole runs: whether head takes more, point by point, how that grows, and which changed functions ask for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.findings import FunctionFinding
from perfdiff.analysis.kernel_use import KernelPoint
from perfdiff.analysis.lasting import LastingPoint
from perfdiff.analysis.peaks import Allocating, MemoryFinding, MemoryLine, MemoryStanding, PeakMemory
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.statistics.sides import difference_of

_ALLOCATED = ("alloc_bytes", "heap_bytes")  # counts of what a function asks for, the first that is there


def memory_finding(
    points: Sequence[Point], runs: Sequence[Run], functions: Sequence[FunctionFinding], ledger: Ledger | None, config: CompareConfig
) -> MemoryFinding | None:
    """Return the finding on the peak memory of plain runs, None if there is none and the configuration does not ask for it.

    `ledger` has exact sums of what functions ask for, None where nothing was counted.
    """
    judge = _MemoryJudge(POLICY.memory if config.memory is None else config.memory, config.confidence, len(points))
    peaks = tuple(peak for point in points if (peak := judge.peak(point, *(_of(runs, point, side) for side in Side))) is not None)
    unknown = tuple(point.label for point in points if point not in [peak.point for peak in peaks])
    finding = MemoryFinding(peaks, tuple(growth_lines(peaks)), (), judge.threshold, config.memory is not None, unknown)
    if not peaks and not (unknown and finding.decides):
        return None
    worst = finding.worst
    return replace(finding, allocating=tuple(_allocating(worst, functions, ledger))) if worst and ledger else finding


def _of(runs: Sequence[Run], point: Point, side: Side) -> list[Run]:
    """Return the plain runs of a point on a side whose memory is known."""
    plain = (run for run in runs if (run.phase, run.point, run.side) == (Phase.PLAIN, point.id, side))
    return [run for run in plain if not math.isnan(run.max_rss_bytes)]


def _is_of_several(runs: Sequence[Run]) -> bool:
    """Return whether several processes of a run held more together than the largest alone, in half of the runs and more."""
    return sum((run.held_bytes or 0.0) > run.max_rss_bytes for run in runs) >= POLICY.most * len(runs)


@dataclass(frozen=True, slots=True)
class _MemoryJudge:
    """From which share on more memory is of interest, and with what confidence that is told of so many points together."""

    threshold: float
    confidence: float
    points: int

    def peak(self, point: Point, base: Sequence[Run], head: Sequence[Run]) -> PeakMemory | None:
        """Return what runs of a point show, of all processes where several hold more than the largest; None where runs are too few."""
        together = all(run.held_bytes is not None for run in (*base, *head)) and any(map(_is_of_several, (base, head)))
        difference = difference_of(base, head, "held_bytes" if together else "max_rss_bytes")
        if difference is None:
            return None
        low, high = difference.lower(self.confidence, self.points), difference.upper(self.confidence, self.points)
        sizes = before, after = math.exp(difference.base), math.exp(difference.head)
        standing = self._standing(*sizes, low, high)
        return PeakMemory(point, *sizes, after / before, math.exp(low), math.exp(high), difference.pairs, standing, together)

    def _standing(self, before: float, after: float, low: float, high: float) -> MemoryStanding:
        """Return what bytes of both sides, and the bounds of their ratio's logarithm, say."""
        material, least = math.log1p(self.threshold), POLICY.least_peak_bytes
        if low > material and after - before >= least:
            return MemoryStanding.MORE
        if high < -material and before - after >= least:
            return MemoryStanding.LESS
        is_excluded = high <= material or before * math.expm1(high) < least
        return MemoryStanding.NOT_MORE if is_excluded else MemoryStanding.OPEN


def growth_lines(
    peaks: Sequence[PeakMemory | LastingPoint | KernelPoint], sides: tuple[str, str] = ("base_bytes", "head_bytes")
) -> Iterator[MemoryLine]:
    """Yield the workloads whose bytes, or other numbers of both `sides`, follow a line over the one number that varies."""
    for workload in dict.fromkeys(peak.point.workload for peak in peaks):
        own = [peak for peak in peaks if peak.point.workload == workload]
        values = {name: [peak.point.parameters.get(name) for peak in own] for name in own[0].point.parameters}
        varying = [name for name, at in values.items() if len(set(at)) > 1]
        if len(varying) != 1 or len(set(values[varying[0]])) < POLICY.sizes_of_a_line:
            continue
        x = [value for value in values[varying[0]] if isinstance(value, int | float)]
        if len(x) != len(own):
            continue
        fits = [_line(x, [getattr(peak, of) for peak in own]) for of in sides]
        if fits[0] and fits[1]:
            yield MemoryLine(workload, varying[0], fits[0], fits[1])


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float] | None:
    """Return the start and the slope of a line through points, None where one lies off it."""
    # Bytes are whole: what arithmetic leaves far behind the point is nothing.
    start, slope = (round(term, 6) + 0.0 for term in np.polynomial.polynomial.polyfit(x, y, 1).tolist())
    off = np.abs(np.asarray(y) - (start + slope * np.asarray(x)))
    return (start, slope) if float(off.max()) <= POLICY.off_a_line * max(y) else None


def _allocating(worst: PeakMemory, functions: Sequence[FunctionFinding], ledger: Ledger) -> Iterator[Allocating]:
    """Yield the changed functions that ask for so much more in a run that it may be what the peak grew by, those that ask most first.

    A caller whose extra is asked for by a changed function that it calls is left out.
    """
    books = [ledger.books.get((worst.point.id, side)) for side in Side]
    metric = next((name for name in _ALLOCATED if all(book and name in book.medians for book in books)), None)
    if metric is None:
        return
    asked = {
        finding.info.id: [float(book.medians[metric][ledger.place[finding.info.id]]) for book in books if book]
        for finding in functions
        if finding.info.change.is_suspect and finding.info.id in ledger.place
    }
    more = {function: head - base for function, (base, head) in asked.items() if head - base >= POLICY.most * worst.extra_bytes}
    calls = {finding.info.id: finding.info.calls for finding in functions}
    own = [
        function
        for function, extra in more.items()
        if not any(more[callee] >= POLICY.most * extra for callee in calls[function] & more.keys() if callee != function)
    ]
    names = {finding.info.id: finding.info.name for finding in functions}
    for function in sorted(own, key=lambda function: -more[function]):
        yield Allocating(names[function], worst.point, *asked[function])
