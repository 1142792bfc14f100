"""Sums without rounding: equal to the last digit in whatever order, and in whatever parts, values are added."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from perfdiff.records.arrays import Floats, Ints

# Every float is a whole number of 2 to the power of minus 1074, the smallest one above 0.
_BITS = 1074
_ONE = 1 << _BITS
# Values between these powers of two are split by adding and subtracting another float, which must be one itself.
_SMALL, _LARGE = -900, 900
_MANTISSA = 53


def exact_sums(values: Floats, groups: Ints, count: int) -> list[int]:
    """Return the sum of finite values (n,) of each of `count` groups as a whole number of 2⁻¹⁰⁷⁴.

    Each round takes from all values the digits above a power of two so high that any sum of them is a float; what is left, which
    subtraction gives exactly, is the next round's (Rump, Ogita and Oishi, Accurate floating-point summation I, 2008, ExtractVector). Two or
    three rounds empty values that span nine powers of ten.
    """
    totals = [0] * count
    rest = np.asarray(values, dtype=np.float64)
    headroom = max(1, (len(rest) + 1).bit_length())
    while len(rest) and (largest := float(np.abs(rest).max())) > 0:
        power = math.frexp(largest)[1]
        if not _SMALL < power + headroom < _LARGE:
            _add(totals, ((group, whole(value)) for group, value in zip(groups.tolist(), rest.tolist(), strict=True)))
            break
        splitter = math.ldexp(1.0, power + headroom)
        high = (rest + splitter) - splitter
        _add(totals, enumerate(map(whole, np.bincount(groups, high, count).tolist())))
        rest = rest - high
    return totals


def _add(totals: list[int], group_values: Iterable[tuple[int, int]]) -> None:
    for group, value in group_values:
        totals[group] += value


def whole(value: float) -> int:
    """Return a finite float as a whole number of 2⁻¹⁰⁷⁴."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_BITS + 1 - denominator.bit_length())


def rounded(total: int) -> float:
    """Return the float nearest to an exact sum."""
    return total / _ONE


def shares(total: int, count: int) -> Floats:
    """Return `count` weights, as equal as they can be, that add up to an exact sum, and do so in any order.

    All are multiples of one power of two of which the sum has less than 2⁵³, so that no partial sum is rounded. They differ from each other
    by less than one part in 2²⁰ where there are fewer than 2³². A sum that is no such multiple itself is rounded to one.
    """
    if not total or not count:
        return np.zeros(count)
    unit = max(total.bit_length() - _MANTISSA, 0)
    units = (total + (1 << unit >> 1)) >> unit
    quotient, remainder = divmod(units, count)
    weights = np.full(count, quotient, dtype=np.float64)
    weights[:remainder] += 1.0
    return np.ldexp(weights, unit - _BITS)
