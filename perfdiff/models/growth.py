"""Cost classes: which shapes a cost may take over a feature, and which class a sum of terms belongs to."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from perfdiff.models.annotation import LEAST_DIVISOR, PHASE, Annotation, CostClass, Factors, Term, product
from perfdiff.models.middle import median
from perfdiff.records.arrays import Floats

Shape = tuple[str, ...]

# Plainest first: fewer terms, then slower growth; but a line is plainer than a logarithm, which it resembles over short ranges, and what
# grows than an inverse.
SHAPES: tuple[Shape, ...] = (
    ("x",),
    ("log",),
    ("xlogx",),
    ("x2",),
    ("x3",),
    ("inv",),
    ("x", "xlogx"),
    ("x", "x2"),
    ("x", "x3"),
    ("x", "inv"),
    ("x", "x2", "x3"),
)

# So many values allow each of them; a look at the first rows spares most features the sort of all.
_ENOUGH_VALUES = max(map(len, SHAPES)) + 2
_FIRST_ROWS = 64

# The class is that of the terms that, with all that grow faster, make up at least this share of the growth over the measured range. Half a
# square's growth beside half a line's raise the local exponent at the top of the range to 1.5, where the square becomes the nearer
# one: a line that outgrows the caches there bends as much as 1.4.
DOMINANT_SHARE = 1 / 2

# A line and a cube together also fit what grows like x^2.4, as a square does that outgrows the caches; the class is the nearer one.
NEARER_TO_CUBE = 2.5

# Over less than a doubling of a feature's values every shape lies close to one line: beside a feature that spans more, such a one only
# says which of its calls are dearer.
_SHOWING = 2.0

_LOOKED_AT = 256  # calls, at most, by which an inverse is thought possible
_BEYOND_CHANCE = 2.0  # standard deviations of a correlation: one feature in forty has it by chance, and BIC decides then

ROUNDING = 1e-9  # of shares

INVERSE = "inv"
_ORDERS = {INVERSE: (-1, 0), "log": (0, 1), "x": (1, 0), "xlogx": (1, 1), "x2": (2, 0), "x3": (3, 0)}
BENT = frozenset(function for function, powers in _ORDERS.items() if powers > _ORDERS["x"])  # grow faster than a line


def shapes_for(x: Floats, *, doublings: float = 0.0, level: Floats | None = None) -> tuple[Shape, ...]:
    """Return the shapes that a column of values can tell apart: k distinct values allow k - 2 terms beside the intercept, at least one.

    Over fewer than `doublings` of the values, n log n passes for a line that bends a little, and is left out.
    Two values only have a slope. Logarithms need values of at least 0, where both log x and x·log x count as 0; an inverse needs values
    above 0 that span a doubling, and a cost that may have one, by its `level` (n,) where that is given.
    """
    distinct = _distinct(x)
    if distinct < 2:
        return ()
    if distinct == 2:
        return (("x",),)
    low, high = float(x.min()), float(x.max())
    refused = {"log", "xlogx"} if low < 0 else set()
    if doublings and high < 2**doublings * (low if low > 0 else x[x > 0].min(initial=high)):
        refused.add("xlogx")
    if not _span_a_doubling(low, high) or not (level is None or _falls(x, level)):
        refused.add(INVERSE)
    return _allowed(min(distinct, _ENOUGH_VALUES), frozenset(refused))


def cost_level(cost: Floats) -> Floats:
    """Return where costs (n,) lie between 0 and infinity, 0.5 at their median: no single call has much of a say then."""
    size = np.abs(cost)
    whole = size + max(median(size), 1e-300)
    return np.asarray(cost / whole)


def has_inverse(x: Floats) -> bool:
    """Return whether a cost may be divided by values: they are above 0, and span a doubling."""
    return _span_a_doubling(float(x.min()), float(x.max()))


def _span_a_doubling(low: float, high: float) -> bool:
    return low >= LEAST_DIVISOR and high >= _SHOWING * low


def _falls(x: Floats, level: Floats) -> bool:
    """Return whether costs go with 1 / x, or do so beside x as they lie above a line at small values, beyond chance.

    Most features have nothing to do with a cost, and need no inverse to be tried with all else.
    """
    step = -(-len(x) // _LOOKED_AT)
    x, level = x[::step], level[::step]
    columns = np.array([x / x[0], x[0] / x, level])
    columns -= columns.sum(axis=1, keepdims=True) / len(x)
    (xx, xv, xy), (_, vv, vy), (_, _, yy) = (columns @ columns.T).tolist()
    bend, left = xx * vy - xv * xy, (xx * vv - xv**2) * (xx * yy - xy**2)
    beyond = _BEYOND_CHANCE**2 / len(x)
    return bool((vy > 0 and vy**2 > beyond * vv * yy) or (bend > 0 and bend**2 > beyond * left))


@functools.cache
def _allowed(distinct: int, refused: frozenset[str]) -> tuple[Shape, ...]:
    """Return the shapes without `refused` functions that so many values allow: a few sets, asked for with every feature of every fit."""
    return tuple(shape for shape in SHAPES if len(shape) <= max(1, distinct - 2) and not refused.intersection(shape))


def _distinct(x: Floats) -> int:
    """Return the number of distinct values, or of those among the first rows where they are enough for every shape."""
    first = len(np.unique(x[:_FIRST_ROWS]))
    return first if first >= _ENOUGH_VALUES else len(np.unique(x))


def completed(terms: Sequence[Factors], values: Mapping[str, Floats]) -> list[Factors]:
    """Return the terms with n beside every n², as far as four distinct values can tell them apart."""
    full = list(terms)
    for factors in terms:
        if len(factors) == 1 and factors[0][1] == "x2" and len(np.unique(values[factors[0][0]])) >= 4:
            line = ((factors[0][0], "x"),)
            if line not in full:
                full.insert(full.index(factors), line)
    return full


def order(factors: Factors) -> tuple[int, int]:
    """Return the powers of n and of log n in a term whose features all grow like n; what it is divided by counts only where that is all."""
    orders = [_ORDERS[function] for _, function in factors if function != INVERSE] or [_ORDERS[INVERSE]] * bool(factors)
    return sum(power for power, _ in orders), sum(logs for _, logs in orders)


def growth_class(factors: Factors) -> CostClass:
    """Return the class of a single term; a product counts by its total order."""
    power, logs = order(factors)
    if power < 0:
        return CostClass.INVERSE
    if power >= 3:
        return CostClass.CUBIC
    if power == 2:
        return CostClass.QUADRATIC
    if power == 1:
        return CostClass.N_LOG_N if logs else CostClass.LINEAR
    return CostClass.LOGARITHMIC if logs else CostClass.CONSTANT


def growing_factors(factors: Factors, ranges: Mapping[str, tuple[float, float]]) -> Factors:
    """Return the factors of a term whose features' lowest and highest values show how a cost grows in them; all, where none do."""
    ends = {name: ranges.get(name, (0.0, 0.0)) for name, _ in factors}
    showing = tuple(factor for factor in factors if ends[factor[0]][0] <= 0 or ends[factor[0]][1] >= _SHOWING * ends[factor[0]][0])
    return showing or factors


