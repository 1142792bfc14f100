"""Costs over several features at once: sums and products of two, where they tell clearly more than the best one alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from perfdiff.models.laws import CANDIDATES, FUNCTIONS, in_words, penalty
from perfdiff.models.relative import CostMatrix, TermFit, even, sums_of_terms
from perfdiff.models.trend import JointLaw
from perfdiff.records.arrays import Floats

# Beyond the best law of one feature, another feature must lower BIC by this much: "very strong" evidence (Raftery 1995), since with many
# features some tell a little by chance.
MARGIN = 10.0
# Pairs grow by the square of the features: those are tried in pairs that tell most alone.
MOST_FEATURES = 6
# Half of the points must be left where all features are known, and as many as tell three terms' misfit.
FEWEST_POINTS = 8
# A term that makes up less of every run is of no use to a reader, whatever its evidence.
LEAST_SHARE = 0.1

_Term = tuple[tuple[str, str], ...]  # pairs of a feature and its function


def joint(features: Mapping[str, Floats], cost: Floats) -> JointLaw | None:
    """Return the model of a cost (points,) over two features, (points,) each by name, None where one alone tells it about as well.

    Tried are n·m, n·log m, m·log n, each alone and beside the line of a feature, n + m, and n² + m, m² + n. All laws are compared over the
    points where the cost and all varying features are known and above 0, by BIC with errors of logarithms after Student's t.
    """
    varying = {name: column for name, column in features.items() if _varies(column)}
    usable = np.isfinite(cost) & (cost > 0)
    for column in varying.values():
        usable = usable & np.isfinite(column) & (column > 0)
    points = int(usable.sum())
    if len(varying) < 2 or points < max(FEWEST_POINTS, len(cost) / 2):
        return None
    columns = {name: column[usable] for name, column in varying.items()}
    costs = even(cost[usable][None, :], np.ones((1, points), dtype=bool))
    alone = {name: min(_score(_columns(_of_one(name, terms), columns), costs)[0] for terms in CANDIDATES) for name in columns}
    likeliest = sorted(alone, key=lambda name: alone[name])[:MOST_FEATURES]
    tried = [terms for pair in combinations(likeliest, 2) for terms in _of_two(*pair)]
    scored = [_score(_columns(terms, columns), costs) for terms in tried]
    best = _plainest(tried, [score for score, _ in scored])
    score, fitted = scored[best]
    if not score < min(alone.values()) - MARGIN:
        return None
    return _joint_law(tried[best], fitted, costs)


def _plainest(tried: list[tuple[_Term, ...]], scores: list[float]) -> int:
    """Return the best model, or the plainest of those it extends that it does not beat by the margin."""
    best = int(np.argmin(scores))
    near = [place for place, terms in enumerate(tried) if set(terms) <= set(tried[best]) and scores[place] <= scores[best] + MARGIN]
    return min(near, key=lambda place: (len(tried[place]), scores[place]), default=best)


def _varies(column: Floats) -> bool:
    finite = column[np.isfinite(column)]
    return len(finite) > 0 and float(np.ptp(finite)) > 0


def _of_one(name: str, terms: tuple[str, ...]) -> tuple[_Term, ...]:
    return tuple(((name, function),) for function in terms)


def _of_two(first: str, second: str) -> list[tuple[_Term, ...]]:
    """Return the models of two features, the leading term last."""
    lines: list[_Term] = [((first, "n"),), ((second, "n"),)]
    squares: list[_Term] = [((first, "n²"),), ((second, "n²"),)]
    products: list[_Term] = [((first, "n"), (second, "n")), ((first, "n"), (second, "log")), ((second, "n"), (first, "log"))]
    beside: list[tuple[_Term, ...]] = [(), (lines[0],), (lines[1],), ((),)]
    return [
        *((*lower, product) for product in products for lower in beside),
        (lines[0], lines[1]),
        ((), lines[0], lines[1]),
        (lines[0], squares[1]),
        (lines[1], squares[0]),
    ]


def _columns(terms: tuple[_Term, ...], features: Mapping[str, Floats]) -> Floats:
    points = len(next(iter(features.values())))
    products = []
    for term in terms:
        column = np.ones(points)
        for name, function in term:
            column = column * FUNCTIONS[function](features[name])
        products.append(column)
    return np.stack(products, axis=1)


def _score(columns: Floats, costs: CostMatrix) -> tuple[float, TermFit]:
    """Return a model's BIC, infinite where its leading term takes away from the cost, or a term is nowhere of account."""
    fitted = sums_of_terms(columns, costs)
    shares = np.abs(fitted.coefficients[0] * columns / fitted.values.T).max(axis=0)
    if fitted.coefficients[0, -1] <= 0 or shares.min() < LEAST_SHARE:
        return np.inf, fitted
    return float(fitted.deviance[0] + penalty(costs.n, columns.shape[1])[0]), fitted


def _joint_law(terms: tuple[_Term, ...], fitted: TermFit, costs: CostMatrix) -> JointLaw:
    logs = costs.logs[0]
    left = float(((logs - np.log(fitted.values[0])) ** 2).sum())
    names = tuple(dict.fromkeys(name for term in terms for name, _ in term))
    spelt = [_spelt(term) for term in terms]
    return JointLaw(names, in_words(spelt, fitted.coefficients[0]), 1 - left / float(((logs - logs.mean()) ** 2).sum()))


def _spelt(term: _Term) -> str:
    spelling = {"n": "·{}", "log": "·log {}", "n²": "·{}²"}
    return "".join(spelling[function].format(name) for name, function in term)
