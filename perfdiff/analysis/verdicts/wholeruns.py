"""Whole runs of the plain builds: the judge of whether head is slower, point by point, by pairs of runs made next to each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import EndToEnd, PointStanding, Ratio
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.repeats import in_all_points
from perfdiff.analysis.verdicts.clockwork import points_ended_by_a_clock
from perfdiff.analysis.verdicts.seldom import points_slower_at_times, workloads_slower_at_times
from perfdiff.analysis.verdicts.waiting import points_where_head_waits, waits
from perfdiff.analysis.verdicts.ways import Runs, ways_apart
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.statistics.pairs import PairedDifference, chance_of_a_look
from perfdiff.statistics.sides import comparable, difference_of

FEWEST_ALIKE = 3  # runs of a point that tell, by their median, what probes cost


@dataclass(frozen=True, slots=True)
class WholeRuns:
    """What whole runs show, one entry a point that both sides have runs of; at `left_out` points they say nothing of the program."""

    ends: tuple[EndToEnd, ...] = ()
    left_out: int = 0

    def of(self, standing: PointStanding) -> tuple[EndToEnd, ...]:
        """Return the points of a standing."""
        return tuple(end for end in self.ends if end.standing is standing)

    @property
    def slower(self) -> tuple[EndToEnd, ...]:
        """Return the points where head is slower beyond doubt, the clearest first."""
        return tuple(sorted(self.of(PointStanding.SLOWER), key=lambda end: -end.low))

    @property
    def are_not_slower(self) -> bool:
        """Return whether a slow-down of interest is excluded at every point."""
        return bool(self.ends) and all(end.standing in (PointStanding.NOT_SLOWER, PointStanding.FASTER) for end in self.ends)

    @property
    def are_as_fast(self) -> bool:
        """Return whether the program is neither slower nor faster at every point."""
        return self.are_not_slower and not self.of(PointStanding.FASTER)

    @property
    def excluded(self) -> float:
        """Return from which slow-down on, as a ratio, every one is excluded at all points; infinity where a point does not tell."""
        if self.of(PointStanding.CLOCKED) or any(end.is_of_two_kinds for end in self.of(PointStanding.OPEN)):
            return math.inf
        return max((end.high for end in self.ends), default=math.inf)

    def where(self, tells: Callable[[EndToEnd], bool]) -> WholeRuns:
        """Return the same without the points at which runs do not tell of the program."""
        ends = tuple(end for end in self.ends if tells(end))
        return WholeRuns(ends, self.left_out + len(self.ends) - len(ends))

    def without(self, points: Set[int]) -> WholeRuns:
        """Return the same without some points."""
        return self.where(lambda end: end.point.id not in points)


def whole_runs(points: Sequence[Point], runs: Sequence[Run], config: CompareConfig, machines: Sequence[str] = ()) -> WholeRuns:
    """Judge the plain runs among `runs`, at all points that both sides ran.

    A point is judged by CPU time, which other work on the machine does not lengthen much, and where its runs wait, head's more than base's,
    use several threads or answer requests by time as well: it is slower if either is, and not slower if both are. So are runs made in two
    ways, where these differ by more than the place of code makes. Where they wait for services outside the revisions, these may be what
    takes longer: CPU time alone judges. Runs that a clock ends say nothing. `machines` are the names of the runs' machines.
    """
    plain, timed = _by_point(runs, Phase.PLAIN), _by_point(runs, Phase.TIMED)
    both = [point for point in points if all(plain.get((point.id, side)) for side in Side)]
    judge = _WholeRunJudge(config, len(both), machines, points_where_head_waits(both, runs, config))
    clocked = in_all_points({run.point for run in runs if run.clocked} | points_ended_by_a_clock(runs), points)
    at_times, slow = points_slower_at_times(both, runs, config), workloads_slower_at_times(both, runs, config)
    ends = (_end(point, plain, timed, replace(judge, config=config.at(point.min_effect))) for point in both)
    ends = (_left_open(replace(end, at_times=at_times.get(end.point.id), slow=slow.get(end.point.workload))) for end in ends)
    return WholeRuns(tuple(replace(end, standing=PointStanding.CLOCKED, needed=0) if end.point.id in clocked else end for end in ends))


def _left_open(end: EndToEnd) -> EndToEnd:
    """Return a point as it stands, but open where some of head's runs are slow beside its others and all of them do not show it slower."""
    return replace(end, standing=PointStanding.OPEN) if end.is_of_two_kinds and end.standing is not PointStanding.SLOWER else end


