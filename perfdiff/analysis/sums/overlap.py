"""Calls of several threads that lie beside each other: what they take by the clock, added up, is more than any run takes.

A thread that waits for another one, or for a processor that others have, waits in its calls, and all threads that do so wait at once. Where
the processor time of runs grows as their time does, it is what a change adds; waits that come with it are told by no sum.
"""

from __future__ import annotations

import numpy as np

from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Book, Ledger
from perfdiff.records.arrays import Floats


def cpu_parts(ledger: Ledger) -> Floats:
    """Return by point (points,) which part of what calls take longer by the clock is processor time; 1 where calls do not overlap."""
    return np.array([_cpu_part(*ledger.pair(point)) for point in ledger.points])


def _cpu_part(base: Book, head: Book) -> float:
    if not (base.runs and head.runs):
        return 1.0
    (took_base, cpu_base, own_base), (took_head, cpu_head, own_head) = _medians(base), _medians(head)
    grows_alike = np.log(cpu_head / cpu_base) >= POLICY.most * np.log(took_head / took_base)
    extra_cpu, extra_own = cpu_head - cpu_base, own_head - own_base
    do_overlap, do_wait = own_head > (1 + POLICY.waits) * took_head, extra_cpu < (1 - POLICY.waits) * extra_own
    return extra_cpu / extra_own if do_overlap and do_wait and grows_alike and extra_cpu > 0 else 1.0


def _medians(book: Book) -> tuple[float, float, float]:
    """Return what a run takes by the clock, of processors, and in all its calls' own time, in ns."""
    took, cpu = ([value for run in book.runs if (value := getattr(run, name)) > 0] or [1.0] for name in ("took_ns", "cpu_ns"))
    return float(np.median(took)), float(np.median(cpu)), float(np.median(book.self_ns.sum(axis=1)))