def dominant_class(terms: Sequence[Term], values: Mapping[str, Floats], rows: int) -> CostClass:
    """Return the class of the fastest-growing terms that together make up `DOMINANT_SHARE` of the growth over the rows' range."""
    growing = [term for term in terms if term.factors]
    growth = np.array([_growth(term, values, rows) for term in growing])
    if not growth.any():  # no terms, or none that varies over these rows
        return CostClass.CONSTANT
    shares = growth / growth.sum() if abs(growth.sum()) > 0.1 * np.abs(growth).sum() else np.abs(growth) / np.abs(growth).sum()
    ranges = {name: (float(values[name].min()), float(values[name].max())) for term in growing for name, _ in term.factors}
    factors = [growing_factors(term.factors, ranges) for term in growing]
    ranked = sorted(zip(factors, shares, strict=True), key=lambda pair: order(pair[0]), reverse=True)
    reached = np.cumsum([share for _, share in ranked]) >= DOMINANT_SHARE - ROUNDING
    fastest = growth_class(ranked[int(np.argmax(reached))][0])
    if fastest is CostClass.CUBIC and _exponent(growing, values) < NEARER_TO_CUBE:
        return CostClass.QUADRATIC
    return fastest


def _growth(term: Term, values: Mapping[str, Floats], rows: int) -> float:
    """Return what a term adds over the rows' range; what falls as its feature grows takes away."""
    spread = term.coefficient * float(np.ptp(product(term.factors, values, rows)))
    return -spread if order(term.factors)[0] < 0 else spread


def _exponent(terms: Sequence[Term], values: Mapping[str, Floats]) -> float:
    """Return b of the power law a·x^b through the terms' sum at both ends of their feature's positive range (trend-prof §2.3).

    Infinity where there is no such law: several features, no two positive values, or a sum that falls.
    """
    features = {feature for term in terms for feature, _ in term.factors}
    if len(features) != 1:
        return np.inf
    (feature,) = features
    positive = values[feature][(values[feature] > 0) & np.isfinite(values[feature])]
    if not len(positive) or positive.min() == positive.max():
        return np.inf
    ends = np.array([positive.min(), positive.max()])
    low, high = np.sum([term.coefficient * product(term.factors, {feature: ends}, 2) for term in terms], axis=0)
    return float(np.log(high / low) / np.log(ends[1] / ends[0])) if 0 < low < high else np.inf


def leading_term(annotation: Annotation, feature: str | None) -> Term | None:
    """Return the term that leads at large inputs, of an inverse at small ones, or None where it is no summary.

    Regimes or several features make it none, and so does a class that is not the term's own: a line and a cube can make a square.
    """
    if len(annotation.steady) != 1 or len({*annotation.features} - {PHASE}) > 1 or annotation.by_counts is not None:
        return None
    scope = replace(annotation.steady[0], conditions=())
    if annotation.cost_class is CostClass.CONSTANT or not feature:
        return next((term for term in scope.terms if not term.factors), None)
    end = 0 if annotation.cost_class is CostClass.INVERSE else 1  # where what leads is most of the cost
    sizes: Mapping[str, Floats] = {feature: np.array([annotation.ranges.get(feature, (0.0, 1.0))[end]])}
    parts = [(abs(float(replace(annotation, scopes=(replace(scope, terms=(term,)),)).predict(sizes)[0])), term) for term in scope.terms]
    _, term = max(parts, key=lambda part: part[0])
    return term if growth_class(term.factors) is annotation.cost_class else None
