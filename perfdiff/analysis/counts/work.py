"""How much the exact counts of whole runs differ: what no function counts more or less of cannot hide a slow-down of another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff import units
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.counts.tallies import ACCESSES
from perfdiff.analysis.policy import MATERIAL
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.models.prices import LEAST_NS, WORK_NS

WORK = ("blocks", "loads", "stores", "divisions", "alloc_count", "alloc_bytes")
# An allocation costs as much as some hundred basic blocks, not as one: runs that allocate little are not held to a share of that little.
ACCESS_NS = 1.0  # of an access that finds its line, on average at least
FEW_ALLOCATIONS = 100.0
FEW_BYTES = 1e6
FEW_DIVISIONS = 1e4  # take a quarter of a millisecond at most
_FEW = {"divisions": FEW_DIVISIONS, "alloc_count": FEW_ALLOCATIONS, "alloc_bytes": FEW_BYTES}


@dataclass(frozen=True, slots=True)
class Work:
    """What head counts more and less of than base, gross: functions that gained and functions that lost are not set against each other.

    `more` and `less` are the largest shares of a run's count over all points and counters, `waiting` what head fetches more from other
    cores and nodes, priced, as a share of what its accesses take, `outside` what its further calls into libraries and the kernel may take,
    as a share of what its blocks take; `repeats`: all runs of a side counted the same, at least two, which those of several threads seldom
    do.
    """

    more: float
    less: float
    waiting: float
    outside: float
    repeats: bool

    @property
    def is_same(self) -> bool:
        """Return whether no work and no waiting that matters was added anywhere, and none saved that could hide a slow-down."""
        return self.repeats and max(self.more, self.less, self.waiting, self.outside) <= MATERIAL

    @property
    def says(self) -> str:
        """Say it in words."""
        largest = max(self.more, self.less)
        if largest == 0:
            return "exact counts of work are equal in every function"
        return f"exact counts of work differ by {units.significant(100 * largest)} % of a run at most"


def work_of(counted: Ledger | None, points: int, leaving: Mapping[int, Sequence[Departure]]) -> Work | None:
    """Return how the counts of all functions differ, or None where not all of so many `points` were counted on both sides.

    `leaving` are the calls by function that leave the project's code.
    """
    if counted is None or len(counted.points) < points or not points:
        return None
    more, less, repeats = 0.0, 0.0, True
    for point in counted.points:
        base, head = counted.pair(point)
        for counter in WORK:
            if counter not in base.other or counter not in head.other:
                if counter not in _FEW:
                    return None
                continue
            sums = base.other[counter], head.other[counter]
            repeats = repeats and all(len(each) > 1 and not np.ptp(each, axis=0).any() for each in sums)
            before, after = (np.median(each, axis=0) for each in sums)
            whole = max(float(before.sum()), _FEW.get(counter, 1.0))
            more = max(more, float(np.maximum(after - before, 0.0).sum()) / whole)
            less = max(less, float(np.maximum(before - after, 0.0).sum()) / whole)
    return Work(more, less, _waiting(counted), _outside(counted, leaving), repeats)


def _waiting(counted: Ledger) -> float:
    """Return what head's functions fetch more from other cores and nodes, at the least that it costs where there are several of them."""
    shares = [0.0]
    for point in counted.points:
        base, head = counted.pair(point)
        accesses = sum(float(np.median(head.other[name].sum(axis=1))) for name in ACCESSES)
        for counter, price in LEAST_NS.items():
            if counter in base.other and counter in head.other and accesses:
                before, after = (np.median(book.other[counter], axis=0) for book in (base, head))
                shares.append(price * float(np.maximum(after - before, 0.0).sum()) / (ACCESS_NS * accesses))
    return max(shares)


def _outside(counted: Ledger, leaving: Mapping[int, Sequence[Departure]]) -> float:
    """Return what head's further calls of libraries and the kernel may take, against the least that its blocks do, where they do most."""
    dearest = sum((each.dearest_ns for departures in leaving.values() for each in departures), np.zeros(len(counted.points)))
    own = [WORK_NS["blocks"] * float(np.median(counted.pair(point)[1].other["blocks"].sum(axis=1))) for point in counted.points]
    return max((ns / max(least, 1.0) for ns, least in zip(dearest.tolist(), own, strict=True)), default=0.0)
