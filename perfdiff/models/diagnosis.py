"""What the residuals of power laws show, in words (trend-prof §4.2: the residuals plot is random if the law explains the data)."""

from __future__ import annotations

import numpy as np

from perfdiff.models.noise import NORMAL_MAD
from perfdiff.models.relative import CostMatrix, even, products_of_powers
from perfdiff.records.arrays import Floats

CURVED = "curved: a lower-order term or a logarithm"
WAVES = "in waves around the law"

# A parabola of logarithms must beat the line by this much of BIC: "strong" evidence (Kass and Raftery 1995).
MARGIN = 6.0
# A test of scatter or order must be as sure as this: some hundred residuals' plots are made for one program.
LEAST_P = 0.001
# Ranks of fewer points never reach that, or hardly.
FEWEST_POINTS = 10
# A point is far off at so many times the scale of the errors, and by a fifth of the cost or more; and single if there are few of them.
FAR_OFF = 6.0
LEAST_OFF = np.log(1.2)
MOST_SINGLE = 0.1
# Scatter and waves of less are of no use to anybody: a hundredth of the cost.
LEAST_SCATTER = 0.01


def diagnoses(feature: str, x: Floats, costs: Floats) -> tuple[str, ...]:
    """Return what the residuals of each row of `costs` (costs, points) over `x` (points,) show, "" where nothing or where few are known."""
    usable = np.isfinite(x) & (x > 0)
    prepared = even(costs, usable & np.isfinite(costs) & (costs > 0))
    enough = prepared.n >= FEWEST_POINTS
    by_cost = [""] * len(costs)
    if enough.any():
        texts = _texts(feature, np.log(np.where(usable, x, 1.0)), prepared.rows(enough))
        for place, said in zip(np.flatnonzero(enough), texts, strict=True):
            by_cost[place] = said
    return tuple(by_cost)


def _texts(feature: str, logs: Floats, costs: CostMatrix) -> list[str]:
    centred = (logs - logs.mean()) / max(float(np.ptp(logs)), 1.0)
    columns = np.stack([np.ones_like(centred), centred, centred**2], axis=1)
    line, parabola = products_of_powers(columns[:, :2], costs), products_of_powers(columns, costs)
    bent = line.deviance - parabola.deviance > MARGIN + np.log(costs.n)
    fitted = np.where(bent[:, None], parabola.values, line.values)
    return [
        "; ".join(_words(feature, logs[positive], np.log(values[positive] / expected[positive]), is_bent=bool(is_bent)))
        for positive, values, expected, is_bent in zip(costs.known, costs.values, fitted, bent, strict=True)
    ]


def _words(feature: str, logs: Floats, residuals: Floats, *, is_bent: bool) -> list[str]:
    """Return what residuals show by the logarithms of the feature's values: of the line, or where that is bent of the parabola."""
    shape = [CURVED] if is_bent else []
    scale = NORMAL_MAD * float(np.median(np.abs(residuals - np.median(residuals))))
    off = np.abs(residuals) > max(FAR_OFF * scale, LEAST_OFF)
    near = residuals[~off]
    if near.std() >= LEAST_SCATTER:
        order = np.argsort(logs[~off], kind="stable")
        if _runs_p(near[order]) < LEAST_P:
            shape = shape or [WAVES]
        elif scatter := _scatter(feature, logs[~off], np.abs(near)):
            return [*shape, scatter]  # where scatter grows, its largest are no single points
    if 0 < off.sum() <= MOST_SINGLE * len(off):
        return [*shape, f"single points far off: {off.sum()} of {len(off)}"]
    return shape


def _scatter(feature: str, logs: Floats, sizes: Floats) -> str:
    """Return towards which end residuals are larger, by Spearman's rank correlation with the feature; "" for none."""
    from scipy import stats

    if np.ptp(logs) == 0 or np.ptp(sizes) == 0:
        return ""
    correlation = stats.spearmanr(logs, sizes)
    if correlation.pvalue >= LEAST_P:
        return ""
    return f"scattered more at {'large' if correlation.statistic > 0 else 'small'} {feature}"


def _runs_p(residuals: Floats) -> float:
    """Return how likely chance makes so few runs of residuals above and below 0 (Wald and Wolfowitz 1940, normal approximation)."""
    from scipy import stats

    above = residuals > 0
    many, few = int(above.sum()), int((~above).sum())
    if not many or not few:
        return 1.0
    points = many + few
    mean = 2 * many * few / points + 1
    variance = (mean - 1) * (mean - 2) / (points - 1)
    runs = 1 + int((above[1:] != above[:-1]).sum())
    return float(stats.norm.cdf((runs + 0.5 - mean) / np.sqrt(variance))) if variance > 0 else 1.0
