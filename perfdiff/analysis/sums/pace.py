"""The pace of timed runs: how much slower than usual each was, by the functions that the change leaves alone.

Clock rates, neighbours and the state of caches slow a whole run, and so all of its functions. What unchanged functions of the same process
took longer is taken off a function's time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.stats.inference import Bools, Group, Pair, contrast
from perfdiff.analysis.sums.ledger import Book, Ledger
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import Floats, FunctionInfo, SampleTable, Side

FEWEST = 5  # functions, of which two may be out of the common pace without moving the median much
LEAST_SHARE = 0.005  # of a run: sums of less time vary with single interrupts, not with the run
# Level at which base's and head's common pace differ: then the change made unchanged functions slower or faster, which is not taken off.
APART = 0.05
# The pace is taken off where that leaves less than this part of the variance within a side: a function that waits has a pace of its own.
NARROWER = 0.9
TIMES = ("self_ns", "wall_ns")


@dataclass(frozen=True, slots=True)
class Pace:
    """`logs` (r, f) by point and side: the logarithm of how many times as long as usual a run took.

    It is 0 for functions that the pace says nothing of. `runs` are the ids of the runs by point and side, `place` maps functions to
    columns.
    """

    logs: Mapping[tuple[int, Side], Floats]
    runs: Mapping[tuple[int, Side], tuple[int, ...]]
    place: Mapping[int, int]

    def taken_off(self, ledger: Ledger) -> Ledger:
        """Return the ledger with all times as they would be at the usual pace."""
        books = dict(ledger.books)
        for key, logs in self.logs.items():
            usual = np.exp(-logs)
            books[key] = replace(books[key], self_ns=books[key].self_ns * usual, wall_ns=books[key].wall_ns * usual)
        return replace(ledger, books=books)

    def taken_off_calls(self, samples: Samples) -> Samples:
        """Return the same loader with the times of calls as they would be at the usual pace."""
        return _Paced(samples, self) if self.logs else samples

    def of(self, function: int, side: Side) -> dict[int, float]:
        """Return the logarithm by which runs are slower than usual, by run; of a function that the pace says something of."""
        column = self.place[function]
        found: dict[int, float] = {}
        for (point, of), logs in self.logs.items():
            if of is side and logs[:, column].any():
                found.update(zip(self.runs[point, of], logs[:, column].tolist(), strict=True))
        return found


@dataclass(frozen=True, slots=True)
class _Paced:
    """A loader of sample tables, which processes that study functions are given."""

    samples: Samples
    pace: Pace

    def __call__(self, function: int, side: Side) -> SampleTable | None:
        table = self.samples(function, side)
        slower = self.pace.of(function, side)
        if table is None or not slower:
            return table
        runs, member = np.unique(table.run, return_inverse=True)
        usual = np.exp([-slower.get(run, 0.0) for run in runs.tolist()])[member]
        return replace(table, metrics={**table.metrics, **{name: table.metrics[name] * usual for name in TIMES if name in table.metrics}})


def pace_of(ledger: Ledger, functions: Sequence[FunctionInfo]) -> Pace:
    """Return the pace of the ledger's runs; `functions` are those of its columns."""
    left_alone = np.array([not info.change.is_suspect for info in functions], dtype=bool)
    logs = {}
    for point in ledger.points:
        found = _at(ledger.pair(point), left_alone)
        if found is not None:
            logs.update({(point, side): each for side, each in zip(Side, found, strict=True) if each.any()})
    return Pace(logs, {key: tuple(run.id for run in ledger.books[key].runs) for key in logs}, ledger.place)


def _at(books: tuple[Book, Book], left_alone: Bools) -> tuple[Floats, Floats] | None:
    """Return the pace of both sides' runs at a point, (r, f) each; None where too few functions tell it, or the sides' clearly differ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        a_call = [np.log(book.self_ns / book.calls) for book in books]
        usual = np.mean([np.median(each, axis=0) for each in a_call], axis=0)
        off = [each - usual for each in a_call]
    known = np.isfinite(np.concatenate(off)).all(axis=0)
    calls = np.concatenate([book.calls for book in books])
    material = np.median(books[0].self_ns, axis=0) >= LEAST_SHARE * books[0].cost_ns
    tell = np.flatnonzero(left_alone & known & material & (calls.min(axis=0) == calls.max(axis=0)))
    if len(tell) < FEWEST or min(len(book.runs) for book in books) < 2:
        return None
    common = [np.median(each[:, tell], axis=1) for each in off]
    seen = contrast([Pair(*(Group(each, book.blocks) for each, book in zip(common, books, strict=True)))])
    if seen is None or seen.p <= APART:
        return None
    found = tuple(np.zeros_like(each) for each in off)
    for column in np.flatnonzero(known):
        others = tell[tell != column]
        if len(others) < FEWEST:
            continue
        pace = common if len(others) == len(tell) else [np.median(each[:, others], axis=1) for each in off]
        own = [each[:, column] for each in off]
        if _within([mine - its for mine, its in zip(own, pace, strict=True)]) < NARROWER * _within(own):
            for side, its in zip(found, pace, strict=True):
                side[:, column] = its
    return found[0], found[1]


def _within(sides: Sequence[Floats]) -> float:
    """Return the sum of squares within sides."""
    return float(sum(((side - side.mean()) ** 2).sum() for side in sides))
