"""What the inputs leave unexplained of a call's counters: the rows that detectors see.

Detectors on raw counters mostly see inputs; with known features taken out first, the same detectors miss half as much (measured on
programs with sharing defects). So each counter is brought to one scale, what base's annotations foretell of it is taken off, and what is
left is divided by its spread among base's calls of like size and as many threads: the same numbers for both versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from perfdiff.models.annotation import Annotation
from perfdiff.models.fitting import fit
from perfdiff.models.observations import columns_of
from perfdiff.models.prices import usual_ns
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.metrics import WITHIN
from perfdiff.records.schema import SampleTable

# What measures the work of a call, first come first served, with the ns that a unit usually takes at most on a current processor.
VOLUMES: Mapping[str, float] = {
    "blocks": 1.0,
    "PAPI_TOT_INS": 0.3,
    "perf::INSTRUCTIONS": 0.3,
    "perf::PERF_COUNT_HW_INSTRUCTIONS": 0.3,
    "INST_RETIRED": 0.3,
    "bytecode_blocks": 1.0,
    "opcodes": 10.0,
    "lines": 100.0,
    "wall_ns": 1.0,
}
THREADS = "threads"
# Annotations are learnt from at most this many calls; they only need to follow the inputs, what they miss is centred by cells.
FIT_ROWS = 500
# A call this far outside the range of inputs that an annotation was learnt from is not foretold.
BEYOND = 0.1
_OCTAVES = 4096  # more than any count has
_MOST_THREADS = 2.0**20
# Calls of like size that say what is usual there: annotations do not follow the step where data outgrow a cache.
NEIGHBOURS = 50
# A cell has a centre and a spread of its own from so many calls of so many runs on.
CELL_ROWS = 20
CELL_RUNS = 3
# The spread spans this share of the calls: it sees a mode of one call in twenty, and not the one call in a hundred that met a cold cache.
SPANNED = 0.95
SPANNED_DEVIATIONS = 3.92
# Calls further out are pulled in to here before a detector learns from them, lest a few decide what is normal.
OUTERMOST = 5.0


@dataclass(frozen=True, slots=True)
class Residuals:
    """What is left of c counters of n calls, (n, c): the logarithm of what a call costs by them over what it should.

    `levels` (n, c) are what the counters themselves cost, before anything was taken off: a call's signature (AutoPerf §4.3.3).
    `sizes` (n,) order calls by threads, then by the logarithm of the work that base expects of them; `cells` are octaves of it. `known`
    (n,) tells where base's annotations hold. `counts` and `expected` (n, c)
    are the events behind them, each counted once (`apart`).
    """

    values: Floats
    levels: Floats
    sizes: Floats
    known: Bools
    counts: Floats
    expected: Floats

    @property
    def cells(self) -> Ints:
        """Return what calls of like size, to an octave, and as many threads have in common (n,)."""
        return np.floor(self.sizes).astype(np.int64)

    def rows(self, which: Ints) -> Residuals:
        """Return some of the calls."""
        return Residuals(*(getattr(self, field.name)[which] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Expectation:
    """Base's annotations of the counters, which foretell a call's counts from its inputs; a float for a counter that never varies.

    `volume` is the counter of `VOLUMES` that the others are normalised by, as AutoPerf does by instructions (§4.2). A call's counts are
    those of its own thread; the number of threads is one of its inputs.
    """

    counters: tuple[str, ...]
    volume: str
    annotations: Mapping[str, Annotation | float]

    @classmethod
    def learn(cls, table: SampleTable, counters: tuple[str, ...], *, seed: int) -> Self:
        """Learn from base's calls; `counters`, one of which is a volume, are finite in every row."""
        volume = next(name for name in VOLUMES if name in counters)
        places = np.unique(np.linspace(0, len(table) - 1, FIT_ROWS).round().astype(np.int64))
        sparse = table.rows(places)
        annotations: dict[str, Annotation | float] = {}
        for name in counters:
            column = apart(table, name)
            searched = replace(sparse, metrics={name: column[places]})
            annotations[name] = fit(searched, name, seed=seed) if np.ptp(column) > 0 else float(column[0])
        return cls(counters, volume, annotations)

    def residuals(self, table: SampleTable) -> Residuals:
        """Return the residuals of the counters of some calls.

        A counter's share of a call's time is at most u = count · its dearest price / (volume · the volume's price), and the residual is
        log(1 + u) less the same of what was expected. It so tells what the call's cost may have grown by: from 0 to 1 in 10⁵ blocks is
        nothing, from 0 to 1000 in as many is glaring. Of the volume itself it is the logarithm of actual over expected.
        """
        columns = columns_of(table)
        counts = np.column_stack([apart(table, name) for name in self.counters])
        expected = np.column_stack([self._expected(name, columns, len(table)) for name in self.counters])
        at = self.counters.index(self.volume)
        actual, foretold = np.maximum(counts[:, at], 1.0), np.maximum(expected[:, at], 1.0)
        prices = np.array([usual_ns(name) for name in self.counters]) / VOLUMES[self.volume]
        levels = np.log1p(counts * prices / actual[:, None])
        values = levels - np.log1p(expected * prices / foretold[:, None])
        values[:, at] = np.log(actual / foretold)
        threads = np.clip(np.nan_to_num(columns.get(THREADS, np.zeros(len(table)))), 0.0, _MOST_THREADS)
        return Residuals(
            values=values,
            levels=levels,
            sizes=threads * _OCTAVES + np.log2(np.nan_to_num(foretold, nan=1.0)),
            known=np.isfinite(values).all(axis=1) & self._within(columns, len(table)),
            counts=counts,
            expected=expected,
        )

    def _expected(self, name: str, columns: Mapping[str, Floats], rows: int) -> Floats:
        annotation = self.annotations[name]
        if isinstance(annotation, float):
            return np.full(rows, annotation)
        return np.maximum(np.broadcast_to(annotation.predict(columns), rows), 0.0)

    def _within(self, columns: Mapping[str, Floats], rows: int) -> Bools:
        within = np.ones(rows, dtype=bool)
        for annotation in self.annotations.values():
            for feature, (low, high) in () if isinstance(annotation, float) else annotation.ranges.items():
                column, slack = columns.get(feature, np.array(np.nan)), BEYOND * (high - low)
                within &= ~((column < low - slack) | (column > high + slack))
        return within


