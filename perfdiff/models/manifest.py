"""Growth that is plain to see: a cost that rises from size to size, to a multiple in every run.

Of a few sizes whose costs follow no formula exactly, as where they outgrow caches, none of the shapes earns its terms by BIC: calls of one
size deviate from each together, and three sizes count as three observations. That the cost grows is known all the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from perfdiff.models.middle import median
from perfdiff.models.observations import Observations
from perfdiff.records.schema import Floats

# What inputs have no part in, such as layout, moves a cost by some ten percent, rarely by half.
MULTIPLE = 2.0
# A size may seem so much cheaper than the one below it.
_DIP = 0.10
_FEWEST_SIZES, _MOST_SIZES = 3, 16  # two sizes say nothing of a shape; over many, BIC has enough to go by
_CALLS = 5  # of a size, at least, so that its median is its own


def growing(rows: Observations, usable: Mapping[str, Floats]) -> tuple[str, ...]:
    """Return the features among `usable` columns (n,) over whose few values the cost rises, to a multiple of the least in every run."""
    return tuple(name for name, column in usable.items() if _grows(rows, column))


def _grows(rows: Observations, column: Floats) -> bool:
    sizes, place, calls = np.unique(column, return_inverse=True, return_counts=True)
    if not (_FEWEST_SIZES <= len(sizes) <= _MOST_SIZES and calls.min() >= _CALLS):
        return False
    costs = [median(rows.cost[place == number]) for number in range(len(sizes))]
    if any(after < (1 - _DIP) * before for before, after in itertools.pairwise(costs)) or costs[-1] < MULTIPLE * costs[0]:
        return False
    first, last = (_by_run(rows, place == number) for number in (0, len(sizes) - 1))
    return min(len(first), len(last)) > 1 and min(last) > max(first)


def _by_run(rows: Observations, which: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[float]:
    run, cost = rows.run[which], rows.cost[which]
    return [median(cost[run == number]) for number in np.unique(run)]
