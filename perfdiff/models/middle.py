"""Medians and quantiles of a column, many thousand times an analysis: numpy's own take ten times as long, for cases that do not occur."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfdiff.records.arrays import Floats


def median(values: Floats) -> float:
    """Return the median of `values` (n,), n > 0, all finite."""
    half = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, half)[half])
    parted = np.partition(values, (half - 1, half))
    return float(0.5 * (parted[half - 1] + parted[half]))


def quantile(values: Floats, share: float) -> float:
    """Return a quantile of `values` (n,), n > 0, all finite, linear between neighbours: to the bit what `numpy.quantile` returns."""
    return quantiles(values, (share,))[0]


def quantiles(values: Floats, shares: Sequence[float]) -> list[float]:
    """Return several quantiles of `values`, each as by `quantile`."""
    last = len(values) - 1
    places = [last * share for share in shares]
    lower = [min(int(place), last) for place in places]
    parted = np.partition(values, sorted({neighbour for low in lower for neighbour in (low, min(low + 1, last))}))
    return [_between(float(parted[low]), float(parted[min(low + 1, last)]), place - low) for low, place in zip(lower, places, strict=True)]


def _between(low: float, high: float, part: float) -> float:
    # From the nearer end, as numpy does, so that rounding is the same.
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)
