"""Which place of base is which place of head: through the diff first, then by counts, as work that moved runs as often as before."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.places import PlaceCounts, PlaceExperiment
from perfdiff.records.schema import Side

_ALIKE = 0.05  # counts that differ by less at every point are the same work in other words, such as a loop that ends one round earlier
FEW = 10.0  # counts that differ by less are alike in any case: trend-prof's bound below which places say little


def counterparts(experiment: PlaceExperiment) -> Ints:
    """Return the index in head of each place of base, below 0 for those that have none.

    Lines that the diff knows belong together. Of the others, one that is gone and a new one belong together where they run the same number
    of times at every point, or nearly so; of several, the one with the same text, else the first.
    """
    base, head = experiment.sides[Side.BASE], experiment.sides[Side.HEAD]
    in_head = experiment.heads.copy()
    _pair_equal(in_head, base, head)
    _pair_alike(in_head, base.counts, head.counts)
    return in_head


def carried_over(experiment: PlaceExperiment, in_head: Ints) -> tuple[Floats, Bools]:
    """Return what base counted of each place of head (places, points), 0 where there is none, and which places are new (places,)."""
    base, head = experiment.sides[Side.BASE], experiment.sides[Side.HEAD]
    paired = in_head >= 0
    before = np.zeros_like(head.counts)
    before[in_head[paired]] = base.counts[paired]
    is_new = np.ones(len(head.places), dtype=np.bool_)
    is_new[in_head[paired]] = False
    return before, is_new


def unmatched(in_head: Ints, places: int) -> Ints:
    """Return the indices of head's places that are no counterpart of any place of base."""
    return np.setdiff1d(np.arange(places), in_head)


def _pair_equal(in_head: Ints, base: PlaceCounts, head: PlaceCounts) -> None:
    """Pair places that ran, and ran equally often; those of one text before all others."""
    for with_text in (True, False):
        waiting: dict[tuple[bytes, str], list[int]] = defaultdict(list)
        for place in unmatched(in_head, len(head.places)).tolist():
            waiting[head.counts[place].tobytes(), head.places[place].text if with_text else ""].append(place)
        for place in np.flatnonzero(in_head < 0).tolist():
            candidates = waiting.get((base.counts[place].tobytes(), base.places[place].text if with_text else ""))
            if candidates and base.counts[place].any():
                in_head[place] = candidates.pop(0)


def _pair_alike(in_head: Ints, base: Floats, head: Floats) -> None:
    """Pair places that ran nearly equally often."""
    left = unmatched(in_head, len(head))
    left = left[head[left].any(axis=1)]
    for place in np.flatnonzero((in_head < 0) & base.any(axis=1)).tolist():
        near = _alike(head[left], base[place])
        if near.any():
            chosen = int(np.argmax(near))
            in_head[place] = left[chosen]
            left = np.delete(left, chosen)


def _alike(counts: Floats, other: Floats) -> Bools:
    """Return which rows of counts (places, points) are nearly those of another place (points,)."""
    near: Bools = np.abs(counts - other) <= np.maximum(FEW, _ALIKE * np.maximum(counts, other))
    return np.logical_and.reduce(near, axis=1)  # type: ignore[no-any-return]
