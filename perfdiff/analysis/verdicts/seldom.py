"""Whole runs that are slow now and then, on head's side alone or more often than base's: what few pairs neither show nor exclude."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import EndToEnd, Findings, Rung, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.config import CompareConfig
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.statistics.pairs import FEWEST_PAIRS, chance_of_a_look
from perfdiff.statistics.sides import pairs_of
from perfdiff.statistics.tails import SlowRuns, runs_to_see, share_unseen, slow_runs


def points_slower_at_times(points: Sequence[Point], runs: Sequence[Run], config: CompareConfig) -> Mapping[int, float]:
    """Return the longest of head's plain runs by their median, by points at which some take several times as long.

    A difference of middles does not see them. They count where they add an effect of interest to the mean of a workload's runs, and base's
    add little of that: what a busy machine does to few runs it does to either side's. Where head saves more than they add, they do not.
    """
    by_workload: dict[str, dict[int, tuple[Floats, Floats]]] = {}
    plain = [run for run in runs if run.phase is Phase.PLAIN and not (run.clocked or run.requests)]
    for point in points:
        base, head = (_took_ns([run for run in plain if (run.point, run.side) == (point.id, side)]) for side in Side)
        if min(len(base), len(head)) >= FEWEST_PAIRS:
            by_workload.setdefault(point.workload, {})[point.id] = base, head
    effects = {point.id: config.at(point.min_effect).min_effect for point in points}
    slower: dict[int, float] = {}
    for costs in by_workload.values():
        if _add_an_effect([*costs.values()], min(effects[point] for point in costs)):
            longest = {point: float(head.max() / np.median(head)) for point, (_, head) in costs.items()}
            slower |= {point: multiple for point, multiple in longest.items() if multiple >= POLICY.seldom}
    return slower


def workloads_slower_at_times(points: Sequence[Point], runs: Sequence[Run], config: CompareConfig) -> Mapping[str, SlowRuns]:
    """Return the slow runs of each workload of which head has more than base, beyond chance, by CPU time or by the time taken.

    They count where they add an effect of interest to the mean of a workload's runs beyond what base's add. Head's usual run may be as fast
    as base's or not: that is what middles tell. Where it saves more than slow ones add, they do not count.
    """
    plain = [run for run in runs if run.phase is Phase.PLAIN and not (run.clocked or run.requests)]
    by_workload: dict[str, list[Point]] = {}
    for point in points:
        by_workload.setdefault(point.workload, []).append(point)
    slower: dict[str, SlowRuns] = {}
    for workload, members in by_workload.items():
        level = chance_of_a_look(config.confidence, len(_COSTS) * len(by_workload))
        material = min(config.at(point.min_effect).min_effect for point in members)
        for cost in _COSTS:
            ways = [*_ways(members, plain, cost)]
            if ways:
                slow, is_saved = _slow_of(ways, material)
                if slow.chance <= level and slow.adds > material and not is_saved:
                    slower[workload] = slow
    return slower


def slow_runs_unseen(findings: Findings, ends: Iterable[EndToEnd], config: CompareConfig) -> Iterator[Claim]:
    """Yield a note on the workload of fewest runs, if good news rests on so few that they need not have met slow ones that matter."""
    pairs: dict[str, int] = {}
    for end in ends:
        pairs[end.point.workload] = pairs.get(end.point.workload, 0) + end.pairs
    if findings.verdict not in (Verdict.UNCHANGED, Verdict.IMPROVEMENT) or findings.rung is Rung.CODE or not pairs:
        return
    fewest = min(pairs, key=lambda workload: pairs[workload])
    share = share_unseen(pairs[fewest], config.confidence)
    if share > POLICY.slow_share:
        yield claim("slow-runs-unseen", workload=fewest, runs=pairs[fewest], share=share, confidence=config.confidence)


def runs_that_tell(config: CompareConfig) -> int:
    """Return how many runs a side of a workload meet a slow one where a share of them is slow that matters."""
    return runs_to_see(POLICY.slow_share, config.confidence)


def _ways(points: Sequence[Point], runs: Sequence[Run], cost: Callable[[Sequence[Run]], Floats]) -> Iterator[tuple[Floats, Floats]]:
    """Yield what pairs (n,) of base and head cost, point by point, those made at the same time by themselves: these take turns."""
    for point in points:
        for is_together in (False, True):
            alike = [run for run in runs if run.point == point.id and run.together is is_together]
            base, head = pairs_of(*([run for run in alike if run.side is side] for side in Side))
            if len(base) >= FEWEST_PAIRS:
                yield cost(base), cost(head)


def _slow_of(ways: Sequence[tuple[Floats, Floats]], material: float) -> tuple[SlowRuns, bool]:
    """Return the slow runs of all ways together, and whether head's usual runs save more than its slow ones add."""
    base, head = (np.concatenate([np.log(way[side] / np.median(way[side])) for way in ways]) for side in (0, 1))
    slow = slow_runs(base, head, POLICY.slow_fence, math.log1p(material))
    usual = math.exp(float(np.mean([np.log(np.median(after) / np.median(before)) for before, after in ways])))
    return slow, usual * (1 + slow.adds) < 1 / (1 + material)


def _cpu_ns(runs: Sequence[Run]) -> Floats:
    return np.array([max(run.cpu_ns, 1.0) for run in runs])


def _took_ns(runs: Sequence[Run]) -> Floats:
    """Return the CPU time of runs (n,), or their time where they waited for longer than a busy machine makes them."""
    return np.array([max(run.cpu_ns, run.wall_ns - POLICY.stall_ns, 1.0) for run in runs])


_COSTS = (_cpu_ns, _took_ns)


def _add_an_effect(costs: Sequence[tuple[Floats, Floats]], material: float) -> bool:
    """Return whether head's long runs add a `material` part to the mean of a workload's, and base's do not: costs (base, head) by point."""
    base_adds, head_adds = (_added([both[side] for both in costs]) for side in (0, 1))
    usual = math.exp(float(np.mean([np.log(np.median(head) / np.median(base)) for base, head in costs])))
    is_saved = usual * (1 + head_adds) < 1 / (1 + material)
    return head_adds - base_adds > material and base_adds < POLICY.seldom_noise * head_adds and not is_saved


def _added(costs: Sequence[Floats]) -> float:
    """Return what runs that take several times as long as most of their point add to the mean of all, as a part of a usual run."""
    multiples = np.concatenate([took_ns / np.median(took_ns) for took_ns in costs])
    return float(np.where(multiples >= POLICY.seldom, multiples - 1, 0.0).mean())
