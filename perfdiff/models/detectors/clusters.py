"""Sharing detectors among functions of similar performance signatures (AutoPerf §4.3.3)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perfdiff.records.arrays import Floats

CALLS = 200  # of a function; more do not move the centres


def share(signatures: Mapping[int, Floats], clusters: int, *, seed: int) -> dict[int, int]:
    """Return the cluster of each function, whose calls of base (n, c) are given in units that functions have in common.

    k-means over all calls; a function joins the cluster that holds most of its calls. Every function counts with as many calls as the
    one with the fewest, at most `CALLS`.
    """
    from sklearn.cluster import KMeans

    if clusters >= len(signatures):
        return {function: place for place, function in enumerate(signatures)}
    rng = np.random.default_rng(seed)
    least = min(CALLS, *(len(rows) for rows in signatures.values()))
    chosen = {function: rows[np.sort(rng.permutation(len(rows))[:least])] for function, rows in signatures.items()}
    together = np.concatenate(list(chosen.values()))
    spread = together.std(axis=0)
    unit = np.where(spread > 0, spread, 1.0)
    labels = KMeans(n_clusters=clusters, n_init=4, random_state=seed).fit_predict((together - together.mean(axis=0)) / unit)
    by_function = labels.reshape(len(chosen), least)
    return {function: int(np.bincount(own).argmax()) for function, own in zip(chosen, by_function, strict=True)}