def slower_by_far(points: Sequence[Point], runs: Sequence[Run], config: CompareConfig) -> tuple[EndToEnd, ...]:
    """Return the points where head is slower by more than any place of code makes, the clearest first; few pairs may be enough.

    As this is asked before the first look, its level is a part of a look's. Layouts need not be told apart beyond what they make.
    """
    strict = replace(config, confidence=1 - POLICY.before_looks * (1 - config.confidence))
    alike = [replace(run, layout=0) for run in runs if run.phase is Phase.PLAIN]
    slower = {end.point.id for end in whole_runs(points, runs, config).slower}
    return tuple(end for end in whole_runs(points, alike, strict).slower if end.point.id in slower)


def overhead(runs: Sequence[Run]) -> float | None:
    """Return the probes' cost as a share of CPU time, over all points and both sides."""
    plain, timed = _by_point(runs, Phase.PLAIN), _by_point(runs, Phase.TIMED)
    both = [place for place in timed if place in plain]
    bare, probed = np.sum([_cpu_of_both(plain[place], timed[place]) for place in both] or [(0.0, 0.0)], axis=0)
    return float(probed / bare) - 1 if bare > 0 else None


def probed_otherwise(points: Sequence[Point], runs: Sequence[Run]) -> tuple[Claim, ...]:
    """Return a note for the point where runs with probes take the least of plain ones' CPU time, if that is less than most of it.

    Probes add time, and places of code take little away: the compiler has then left out work, and calls are those of another program.
    """
    plain, timed = _by_point(runs, Phase.PLAIN), _by_point(runs, Phase.TIMED)
    labels = {point.id: point.label for point in points}
    costs = {place: _cpu_of_both(plain[place], timed[place]) for place in timed if place in plain and place[0] in labels}
    least = min(costs, key=lambda place: costs[place][1] / max(costs[place][0], 1.0), default=None)
    if least is None or costs[least][1] >= POLICY.most * costs[least][0]:
        return ()
    (point, side), (bare_ns, probed_ns) = least, costs[least]
    return (claim("probed-otherwise", point=labels[point], side=side, plain_ns=bare_ns, probed_ns=probed_ns),)


def _end(
    point: Point, plain: Mapping[tuple[int, Side], Sequence[Run]], timed: Mapping[tuple[int, Side], Sequence[Run]], judge: _WholeRunJudge
) -> EndToEnd:
    all_of = [plain[point.id, side] for side in Side]
    base, head = map(comparable, all_of)
    by_cpu = judge.by_ways((all_of[0], all_of[1]), (base, head), "cpu_ns")
    judged, by = by_cpu, "cpu_ns"
    is_more_than_work = point.id in judge.waiting or any(waits(runs) or runs[0].requests for runs in all_of)
    if not point.outside and is_more_than_work:
        before, after = ([run for run in runs if not run.together or run.requests] for runs in all_of)
        by_clock = judge.by_ways((before, after), (before, after), "wall_ns")
        if _rank(by_clock) >= _rank(by_cpu):
            judged, by = by_clock, "wall_ns"
    probed = {side: timed.get((point.id, side), ()) for side in Side}
    bare_and_probed = [_cpu_of_both(plain[point.id, side], probed[side]) for side in Side if probed[side]]
    costs = [with_probes / bare - 1 for bare, with_probes in bare_and_probed]
    base_ns, head_ns = judged.means or (float(np.median([getattr(run, by) for run in runs])) for runs in (base, head))
    return EndToEnd(
        point=point,
        base_ns=base_ns,
        head_ns=head_ns,
        ratio=judged.ratio,
        overhead=max(costs, default=None),
        standing=judged.standing,
        by=by,
        needed=judged.needed,
        machines=judged.machines,
        disagree=judged.disagree,
        by_layouts=judged.by_layouts,
        waits_more=point.id in judge.waiting and not point.outside,
        pairs=min(map(len, all_of)),
    )


