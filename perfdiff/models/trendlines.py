"""Trends of costs over a feature: least squares of logarithms with bootstrap intervals (trend-prof §2.3, §4.2), classes, and residuals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfdiff.models.annotation import CostClass
from perfdiff.models.diagnosis import diagnoses
from perfdiff.models.laws import laws, power_in_words
from perfdiff.models.loglines import ROUNDING_SD, LineContrast, LogLines, exponential, sign_draws
from perfdiff.models.trend import Law, TrendPrediction, far_values
from perfdiff.records.arrays import Floats

CONFIDENCE = 0.95
TWO_PHASES = "two phases"

# Costs at once: bounds what the draws hold (draws × costs, twelve times over) to about 25 MB.
BLOCK = 256


def fit(feature: str, x: Floats, cost: Floats, *, seed: int) -> Law | None:
    """Return the trend of one cost (points,) over a feature's values `x` (points,), as in `fits`."""
    return fits(feature, x, cost[None, :], seed=seed)[0]


def best_fit(features: dict[str, Floats], cost: Floats, *, seed: int) -> Law | None:
    """Return the trend of a cost (points,) over the feature that tells most of it, of those (points,) by name; None where none does."""
    fitted = (fit(name, x, cost, seed=seed) for name, x in features.items())
    return max((law for law in fitted if law), key=lambda law: law.r2, default=None)


def fits(feature: str, x: Floats, costs: Floats, *, seed: int) -> tuple[Law | None, ...]:
    """Return the trend of each row of `costs` (costs, points) over a feature's values `x` (points,), as `power_laws` with its class."""
    rows = zip(power_laws(feature, x, costs, seed=seed), laws(feature, x, costs), diagnoses(feature, x, costs), strict=True)
    return tuple(
        power and law and replace(power, growth=law[0], says=law[1], diagnosis=TWO_PHASES if law[0] is CostClass.PIECEWISE else diagnosis)
        for power, law, diagnosis in rows
    )


def power_laws(feature: str, x: Floats, costs: Floats, *, seed: int, confidence: float = CONFIDENCE) -> tuple[Law | None, ...]:
    """Return the power law of each row of `costs` (costs, points) over a feature's values `x` (points,), with intervals at `confidence`.

    Points whose cost or feature is not above 0, or absent, are ignored. None stands where fewer than `FEWEST_POINTS` are left, or all at
    one value of x. The same seed gives the same intervals, whatever other rows there are. Without classes and diagnosis it takes a quarter
    of the time of `fits`: for the many costs that matter little.
    """
    usable = np.isfinite(x) & (x > 0)
    logs = np.log(np.where(usable, x, 1.0))
    signs = sign_draws(len(x), seed)
    fitted: list[Law | None] = []
    for start in range(0, len(costs), BLOCK):
        block = costs[start : start + BLOCK]
        positive = usable & np.isfinite(block) & (block > 0)
        safe = np.where(positive, block, 1.0)
        fitted += _laws(feature, LogLines(logs, np.log(safe), ROUNDING_SD / safe, positive), far_values(x), signs, confidence)
    return tuple(fitted)


def _laws(feature: str, lines: LogLines, at: tuple[float, ...], signs: Floats, confidence: float) -> list[Law | None]:
    def bounds(contrast: LineContrast) -> tuple[Floats, Floats, Floats]:
        center, width = lines.intervals(contrast, signs, confidence)
        return center, center - width, center + width

    slope, slope_low, slope_high = bounds(LineContrast(0.0, 1.0))
    level, level_low, level_high = bounds(LineContrast(1.0, 0.0))
    far = [(value, *bounds(LineContrast(1.0, float(np.log(value))))) for value in at]
    points = lines.known.shape[1]
    return [
        Law(
            feature=feature,
            a=exponential(level[row]),
            b=float(slope[row]),
            ci_a=(exponential(level_low[row]), exponential(level_high[row])),
            ci_b=(float(slope_low[row]), float(slope_high[row])),
            r2=float(lines.explained[row]),
            n=int(lines.n[row]),
            ignored=points - int(lines.n[row]),
            predictions=tuple(
                TrendPrediction(value, exponential(center[row]), (exponential(low[row]), exponential(high[row])))
                for value, center, low, high in far
            ),
            growth=CostClass.POWER,
            says=power_in_words(feature, exponential(level[row]), float(slope[row])),
        )
        if lines.sound[row]
        else None
        for row in range(len(lines.n))
    ]
