"""The pace of timed runs: how much slower than usual each was, by the functions that the change leaves alone.

Clock rates, neighbours and the state of caches slow a whole run, and so all of its functions. What unchanged functions of the same process
took longer is taken off a function's time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.stats.inference import contrast
from perfdiff.analysis.stats.runs import Group, PointRuns
from perfdiff.analysis.sums.ledger import Book, Ledger
from perfdiff.config import RUNS_FOR_TIME
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import FunctionInfo, SampleTable, Side

FEWEST = 5  # functions, of which two may be out of the common pace without moving the median much
LEAST_SHARE = 0.005  # of a run: sums of less time vary with single interrupts, not with the run
# Level at which base's and head's common pace differ: then the change made unchanged functions slower or faster, which is not taken off.
APART = 0.05
# The pace is taken off where that leaves less than this part of the variance within a side: a function that waits has a pace of its own.
NARROWER = 0.9
TIMES = ("self_ns", "wall_ns")


@dataclass(frozen=True, slots=True)
class RunPace:
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
        return _PacedSamples(samples, self) if self.logs else samples

    def of(self, function: int, side: Side) -> dict[int, float]:
        """Return the logarithm by which runs are slower than usual, by run; of a function that the pace says something of."""
        column = self.place[function]
        logs_by_run: dict[int, float] = {}
        for (point, of), logs in self.logs.items():
            if of is side and logs[:, column].any():
                logs_by_run.update(zip(self.runs[point, of], logs[:, column].tolist(), strict=True))
        return logs_by_run


@dataclass(frozen=True, slots=True)
class _PacedSamples:
    """A loader of sample tables, which processes that study functions are given."""

    samples: Samples
    pace: RunPace

    def __call__(self, function: int, side: Side) -> SampleTable | None:
        table = self.samples(function, side)
        slower = self.pace.of(function, side)
        if table is None or not slower:
            return table
        runs, member = np.unique(table.run, return_inverse=True)
        usual = np.exp([-slower.get(run, 0.0) for run in runs.tolist()])[member]
        return replace(table, metrics={**table.metrics, **{name: table.metrics[name] * usual for name in TIMES if name in table.metrics}})


@dataclass(frozen=True, slots=True)
class _FunctionPaces:
    """The runs of a point on both sides: `off` (r, f), by how much each function is slower than usual, `known` (f,) where that is a number.

    `tell` are the columns of the functions that tell the pace, and `common` what they say of each run.
    """

    off: tuple[Floats, Floats]
    known: Bools
    tell: Ints
    common: PointRuns


def pace_of(ledger: Ledger, functions: Sequence[FunctionInfo]) -> RunPace:
    """Return the pace of the ledger's runs; `functions` are those of its columns.

    There is none where base's and head's clearly differ, at all points together or at one.
    """
    left_alone = np.array([not info.change.is_suspect for info in functions], dtype=bool)
    measured = {point: at_point for point in ledger.points if (at_point := _measured(ledger.pair(point), left_alone)) is not None}
    logs = {}
    if not _differs([at_point.common for at_point in measured.values()]):
        for point, at_point in measured.items():
            if not _differs([at_point.common]):
                logs.update({(point, side): side_logs for side, side_logs in zip(Side, _logs(at_point), strict=True) if side_logs.any()})
    return RunPace(logs, {key: tuple(run.id for run in ledger.books[key].runs) for key in logs}, ledger.place)


def _measured(books: tuple[Book, Book], left_alone: Bools) -> _FunctionPaces | None:
    """Return how much slower than usual the functions of each run were, None where too few of them, or too few runs, tell it.

    Runs of both sides that were made at the same time have one pace by themselves.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        base, head = (np.log(book.self_ns / book.calls) for book in books)
        usual = (np.median(base, axis=0) + np.median(head, axis=0)) / 2
        off = base - usual, head - usual
    finite = np.isfinite(np.concatenate(off)).all(axis=0)
    calls = np.concatenate([book.calls for book in books])
    material = np.median(books[0].self_ns, axis=0) >= LEAST_SHARE * books[0].cost_ns
    tell = np.flatnonzero(left_alone & finite & material & (calls.min(axis=0) == calls.max(axis=0)))
    if len(tell) < FEWEST or min(len(book.runs) for book in books) < RUNS_FOR_TIME or all(book.are_together for book in books):
        return None
    common = PointRuns(*(Group(_of_a_run(off_side, tell), book.blocks, book.machines) for off_side, book in zip(off, books, strict=True)))
    return _FunctionPaces(off, finite, tell, common)


def _differs(common: Sequence[PointRuns]) -> bool:
    """Return whether what runs have in common clearly differs between base and head: then it is not the machine's alone."""
    seen = contrast(common)
    return seen is not None and seen.p <= APART


def _logs(function_paces: _FunctionPaces) -> tuple[Floats, Floats]:
    """Return the pace of both sides' runs, (r, f) each, by the other functions; 0 for functions that do not keep it."""
    paces = np.zeros_like(function_paces.off[0]), np.zeros_like(function_paces.off[1])
    for column in np.flatnonzero(function_paces.known):
        others = function_paces.tell[function_paces.tell != column]
        if len(others) < FEWEST:
            continue
        pace = [_of_a_run(side, others) for side in function_paces.off]
        own = [side[:, column] for side in function_paces.off]
        if _within([mine - its for mine, its in zip(own, pace, strict=True)]) < NARROWER * _within(own):
            for side, its in zip(paces, pace, strict=True):
                side[:, column] = its
    return paces


def _of_a_run(off: Floats, tell: Ints) -> Floats:
    """Return by how much each run is slower than usual, (r,), the median over functions."""
    medians: Floats = np.median(off[:, tell], axis=1)
    return medians


def _within(sides: Sequence[Floats]) -> float:
    """Return the sum of squares within sides."""
    return float(sum(((side - side.mean()) ** 2).sum() for side in sides))
