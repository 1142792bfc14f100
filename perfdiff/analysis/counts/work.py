"""How much the exact counts of whole runs differ, without setting one function's savings against another's extra work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.counts.library import Departure, departures
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Book, Ledger, open_counts
from perfdiff.config import CompareConfig
from perfdiff.models.prices import LEAST_NS, WORK_NS
from perfdiff.models.workcounter import WorkCounter, is_bounded, work_counters
from perfdiff.records.metrics import ACCESSES
from perfdiff.records.schema import Experiment

# An allocation costs as much as some hundred basic blocks, not as one: runs that allocate little are not held to a share of that little.
ACCESS_NS = 1.0  # of an access that finds its line, on average at least
_FEW: Mapping[str, float] = {"divisions": POLICY.few_divisions, "alloc_count": POLICY.few_allocations, "alloc_bytes": POLICY.few_bytes}


@dataclass(frozen=True, slots=True)
class WorkDifference:
    """What head counts more and less of than base, gross: functions that gained and functions that lost are not set against each other.

    `more` and `less` are the largest shares of a run's count over all points and counters, `waiting` what head fetches more from other
    cores and nodes, priced, as a share of what its accesses take, `outside` what its further calls into libraries and the kernel may take,
    as a share of what its own code takes; `repeats`: all runs of a side counted the same, at least two, which those of several threads
    seldom do. `is_bounded`: what was counted of the program's own code bounds the time that it takes. `parts` are head's counts of its own
    code over base's, by point: the largest of all counters.
    """

    more: float
    less: float
    waiting: float
    outside: float
    repeats: bool
    is_bounded: bool
    parts: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_same(self) -> bool:
        """Return whether no work and no waiting that matters was added anywhere, and none saved that could hide a slow-down."""
        return self.repeats and max(self.more, self.less, self.waiting, self.outside) <= POLICY.material

    @property
    def adds_nothing(self) -> bool:
        """Return whether no work and no waiting that matters was added, as far as was counted: runs of several threads seldom repeat."""
        return self.is_bounded and max(self.more, self.waiting, self.outside) <= POLICY.material

    @property
    def excludes_more(self) -> bool:
        """Return whether that alone says that nothing was added but what places of code and data make.

        Lines that are executed as often may each do more, and only runs tell.
        """
        return self.is_same and self.is_bounded

    @property
    def says(self) -> Claim:
        """Tell by how much of a run exact counts differ at most."""
        return claim("exact-counts", share=max(self.more, self.less))


def is_same_work(work: WorkDifference | None) -> bool:
    """Return whether exact counts say that head does what base does; None says nothing."""
    return work is not None and work.is_same


def does_same_work(experiment: Experiment, points: int, config: CompareConfig) -> bool:
    """Return whether all functions have the same counts on both sides at that many points."""
    return is_same_work(work_of(open_counts(experiment), points, departures(experiment, config)))


def work_of(counted: Ledger | None, points: int, leaving: Mapping[int, Sequence[Departure]]) -> WorkDifference | None:
    """Return how the counts of all functions differ, None unless all `points` were counted on both sides.

    `leaving` are the calls by function that leave the project's code.
    """
    if counted is None or len(counted.points) < points or not points:
        return None
    own = _own_work(counted)
    needed = tuple(name for counter in own for name in (counter.metric, *counter.beside))
    if not needed or not all(name in book.other for name in needed for book in counted.books.values()):
        return None
    more, less, repeats = 0.0, 0.0, True
    for point in counted.points:
        base, head = counted.pair(point)
        for counter in (*needed, *_FEW):
            if counter not in base.other or counter not in head.other:
                continue
            sums = base.other[counter], head.other[counter]
            repeats = repeats and all(len(values) > 1 and not np.ptp(values, axis=0).any() for values in sums)
            before, after = (np.median(values, axis=0) for values in sums)
            whole = max(float(before.sum()), _FEW.get(counter, 1.0))
            more = max(more, float(np.maximum(after - before, 0.0).sum()) / whole)
            less = max(less, float(np.maximum(before - after, 0.0).sum()) / whole)
    bounded, parts = is_bounded({counter.metric for counter in own}), {point: _part(counted, point, own) for point in counted.points}
    return WorkDifference(more, less, _waiting(counted), _outside(counted, leaving, own), repeats, bounded, parts)


def _part(counted: Ledger, point: int, own: Sequence[WorkCounter]) -> float:
    """Return head's work at a point over base's, by the counter that differs least."""
    base, head = counted.pair(point)
    return max(_run_sum(head, counter.metric) / max(_run_sum(base, counter.metric), 1.0) for counter in own)


def _own_work(counted: Ledger) -> tuple[WorkCounter, ...]:
    """Return what measures the work of the program's own code; of a program without an interpreter, no run counts any line."""
    return work_counters({name for book in counted.books.values() for name, sums in book.other.items() if sums.any()})


def _waiting(counted: Ledger) -> float:
    """Return what head's functions fetch more from other cores and nodes, at the least that it costs where there are several of them."""
    shares = [0.0]
    for point in counted.points:
        base, head = counted.pair(point)
        accesses = sum(_run_sum(head, name) for name in ACCESSES if name in head.other)
        for counter, price in LEAST_NS.items():
            if counter in base.other and counter in head.other and accesses:
                before, after = (np.median(book.other[counter], axis=0) for book in (base, head))
                shares.append(price * float(np.maximum(after - before, 0.0).sum()) / (ACCESS_NS * accesses))
    return max(shares)


def _outside(counted: Ledger, leaving: Mapping[int, Sequence[Departure]], work: Sequence[WorkCounter]) -> float:
    """Return what head's further calls of libraries and the kernel may take, against the least of its own work, where they do most."""
    dearest = sum((departure.dearest_ns for departures in leaving.values() for departure in departures), np.zeros(len(counted.points)))
    own = [sum(WORK_NS[counter.metric] * _run_sum(counted.pair(point)[1], counter.metric) for counter in work) for point in counted.points]
    return max((ns / max(least, 1.0) for ns, least in zip(dearest.tolist(), own, strict=True)), default=0.0)


def _run_sum(book: Book, counter: str) -> float:
    return float(np.median(book.other[counter].sum(axis=1)))
