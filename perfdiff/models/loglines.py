"""Lines through logarithms of costs, many at once, with intervals by a bootstrap of signs (trend-prof §2.3, §4.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.records.arrays import Bools, Floats, Ints

DRAWS = 1000  # the paper's
# A line through three points leaves one residual; with fewer nothing tells how sure it is.
FEWEST_POINTS = 3

# Counts are whole numbers: no law meets one nearer than its rounding, which has this standard deviation. An interval is never narrower
# than that allows, so that laws without noise are not told apart by the last digit.
ROUNDING_SD = 1 / np.sqrt(12)

# Up to so many points the draws meet most of the 2^(n-1) patterns of signs, and their quantiles are coarse: there they are at least
# Student's. Without that, 95 % intervals covered 92.2 % with 8 points (mean of 18 kinds of noise and design, 1,000 repetitions each).
FEW_POINTS = 12

_NEAR_ONE = 1e-9  # of a point's leverage: one that alone decides the slope has no residual of its own


def sign_draws(points: int, seed: int) -> Floats:
    """Return the draws of the bootstrap (draws, points): a sign for each point's residual (Liu 1988)."""
    return np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), size=(DRAWS, points))


def exponential(logarithm: float) -> float:
    """Return e to a power, infinite where no number is large enough."""
    return float(np.exp(logarithm)) if logarithm < np.log(np.finfo(np.float64).max) else np.inf


@dataclass(frozen=True, slots=True)
class LineContrast:
    """What an interval is made for: `level` times the line's value at log x = 0, and `slope` times its slope."""

    level: float
    slope: float


class LogLines:
    """Lines through logarithms `y` (costs, points) over `logs` (points,), each by least squares of the points that it has.

    `rounding` (costs, points) is the standard deviation of a logarithm that the rounding of counts alone makes.
    """

    def __init__(self, logs: Floats, y: Floats, rounding: Floats, usable: Bools) -> None:
        self.n: Ints = usable.sum(axis=1)
        n = np.maximum(self.n, 1)
        self.mean_x = usable @ logs / n
        mean_y = (usable * y).sum(axis=1) / n
        self.x = usable * (logs - self.mean_x[:, None])
        self.y = usable * (y - mean_y[:, None])
        squares = (self.x**2).sum(axis=1)
        spread = np.where(usable, logs, -np.inf).max(axis=1) > np.where(usable, logs, np.inf).min(axis=1)
        self.sound = (self.n >= FEWEST_POINTS) & spread
        self.squares = np.where(self.sound, squares, 1.0)
        self.slope = (self.x * self.y).sum(axis=1) / self.squares
        self.level = mean_y - self.slope * self.mean_x
        self.known = usable
        residuals = usable * (self.y - self.slope[:, None] * self.x)
        leverage = usable * (1 / n[:, None] + self.x**2 / self.squares[:, None])
        self._shrink = 1 / np.maximum(1 - leverage, _NEAR_ONE)
        self.mean_square = (residuals**2).sum(axis=1) / n
        self.explained = self._explained(residuals)
        spread_of_each = np.hypot(residuals, rounding)
        self._residuals = usable * np.where(residuals < 0, -spread_of_each, spread_of_each) * self._shrink

    def _explained(self, residuals: Floats) -> Floats:
        """Return R² of the logarithms: 1 where they do not vary, as a line through them leaves nothing."""
        total = (self.y**2).sum(axis=1)
        return np.where(total > 0, 1 - (residuals**2).sum(axis=1) / np.where(total > 0, total, 1.0), 1.0)

    def intervals(self, contrast: LineContrast, signs: Floats, confidence: float) -> tuple[Floats, Floats]:
        """Return the contrast's estimates (costs,) and half the widths of their intervals, by the wild bootstrap of a studentised value.

        Each draw turns the signs of some residuals (each over 1 - its leverage, HC3), fits again, and divides what the estimate moved by
        its own standard error, robust against unequal noise; the quantile of that over the draws times the estimate's own error is half
        the width (Wu 1986; Davidson and Flachaire 2008). With signs, squares of drawn residuals are those of the residuals, so that all
        draws of all costs are a few products of matrices.
        """
        estimate = contrast.level * self.level + contrast.slope * self.slope
        n = np.maximum(self.n, 1)
        pull = contrast.slope - contrast.level * self.mean_x
        influence = self.known * (contrast.level / n[:, None] + pull[:, None] * self.x / self.squares[:, None])
        drawn_level = signs @ (self._residuals / n[:, None]).T
        drawn_slope = signs @ (self._residuals * self.x / self.squares[:, None]).T
        weights = (influence * self._shrink) ** 2
        # Σ w·(v·u - level - slope·x)² for signs v.
        variance = (
            (weights * self._residuals**2).sum(axis=1)
            - 2 * drawn_level * (signs @ (weights * self._residuals).T)
            - 2 * drawn_slope * (signs @ (weights * self._residuals * self.x).T)
            + drawn_level**2 * weights.sum(axis=1)
            + 2 * drawn_level * drawn_slope * (weights * self.x).sum(axis=1)
            + drawn_slope**2 * (weights * self.x**2).sum(axis=1)
        )
        moved = np.abs(contrast.level * drawn_level + pull * drawn_slope)
        error = np.sqrt(((influence * self._residuals) ** 2).sum(axis=1))
        # A draw whose residuals all vanish but for the rounding of sums says nothing of the error.
        least = (1e-6 * error) ** 2
        quantile = np.quantile(moved / np.sqrt(np.maximum(variance, np.where(least > 0, least, 1.0))), confidence, axis=0)
        return estimate, error * np.where(self.n <= FEW_POINTS, np.maximum(quantile, self._student(confidence)), quantile)

    def _student(self, confidence: float) -> Floats:
        from scipy.special import stdtrit  # `scipy.stats` takes longer to import than all lines to fit

        return np.asarray(stdtrit(np.maximum(self.n - 2, 1), (1 + confidence) / 2))
