"""Runs that end by the clock, as those of most frameworks for benchmarks: where calls take longer they make fewer, and last as long."""

from __future__ import annotations

import numpy as np

from perfdiff.analysis.compare.judgement import Direction
from perfdiff.analysis.sums.ledger import Book
from perfdiff.analysis.verdicts.case import Case

REPEATED = 0.5  # of a run's CPU time at the least takes what it repeats until its time is over
LEAST_RUNS = 3  # a side, to tell whether calls repeat


def is_slower_by_the_clock(case: Case) -> bool:
    """Return whether a function's calls take longer at equal inputs where runs end by the clock, so that neither run nor sum shows it.

    What a program does with given inputs it does as often in each run; where a clock ends it, hardly two runs make as many calls. So both
    sides' calls vary from run to run, all runs of head make materially fewer than any of base, and all calls together take as long as
    before, most of a run. Calls that wait for something take more than the run's CPU time, and are fewer where each waits for more.
    """
    if Direction.UP not in map(case.direction, ("self_ns", "wall_ns")):
        return False
    column, least = case.ledger.place[case.info.id], 1 + case.config.min_effect
    return any(_are_fewer_for_as_long(*case.ledger.pair(point), column, least) for point in case.ledger.points)


def _are_fewer_for_as_long(base: Book, head: Book, column: int, least: float) -> bool:
    calls = [book.calls[:, column] for book in (base, head)]
    if min(map(len, calls)) < LEAST_RUNS or any(np.ptp(each) == 0 for each in calls) or calls[1].max() * least >= calls[0].min():
        return False
    took = [float(np.median(book.wall_ns[:, column])) for book in (base, head)]
    ran = [float(np.median([run.cpu_ns for run in book.runs])) for book in (base, head)]
    works = all(REPEATED * cpu <= each <= least * cpu for each, cpu in zip(took, ran, strict=True))
    return works and max(took) <= least * min(took)
