"""Power laws a·x^b of costs over a feature: least squares of logarithms, with bootstrap intervals (trend-prof §2.3, §4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from perfdiff.models.loglines import ROUNDING_SD, Contrast, LogLines, exponential, sign_draws
from perfdiff.models.trend import Interval, Prediction
from perfdiff.records.schema import Floats

CONFIDENCE = 0.95
# The paper predicts at so many times the 95th percentile of the feature.
FAR = (2.0, 10.0)
PERCENTILE = 95.0

# Costs at once: bounds what the draws hold (draws × costs, twelve times over) to about 25 MB.
BLOCK = 256


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """The power law a·x^b through the points that have logarithms: `n` of them, beside `ignored` others; `r2` is that of the logarithms."""

    a: float
    b: float
    ci_a: Interval
    ci_b: Interval
    r2: float
    n: int
    ignored: int
    predictions: tuple[Prediction, ...]


def far_values(x: Floats) -> tuple[float, ...]:
    """Return the values of a feature at which costs are predicted: 2·f95 and 10·f95 (trend-prof §4.2); none where no value is above 0."""
    usable = x[np.isfinite(x) & (x > 0)]
    return tuple(factor * float(np.percentile(usable, PERCENTILE)) for factor in FAR) if len(usable) else ()


def power_laws(x: Floats, costs: Floats, *, seed: int, confidence: float = CONFIDENCE) -> tuple[PowerLaw | None, ...]:
    """Return the power law of each row of `costs` (costs, points) over a feature `x` (points,), with intervals at `confidence`.

    Points whose cost or feature is not above 0, or absent, are ignored. None stands where fewer than `FEWEST_POINTS` are left, or all at
    one value of x. The same seed gives the same intervals, whatever other rows there are.
    """
    usable = np.isfinite(x) & (x > 0)
    logs = np.log(np.where(usable, x, 1.0))
    at = far_values(x)
    signs = sign_draws(len(x), seed)
    found: list[PowerLaw | None] = []
    for block in _blocks(len(costs)):
        known = usable & np.isfinite(costs[block]) & (costs[block] > 0)
        safe = np.where(known, costs[block], 1.0)
        found += _laws(LogLines(logs, np.log(safe), ROUNDING_SD / safe, known), at, signs, confidence)
    return tuple(found)


def _blocks(length: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, length, BLOCK))


def _laws(lines: LogLines, at: tuple[float, ...], signs: Floats, confidence: float) -> list[PowerLaw | None]:
    def bounds(contrast: Contrast) -> tuple[Floats, Floats, Floats]:
        center, width = lines.intervals(contrast, signs, confidence)
        return center, center - width, center + width

    slope, slope_low, slope_high = bounds(Contrast(0.0, 1.0))
    level, level_low, level_high = bounds(Contrast(1.0, 0.0))
    far = [(value, *bounds(Contrast(1.0, float(np.log(value))))) for value in at]
    points = lines.known.shape[1]
    return [
        PowerLaw(
            a=exponential(level[row]),
            b=float(slope[row]),
            ci_a=(exponential(level_low[row]), exponential(level_high[row])),
            ci_b=(float(slope_low[row]), float(slope_high[row])),
            r2=float(lines.explained[row]),
            n=int(lines.n[row]),
            ignored=points - int(lines.n[row]),
            predictions=tuple(
                Prediction(value, exponential(center[row]), (exponential(low[row]), exponential(high[row])))
                for value, center, low, high in far
            ),
        )
        if lines.sound[row]
        else None
        for row in range(len(lines.n))
    ]
