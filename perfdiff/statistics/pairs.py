"""Pairs of whole runs, one of base and one of head made next to each other: by how much they differ, and what that excludes.

Pairs are looked at while they are made, and no more are made once the answer is there. Each bound therefore holds at all looks
together, not at one of them: every look uses the same nominal level (Pocock 1977), lower than the one that is claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.records.arrays import Floats, Ints
from perfdiff.statistics import machines as levels

# Below about ten pairs, intervals of runs' times miss the truth too often on a shared machine.
FIRST_LOOK = 10
NEXT_LOOK = 2  # times as many pairs before each next look
MOST_PAIRS = 320  # the last look: six of them
FEWEST_PAIRS = 5  # where time is over; with fewer, nothing is said
# Of the pairs beyond the fewest, this share is trimmed at either end. On a machine that others use, a pair's difference has long tails: the
# standard error of such a mean was .52 to .78 of the other's (16 to 140 pairs, load 2 to 9); under normal noise it is about the same.
TRIMMED = 0.2
# This share of each side's runs is its quieter part. Neighbours that share a core make runs last half as long again, on and off, without a
# sign of it inside the machine: what then tells most are the runs that met none, as long as those are a third.
QUIETER = 1 / 3
# A narrower interval is taken from this ratio on: the choice among three costs degrees of freedom that no formula counts.
CLEARLY = 0.9
CHOSEN_AT = 0.95  # confidence at which intervals are held against each other
# Left out is only what no side has more of: a mean of a part of the runs must agree with that of all (Hausman 1978) at this level, a
# lenient one, as preliminary tests need (Bancroft 1944). At 5 %, heads that take half as long again in three runs of ten passed as
# unchanged twice as often.
AGREES = 1 / 3
# One-sided level of each look, as a part of what is claimed of all of them: a bound at 1 % a look is wrong at one of six looks in
# 4.4 % (simulated, 20,000 sequences of normal pairs, looks at 10, 20, … 320).
OF_A_LOOK = 0.2
# Layouts differ, and are a level of their own, from this level of the F-test on (Bancroft 1944: a preliminary test keeps the level of the
# final one if it is this lenient).
LAYOUTS_DIFFER = 0.75
# Means of layouts that vary by so many times what runs within one do: layouts make most of what is uncertain, no quieter machine helps.
BY_LAYOUTS = 2.0


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean difference of pairs, head minus base of logarithms: `effect` with standard error and degrees of freedom.

    `base` and `head` are the means that it is the difference of. `error_here` with `freedom_here` holds for the layouts that were
    measured, `error` with `freedom` for others as well.
    `layouts` is the number of builds a side that the pairs were spread over, `by_layouts` whether most of the error comes from these.
    `differ` is the p-value of no difference between machines.
    """

    base: float
    head: float
    error: float
    freedom: float
    pairs: int
    layouts: int
    error_here: float
    freedom_here: float
    differ: float = 1.0
    by_layouts: bool = False

    @property
    def effect(self) -> float:
        """Return the mean difference."""
        return self.head - self.base

    def lower(self, confidence: float, comparisons: int = 1) -> float:
        """Return the lower bound that holds at all looks, and for `comparisons` differences at once (Bonferroni)."""
        return self.effect - self.reach(confidence, comparisons)

    def upper(self, confidence: float, comparisons: int = 1) -> float:
        """Return the upper bound that holds at all looks, and for `comparisons` differences at once."""
        return self.effect + self.reach(confidence, comparisons)

    def in_these_layouts(self) -> PairedDifference:
        """Return the difference in the layouts that were measured: of two that differ, a mean of all layouts has no bounds of use."""
        return replace(self, error=self.error_here, freedom=self.freedom_here)

    def needed(self, threshold: float, confidence: float) -> int:
        """Return about how many pairs would tell the effect, if it is as seen, from `threshold`; 0 where none would."""
        distance = abs(threshold - self.effect)
        if distance == 0 or not self.pairs:
            return 0
        return math.ceil(self.pairs * (self.reach(confidence) / distance) ** 2)

    def reach(self, confidence: float, comparisons: int = 1) -> float:
        """Return how far the bounds are from the effect."""
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, 1 - chance_of_a_look(confidence, comparisons))) * self.error if self.error else 0.0


def chance_of_a_look(confidence: float, comparisons: int = 1) -> float:
    """Return the one-sided chance of an error at a look that each of several comparisons may have (Bonferroni)."""
    return (1 - confidence) * OF_A_LOOK / comparisons


def paired_difference(base: Floats, head: Floats, layouts: Ints, machines: Ints | None = None) -> PairedDifference | None:
    """Return the mean difference of `base` and `head` (n,), logarithms of pairs each built in one of `layouts` (n,); None of too few.

    `machines` (n,) are those that the pairs were made on, one where there is none; each is taken at its own pace.

    It is the mean of all, the one of all but the furthest, or the difference between the means of both sides' quieter runs: whichever has
    the narrowest interval (Jaeckel 1971), of those that agree with the mean of all.
    """
    n = len(base)
    if n < FEWEST_PAIRS:
        return None
    made_on = _Nested(layouts, machines if machines is not None and len(np.unique(machines)) > 1 else None)
    base, head = made_on.at_one_pace(base, head)
    every = _middle(base, head, 0)
    parts = [_middle(base, head, round(TRIMMED * (n - FEWEST_PAIRS)))]
    if (quiet := round(QUIETER * n)) >= FEWEST_PAIRS:
        parts.append(_quieter(base, head, quiet))
    best = every.difference(made_on)
    for seen in (part.difference(made_on) for part in parts if part.agrees_with(every)):
        if seen.reach(CHOSEN_AT) < CLEARLY * best.reach(CHOSEN_AT):
            best = seen
    return best


