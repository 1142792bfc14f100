"""Whether whole runs wait for anything but a CPU: always, now and then, or on head's side more than on base's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfdiff.analysis.policy import POLICY
from perfdiff.config import RUNS_FOR_TIME, CompareConfig
from perfdiff.records.arrays import Floats
from perfdiff.records.behaviour import Concurrency
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.statistics.pairs import chance_of_more
from perfdiff.statistics.sides import pairs_of


def waits(runs: Sequence[Run]) -> bool:
    """Return whether runs wait for anything but a CPU, or use more than one: the least that any of them did so tells, or their sum."""
    if not all(run.took_ns > 0 for run in runs):
        return False
    always = min(abs(run.took_ns - run.cpu_ns) / run.took_ns for run in runs) > POLICY.waits
    return always or any(map(_wait_at_times, ([run for run in runs if run.together], [run for run in runs if run.waited is not None])))


def points_where_head_waits(points: Sequence[Point], runs: Sequence[Run], config: CompareConfig) -> frozenset[int]:
    """Return the points at which head's plain runs wait for anything but a CPU by a material part of a run more than base's.

    Waits that only some runs have are rare at each point, and the points of a workload run one program: where all of them together show it,
    it holds at each. A point may show it by itself as well, as one of so many. Where head takes less in all, by the clock, its waits have
    not used up what its work saves.
    """
    waiting: set[int] = set()
    level, effects = 1 - config.confidence, {point.id: config.at(point.min_effect).min_effect for point in points}
    for more_by_point in _more_by_workload(points, runs).values():
        material = min(effects[point] for point in more_by_point)
        is_everywhere = _are_longer(np.hstack([waited for waited, _ in more_by_point.values()]), material, level)
        alone = level / len(more_by_point)
        waiting |= {
            point
            for point, (waited, took) in more_by_point.items()
            if float(took.mean()) > -material and (is_everywhere or _are_longer(waited, material, alone))
        }
    return frozenset(waiting)


def has_several(concurrency: Concurrency | None) -> bool:
    """Return whether several tasks of a run could work at the same time, for more than its start and end."""
    return concurrency is not None and concurrency.several > POLICY.waits


def _wait_at_times(runs: Sequence[Run]) -> bool:
    """Return whether some runs wait for so much that it is a part of the time of all, beside others that do not; one may be disturbed.

    The others show that the kernel tells what runs of this kind wait for a CPU, which is no waiting of their own.
    """
    wall_ns = sum(run.wall_ns for run in runs)
    slept_ns = [(1 - (run.waited or 0.0)) * run.wall_ns - run.cpu_ns for run in runs]
    waits_ns = [ns for ns in slept_ns if ns > POLICY.stall_ns]
    are_some = len(runs) >= RUNS_FOR_TIME and 1 < len(waits_ns) < len(runs)
    return are_some and sum(waits_ns) > POLICY.waits * wall_ns


def _more_by_workload(points: Sequence[Point], runs: Sequence[Run]) -> dict[str, dict[int, Floats]]:
    """Return how much longer head waits in the pairs of each point, by workload: of plain runs that nobody outside keeps waiting."""
    plain = [run for run in runs if run.phase is Phase.PLAIN and not run.requests]
    more: dict[str, dict[int, Floats]] = {}
    for point in points:
        base, head = pairs_of(*([run for run in plain if (run.point, run.side) == (point.id, side)] for side in Side))
        if base and not point.outside:
            more.setdefault(point.workload, {})[point.id] = _more_of_a_run(base, head)
    return more


def _more_of_a_run(base: Sequence[Run], head: Sequence[Run]) -> Floats:
    """Return how much longer head (n,) waits for anything but a CPU, and takes in all, as parts of base's CPU time: (2, n).

    It is known of runs beside the other side's, on one CPU, as well as of those alone: what a run's process waits for a CPU is not in its
    time. What its children wait is, on both sides alike.
    """
    waited_ns, took_ns = np.array(
        [[(of.wall_ns - of.cpu_ns) - (by.wall_ns - by.cpu_ns), of.wall_ns - by.wall_ns] for by, of in zip(base, head, strict=True)]
    ).T
    return np.array([waited_ns, took_ns]) / max(float(np.median([run.cpu_ns for run in base])), 1.0)


def _are_longer(waited: Floats, material: float, level: float) -> bool:
    """Return whether waits (n,) are longer by a `material` part of a run in the mean, and beyond chance at a `level`.

    Pairs in which they hardly differ tell nothing, however many there are.
    """
    return float(waited.mean()) > material and chance_of_more(waited[np.abs(waited) > material]) <= level
