"""Whole runs that take several times as long now and then, on head's side alone: what few pairs neither show nor exclude."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from perfdiff.analysis.policy import POLICY
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Floats, Phase, Point, Run, Side
from perfdiff.statistics.pairs import FEWEST_PAIRS


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


def _took_ns(runs: Sequence[Run]) -> Floats:
    """Return the CPU time of runs (n,), or their time where they waited for longer than a busy machine makes them."""
    return np.array([max(run.cpu_ns, run.wall_ns - POLICY.stall_ns, 1.0) for run in runs])


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
