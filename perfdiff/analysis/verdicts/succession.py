"""Runs that follow each other in one tree, where each finds what those before it left: whether they take longer in head."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.seldom import points_slower_at_times
from perfdiff.analysis.verdicts.waiting import points_where_head_waits, waits
from perfdiff.config import CompareConfig
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Point, Run, Side
from perfdiff.statistics.pairs import chance_of_more
from perfdiff.statistics.sides import logs, pairs_of


def points_slower_in_turn(
    points: Sequence[Point], series: Sequence[Sequence[Run]], config: CompareConfig, compiled: Collection[str]
) -> dict[int, float]:
    """Return how many times as long runs that follow others take in head, by points at which they take longer.

    Pairs of all such runs, or of the later half, are longer beyond the smallest effect of interest (signed ranks), by CPU
    time or, where runs wait, by the clock; or a few of head's runs take several times as long. Workloads that run `compiled` code have a
    single layout here: what that may make is no effect. A first series is judged leniently, two together are not.
    """
    slower: dict[int, float] = {}
    level, fewest = (POLICY.in_turn_suspected, 1) if len(series) == 1 else (POLICY.in_turn, POLICY.in_turn_seldom)
    runs = [run for behind in series for run in behind]
    late = {run.block for behind in series for run in behind if run.block > np.median([run.block for run in behind])}
    for point in points:
        judged = config.at(point.min_effect)
        material = POLICY.smallest(judged.min_effect, is_laid_out_anew=point.workload in compiled)
        base, head = pairs_of(*([run for run in runs if (run.point, run.side) == (point.id, side)] for side in Side))
        if not base:
            continue
        at_times = points_slower_at_times([point], [*base, *head], judged).get(point.id)
        is_slower_at_times = at_times is not None and _long_runs(head) >= fewest
        is_late = [run.block in late for run in head]
        costs = ["cpu_ns"]
        if waits(base) or waits(head) or points_where_head_waits([point], [*base, *head], judged):
            costs.append("wall_ns")
        longer = [cost for cost in costs if _are_longer(logs(head, cost) - logs(base, cost) - math.log1p(material), is_late, level)]
        if longer or is_slower_at_times:
            cost = longer[0] if longer else "wall_ns"
            slower[point.id] = sum(getattr(run, cost) for run in head) / sum(getattr(run, cost) for run in base)
    return slower


def _are_longer(more: Floats, is_late: Sequence[bool], level: float) -> bool:
    """Return whether differences beyond what is of interest (n,), or the late ones of them, are positive beyond chance."""
    return any(len(part) > 0 and part.mean() > 0 and chance_of_more(part) <= level for part in (more, more[np.array(is_late)]))


def _long_runs(runs: Sequence[Run]) -> int:
    usual_ns = float(np.median([run.cpu_ns for run in runs]))
    return sum(max(run.cpu_ns, run.wall_ns - POLICY.stall_ns) >= POLICY.seldom * usual_ns for run in runs)