def apart(table: SampleTable, counter: str) -> Floats:
    """Return a counter's events (n,) without those that another counter of the table names more exactly."""
    named = [table.metrics[other] for other in WITHIN.get(counter, ()) if other in table.metrics]
    return np.maximum(table.metrics[counter] - np.nansum(named, axis=0), 0.0) if named else table.metrics[counter]


@dataclass(frozen=True, slots=True)
class ResidualScale:
    """What base's residuals are about, by neighbours in size, and how far they spread, by cells.

    `sizes` (m,) of base's calls are sorted; `sums` (m + 1, c) are their residuals added up. `spreads` (k + 1, c) belong to the sorted
    `cells` (k,), the last to calls of all other cells.
    """

    sizes: Floats
    sums: Floats
    cells: Ints
    spreads: Floats
    slack: float

    @classmethod
    def learn(cls, residuals: Residuals, runs: Ints, *, slack: float) -> Self:
        """Learn from calls of base. No spread is below `slack`: exact counts have none, and differences below it do not matter."""
        order = np.argsort(residuals.sizes, kind="stable")
        sizes, values, runs = residuals.sizes[order], residuals.values[order], runs[order]
        sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
        centred = values - _local_means(sizes, sums, sizes)
        cells = residuals.cells[order]
        own = [cell for cell in np.unique(cells) if (cells == cell).sum() >= CELL_ROWS and len(np.unique(runs[cells == cell])) >= CELL_RUNS]
        parts = [centred[cells == cell] for cell in own] + [centred]
        return cls(sizes, sums, np.array(own, dtype=np.int64), np.array([np.hypot(_spread(part), slack) for part in parts]), slack)

    def centred(self, residuals: Residuals) -> Floats:
        """Return residuals about those of base's calls of like size (n, c): the logarithm of what a call's cost grew by through each."""
        return np.asarray(residuals.values - _local_means(self.sizes, self.sums, residuals.sizes))

    def standardised(self, residuals: Residuals) -> Floats:
        """Return the same in units of their spread (n, c)."""
        return np.asarray(self.centred(residuals) / self.spreads[self._places(residuals.cells)])

    def slacks(self, residuals: Residuals) -> Floats:
        """Return the slack of each counter (c,) in units of base's spread, over these calls on average."""
        return np.asarray((self.slack / self.spreads[self._places(residuals.cells)]).mean(axis=0))

    def _places(self, cells: Ints) -> Ints:
        if not len(self.cells):
            return np.zeros(len(cells), dtype=np.int64)
        nearest = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        return np.where(self.cells[nearest] == cells, nearest, len(self.cells))


def _local_means(base_sizes: Floats, sums: Floats, sizes: Floats) -> Floats:
    """Return the mean residual (n, c) of the `NEIGHBOURS` calls nearest in rank to each size, and of all that are as large, of its threads.

    `base_sizes` (m,) are the sorted sizes behind `sums` (m + 1, c).
    """
    group = np.floor(sizes / _OCTAVES) * _OCTAVES
    first, last = np.searchsorted(base_sizes, group, "left"), np.searchsorted(base_sizes, group + _OCTAVES, "left")
    low = np.maximum(np.searchsorted(base_sizes, sizes, "left") - NEIGHBOURS // 2, first)
    high = np.minimum(np.searchsorted(base_sizes, sizes, "right") + NEIGHBOURS // 2, last)
    alone = high <= low  # no call of base had as many threads in these runs
    low, high = np.where(alone, 0, low), np.where(alone, len(base_sizes), high)
    return np.asarray((sums[high] - sums[low]) / (high - low)[:, None])


def _spread(values: Floats) -> Floats:
    low, high = np.quantile(values, ((1 - SPANNED) / 2, (1 + SPANNED) / 2), axis=0)
    return np.asarray((high - low) / SPANNED_DEVIATIONS)
