"""Pairs of whole runs, one of base and one of head made next to each other: by how much they differ, and what that excludes.

Pairs are looked at while they are made, and no more are made once the answer is there. Each bound therefore holds at all looks
together, not at one of them: every look uses the same nominal level (Pocock 1977), lower than the one that is claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from perfdiff.records.schema import Floats, Ints

# Below about ten pairs, intervals of runs' times miss the truth too often on a shared machine.
FIRST_LOOK = 10
NEXT_LOOK = 2  # times as many pairs before each next look
MOST_PAIRS = 320  # the last look: six of them
FEWEST_PAIRS = 5  # where time is over; with fewer, nothing is said
# Of the pairs beyond the fewest, this share is trimmed at either end, where that clearly tells more than the mean of all. On a machine that
# others use, a pair's difference has long tails: the standard error of such a mean was .52 to .78 of the other's (16 to 140 pairs, load 2
# to 9); under normal noise it is about the same, with fewer degrees of freedom.
TRIMMED = 0.2
CLEARLY = 0.9
# One-sided level of each look, as a part of what is claimed of all of them: a bound at 1 % a look is wrong at one of six looks in
# 4.4 % (simulated, 20,000 sequences of normal pairs, looks at 10, 20, … 320).
OF_A_LOOK = 0.2
# Layouts differ, and are a level of their own, from this level of the F-test on (Bancroft 1944: a preliminary test keeps the level of the
# final one if it is this lenient).
LAYOUTS_DIFFER = 0.75


@dataclass(frozen=True, slots=True)
class Shift:
    """Mean difference of pairs, head minus base of logarithms: `effect` with standard error and degrees of freedom.

    `layouts` is the number of builds a side that the pairs were spread over.
    """

    effect: float
    error: float
    freedom: float
    pairs: int
    layouts: int

    def lower(self, confidence: float, comparisons: int = 1) -> float:
        """Return the lower bound that holds at all looks, and for `comparisons` shifts at once (Bonferroni)."""
        return self.effect - self._reach(confidence, comparisons)

    def upper(self, confidence: float, comparisons: int = 1) -> float:
        """Return the upper bound that holds at all looks, and for `comparisons` shifts at once."""
        return self.effect + self._reach(confidence, comparisons)

    def needed(self, threshold: float, confidence: float) -> int:
        """Return about how many pairs would tell the effect, if it is as seen, from `threshold`; 0 where none would."""
        distance = abs(threshold - self.effect)
        if distance == 0 or not self.pairs:
            return 0
        return math.ceil(self.pairs * (self._reach(confidence, 1) / distance) ** 2)

    def _reach(self, confidence: float, comparisons: int) -> float:
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, 1 - (1 - confidence) * OF_A_LOOK / comparisons)) * self.error if self.error else 0.0


def shift(differences: Floats, layouts: Ints) -> Shift | None:
    """Return the mean of `differences` (n,), each of a pair built in one of `layouts` (n,); None where there are too few.

    The mean is trimmed where tails are long (Jaeckel 1971: by the smaller estimated variance), with error and degrees of freedom of the
    Winsorised values (Tukey and McLaughlin 1963).
    """
    n = len(differences)
    if n < FEWEST_PAIRS:
        return None
    ordered = np.sort(differences)
    whole, trimmed = (_cut(differences, ordered, cut) for cut in (0, round(TRIMMED * (n - FEWEST_PAIRS))))
    values, effect, kept = trimmed if _error(trimmed) < CLEARLY * _error(whole) else whole
    variance, freedom = _variance(values, layouts)
    return Shift(effect, math.sqrt(variance / n) / kept, freedom or kept * n - 1, n, len(np.unique(layouts)))


def _cut(differences: Floats, ordered: Floats, cut: int) -> tuple[Floats, float, float]:
    """Return the differences Winsorised by `cut` values at either end, the mean of the others, and their share."""
    n = len(ordered)
    return np.clip(differences, ordered[cut], ordered[n - 1 - cut]), float(ordered[cut : n - cut].mean()), 1 - 2 * cut / n


def _error(cut: tuple[Floats, float, float]) -> float:
    """Return what the standard error of a trimmed mean is proportional to."""
    values, _, kept = cut
    return float(values.std(ddof=1)) / kept


def _variance(values: Floats, layouts: Ints) -> tuple[float, float]:
    """Return the variance of a difference, with its degrees of freedom, 0 for those of the values.

    Where layouts clearly differ, it is that between them, so that the interval covers other builds of the same code (nested design:
    Kalibera and Jones 2013, §6).
    """
    from scipy.special import fdtri

    n, variance = len(values), float(values.var(ddof=1))
    names, member = np.unique(layouts, return_inverse=True)
    if not 1 < len(names) < n:
        return variance, 0.0
    sizes = np.bincount(member)
    means = np.bincount(member, values) / sizes
    between = float((sizes * (means - values.mean()) ** 2).sum()) / (len(names) - 1)
    within = float(((values - means[member]) ** 2).sum()) / (n - len(names))
    if between <= within * fdtri(len(names) - 1, n - len(names), LAYOUTS_DIFFER):
        return variance, 0.0
    return max(between, variance), len(names) - 1.0


def next_look(pairs: int) -> int:
    """Return at how many pairs the next look is, after `pairs` of them."""
    look = FIRST_LOOK
    while look <= pairs:
        look *= NEXT_LOOK
    return look
