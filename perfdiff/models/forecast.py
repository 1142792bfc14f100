"""What an annotation says of single calls: where in its distribution a cost lies, and between which costs calls stay."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perfdiff.models.annotation import Annotation, blocks, inputs, membership
from perfdiff.models.distribution import Distribution
from perfdiff.records.arrays import Floats

_HALVINGS = 60  # of the interval that holds a quantile: down to the last digit of a double


def cdf(annotation: Annotation, values: Mapping[str, Floats], cost: Floats, *, seed: int) -> Floats:
    """Return the probability-integral transform (n,) of costs: uniform on [0, 1] if calls follow the annotation (HotCloud §5).

    Costs that many calls share exactly, as counts are, are spread evenly over the step they stand for (`seed`), so that their values
    are uniform, too. Upward outliers lie at 1: up to the scope's `trimmed` share of calls was left out of the fit. NaN where the cost or
    a feature of the call's scope is absent.
    """
    components, weights = _components(annotation, values, len(cost))
    low, high = np.zeros(len(cost)), np.zeros(len(cost))
    for (law, expected), weight in zip(components, weights, strict=True):
        inside = weight > 0
        below, at_most = law.bounds(expected[inside], cost[inside])
        low[inside] += weight[inside] * below
        high[inside] += weight[inside] * at_most
    total = np.sum(weights, axis=0)
    spread = np.random.default_rng(seed).random(len(cost))
    predictable = (total > 0) & np.isfinite(cost)
    return np.where(predictable, (low + spread * (high - low)) / np.where(predictable, total, 1.0), np.nan)


def interval(annotation: Annotation, values: Mapping[str, Floats], level: float) -> tuple[Floats, Floats]:
    """Return the costs (n,) between which a share `level` of calls with these inputs lies, as many below as above.

    The uncertainty of the coefficients is left out; with the hundreds of calls that an annotation takes it is small beside the scatter.
    """
    tail = (1 - level) / 2
    return _quantile(annotation, values, tail), _quantile(annotation, values, 1 - tail)


def _components(annotation: Annotation, values: Mapping[str, Floats], rows: int) -> tuple[list[tuple[Distribution, Floats]], Floats]:
    """Return each scope's distribution and expected cost (n,), and the scopes' weights in each row (scopes, n)."""
    filled, _ = inputs(annotation, values)
    components, weights = [], []
    for scopes in blocks(annotation):
        inside = membership(scopes, values, rows)
        for scope in scopes:
            components.append((scope.scatter, scope.expected(filled, rows)))
            weights.append(inside * scope.probability)
    return components, np.array(weights)


def _quantile(annotation: Annotation, values: Mapping[str, Floats], level: float) -> Floats:
    _, rows = inputs(annotation, values)
    components, weights = _components(annotation, values, rows)
    ends = np.array([law.quantile(expected, level) for law, expected in components])
    low = np.min(np.where(weights > 0, ends, np.inf), axis=0)
    high = np.max(np.where(weights > 0, ends, -np.inf), axis=0)
    for _ in range(_HALVINGS if len(components) > 1 else 0):
        middle = (low + high) / 2
        reached = sum(weight * law.bounds(expected, middle)[1] for (law, expected), weight in zip(components, weights, strict=True))
        enough = reached >= level * weights.sum(axis=0)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(np.isfinite(high), high, np.nan)
