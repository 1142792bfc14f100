"""What the first calls of a run cost beside later ones: what is done once, such as loading classes, imports, or compiling hot code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.compare.phases import PhasedTables
from perfdiff.analysis.policy import POLICY
from perfdiff.models.middle import median
from perfdiff.models.warmup import joined
from perfdiff.records.schema import SampleTable

METRIC = "self_ns"


@dataclass(frozen=True, slots=True)
class FirstCalls:
    """What each of a thread's first `calls` takes of its own on both sides, and later ones, in ns, at the point where most is added.

    `extra_ns` is what the first ones take more, beyond what as many later ones do, in one run of each point.
    """

    calls: int
    base_ns: float
    head_ns: float
    later_base_ns: float
    later_head_ns: float
    extra_ns: float

    def make_most_of(self, extra_ns: float) -> bool:
        """Return whether most of what one run of each point takes more is in its first calls."""
        return 0 < POLICY.most * extra_ns <= self.extra_ns


@dataclass(frozen=True, slots=True)
class _FirstCallTimes:
    """What first calls take at one point on one side, later ones on average, and how many threads a run has."""

    first_ns: float
    later_ns: float
    threads: float


def first_calls(of: PhasedTables) -> FirstCalls | None:
    """Return what first calls cost on both sides: those that warm up, else the very first; None where they or later ones are unknown."""
    warm_up = joined(list(of.warm_up.values()))
    calls = warm_up.calls if warm_up is not None else 1
    by_point: list[tuple[float, _FirstCallTimes, _FirstCallTimes]] = []
    for point in np.intersect1d(of.base.point, of.head.point).tolist():
        before, after = (_side(table, point, calls) for table in of.tables)
        if before is not None and after is not None:
            extra_ns = after.threads * calls * (after.first_ns - before.first_ns - (after.later_ns - before.later_ns))
            by_point.append((extra_ns, before, after))
    if not by_point:
        return None
    _, before, after = max(by_point, key=lambda costs: costs[0])
    return FirstCalls(calls, before.first_ns, after.first_ns, before.later_ns, after.later_ns, sum(extra_ns for extra_ns, *_ in by_point))


def _side(table: SampleTable, point: int, calls: int) -> _FirstCallTimes | None:
    costs = table.metrics.get(METRIC)
    if costs is None:
        return None
    here = (table.point == point) & np.isfinite(costs)
    first, later = here & (table.call <= calls), here & (table.call > calls)
    runs, place = np.unique(table.run[first], return_inverse=True)
    if not later.any() or not len(runs) or len(runs) < POLICY.most * len(np.unique(table.run[here])):
        return None
    of_runs = np.bincount(place, weights=costs[first]) / np.bincount(place)
    threads = len(np.unique(np.column_stack([table.run[first], table.thread[first]]), axis=0)) / len(runs)
    return _FirstCallTimes(median(of_runs), float(np.average(costs[later], weights=table.weight[later])), threads)
