"""Whole runs that a clock ends: they last as long whatever they get of a CPU, so that what they take tells nothing of the program.

What a program does with given inputs takes its CPU time, and what it waits for a CPU is added to that: how long runs last varies by no
less than what they compute. Where a clock ends runs, a longer wait for a CPU leaves as much less to compute, and how long they last hardly
varies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfdiff.analysis.policy import POLICY
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Phase, Run


def points_ended_by_a_clock(runs: Sequence[Run]) -> frozenset[int]:
    """Return the points at which the plain runs of a side last as long whatever they have of a CPU."""
    by_side: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        if run.phase is Phase.PLAIN and not run.requests:
            by_side.setdefault((run.point, run.side.value), []).append(run)
    return frozenset(point for (point, _), alike in by_side.items() if _last_as_long(alike))


def _last_as_long(runs: Sequence[Run]) -> bool:
    """Return whether most runs keep a CPU busy whenever they have one, and last as long whatever they have of it."""
    if len(runs) < POLICY.clockwork_runs:
        return False
    cpu_ns, wall_ns, delay_ns = np.array([[run.cpu_ns, run.wall_ns, run.delay_ns] for run in runs]).T
    if not delay_ns.any() or np.median(np.abs(wall_ns - cpu_ns) / (wall_ns + delay_ns)) > POLICY.waits:
        return False
    lasting, computed = _deviation(wall_ns + delay_ns), _deviation(cpu_ns)
    return lasting < POLICY.clockwork * computed and computed > POLICY.clockwork_noise * float(np.median(cpu_ns))


def _deviation(values: Floats) -> float:
    """Return by how much most values (n,) differ from their median at most: a few runs are disturbed by more."""
    return float(np.quantile(np.abs(values - np.median(values)), POLICY.clockwork_most))
