"""What a call is made of at inputs that were not measured: the caller's own time, and its callees' calls, times what each of them takes.

Each is learnt by itself from the runs, as a series of the caller's inputs, and composed anew (Freud's composition of annotations, §8): a
callee that is called once for each of n elements and takes log n at each call makes n log n of its caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.annotations.runtable import of_runs
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Book, Ledger
from perfdiff.models.extrapolation import Forecast
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Experiment, Feature, SampleTable, Side

Predict = Callable[[SampleTable, int], Forecast | None]  # of a table with one metric, the `version` of its draws


@dataclass(frozen=True, slots=True)
class CalleePart:
    """A callee's part of a call of its caller: how many `calls` there are of it, and what `each` takes, callees included, in ns."""

    function: str
    calls: Forecast
    each: Forecast

    @property
    def draws(self) -> Floats:
        """Return draws of what all its calls take."""
        return self.calls.draws * self.each.draws


@dataclass(frozen=True, slots=True)
class Composition:
    """What a call is made of: its `own` time in ns, and its callees, the largest first; those of no weight in any run are left out."""

    own: Forecast
    callees: tuple[CalleePart, ...]

    @property
    def draws(self) -> Floats:
        """Return draws of what the parts take together."""
        return np.asarray(self.own.draws + sum(callee.draws for callee in self.callees))


def composed(  # noqa: PLR0913, PLR0917 (what was measured, of whom, and who predicts)
    experiment: Experiment, ledger: Ledger, side: Side, function: int, samples: SampleTable, predict: Predict
) -> Composition | None:
    """Return what calls of a function are made of; None where a part is not known.

    `samples` are calls of it, which tell their inputs in each run. Where it calls itself, calls from outside are meant.
    """
    series = _Series.of(experiment, ledger, side, ledger.place[function], samples)
    own = predict(series.table("self_ns", series.own_ns), 0) if series else None
    if series is None or own is None:
        return None
    names = {ledger.place[info.id]: info.name for info in experiment.functions}
    callees = []
    for version, column in enumerate(series.callees(), start=1):
        calls, each_ns = series.of_callee(column)
        parts = predict(series.table("callee_calls", calls), version), predict(series.table("wall_ns", each_ns), version)
        if parts[0] is None or parts[1] is None:
            return None
        callees.append(CalleePart(names[column], parts[0], parts[1]))
    return Composition(own, tuple(sorted(callees, key=lambda callee: -float(np.median(callee.draws)))))


@dataclass(frozen=True, slots=True)
class _Series:
    """Runs of all points in which a function, of a `column` of their books, was called, with its mean `inputs` (r, k) there.

    `books` are those of points with the rows of these runs, and how often the function was called from outside in each.
    """

    experiment: Experiment
    side: Side
    column: int
    books: tuple[tuple[Book, Ints, Floats], ...]
    features: tuple[Feature, ...]
    inputs: Floats

    @classmethod
    def of(cls, experiment: Experiment, ledger: Ledger, side: Side, column: int, samples: SampleTable) -> _Series | None:
        """Return the runs that sampled calls tell the inputs of; None where there are none."""
        sampled = set(samples.run.tolist())
        books = []
        for point in ledger.points:
            book = ledger.books[point, side]
            outer = book.calls[:, column] - book.edges.get((column, column), 0.0)
            rows = np.array([row for row, run in enumerate(book.runs) if run.id in sampled and outer[row] > 0], dtype=np.int64)
            books.append((book, rows, outer[rows]))
        runs = [book.runs[row].id for book, rows, _ in books for row in rows.tolist()]
        return cls(experiment, side, column, tuple(books), *_inputs(samples, runs)) if runs else None

    @property
    def own_ns(self) -> Floats:
        """Return what a call takes itself in each run (r,)."""
        return np.concatenate([book.self_ns[rows, self.column] / outer for book, rows, outer in self.books])

    def callees(self) -> list[int]:
        """Return the columns of callees that take a part of a call's time worth a word, at some point."""
        shares: dict[int, float] = {}
        for book, _, _ in self.books:
            whole_ns = max(float(np.median(book.wall_ns[:, self.column])), 1.0)
            for (to, by), ns in book.edges_ns.items():
                if by == self.column != to:
                    shares[to] = max(shares.get(to, 0.0), float(np.median(ns)) / whole_ns)
        return [to for to, share in shares.items() if share >= POLICY.material]

    def of_callee(self, to: int) -> tuple[Floats, Floats]:
        """Return how often a call calls another function in each run (r,), and what each of these takes; NaN where there is none."""
        calls, each_ns = [], []
        for book, rows, outer in self.books:
            nothing = np.zeros(len(book.runs))
            edges, ns = (pairs.get((to, self.column), nothing)[rows] for pairs in (book.edges, book.edges_ns))
            calls.append(edges / outer)
            each_ns.append(np.divide(ns, edges, out=np.full(len(rows), np.nan), where=edges > 0))
        return np.concatenate(calls), np.concatenate(each_ns)

    def table(self, metric: str, values: Floats) -> SampleTable:
        """Return the runs as rows, with a value of each that is known, and the function's inputs there."""
        runs = [book.runs[row] for book, rows, _ in self.books for row in rows.tolist()]
        table = of_runs(self.experiment, runs, values.tolist(), self.side, metric)
        return replace(table, features=self.features, values=self.inputs).rows(np.flatnonzero(np.isfinite(values)))


def _inputs(samples: SampleTable, runs: Sequence[int]) -> tuple[tuple[Feature, ...], Floats]:
    """Return the features that tell runs' inputs, with their values (r, k): means of numbers, and categories that do not vary."""
    rows_by_run = [samples.run == run for run in runs]
    features, columns = [], []
    for place, feature in enumerate(samples.features):
        values = samples.values[:, place]
        if not (feature.category and any(len(np.unique(values[rows])) > 1 for rows in rows_by_run)):
            features.append(feature)
            columns.append([float(np.average(values[rows], weights=samples.weight[rows])) for rows in rows_by_run])
    return tuple(features), np.array(columns).reshape(len(features), len(runs)).T
