"""How the growth of a cost differs between two revisions, workload by workload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.models.loglines import ROUNDING_SD, LineContrast, LogLines, exponential, sign_draws
from perfdiff.models.trend import LEAST_SHIFT, Interval
from perfdiff.models.trendlines import CONFIDENCE, power_laws
from perfdiff.records.arrays import Floats

# A program has up to 30 costly clusters (the paper's largest), each of which is asked: together they may err in 5 % (Bonferroni).
CLAIMED_AT = 1 - (1 - CONFIDENCE) / 30
# The law of a new exponent must beat one that adds lower orders to base's cost by this much of BIC: "strong" (Kass and Raftery 1995).
MARGIN = 6.0
# From this exponent on a line is of lower order: half a logarithm's way (0.25 at n = 55) above the line itself.
ABOVE_A_LINE = 1.25
# Lower orders are what base's own cost outweighs at the largest input: it makes up between half and twice of the whole.
MOST_BESIDE = 2.0

_FITS_AGAIN = 5  # relative errors: weights follow from the fit, which follows from the weights
_EXACT = 1e-9  # of logarithms: what rounding leaves of a law that is met exactly


@dataclass(frozen=True, slots=True)
class ExponentShift:
    """Head's exponent less base's over the same points, with its 95 % interval.

    `is_new` tells that the growth is another: the interval excludes 0 even at `CLAIMED_AT`, the shift matters (`LEAST_SHIFT`), and neither
    a constant factor nor a term of lower order, which bends what has no logarithm of its own, explains it as well.
    """

    exponent: float
    ci: Interval
    is_new: bool


def exponent_shift(x: Floats, base: Floats, head: Floats, *, seed: int) -> ExponentShift | None:
    """Return the shift of a cost's exponent over a feature, all (points,); None where too few points are known.

    `x` is the feature of the workloads, the same for both sides: where a run prints its features and the revisions print different ones,
    base's, so that equal inputs are compared. The ratio of both costs is fitted, point by point: what a workload does to both sides alike
    cancels, and the interval is that of the difference alone (0 with (0, 0) where all counts are equal). Points where either side has no
    logarithm are left out.
    """
    lines = _ratios(x, base, head)
    if not lines.sound[0]:
        return None
    signs = sign_draws(len(x), seed)
    shift, (low, high) = _interval(lines, LineContrast(0.0, 1.0), signs, CONFIDENCE)
    _, (strictly_low, strictly_high) = _interval(lines, LineContrast(0.0, 1.0), signs, CLAIMED_AT)
    clear = abs(shift) >= LEAST_SHIFT and (strictly_low > 0 or strictly_high < 0)
    return ExponentShift(shift, (low, high), clear and not _is_of_lower_order(x, base, head, lines, seed))


def cost_ratio(x: Floats, base: Floats, head: Floats, at: float, *, seed: int) -> tuple[float, Interval] | None:
    """Return head's predicted cost at x = `at` over base's, with its 95 % interval, paired as in `exponent_shift`."""
    lines = _ratios(x, base, head)
    if not lines.sound[0]:
        return None
    center, (low, high) = _interval(lines, LineContrast(1.0, float(np.log(at))), sign_draws(len(x), seed), CONFIDENCE)
    return exponential(center), (exponential(low), exponential(high))


def _ratios(x: Floats, base: Floats, head: Floats) -> LogLines:
    usable = np.isfinite(x) & (x > 0) & np.isfinite(base) & (base > 0) & np.isfinite(head) & (head > 0)
    before, after = np.where(usable, base, 1.0), np.where(usable, head, 1.0)
    rounding = ROUNDING_SD * np.hypot(1 / before, 1 / after) if (before != after).any() else np.zeros(len(x))
    return LogLines(np.log(np.where(usable, x, 1.0)), np.log(after / before)[None, :], rounding[None, :], usable[None, :])


def _interval(lines: LogLines, contrast: LineContrast, signs: Floats, confidence: float) -> tuple[float, Interval]:
    center, width = lines.intervals(contrast, signs, confidence)
    return float(center[0]), (float(center[0] - width[0]), float(center[0] + width[0]))


def _is_of_lower_order(x: Floats, base: Floats, head: Floats, lines: LogLines, seed: int) -> bool:
    """Return whether head's cost is as well told by base's times a factor and what is of lower order: a constant, and a line beside more.

    Both laws are compared by the BIC of their logarithms' errors.
    """
    usable = lines.known[0]
    x, base, head = x[usable], base[usable], head[usable]
    columns = [base, np.ones(len(x))]
    exponents = [law.b for law in power_laws("", x, np.stack([base, head]), seed=seed) if law is not None]
    if max(exponents) >= ABOVE_A_LINE:
        columns.append(x)
    fitted, own = _relative_fit(np.stack(columns, axis=1), head)
    largest = int(np.argmax(x))
    if (fitted <= 0).any() or not 1 / MOST_BESIDE <= own[largest] / fitted[largest] <= MOST_BESIDE:
        return False
    points = len(x)
    beside = points * np.log(np.mean(np.log(head / fitted) ** 2) + _EXACT**2) + len(columns) * np.log(points)
    power = points * np.log(lines.mean_square[0] + _EXACT**2) + 2 * np.log(points)
    return bool(beside < power + MARGIN)


def _relative_fit(columns: Floats, cost: Floats) -> tuple[Floats, Floats]:
    """Return what columns (points, terms) fit of a cost (points,) by relative errors, and what the first of them makes up of it."""
    scale = cost
    for _ in range(_FITS_AGAIN):
        weighted = columns / scale[:, None]
        lengths = np.linalg.norm(weighted, axis=0)
        solution = np.linalg.lstsq(weighted / lengths, cost / scale, rcond=None)[0] / lengths
        fitted = columns @ solution
        if (fitted <= 0).any():
            break
        scale = fitted
    return fitted, columns[:, 0] * solution[0]
