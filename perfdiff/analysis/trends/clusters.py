"""The clusters of one revision's places, by their cost, and how each grows (trend-prof §4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from perfdiff.analysis.trends.apart import other_powers
from perfdiff.analysis.trends.blocks import block_counts
from perfdiff.analysis.trends.features import varying
from perfdiff.analysis.trends.findings import COSTLY_SHARE, PlaceCluster, Trends
from perfdiff.models.clusters import ALPHA, clustered, least_variation
from perfdiff.models.joint import joint
from perfdiff.models.trend import Law
from perfdiff.models.trendlines import fits, power_laws
from perfdiff.records.arrays import Bools, Floats
from perfdiff.records.places import PlaceCounts

# Programs are given inputs of this many times the size that they were tested with; further on, something else gives way first.
_FORESEEN = 1000.0


def trends(counted: PlaceCounts, *, seed: int, alpha: float = ALPHA) -> Trends:
    """Return the clusters of a revision's places, the most costly first; features without any place of theirs are left out."""
    features = varying(counted.features)
    costs = block_counts(counted)
    totals = costs.sum(axis=0)
    clustering = clustered(features, counted.counts, alpha=alpha, least_sd=least_variation(counted.counts))
    groups = [
        (representative, members)
        for representative, members in zip(clustering.representatives, clustering.members, strict=True)
        if len(members)
    ]
    sums = np.array([costs[members].sum(axis=0) for _, members in groups]).reshape(len(groups), len(totals))
    shares = np.max(sums / np.where(totals > 0, totals, 1.0), axis=1, initial=0.0)
    laws_by_group = _fits(features, sums, shares >= COSTLY_SHARE, seed)
    own_shares = np.max(costs / np.where(totals > 0, totals, 1.0), axis=1, initial=0.0)
    clusters = [
        PlaceCluster(
            feature=representative if isinstance(representative, str) else None,
            place=None if isinstance(representative, str) else counted.places[representative],
            members=tuple(members[np.argsort(-counted.counts[members].max(axis=1), kind="stable")].tolist()),
            costs=cost,
            largest=float(cost.max()),
            share=float(share),
            fits=fits_,
            joint=joint(features, cost) if share >= COSTLY_SHARE else None,
        )
        for (representative, members), cost, share, fits_ in zip(groups, sums, shares, laws_by_group, strict=True)
    ]
    represented = [features[name] if isinstance(name, str) else counted.counts[name] for name, _ in groups]
    clusters = [
        replace(cluster, apart=other_powers(counted, cluster, representing, own_shares, seed=seed))
        for cluster, representing in zip(clusters, represented, strict=True)
    ]
    return Trends(
        tuple(_overtaking(sorted(clusters, key=lambda cluster: -cluster.largest), features)), tuple(clustering.constant.tolist()), totals
    )


def _fits(features: Mapping[str, Floats], sums: Floats, costly: Bools, seed: int) -> list[tuple[Law, ...]]:
    """Return the trends of costs (clusters, points) over all features, the best first; only of `costly` ones with their classes."""
    laws_by_row: list[list[Law]] = [[] for _ in sums]
    for name, x in features.items():
        for rows, fitted in ((np.flatnonzero(costly), fits), (np.flatnonzero(~costly), power_laws)):
            for row, law in zip(rows, fitted(name, x, sums[rows], seed=seed), strict=True):
                laws_by_row[row] += [law] if law else []
    return [tuple(sorted(laws, key=lambda fit: -fit.r2)) for laws in laws_by_row]


def _overtaking(ranked: Sequence[PlaceCluster], features: Mapping[str, Floats]) -> list[PlaceCluster]:
    """Return clusters by rank, with the value of a feature from which each costs more than all that stand above it."""
    return [replace(cluster, overtakes=_overtakes(cluster, ranked[:rank], features)) for rank, cluster in enumerate(ranked)]


def _overtakes(cluster: PlaceCluster, above: Sequence[PlaceCluster], features: Mapping[str, Floats]) -> float | None:
    """Return from which value of its best feature on a cluster costs most, where its exponent is surely the largest; None where it is not.

    Where it does so within what was measured already, there is nothing to foretell; beyond `_FORESEEN` times that, nobody can.
    """
    if not above or not cluster.fits:
        return None
    own = cluster.fits[0]
    crossings = []
    for other in above:
        theirs = next((fit for fit in other.fits if fit.feature == own.feature), None)
        if theirs is None or own.ci_b[0] <= theirs.ci_b[1]:
            return None
        crossings.append(math.log(theirs.a / own.a) / (own.b - theirs.b))
    beyond, measured = max(crossings), math.log(float(np.nanmax(features[own.feature])))
    return math.exp(beyond) if measured < beyond <= measured + math.log(_FORESEEN) else None