@dataclass(frozen=True, slots=True)
class _PointJudgement:
    """What a cost shows. `means` are those of base and head that `ratio` is of."""

    standing: PointStanding
    ratio: Ratio | None = None
    means: tuple[float, float] | None = None
    needed: int = 0
    machines: Mapping[str, Ratio] = field(default_factory=dict)
    disagree: bool = False
    by_layouts: bool = False


@dataclass(frozen=True, slots=True)
class _WholeRunJudge:
    """Judges a point by its runs, one of so many `points`; at those in `waiting` head waits more. `names` are those of machines."""

    config: CompareConfig
    points: int
    names: Sequence[str]
    waiting: Set[int]

    def by_ways(self, runs: Runs, telling: Runs, cost: str) -> _PointJudgement:
        """Say what a cost shows of the `telling` runs, or of each way to make runs by itself where these differ: the worse counts.

        Where head is faster in both, that needs no more runs of either: how much it saves may well hang on what runs beside it.
        """
        apart = ways_apart(runs, cost, chance_of_a_look(self.config.confidence, self.points))
        if apart is None or apart.worst(cost) < 1 / (1 + self.config.min_effect):
            return self.by(*telling, cost)
        both = (apart.runs, apart.others)
        judge = replace(self, points=len(both) * self.points)
        return max((judge.by(*way, cost) for way in both), key=_rank)

    def by(self, base: Sequence[Run], head: Sequence[Run], cost: str) -> _PointJudgement:
        """Say what a cost of whole runs shows, on all machines together, or on each by itself where they disagree."""
        seen = difference_of(base, head, cost)
        judged = self._judged(seen, 1)
        machines = sorted({run.machine for run in base} & {run.machine for run in head})
        if seen is None or len(machines) < 2:
            return judged
        differences = {machine: difference_of(_on(base, machine), _on(head, machine), cost) for machine in machines}
        alone = {machine: self._judged(difference, len(machines)) for machine, difference in differences.items() if difference is not None}
        ratios = {self._name(machine): judgement.ratio for machine, judgement in alone.items() if judgement.ratio is not None}
        values = [ratio.value for ratio in ratios.values()]
        is_of_interest = len(values) > 1 and max(values) >= (1 + self.config.min_effect) * min(values)
        # At any of its points a comparison may find machines to disagree: corrected as bounds are.
        if not is_of_interest or seen.differ > chance_of_a_look(self.config.confidence, self.points):
            return replace(judged, machines=ratios)
        return replace(_of_machines(judged, [*alone.values()]), machines=ratios, disagree=True)

    def _name(self, machine: int) -> str:
        return self.names[machine] if machine < len(self.names) else f"machine {machine + 1}"

    def _judged(self, seen: PairedDifference | None, machines: int) -> _PointJudgement:
        """Say what a cost shows of one of so many `machines`.

        That it is not slower must hold at every point, so that each is tested by itself (intersection-union test: Berger 1982); that one
        is slower may hold at any of them.
        """
        if seen is None:
            return _PointJudgement(PointStanding.OPEN)
        config, points = self.config, self.points * machines
        least = math.log1p(config.min_effect)
        judgement = _PointJudgement(PointStanding.OPEN, _ratio(seen, config, points), (math.exp(seen.base), math.exp(seen.head)))
        clear, measured = least, seen
        if seen.layouts < POLICY.layouts_known:
            clear, measured = math.log1p(POLICY.smallest(config.min_effect, is_laid_out_anew=True)), seen.in_these_layouts()
        if measured.lower(config.confidence, points) > clear:
            return replace(judgement, standing=PointStanding.SLOWER, ratio=_ratio(measured, config, points))
        if measured.upper(config.confidence, points) < -clear:
            return replace(judgement, standing=PointStanding.FASTER, ratio=_ratio(measured, config, points))
        high = seen.upper(config.confidence)
        if high < least:
            return replace(judgement, standing=PointStanding.NOT_SLOWER)
        # Beyond `least` more pairs of as few layouts would decide nothing.
        needed = seen.needed(least, config.confidence) if clear == least or seen.effect < least else 0
        return replace(judgement, needed=needed, by_layouts=seen.by_layouts)