@dataclass(frozen=True, slots=True)
class _Nested:
    """What n pairs are nested in: their `layouts` (n,), and their `machines` (n,) where these are several."""

    layouts: Ints
    machines: Ints | None

    def at_one_pace(self, base: Floats, head: Floats) -> tuple[Floats, Floats]:
        """Return pairs without what those of one machine, base and head alike, take longer than all; differences stay."""
        if self.machines is None:
            return base, head
        pace = np.zeros_like(base)
        for machine in np.unique(self.machines):
            of = self.machines == machine
            pace[of] = np.median((base[of] + head[of]) / 2)
        pace -= pace.mean()
        return base - pace, head - pace

    def spread(self, influence: Floats) -> levels.MachineSpread | None:
        """Return how what pairs tell differs between machines, None of one machine."""
        if self.machines is None:
            return None
        places, count = levels.numbered(self.machines)
        counts, means, squares = levels.cells(influence[None], places, count)
        variances, freedom = levels.variance_of_each(squares, counts)
        return levels.spread(means, variances / np.maximum(counts, 1.0), freedom)


@dataclass(frozen=True, slots=True)
class _Mean:
    """Means of a part of the runs: `influence` (n,) is what each pair makes of their difference, `freedom` that of its standard error."""

    base: float
    head: float
    influence: Floats
    freedom: float

    @property
    def effect(self) -> float:
        return self.head - self.base

    def difference(self, nested: _Nested) -> PairedDifference:
        variance, freedom, by_layouts = _variance(self.influence, nested.layouts)
        n = len(self.influence)
        over = nested.spread(self.influence)
        error, freedom = _with_machines(variance / n, freedom or self.freedom, over)
        here = _with_machines(float(self.influence.var(ddof=1)) / n, self.freedom, over)
        differ = 1.0 if over is None else float(over.p[0])
        return PairedDifference(self.base, self.head, error, freedom, n, len(np.unique(nested.layouts)), *here, differ, by_layouts)

    def agrees_with(self, every: _Mean) -> bool:
        """Return whether this mean differs from that of all pairs by no more than chance."""
        from scipy.special import stdtrit

        n = len(self.influence)
        chance = float((self.influence - every.influence).std(ddof=1)) / math.sqrt(n)
        return abs(self.effect - every.effect) <= float(stdtrit(n - 1, 1 - AGREES / 2)) * chance


def _middle(base: Floats, head: Floats, cut: int) -> _Mean:
    """Return the means of all pairs but the `cut` of the smallest and of the largest differences.

    What each pair tells is its Winsorised difference (Tukey and McLaughlin 1963).
    """
    differences, n = head - base, len(base)
    order = np.argsort(differences)
    middle = order[cut : n - cut]
    pulled = np.clip(differences, differences[middle[0]], differences[middle[-1]])
    return _Mean(float(base[middle].mean()), float(head[middle].mean()), pulled * (n / len(middle)), len(middle) - 1)


def _quieter(base: Floats, head: Floats, count: int) -> _Mean:
    """Return the means of the `count` smallest values of either side, trimmed from above alone."""
    lowest = [np.sort(side)[:count] for side in (base, head)]
    pulled = np.minimum(head, lowest[1][-1]) - np.minimum(base, lowest[0][-1])
    return _Mean(float(lowest[0].mean()), float(lowest[1].mean()), pulled * (len(base) / count), count - 1)


def _with_machines(variance: float, freedom: float, over: levels.MachineSpread | None) -> tuple[float, float]:
    """Return a mean's standard error with its degrees of freedom (Satterthwaite 1946), with what differs between machines in it."""
    if over is None or (extra := float(over.extra[0])) <= 0:
        return math.sqrt(variance), freedom
    return math.sqrt(variance + extra), (variance + extra) ** 2 / (variance**2 / freedom + extra**2 / float(over.freedom[0]))


def _variance(values: Floats, layouts: Ints) -> tuple[float, float, bool]:
    """Return the variance of a difference, with its degrees of freedom, 0 for those of the values, and whether most of it is layouts'.

    Where layouts clearly differ, it is that between them, so that the interval covers other builds of the same code (nested design:
    Kalibera and Jones 2013, §6).
    """
    from scipy.special import fdtri

    n, variance = len(values), float(values.var(ddof=1))
    names, member = np.unique(layouts, return_inverse=True)
    if not 1 < len(names) < n:
        return variance, 0.0, False
    sizes = np.bincount(member)
    means = np.bincount(member, values) / sizes
    between = float((sizes * (means - values.mean()) ** 2).sum()) / (len(names) - 1)
    within = float(((values - means[member]) ** 2).sum()) / (n - len(names))
    if between <= within * fdtri(len(names) - 1, n - len(names), LAYOUTS_DIFFER):
        return variance, 0.0, False
    return max(between, variance), len(names) - 1.0, between > BY_LAYOUTS * within


def chance_of_more(differences: Floats) -> float:
    """Return how likely differences (n,) are to be positive as clearly, if chance alone made them so (signed ranks: Wilcoxon 1945)."""
    n = len(differences)
    if not n:
        return 1.0
    ranks = np.empty(n)
    ranks[np.argsort(np.abs(differences))] = np.arange(1, n + 1)
    excess = float(ranks[differences > 0].sum()) - n * (n + 1) / 4 - 1 / 2  # of whole numbers
    return math.erfc(excess / math.sqrt(n * (n + 1) * (2 * n + 1) / 12)) / 2


def next_look(pairs: int) -> int:
    """Return at how many pairs the next look is, after `pairs` of them."""
    look = FIRST_LOOK
    while look <= pairs:
        look *= NEXT_LOOK
    return look
