"""Growth that is plain to see: a cost that rises, or falls, from size to size, to a multiple or a part of it in every run.

Of a few sizes whose costs follow no formula exactly, as where they outgrow caches, none of the shapes earns its terms by BIC: calls of one
size deviate from each together, and three sizes count as three observations. That the cost grows is known all the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from perfdiff.models.middle import median
from perfdiff.models.observations import Observations
from perfdiff.records.arrays import Bools, Floats, Ints

# What inputs have no part in, such as layout, moves a cost by some ten percent, rarely by half.
MULTIPLE = 2.0
# A size may seem so much cheaper than the one below it.
_DIP = 0.10
_FEWEST_SIZES, _MOST_SIZES = 3, 16  # two sizes say nothing of a shape; over many, BIC has enough to go by
_FIRST = 64  # rows whose values spare most features the sort of all
_CALLS = 5  # of a size, at least, so that its median is its own


def growing(rows: Observations, usable: Mapping[str, Floats]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the features among `usable` columns (n,) over whose few values the cost rises, to a multiple of the least in every run.

    Behind them those over whose values it falls so.
    """
    few = {name: sizes for name, column in usable.items() if (sizes := _sizes(column)) is not None}
    rising, falling = (tuple(name for name, place in few.items() if _grows(rows, of(place))) for of in (_upward, _downward))
    return rising, falling


def _upward(place: Ints) -> Ints:
    return place


def _downward(place: Ints) -> Ints:
    return np.asarray(place.max() - place)


def _sizes(column: Floats) -> Ints | None:
    """Return the place of each value (n,) among the distinct ones, rising; None where these are few or many, or have too few calls."""
    if len(np.unique(column[:_FIRST])) > _MOST_SIZES:
        return None
    sizes, place, calls = np.unique(column, return_inverse=True, return_counts=True)
    return place if _FEWEST_SIZES <= len(sizes) <= _MOST_SIZES and calls.min() >= _CALLS else None


def _grows(rows: Observations, place: Ints) -> bool:
    costs = [median(rows.cost[place == number]) for number in range(int(place.max()) + 1)]
    if any(after < (1 - _DIP) * before for before, after in itertools.pairwise(costs)) or costs[-1] < MULTIPLE * costs[0]:
        return False
    first, last = (_by_run(rows, place == number) for number in (0, len(costs) - 1))
    return min(len(first), len(last)) > 1 and min(last) > max(first)


def _by_run(rows: Observations, which: Bools) -> list[float]:
    run, cost = rows.run[which], rows.cost[which]
    return [median(cost[run == number]) for number in np.unique(run)]