def _ratio(seen: PairedDifference, config: CompareConfig, points: int) -> Ratio:
    """Return a difference as a ratio, with a lower bound that holds at all of so many points."""
    low, high = seen.lower(config.confidence, points), seen.upper(config.confidence)
    return Ratio(math.exp(seen.effect), math.exp(low), math.exp(high), seen.pairs, seen.pairs)


def _on(runs: Sequence[Run], machine: int) -> list[Run]:
    return [run for run in runs if run.machine == machine]


def _of_machines(together: _PointJudgement, alone: Sequence[_PointJudgement]) -> _PointJudgement:
    """Say what machines that disagree show: slower where any is and none is faster, not slower where none is.

    Slower on one and faster on another is open, and more pairs would not settle it.
    """
    standings = {judgement.standing for judgement in alone}
    measured = [judgement for judgement in alone if judgement.ratio is not None]
    if not measured or together.ratio is None:
        return together
    worst = max(measured, key=lambda judgement: judgement.ratio.low if judgement.ratio else 0.0)
    high = max(judgement.ratio.high for judgement in measured if judgement.ratio)
    if PointStanding.SLOWER in standings and PointStanding.FASTER not in standings:
        return replace(worst, needed=0)
    if PointStanding.SLOWER in standings:
        return _PointJudgement(PointStanding.OPEN, replace(together.ratio, low=min(together.ratio.low, 1.0), high=high), together.means)
    wide = replace(together.ratio, high=max(together.ratio.high, high))
    if PointStanding.OPEN in standings:
        return _PointJudgement(PointStanding.OPEN, wide, together.means, max(judgement.needed for judgement in measured) * len(measured))
    return replace(together, standing=together.standing if standings == {together.standing} else PointStanding.NOT_SLOWER, ratio=wide)


def _rank(judgement: _PointJudgement) -> int:
    """Order standings: what is slower decides, then what is open."""
    return (PointStanding.FASTER, PointStanding.NOT_SLOWER, PointStanding.OPEN, PointStanding.SLOWER).index(judgement.standing)


def _cpu_of_both(plain: Sequence[Run], timed: Sequence[Run]) -> tuple[float, float]:
    """Return the CPU time of runs without probes and with them.

    Those are compared that were made as most with probes were: alone, or beside their pair's other one, which takes CPU time; all where
    these are few.
    """
    are_together = float(np.mean([run.together for run in timed])) > 1 / 2
    alike = [[run for run in runs if run.together is are_together] for runs in (plain, timed)]
    bare, probed = alike if min(map(len, alike)) >= FEWEST_ALIKE else (plain, timed)
    return _median_cpu(bare), _median_cpu(probed)


def _by_point(runs: Sequence[Run], phase: Phase) -> dict[tuple[int, Side], list[Run]]:
    runs_by_point: dict[tuple[int, Side], list[Run]] = {}
    for run in runs:
        if run.phase is phase:
            runs_by_point.setdefault((run.point, run.side), []).append(run)
    return runs_by_point


def _median_cpu(runs: Sequence[Run]) -> float:
    return float(np.median([run.cpu_ns for run in runs]))
