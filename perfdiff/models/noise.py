"""The noise of a measured cost: partly additive, partly multiplicative, with outliers upward, and correlated within runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from perfdiff.models.middle import median, quantile
from perfdiff.records.arrays import Bools, Floats, Ints

# Huber's constant: 95 % efficient under normal noise, and no row has more pull than one 1.345 standard deviations away.
HUBER = 1.345
# Residuals above this many standard deviations are taken for preemption and the like; normal noise has 2 in 10,000 there.
OUTLIER = 3.5
# Of runs: those further than this many (robust) standard deviations from their group's median are pulled in to it. One run that was
# preempted shall not hide a change that all others show. At 4 the t-test keeps its level under normal noise with 5 runs a side (simulated).
OUTLIER_RUN = 4.0
OUTLIER_RUNS = 5  # of a group; with fewer, no run can be told to be the outlier
# Never trim more than this share: what happens more often belongs to the function.
MAX_TRIMMED = 0.10
# A group of rows of similar cost must have this many members to say how far costs scatter there.
_GROUP = 5
_COLLINEAR = 1e-24  # of a unit vector's square: less is the arithmetic's, and both parts say the same
_LOG_4 = np.log(4.0)
_ROUNDING = np.finfo(np.float64).eps  # of a level: a scatter below is the arithmetic's
NORMAL_MAD = 1.4826  # standard deviation of a normal over its median absolute deviation


# Of the largest variance: what arithmetic leaves of an expected cost of 0, by which no cost may be divided.
_NOTHING = 1e-60


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviation of a cost μ: sqrt(additive² + (relative·μ)² + (floor·μ)²); `floor` is what no model needs to explain."""

    additive: float
    relative: float
    floor: float

    def deviation(self, expected: Floats) -> Floats:
        """Return the standard deviation (n,) at expected costs (n,), never 0."""
        variance = self.additive**2 + (self.relative**2 + self.floor**2) * expected**2
        nothing = _NOTHING * float(variance.max(initial=0.0))
        if variance.min(initial=np.inf) > nothing:
            return np.asarray(np.sqrt(variance))
        smallest = variance[variance > nothing].min(initial=np.inf)
        return np.asarray(np.sqrt(np.where(variance > nothing, variance, smallest if np.isfinite(smallest) else 1.0)))


def observed_deviation(cost: Floats) -> Floats:
    """Return a first guess of the noise (n,), proportional to the cost itself; upward outliers so weigh little from the start."""
    magnitude = np.abs(cost)
    least = max(0.1 * median(magnitude), 1e-3 * float(np.mean(magnitude)))
    return np.asarray(np.sqrt(cost**2 + least**2)) if least > 0 else np.ones(len(cost))


def estimate(expected: Floats, residuals: Floats, *, floor: float) -> Noise:
    """Estimate the noise from residuals: non-negative least squares of the squared scatter on 1 and μ², over groups of similar cost.

    Groups span a factor of four in cost, so that a few large calls among many small ones have a say of their own; the median
    absolute deviation makes outliers harmless.
    """
    largest = float(np.abs(expected).max())
    magnitude = np.maximum(np.abs(expected), 1e-9 * largest) if largest > 0 else np.ones(len(expected))
    apart = np.abs(residuals)
    levels, scatter = [], []
    for rows in _groups_of_like_size(magnitude):
        level, spread = median(magnitude[rows]), NORMAL_MAD * median(apart[rows])
        if spread > level * _ROUNDING:
            levels.append(level)
            scatter.append(spread)
    if not levels:
        return Noise(0.0, NORMAL_MAD * median(apart / magnitude), floor)
    at, spreads = np.array(levels), np.array(scatter)
    unit = spreads.max()
    spreads = np.maximum(spreads, 1e-60 * unit)  # their squares must stay numbers
    additive, relative = _two_parts((unit / spreads) ** 2, (at / spreads) ** 2)
    return Noise(math.sqrt(additive) * float(unit), math.sqrt(relative), floor)


def _groups_of_like_size(magnitude: Floats) -> Iterator[Bools | slice]:
    """Yield the rows of each power of four that holds enough of the positive values (n,), none below a billionth of the largest."""
    powers = np.floor(np.log(magnitude) / _LOG_4).astype(np.int64)
    least = int(powers.min())
    sizes = np.bincount(powers - least)
    if len(sizes) == 1 and len(magnitude) >= _GROUP:  # most often; spares copies
        yield slice(None)
        return
    for label in np.flatnonzero(sizes >= _GROUP):
        yield powers == least + label


def _two_parts(first: Floats, second: Floats) -> tuple[float, float]:
    """Return the non-negative a, b for which a·first + b·second (g,), both positive, is nearest to 1 by least squares.

    Two unknowns need no iteration, and `scipy.optimize`, whose import takes as long as ten annotations, is not needed for them: where
    the free solution is negative in one part, the best lies at 0 of that part.
    """
    norms = float(np.sqrt(first @ first)), float(np.sqrt(second @ second))
    unit_first, unit_second = first / norms[0], second / norms[1]
    shared = float(unit_first @ unit_second)
    apart = unit_second - shared * unit_first
    sum_first, sum_second = float(unit_first.sum()), float(unit_second.sum())
    width = float(apart @ apart)
    if width <= _COLLINEAR:  # such as one group alone: the part that is the larger
        return (sum_first / norms[0], 0.0) if norms[0] > norms[1] else (0.0, sum_second / norms[1])
    part_second = float(apart.sum()) / width
    part_first = sum_first - shared * part_second
    if part_first > 0 and part_second > 0:
        return part_first / norms[0], part_second / norms[1]
    return (sum_first / norms[0], 0.0) if sum_first > sum_second else (0.0, sum_second / norms[1])


def huber_weights(standardised: Floats) -> Floats:
    """Return Huber's weights (n,) of standardised residuals."""
    return np.minimum(1.0, HUBER / np.maximum(np.abs(standardised), 1e-12))


def no_outliers(standardised: Floats) -> Bools:
    """Return which rows are no upward outliers (n,); at most `MAX_TRIMMED` of them are."""
    within = standardised <= OUTLIER
    if np.count_nonzero(within) > (1 - MAX_TRIMMED) * len(within) + 1:  # then the quantile below is no higher
        return np.asarray(within)
    bound = max(OUTLIER, quantile(standardised, 1 - MAX_TRIMMED))
    return np.asarray(standardised <= bound)


def robust_deviation(apart: Floats, groups: int) -> float:
    """Return the robust standard deviation of n values by their distances (n,) from the medians of their `groups`."""
    # A median takes one degree of freedom from each group.
    return NORMAL_MAD * median(np.abs(apart)) * len(apart) / (len(apart) - groups)


def design_effect(residuals: Floats, groups: Ints) -> float:
    """Return how many rows carry the information of one independent row: 1 + (m - 1)·ρ, ρ the correlation within groups.

    Calls of one run, and calls with the same input, deviate together (Kish 1965; ρ by one-way analysis of variance, at least 0).
    """
    _, index, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n, m = len(residuals), len(sizes)
    if m < 2 or m == n:
        return 1.0
    means = np.bincount(index, weights=residuals) / sizes
    between = float(sizes @ (means - residuals.mean()) ** 2) / (m - 1)
    within = float(((residuals - means[index]) ** 2).sum()) / (n - m)
    mean_size = (n - float(sizes @ sizes) / n) / (m - 1)
    total = between + (mean_size - 1) * within
    correlation = max((between - within) / total, 0.0) if total > 0 else 0.0
    return 1.0 + (float(sizes @ sizes) / n - 1) * correlation
