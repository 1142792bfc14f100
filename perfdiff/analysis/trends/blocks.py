"""What lines cost: those that run as often as the line before them in their function belong to one block, which counts once.

So a cost is a number of blocks executed (trend-prof §2.1), and how a text is broken into lines makes no difference.
"""

from __future__ import annotations

import numpy as np

from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.places import PlaceCounts


def block_counts(counted: PlaceCounts) -> Floats:
    """Return the counts (places, points) with 0 for every place that only goes on with the block of the place before it."""
    begins = block_starts(counted) == np.arange(len(counted.counts))
    return np.where(begins[:, None], counted.counts, 0.0)


def block_starts(counted: PlaceCounts) -> Ints:
    """Return for each place (places,) the index of the place that its block begins with."""
    numbers: dict[tuple[str, str], int] = {}
    functions = np.array([numbers.setdefault((place.file, place.function), len(numbers)) for place in counted.places], dtype=np.int64)
    order = np.argsort(functions, kind="stable")
    before = np.full(len(order), -1, dtype=np.int64)
    before[order[1:]] = np.where(functions[order[1:]] == functions[order[:-1]], order[:-1], -1)
    goes_on = _equal_rows(counted.counts, before)
    starts = np.empty(len(order), dtype=np.int64)
    starts[order] = order[np.maximum.accumulate(np.where(goes_on[order], 0, np.arange(len(order))))]
    return starts


def _equal_rows(counts: Floats, before: Ints) -> Bools:
    """Return which rows of counts (places, points) equal the row `before` each (places,), below 0 where there is none.

    That is the row above as a rule; where another function's lines stand between, such as a lambda's, it is copied.
    """
    equal = np.zeros(len(counts), dtype=np.bool_)
    if len(counts) > 1:
        equal[1:] = (counts[1:] == counts[:-1]).all(axis=1)
    further = np.flatnonzero(before != np.arange(len(counts)) - 1)
    equal[further] = (before[further] >= 0) & (counts[further] == counts[before[further]]).all(axis=1)
    return equal
