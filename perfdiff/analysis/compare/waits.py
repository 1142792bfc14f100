"""Waiting of calls other than for a processor or locks: their time minus their CPU time, callees included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.policy import POLICY
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Point, SampleTable

_FEWEST_RUNS = 3  # a side, of which each of head's waits longer than all of base's: by chance once in 20


@dataclass(frozen=True, slots=True)
class Waits:
    """How long a call waits on both sides, in ns, at the point where it waits most in head; `extra_ns` is what it takes longer there."""

    point: str
    base_ns: float
    head_ns: float
    extra_ns: float

    @property
    def more_ns(self) -> float:
        """Return how much longer a call waits."""
        return self.head_ns - self.base_ns


def waits(base: SampleTable, head: SampleTable, points: Sequence[Point]) -> Waits | None:
    """Return how much longer calls wait; None where they do not, clearly, in all runs, or where that is not most of their longer time."""
    if any("cpu_ns" not in table.metrics or "wall_ns" not in table.metrics for table in (base, head)):
        return None
    by_point = [at_point for point in points if (at_point := _at(point, base, head))]
    longest = max(by_point, key=lambda at_point: at_point.more_ns, default=None)
    if longest is None or longest.more_ns < POLICY.least_wait_ns or longest.more_ns < POLICY.most * longest.extra_ns:
        return None
    return longest


def _at(point: Point, base: SampleTable, head: SampleTable) -> Waits | None:
    sides = [_runs(table, point.id) for table in (base, head)]
    if min(len(waited) for waited, _ in sides) < _FEWEST_RUNS:
        return None
    (before, took), (after, takes) = sides
    if after.min() <= before.max() or np.median(after) - np.median(before) < POLICY.asked_about * np.median(took):
        return None
    return Waits(point.label, float(np.median(before)), float(np.median(after)), float(np.median(takes) - np.median(took)))


def _runs(table: SampleTable, point: int) -> tuple[Floats, Floats]:
    """Return how long a call waits, and takes, in the median of each run of a point (r,).

    Clocks of CPU time may say more than a call took: that is no wait, and less of it in head no longer one.
    """
    wall, cpu = table.metrics["wall_ns"], table.metrics["cpu_ns"]
    waited = wall - cpu - np.nan_to_num(table.metrics.get("lock_wait_ns", np.zeros(len(table))))
    timed = (table.point == point) & np.isfinite(waited)
    runs = np.unique(table.run[timed])
    rows = [timed & (table.run == run) for run in runs]
    waits = np.array([max(0.0, np.median(waited[of_run])) for of_run in rows])
    return waits, np.array([np.median(wall[of_run]) for of_run in rows])
