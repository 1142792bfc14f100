"""The level of cost of every stratum in every run, as the panel that is compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.stats.runs import Runs
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.schema import SampleTable

# Of calls near the clock's own step: those that took an interrupt or a page fault, which a mean must not see.
TRIMMED = 0.05


@dataclass(frozen=True, slots=True)
class SortedCalls:
    """The n calls of one side that have a value, sorted by run, label (workload point, or octave of cost) and value.

    `rows` (n,) are those of the table. Calls of one run and label stand together: g groups, with the place of their `first` call, their
    `counts`, `runs` and `labels`.
    """

    rows: Ints
    values: Floats
    first: Ints
    counts: Ints
    runs: Ints
    labels: Ints


def lines(table: SampleTable, labels: Ints, values: Floats) -> SortedCalls:
    """Return the calls of a table by their `values` (rows,), NaN where a call has none, and `labels` (rows,)."""
    present = np.flatnonzero(np.isfinite(values))
    rows = present[np.lexsort((values[present], labels[present], table.run[present]))]
    runs, of = table.run[rows], labels[rows]
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (runs[1:] != runs[:-1]) | (of[1:] != of[:-1])
    first = np.flatnonzero(begins)
    return SortedCalls(rows, values[rows], first, np.diff(first, append=len(rows)), runs[first], of[first])


def levels(of: SortedCalls, strata: Bools, *, fine: bool) -> Floats:
    """Return the level of each stratum (k, rows of the table) in each group (k, g); NaN where it has no calls there.

    The level is the median; of `fine` calls it is the logarithm of the mean ratio without the largest `TRIMMED` share.
    """
    inside = strata[:, of.rows]
    shape = len(strata), len(of.first)
    if not inside.size:
        return np.full(shape, np.nan)
    # How many calls of any stratum stand up to each one: rising, so that the places of all medians are found by one search.
    upto = np.cumsum(inside.ravel())
    ends = (np.arange(len(strata)) * len(of.rows))[:, None] + of.first + of.counts - 1
    before = np.concatenate([[0], upto])[ends - of.counts + 1]
    counts = upto[ends] - before
    if fine:
        remaining = counts - np.floor(counts * TRIMMED).astype(np.int64)
        ranked = upto.reshape(inside.shape) - np.repeat(before, of.counts, axis=1)
        ratios = np.where(inside & (ranked <= np.repeat(remaining, of.counts, axis=1)), np.exp(of.values), 0.0)
        means = np.add.reduceat(ratios, of.first, axis=1) / np.maximum(remaining, 1)
        return np.where(counts > 0, np.log(np.where(counts > 0, means, 1.0)), np.nan)
    places = [np.minimum(np.searchsorted(upto, before + half + 1), len(upto) - 1) for half in ((counts - 1) // 2, counts // 2)]
    low, high = (of.values[place % len(of.rows)] for place in places)
    return np.where(counts > 0, 0.5 * (low + high), np.nan)


def vagueness(values: Floats, labels: Ints) -> float:
    """Return the width of the interval that holds the median of `values` (95 %, by ranks: two standard errors), on average over labels."""
    widths = []
    for label in np.unique(labels):
        ordered = np.sort(values[(labels == label) & np.isfinite(values)])
        last = len(ordered) - 1
        if last >= 0:
            reach = math.sqrt(len(ordered))
            widths.append(ordered[min(last, math.ceil(last / 2 + reach))] - ordered[max(0, math.floor(last / 2 - reach))])
    return float(np.mean(widths)) if widths else 0.0


def by_label(side_levels: Sequence[Floats], sides: Sequence[SortedCalls], ledger: Ledger) -> list[Runs]:
    """Return the levels of both sides as a panel whose points are the labels that both have; one run may stand at several of them."""
    base, head = (side.labels for side in sides)
    shared = np.intersect1d(base, head)
    runs = []
    for of_strata, of in zip(side_levels, sides, strict=True):
        groups = [np.flatnonzero(of.labels == label) for label in shared]
        longest = max((len(group) for group in groups), default=0)
        values, blocks = np.full((len(shared), len(of_strata), longest), np.nan), np.zeros((len(shared), longest), dtype=np.int64)
        machines = np.full((len(shared), longest), -1, dtype=np.int64)
        for place, group in enumerate(groups):
            values[place, :, : len(group)] = of_strata[:, group]
            blocks[place, : len(group)] = ledger.blocks(of.runs[group])
            machines[place, : len(group)] = ledger.machines(of.runs[group])
        runs.append(Runs(values, blocks, np.zeros(len(shared), dtype=bool), machines if ledger.machine_of else None))
    return runs
