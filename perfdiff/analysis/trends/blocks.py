"""What lines cost: those that run as often as the line before them in their function belong to one block, which counts once.

So a cost is a number of blocks executed (trend-prof §2.1), and how a text is broken into lines makes no difference.
"""

from __future__ import annotations

import itertools

import numpy as np

from perfdiff.records.places import PlaceCounts
from perfdiff.records.schema import Floats, Ints


def block_counts(found: PlaceCounts) -> Floats:
    """Return the counts (places, points) with 0 for every place that only goes on with the block of the place before it."""
    begins = block_starts(found) == np.arange(len(found.counts))
    return np.where(begins[:, None], found.counts, 0.0)


def block_starts(found: PlaceCounts) -> Ints:
    """Return for each place (places,) the index of the place that its block begins with."""
    counts = found.counts
    starts = np.arange(len(counts))
    if len(counts) > 1:
        functions = [(place.file, place.function) for place in found.places]
        same = np.array([before == after for before, after in itertools.pairwise(functions)])
        starts[1:][same & (counts[1:] == counts[:-1]).all(axis=1)] = 0
    return np.maximum.accumulate(starts)
