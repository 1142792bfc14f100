"""Whole runs of the plain builds: how long they take, and where that alone tells that head is slower."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.blame.attribution import Attribution
from perfdiff.analysis.compare.comparison import as_ratio
from perfdiff.analysis.compare.judgement import LAYOUT_SHIFT, enough_runs
from perfdiff.analysis.findings import EndToEnd, Ratio
from perfdiff.analysis.stats.inference import Group, Pair, contrast, noise_floor
from perfdiff.analysis.verdicts.doubt import DISTORTED
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Experiment, Phase, Point, Run, Side


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A point whose plain runs take clearly more CPU time, by the ratio `cpu`, but are too few to prove it."""

    end: EndToEnd
    cpu: Ratio


@dataclass(frozen=True, slots=True)
class WholeRuns:
    """The times of whole runs by point, those of points where they prove a regression by themselves, and where they let expect one."""

    ends: tuple[EndToEnd, ...] = ()
    slower: tuple[EndToEnd, ...] = ()
    suspicious: tuple[Suspicion, ...] = ()

    def unexplained_by(self, attribution: Attribution) -> WholeRuns:
        """Return the same without points where most of what runs take longer is work that the workload itself asks for."""

        def remains(end: EndToEnd) -> bool:
            return bool(attribution.workload[attribution.points.index(end.point.id)] <= (end.head_ns - end.base_ns) / 2)

        return replace(
            self,
            slower=tuple(end for end in self.slower if remains(end)),
            suspicious=tuple(each for each in self.suspicious if remains(each.end)),
        )


@dataclass(frozen=True, slots=True)
class _Growth:
    """What whole runs of one kind cost at a point, head over base; `is_clear`: beyond what another layout of the code does."""

    ratio: Ratio | None
    is_enough: bool
    is_clear: bool


def whole_runs(experiment: Experiment, config: CompareConfig) -> WholeRuns:
    """Return the times of whole plain runs at all points where both sides have some, and what they show.

    Plain runs are few, and their time by the clock is that of the machine's other work as well: they prove a regression only where enough
    runs also took clearly more CPU time. Runs with probes confirm it, but where these take more than the program itself.
    """
    points = [point for point in experiment.points if all(_runs(experiment, Phase.PLAIN, point, side) for side in Side)]
    ends, slower, suspicious = [], [], []
    for point in points:
        by_clock = _growth(_pair(experiment, Phase.PLAIN, point, "wall_ns"), config, len(points))
        by_cpu = _growth(_pair(experiment, Phase.PLAIN, point, "cpu_ns"), config)
        probed = _growth(_pair(experiment, Phase.TIMED, point, "cpu_ns"), config)
        end = _end(experiment, point, by_clock.ratio)
        ends.append(end)
        if end.overhead is not None and end.overhead > DISTORTED:
            is_proven, is_open = by_clock.is_clear and by_cpu.is_clear and by_cpu.is_enough, True
        else:
            is_proven, is_open = (by_clock.is_clear or by_cpu.is_clear) and probed.is_clear and probed.is_enough, not probed.is_enough
        if is_proven:
            slower.append(end)
        elif is_open and by_cpu.is_clear and by_cpu.ratio:
            suspicious.append(Suspicion(end, by_cpu.ratio))
    return WholeRuns(tuple(ends), tuple(slower), tuple(suspicious))


def overhead(experiment: Experiment) -> float | None:
    """Return the probes' cost as a share of CPU time, over all points and both sides."""
    timed: list[float] = []
    plain: list[float] = []
    for point in experiment.points:
        for side in Side:
            pair = [_runs(experiment, phase, point, side) for phase in (Phase.TIMED, Phase.PLAIN)]
            if all(pair):
                timed.append(_median_cpu(pair[0]))
                plain.append(_median_cpu(pair[1]))
    return sum(timed) / sum(plain) - 1 if sum(plain) > 0 else None


def _end(experiment: Experiment, point: Point, ratio: Ratio | None) -> EndToEnd:
    base, head = (_runs(experiment, Phase.PLAIN, point, side) for side in Side)
    timed = _runs(experiment, Phase.TIMED, point, Side.BASE)
    return EndToEnd(
        point=point,
        base_ns=float(np.median([run.wall_ns for run in base])),
        head_ns=float(np.median([run.wall_ns for run in head])),
        ratio=ratio,
        overhead=_median_cpu(timed) / _median_cpu(base) - 1 if timed and _median_cpu(base) > 0 else None,
    )


def _growth(pair: Pair, config: CompareConfig, comparisons: int = 1) -> _Growth:
    seen = contrast([pair])
    if seen is None:
        return _Growth(None, is_enough=False, is_clear=False)
    ratio = as_ratio(seen, config.confidence, comparisons)
    least = 1 + max(config.min_effect, LAYOUT_SHIFT)
    is_clear = ratio.low > least and math.log(ratio.value) > noise_floor([pair], seed=config.seed)
    return _Growth(ratio, enough_runs(seen), is_clear)


def _runs(experiment: Experiment, phase: Phase, point: Point, side: Side) -> list[Run]:
    return [run for run in experiment.runs if run.phase is phase and run.point == point.id and run.side is side]


def _pair(experiment: Experiment, phase: Phase, point: Point, cost: str) -> Pair:
    sides = (_runs(experiment, phase, point, side) for side in Side)
    return Pair(*(_group([max(getattr(run, cost), 1.0) for run in runs], [run.block for run in runs]) for runs in sides))


def _group(costs: Sequence[float], blocks: Sequence[int]) -> Group:
    return Group(np.log(costs), np.array(blocks, dtype=np.int64))


def _median_cpu(runs: Sequence[Run]) -> float:
    return float(np.median([run.cpu_ns for run in runs]))
