"""Members of a cluster that grow by another power than what represents it.

A line through all points follows the largest workloads: counts that grow as n^1.9, or n^1.3 over two decades, fit those that grow as n²,
or n, with R² above 0.98, and are members (trend-prof §4.1), though what a cluster promises is one growth (§2).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perfdiff.analysis.trends.findings import COSTLY_SHARE, OtherPower, PlaceCluster
from perfdiff.models.shift import exponent_shift
from perfdiff.records.arrays import Floats
from perfdiff.records.places import PlaceCounts


def other_powers(counted: PlaceCounts, cluster: PlaceCluster, representing: Floats, shares: Floats, *, seed: int) -> tuple[OtherPower, ...]:
    """Return the costly members of a costly cluster whose exponent is another than that of what represents it, with counts (points,).

    Exponents are over the feature of the cluster's best fit. Of places with the same counts the first one stands for all; `shares`
    (places,) are the largest of any run that places make up.
    """
    if not cluster.is_costly or not cluster.fits:
        return ()
    feature = cluster.fits[0].feature
    others = []
    for member in _distinct(counted, cluster, shares):
        shift = exponent_shift(counted.features[feature], representing, counted.counts[member], seed=seed)
        if shift is not None and shift.is_new:
            others.append(OtherPower(counted.places[member], feature, shift.exponent, shift.ci, float(shares[member])))
    return tuple(sorted(others, key=lambda other: -other.share))


def _distinct(counted: PlaceCounts, cluster: PlaceCluster, shares: Floats) -> Iterator[int]:
    seen: set[bytes] = set()
    for member in cluster.members:
        counts = np.ascontiguousarray(counted.counts[member]).tobytes()
        if shares[member] >= COSTLY_SHARE and counts not in seen:
            seen.add(counts)
            yield member
