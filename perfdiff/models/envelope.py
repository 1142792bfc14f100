"""Regressions on selected calls where additive noise hides how a time follows its input (Freud §3.2, Further Refinements; §4.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.models.annotation import Factors, Trend
from perfdiff.models.likelihood import is_skewed
from perfdiff.models.observations import Observations
from perfdiff.models.regression import Regime, Tolerance, decide
from perfdiff.records.arrays import Floats, Ints

# Calls are selected only if the regression on all of them explains less than half of what the cost varies,
UNEXPLAINED = 0.5
# and taken only if that on the selected ones explains this much: the floor of Freud's program.
CLEAR = 0.9
# Selection goes by groups of calls of like input: at most this many, of at least so many calls. The lowest of twenty calls lies within
# a twentieth of the mean delay above the bound, if delays are exponential.
_GROUPS = 50
_GROUP = 20
_FEWEST = 10  # groups: through fewer, any bent line passes
# Selection takes this many calls.
SELECTABLE = _FEWEST * _GROUP
# A feature is worth a regression if it explains this much of the selected costs by itself, as values or as ranks.
_PROMISING = 0.5


@dataclass(frozen=True, slots=True)
class Refinement:
    """What a regression on selected calls found: its terms, by one feature, and which calls they describe."""

    trend: Trend
    terms: tuple[Factors, ...]


def refined(regime: Regime, terms: tuple[Factors, ...]) -> Refinement | None:
    """Return terms for the main trend of the cost, else for its lower bound, where the regression with `terms` leaves most unexplained.

    Only delays, which add to a cost and never shorten it, give such selections a meaning: the residuals must be skewed upward. The
    main trend comes first, since it describes half of the calls or more.
    """
    rows = regime.rows
    if len(rows) < SELECTABLE:
        return None
    columns, fit = regime.fitted(terms)
    residuals = rows.cost - columns @ fit.coefficients
    weighted = fit.weights > 0
    if not is_skewed(residuals) or residuals[weighted].var() < UNEXPLAINED * rows.cost[weighted].var():
        return None
    candidates = ((trend, name) for trend in (Trend.MAIN_TREND, Trend.LOWER_BOUND) for name in _promising(rows, trend))
    return next((refinement for trend, name in candidates if (refinement := _regression(rows, trend, name, regime.tolerance))), None)


def selected(trend: Trend, feature: Floats, cost: Floats) -> Ints:
    """Return the calls that a trend describes: of groups of calls of like input the lowest one, or the half that lies closest together."""
    size = max(_GROUP, len(cost) // _GROUPS)
    order = np.argsort(feature, kind="stable")
    groups = order[: len(order) // size * size].reshape(-1, size)
    if trend is Trend.LOWER_BOUND:
        return np.asarray(groups[np.arange(len(groups)), np.argmin(cost[groups], axis=1)])
    ranked = np.take_along_axis(groups, np.argsort(cost[groups], axis=1, kind="stable"), axis=1)
    half = size // 2
    width = cost[ranked[:, half:]] - cost[ranked[:, : size - half]]
    first = np.argmin(width, axis=1)
    return np.asarray(np.take_along_axis(ranked, first[:, None] + np.arange(half), axis=1).ravel())


def _promising(rows: Observations, trend: Trend) -> Iterator[str]:
    """Yield the features that the selected costs follow, the closest first."""
    explained = {}
    for name, column in rows.usable().items():
        chosen = selected(trend, column, rows.cost)
        x, y = column[chosen], rows.cost[chosen]
        if np.ptp(x) > 0 and np.ptp(y) > 0:
            ranks = np.corrcoef(np.argsort(np.argsort(x, kind="stable")), np.argsort(np.argsort(y, kind="stable")))[0, 1]
            explained[name] = max(float(np.corrcoef(x, y)[0, 1]) ** 2, float(ranks) ** 2)
    yield from (name for name in sorted(explained, key=lambda name: -explained[name]) if explained[name] >= _PROMISING)


def _regression(rows: Observations, trend: Trend, name: str, tolerance: Tolerance) -> Refinement | None:
    chosen = replace(rows, numeric=(name,)).rows(selected(trend, rows.columns[name], rows.cost))
    regime = Regime(chosen, tolerance)
    terms = decide(regime, regime.setting).terms
    columns, fit = regime.fitted(terms)
    left = chosen.cost - columns @ fit.coefficients
    if len(terms) < 2 or float(left @ left) > (1 - CLEAR) * len(chosen) * float(chosen.cost.var()):
        return None
    return Refinement(trend, terms)
