"""What runs say of a question: those of a side, pairs of both sides at a workload point, and the contrast that they show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.records.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Group:
    """One statistic per run of one side at one workload point: `values` (n,), `blocks` (n,) of the schedule, `machines` (n,) of several."""

    values: Floats
    blocks: Ints
    machines: Ints | None = None


@dataclass(frozen=True, slots=True)
class PointRuns:
    """Base's and head's runs at one workload point."""

    base: Group
    head: Group


@dataclass(frozen=True, slots=True)
class Contrast:
    """Head minus base: `effect` with standard error and degrees of freedom; `agreement` is the share of run pairs where head is larger.

    `chance` is the standard deviation of that share under no difference (Mann and Whitney), `differ` the p-value of no difference between
    machines.
    """

    effect: float
    error: float
    freedom: float
    agreement: float
    chance: float
    runs_base: int
    runs_head: int
    differ: float = 1.0

    @property
    def runs(self) -> int:
        """Return how many runs it rests on."""
        return self.runs_base + self.runs_head

    @property
    def p(self) -> float:
        """Return the two-sided p-value of no difference (Student's t)."""
        from scipy.special import stdtr

        if self.error == 0:
            return 0.0 if self.effect else 1.0
        return float(2 * stdtr(self.freedom, -abs(self.effect) / self.error))

    def p_beyond(self, least: float) -> float:
        """Return the two-sided p-value of an effect of at most `least` either way (minimum-effect test: Murphy and Myors 1999)."""
        from scipy.special import stdtr

        distance = abs(self.effect) - least
        if distance <= 0:
            return 1.0
        return float(2 * stdtr(self.freedom, -distance / self.error)) if self.error else 0.0

    def interval(self, confidence: float, comparisons: int = 1) -> tuple[float, float]:
        """Return the interval of the effect that holds for `comparisons` contrasts at once (Bonferroni)."""
        half = self.half_width(confidence, comparisons)
        return self.effect - half, self.effect + half

    def half_width(self, confidence: float, comparisons: int = 1) -> float:
        """Return half the width of `interval`."""
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, 1 - (1 - confidence) / (2 * comparisons))) * self.error if self.error else 0.0


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one side at p points: `values` (p, k, r) answer k questions each, NaN where they say nothing; `blocks` (p, r).

    `together` (p,) are the points where base's and head's run of each block were made at the same time, and met the same of the machine.
    `machines` (p, r) are those that runs were made on, None where that is one.
    """

    values: Floats
    blocks: Ints
    together: Bools
    machines: Ints | None = None

    @property
    def counts(self) -> Ints:
        """Return how many runs answer each question at each point (p, k)."""
        counts: Ints = np.isfinite(self.values).sum(axis=-1)
        return counts
