"""Quantiles of any number of values, each within one part in 128 of the true one.

Values are counted by the sign, the exponent and the first six binary digits of their fraction, which stand side by side in a float: a
bucket's ends differ by at most one part in 64, and its middle is told. That is DDSketch (Masson, Rim and Lee 2019) with the mapping that
interpolates between powers of two. It was preferred to KLL, whose bound is one of ranks, that says little of the length of the 99.9th
percentile, and holds with a probability; and to t-digests, for which no bound is proved. Counts of buckets add up, so that merging loses
nothing and depends on no order. A bucket is found by shifting bits, with no logarithm that another processor might round elsewhere. Between
a nanosecond and a day there are 2,944 buckets, and no more than 262,144 for any values at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.records.schema import Floats, Ints

_DIGITS = 6
_SHIFT = 52 - _DIGITS
# Weights are counted in these, so that sums of them are exact: 2⁴³ calls, some 9 · 10¹², fit.
UNIT = 2.0**-20
ERROR = 2.0 ** -(_DIGITS + 1)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Buckets (b,) that hold values, in their order, and how much weight each has (b,), in units of 2⁻²⁰."""

    buckets: Ints
    units: Ints

    @classmethod
    def of(cls, values: Floats, weight: Floats | None = None) -> Quantiles:
        """Return the sketch of values (n,), each standing for `weight` (n,) of them; what is not finite is no value."""
        present = np.isfinite(values)
        values = values[present]
        buckets = np.abs(values).view(np.int64) >> _SHIFT
        buckets = np.where(values < 0, -buckets, buckets)
        found, place = np.unique(buckets, return_inverse=True)
        if weight is None:
            units = np.bincount(place, minlength=len(found)).astype(np.int64) * round(1 / UNIT)
        else:
            units = np.zeros(len(found), dtype=np.int64)
            np.add.at(units, place, np.rint(weight[present] / UNIT).astype(np.int64))
        return cls(found, units)

    def merged(self, other: Quantiles) -> Quantiles:
        """Return the sketch of the values of both."""
        buckets, place = np.unique(np.concatenate([self.buckets, other.buckets]), return_inverse=True)
        units = np.zeros(len(buckets), dtype=np.int64)
        np.add.at(units, place, np.concatenate([self.units, other.units]))
        return Quantiles(buckets, units)

    @property
    def weight(self) -> float:
        """Return how many values there were."""
        return float(self.units.sum()) * UNIT

    def quantile(self, share: float) -> float:
        """Return the smallest value that `share` (0 to 1) of all do not exceed, within `ERROR` of it; NaN where there are no values."""
        if not len(self.buckets):
            return float("nan")
        below = np.cumsum(self.units)
        place = int(np.searchsorted(below, max(share * float(below[-1]), 1.0), side="left"))
        bucket = int(self.buckets[min(place, len(below) - 1)])
        if bucket == 0:
            return 0.0
        # A bucket lies between two powers of two, where floats are evenly spaced: the middle of its bits is its middle.
        middle = float(np.array([(abs(bucket) << _SHIFT) + (1 << _SHIFT - 1)], dtype=np.int64).view(np.float64)[0])
        return middle if bucket > 0 else -middle


EMPTY = Quantiles(np.zeros(0, np.int64), np.zeros(0, np.int64))
