"""Whole runs of the plain builds: the judge of whether head is slower, point by point, by pairs of runs made next to each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.blame.attribution import Attribution
from perfdiff.analysis.findings import EndToEnd, Ratio, Standing
from perfdiff.analysis.policy import LAYOUT_SHIFT, LAYOUTS_KNOWN, WAITS
from perfdiff.analysis.stats.pairs import FEWEST_PAIRS, Shift, shift
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Floats, Ints, Phase, Point, Run, Side


@dataclass(frozen=True, slots=True)
class WholeRuns:
    """What whole runs show, one entry a point that both sides have runs of."""

    ends: tuple[EndToEnd, ...] = ()

    def of(self, standing: Standing) -> tuple[EndToEnd, ...]:
        """Return the points of a standing."""
        return tuple(end for end in self.ends if end.standing is standing)

    @property
    def slower(self) -> tuple[EndToEnd, ...]:
        """Return the points where head is slower beyond doubt, the clearest first."""
        return tuple(sorted(self.of(Standing.SLOWER), key=lambda end: -end.low))

    @property
    def are_not_slower(self) -> bool:
        """Return whether a slow-down of interest is excluded at every point."""
        return bool(self.ends) and all(end.standing in (Standing.NOT_SLOWER, Standing.FASTER) for end in self.ends)

    @property
    def excluded(self) -> float:
        """Return from which slow-down on, as a ratio, every one is excluded at all points; infinity where a point has no interval."""
        return max((end.high for end in self.ends), default=math.inf)

    def unexplained_by(self, attribution: Attribution) -> WholeRuns:
        """Return the same without points where runs do take longer, and most of that is work that the workload itself asks for."""

        def remains(end: EndToEnd) -> bool:
            takes_longer = end.standing is Standing.SLOWER or (end.standing is Standing.OPEN and end.low > 1)
            if not takes_longer or end.point.id not in attribution.points:
                return True
            return bool(attribution.workload[attribution.points.index(end.point.id)] <= (end.head_ns - end.base_ns) / 2)

        return replace(self, ends=tuple(end for end in self.ends if remains(end)))


def whole_runs(points: Sequence[Point], runs: Sequence[Run], config: CompareConfig) -> WholeRuns:
    """Return what the plain ones of `runs` show at all points where both sides have some.

    A point is judged by CPU time, which other work on the machine does not lengthen much, and where its runs wait or use several threads by
    time as well: it is slower if either is, and not slower if both are. Where they wait for services outside the revisions, these may be
    what takes longer: CPU time alone judges.
    """
    plain, timed = _by_point(runs, Phase.PLAIN), _by_point(runs, Phase.TIMED)
    both = [point for point in points if all(plain.get((point.id, side)) for side in Side)]
    return WholeRuns(tuple(_end(point, plain, timed, config, len(both)) for point in both))


def overhead(runs: Sequence[Run]) -> float | None:
    """Return the probes' cost as a share of CPU time, over all points and both sides."""
    plain, timed = _by_point(runs, Phase.PLAIN), _by_point(runs, Phase.TIMED)
    both = [place for place in timed if place in plain]
    bare = sum(_median_cpu(plain[place]) for place in both)
    return sum(_median_cpu(timed[place]) for place in both) / bare - 1 if bare > 0 else None


def shift_of(base: Sequence[Run], head: Sequence[Run], cost: str) -> Shift | None:
    """Return by how much runs differ in a cost, pair by pair: those of one block were made next to each other."""
    before = {run.block: run for run in base}
    after = [run for run in head if run.block in before]
    layouts: Ints = np.array([run.layout for run in after], dtype=np.int64)
    return shift(_logs([before[run.block] for run in after], cost), _logs(after, cost), layouts)


def _logs(runs: Sequence[Run], cost: str) -> Floats:
    return np.log([max(getattr(run, cost), 1.0) for run in runs])


def _end(
    point: Point,
    plain: Mapping[tuple[int, Side], Sequence[Run]],
    timed: Mapping[tuple[int, Side], Sequence[Run]],
    config: CompareConfig,
    points: int,
) -> EndToEnd:
    base, head = (_comparable(plain[point.id, side]) for side in Side)
    by_cpu = _judged(shift_of(base, head, "cpu_ns"), config, points)
    judged, by = by_cpu, "cpu_ns"
    if not point.outside and any(waits(runs) for runs in (base, head)):
        by_clock = _judged(shift_of(base, head, "wall_ns"), config, points)
        if _rank(by_clock) >= _rank(by_cpu):
            judged, by = by_clock, "wall_ns"
    probed = {side: timed.get((point.id, side), ()) for side in Side}
    costs = [_median_cpu(probed[side]) / _median_cpu(plain[point.id, side]) - 1 for side in Side if probed[side]]
    return EndToEnd(
        point=point,
        base_ns=float(np.median([run.took_ns for run in base])),
        head_ns=float(np.median([run.took_ns for run in head])),
        ratio=judged.ratio,
        overhead=max(costs, default=None),
        standing=judged.standing,
        by=by,
        needed=judged.needed,
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    standing: Standing
    ratio: Ratio | None = None
    needed: int = 0


def _judged(seen: Shift | None, config: CompareConfig, points: int) -> _Judged:
    """Say what a cost of whole runs shows at one of so many points.

    That it is not slower must hold at every point, so that each is tested by itself (intersection-union test: Berger 1982); that one is
    slower may hold at any of them.
    """
    if seen is None:
        return _Judged(Standing.OPEN)
    least = math.log1p(config.min_effect)
    low, high = seen.lower(config.confidence, points), seen.upper(config.confidence)
    ratio = Ratio(math.exp(seen.effect), math.exp(low), math.exp(high), seen.pairs, seen.pairs)
    clear = least if seen.layouts >= LAYOUTS_KNOWN else math.log1p(max(config.min_effect, LAYOUT_SHIFT))
    if low > clear:
        return _Judged(Standing.SLOWER, ratio)
    if seen.upper(config.confidence, points) < -clear:
        return _Judged(Standing.FASTER, ratio)
    if high < least:
        return _Judged(Standing.NOT_SLOWER, ratio)
    return _Judged(Standing.OPEN, ratio, seen.needed(least, config.confidence))


def _rank(judged: _Judged) -> int:
    """Order standings: what is slower decides, then what is open."""
    return (Standing.FASTER, Standing.NOT_SLOWER, Standing.OPEN, Standing.SLOWER).index(judged.standing)


def waits(runs: Sequence[Run]) -> bool:
    """Return whether runs wait for anything but a CPU, or use more than one: the least that any of them did so tells."""
    return min(abs(run.took_ns - run.cpu_ns) / run.took_ns for run in runs) > WAITS if all(run.took_ns > 0 for run in runs) else False


def _comparable(runs: Sequence[Run]) -> Sequence[Run]:
    """Return the runs that were made at the same time as their pair's other one, which tell most; all where they are few."""
    together = [run for run in runs if run.together]
    return together if len(together) >= FEWEST_PAIRS else runs


def _by_point(runs: Sequence[Run], phase: Phase) -> dict[tuple[int, Side], list[Run]]:
    found: dict[tuple[int, Side], list[Run]] = {}
    for run in runs:
        if run.phase is phase:
            found.setdefault((run.point, run.side), []).append(run)
    return found


def _median_cpu(runs: Sequence[Run]) -> float:
    return float(np.median([run.cpu_ns for run in runs]))
