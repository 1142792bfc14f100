"""Places that vary along with something else than they did: those whose cluster is another in head than in base."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from perfdiff.analysis.trends.blocks import block_counts
from perfdiff.analysis.trends.counterparts import counterparts
from perfdiff.analysis.trends.findings import COSTLY_SHARE, Move, Trends
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.places import PlaceCounts, PlaceExperiment
from perfdiff.records.schema import Side

_Memberships = Mapping[int, list[int]]  # the clusters (indices) of each place (index) that is in any, the most costly first


def moves(experiment: PlaceExperiment, sides: Mapping[Side, Trends], *, alpha: float) -> tuple[Move, ...]:
    """Return the places of both sides that are in another cluster than they were, the most costly first; of the lines of a block the first.

    A cluster of head is one of base where both follow the same feature; of those that follow none, where it has the place that represents
    the one of base. A place whose counts in head fit those in base as a member of a cluster does its representative, with R² above 1 - α
    (trend-prof §4.1), has not changed, whatever the others did; one that is less than `COSTLY_SHARE` of every run on both sides is left
    out.
    """
    base, head = (experiment.sides[side] for side in Side)
    in_head = counterparts(experiment)
    before, after = (_memberships(sides[side]) for side in Side)
    same = set(_same(base, sides, in_head, after))
    moved = [
        (place, now)
        for place, now in enumerate(in_head.tolist())
        if place in before
        and now in after
        and same.isdisjoint((base_number, head_number) for base_number in before[place] for head_number in after[now])
    ]
    then, now = np.array(moved, dtype=np.int64).reshape(-1, 2).T
    shares = np.maximum(
        _shares(block_counts(base)[then], sides[Side.BASE].totals), _shares(block_counts(head)[now], sides[Side.HEAD].totals)
    )
    telling = (shares >= COSTLY_SHARE) & ~_fit_each_other(base.counts[then], head.counts[now], alpha)
    return tuple(
        Move(
            place=head.places[moved[row][1]],
            base=sides[Side.BASE].clusters[before[moved[row][0]][0]],
            head=sides[Side.HEAD].clusters[after[moved[row][1]][0]],
            share=float(shares[row]),
        )
        for row in sorted(np.flatnonzero(telling).tolist(), key=lambda row: -float(shares[row]))
    )


def _memberships(trends: Trends) -> _Memberships:
    by_place: dict[int, list[int]] = defaultdict(list)
    for number, cluster in enumerate(trends.clusters):
        for member in cluster.members:
            by_place[member].append(number)
    return dict(by_place)


def _same(base: PlaceCounts, sides: Mapping[Side, Trends], in_head: Ints, after: _Memberships) -> Iterator[tuple[int, int]]:
    """Yield the pairs of clusters (indices) of base and of head that are one."""
    clusters = sides[Side.HEAD].clusters
    features = {cluster.feature: number for number, cluster in enumerate(clusters) if cluster.feature is not None}
    numbers = {place: number for number, place in enumerate(base.places)}
    for base_number, cluster in enumerate(sides[Side.BASE].clusters):
        if cluster.place is not None:
            there = after.get(int(in_head[numbers[cluster.place]]), ())
            yield from ((base_number, head_number) for head_number in there if clusters[head_number].place is not None)
        elif cluster.feature in features:
            yield base_number, features[cluster.feature]


def _shares(costs: Floats, totals: Floats) -> Floats:
    """Return the largest share of any run that places make up, (places,)."""
    return np.asarray(np.max(costs / np.where(totals > 0, totals, 1.0), axis=1, initial=0.0))


def _fit_each_other(base: Floats, head: Floats, alpha: float) -> Bools:
    """Return which places (rows) fit linearly in head what they count in base, as a member of a cluster does its representative."""
    centred = [rows - rows.mean(axis=1, keepdims=True) for rows in (base, head)]
    products = np.einsum("ij,ij->i", *centred) ** 2
    squares = np.prod([np.einsum("ij,ij->i", rows, rows) for rows in centred], axis=0)
    return np.asarray(products > (1 - alpha) * squares)
