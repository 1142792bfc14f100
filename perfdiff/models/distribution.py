"""How the calls of one scope scatter about their expected cost: normal, exponential or binomial (Freud §2.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from perfdiff.records.arrays import Floats

# Costs this near to a prediction agree with it: annotations carry six digits of every prediction.
DIGITS = 1e-6


@dataclass(frozen=True, slots=True)
class Normal:
    """`Norm(μ, sigma + relative %)`: standard deviation sqrt(sigma² + (relative·μ)²), as times have that vary with their length."""

    sigma: float
    relative: float = 0.0

    def deviation(self, expected: Floats) -> Floats:
        """Return the standard deviation (n,)."""
        return np.asarray(np.sqrt(self.sigma**2 + (self.relative * expected) ** 2))

    def bounds(self, expected: Floats, cost: Floats) -> tuple[Floats, Floats]:
        """Return P(Y < cost) and P(Y ≤ cost) (n,); they differ where nothing scatters and the cost is the expected one."""
        from scipy.special import ndtr

        deviation = self.deviation(expected)
        tolerance = DIGITS * np.abs(expected)
        exact = deviation <= tolerance
        below = ndtr((cost - expected) / np.where(exact, 1.0, deviation))
        apart = cost - expected
        low = np.where(exact, apart > tolerance, below)
        return np.asarray(low, dtype=np.float64), np.asarray(np.where(exact, apart >= -tolerance, below), dtype=np.float64)

    def quantile(self, expected: Floats, level: float | Floats) -> Floats:
        """Return the cost (n,) that is not exceeded with probability `level`."""
        from scipy.special import ndtri

        return np.asarray(expected + ndtri(level) * self.deviation(expected))


@dataclass(frozen=True, slots=True)
class Exponential:
    """`μ - mean + Exp(1/mean)`: a sharp lower edge and a tail of delays, `mean` long on average; μ, the expected cost, includes them."""

    mean: float

    def bounds(self, expected: Floats, cost: Floats) -> tuple[Floats, Floats]:
        """Return P(Y < cost) and P(Y ≤ cost) (n,), which are the same."""
        above = np.maximum(cost - expected + self.mean, 0.0)
        both = np.asarray(-np.expm1(-above / self.mean))
        return both, both

    def quantile(self, expected: Floats, level: float | Floats) -> Floats:
        """Return the cost (n,) that is not exceeded with probability `level`."""
        return np.asarray(expected - self.mean * (1.0 + np.log1p(-level)))


@dataclass(frozen=True, slots=True)
class Binomial:
    """`start + step·Binom(trials, chance)`, for costs that are counts; with `trials` None, `Binom(μ/chance, chance)`.

    Two values are one trial. Trials that follow the input are rounded to a whole number.
    """

    chance: float
    trials: int | None = None
    start: float = 0.0
    step: float = 1.0

    @property
    def expected(self) -> float:
        """Return the expected cost where the number of trials is fixed."""
        return self.start + self.step * (self.trials or 0) * self.chance

    @property
    def sigma(self) -> float:
        """Return the standard deviation where the number of trials is fixed."""
        return abs(self.step) * math.sqrt((self.trials or 0) * self.chance * (1 - self.chance))

    def bounds(self, expected: Floats, cost: Floats) -> tuple[Floats, Floats]:
        """Return P(Y < cost) and P(Y ≤ cost) (n,)."""
        successes = (cost - self.start) / self.step
        whole = np.round(successes)
        near = np.abs(successes - whole) <= DIGITS * np.maximum(np.abs(whole), 1.0)
        at_most = np.where(near, whole, np.floor(successes))
        below = np.where(near, whole - 1, np.floor(successes))
        trials = self._trials(expected)
        return self._cumulative(below, trials), self._cumulative(at_most, trials)

    def quantile(self, expected: Floats, level: float | Floats) -> Floats:
        """Return the least cost (n,) that is not exceeded with probability `level` or more."""
        from scipy.stats import binom

        return np.asarray(self.start + self.step * binom.ppf(level, self._trials(expected), self.chance))

    def _trials(self, expected: Floats) -> Floats:
        if self.trials is not None:
            return np.full(len(expected), float(self.trials))
        return np.asarray(np.maximum(np.round(expected / self.chance), 0.0))

    def _cumulative(self, successes: Floats, trials: Floats) -> Floats:
        from scipy.special import bdtr

        inside = np.clip(successes, 0.0, trials)
        return np.where(successes < 0, 0.0, np.where(successes >= trials, 1.0, bdtr(inside, trials.astype(np.int64), self.chance)))


Distribution = Normal | Exponential | Binomial
