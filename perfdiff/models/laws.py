"""Which law of growth tells a cost best over one feature: a class with few terms, a free power, or two phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.models.annotation import CostClass
from perfdiff.models.loglines import FEWEST_POINTS
from perfdiff.models.relative import CostMatrix, TermFit, even, like_counts, products_of_powers, sums_of_terms
from perfdiff.models.trend import far_values
from perfdiff.records.arrays import Bools, Floats, Ints

Terms = tuple[str, ...]
Described = tuple[CostClass, str]  # a law's class, and the law in words

_Shape = tuple[Callable[[Floats], Floats], CostClass, str]  # of a term: its function, its class, and how it is spelt
_SHAPES: Mapping[str, _Shape] = {
    "1": (np.ones_like, CostClass.CONSTANT, ""),
    "log": (lambda x: np.log2(np.maximum(x, 2.0)), CostClass.LOGARITHMIC, "·log {}"),  # 1 at 2 and below: no cost is 0 or less for that
    "sqrt": (np.sqrt, CostClass.POWER, "·√{}"),
    "n": (lambda x: x, CostClass.LINEAR, "·{}"),
    "n log": (lambda x: x * np.log2(np.maximum(x, 2.0)), CostClass.N_LOG_N, "·{0}·log {0}"),
    "n^1.5": (lambda x: x**1.5, CostClass.POWER, "·{}^1.5"),
    "n²": (lambda x: x**2, CostClass.QUADRATIC, "·{}²"),
    "n³": (lambda x: x**3, CostClass.CUBIC, "·{}³"),
}
FUNCTIONS = {name: function for name, (function, _, _) in _SHAPES.items()}
# The paper fits the leading term alone; what real loops add to it are lower orders, the fastest growing term last.
CANDIDATES: tuple[Terms, ...] = (
    ("1",),
    ("log",),
    ("1", "log"),
    ("sqrt",),
    ("1", "sqrt"),
    ("n",),
    ("1", "n"),
    ("n log",),
    ("n", "n log"),
    ("1", "n log"),
    ("n^1.5",),
    ("n", "n^1.5"),
    ("1", "n^1.5"),
    ("n²",),
    ("n", "n²"),
    ("1", "n²"),
    ("n log", "n²"),
    ("1", "n", "n²"),
    ("n³",),
    ("n²", "n³"),
    ("n", "n³"),
    ("1", "n³"),
    ("n", "n²", "n³"),
)
_PURE_POWERS = frozenset({"1", "sqrt", "n", "n^1.5", "n²", "n³"})

# One law is preferred to another that is no plainer by this much of BIC: "strong" evidence (Kass and Raftery 1995). With less the data
# cannot tell, and the power law stands.
MARGIN = 6.0
# Two phases have a place to break at, besides four numbers: they must be as sure as the terms of annotations ("very strong").
PHASES_MARGIN = 10.0
PHASES_NUMBERS = 5
# A lower order may be negative (n²/2 - n/2), as long as it takes no more than half of the leading term (all of n²/2 - n/2 at n = 2).
MOST_TAKEN = 0.5
# A term names the class if it makes up at least half of the cost at ten times f95, the farthest that is predicted.
DOMINANT_SHARE = 0.5
# A cost that no feature tells scatters by more than a factor of two: half the logarithm of 2 in standard deviations.
UNTOLD_SCALE = 0.35
# Values of the feature that each phase needs: a line through two has no residual.
_FEWEST_VALUES = 3
# A phase's exponent is called by the nearest of these if that lies within so much of it: two digits of a short range's exponent.
_NEAR = 0.1
_PLAIN_EXPONENTS = (0.0, 1.0, 2.0, 3.0)
_ROUNDING = 1e-12  # of sums of squares of logarithms
# Costs at once: at 1,000 points what is held of one step stays in a core's cache.
BLOCK = 64


@dataclass(frozen=True, slots=True)
class _Contest:
    """What all candidates leave of each cost: `scores` (candidates, costs) by BIC, and the fits; the free power and two phases beside them.

    `last` (costs,) is the last value of the first phase.
    """

    costs: CostMatrix
    scores: Floats
    fits: tuple[TermFit, ...]
    power_scores: Floats
    power: TermFit
    phase_scores: Floats
    phases: TermFit
    last: Floats


def laws(feature: str, x: Floats, costs: Floats) -> tuple[Described | None, ...]:
    """Return the law of each row of `costs` (costs, points) over the feature's values `x` (points,); None where too few points are known.

    That is the class of its growth, and the law with its coefficients in words.

    Candidates are compared by BIC, corrected for few points (McQuarrie and Tsai 1998), with errors of logarithms after Student's t, either
    of one relative size or like those of counts of chances. Of nested candidates the plainest stands that no other beats by `MARGIN`. Where
    a candidate of another class is as good, the free power a·x^b is the law.
    """
    usable = np.isfinite(x) & (x > 0)
    positive = usable & np.isfinite(costs) & (costs > 0)
    safe = np.where(usable, x, 1.0)
    distinct = np.array([len(np.unique(x[row])) for row in positive], dtype=np.int64)
    tellable = np.flatnonzero((distinct >= 2) & (positive.sum(axis=1) >= FEWEST_POINTS))
    described: list[Described | None] = [None] * len(costs)
    for start in range(0, len(tellable), BLOCK):
        places = tellable[start : start + BLOCK]
        prepared, bent = _with_noise(safe, even(costs[places], positive[places]))
        contest = _contest(safe, prepared, distinct[places])
        for row, place in enumerate(places):
            described[place] = _chosen(feature, safe, float(bent[row]), contest, row)
    return tuple(described)


def _with_noise(x: Floats, costs: CostMatrix) -> tuple[CostMatrix, Floats]:
    """Return the costs with the form of errors that a bent power law finds likelier, each for itself, and the score of that law."""
    logs = np.log(x)
    centred = (logs - logs.mean()) / max(float(np.ptp(logs)), 1.0)
    columns = np.stack([np.ones_like(centred), centred, centred**2], axis=1)
    first = products_of_powers(columns, costs)
    counted = like_counts(costs, first.values)
    second = products_of_powers(columns, counted)
    is_counted = (second.deviance < first.deviance)[:, None]
    chosen = CostMatrix(costs.values, costs.known, np.where(is_counted, counted.noise, costs.noise))
    return chosen, np.minimum(first.deviance, second.deviance) + penalty(costs.n, 3)


def penalty(points: Ints, numbers: int) -> Floats:
    """Return BIC's penalty for a law with estimated `numbers`: log n each, corrected for few points; infinite if too few are left."""
    left = points - numbers - 2
    return np.where(left > 0, numbers * np.log(points) * points / np.maximum(left, 1), np.inf)


def _contest(x: Floats, costs: CostMatrix, distinct: Ints) -> _Contest:
    points = costs.n
    fits = []
    scores = np.full((len(CANDIDATES), len(costs.values)), np.inf)
    for place, terms in enumerate(CANDIDATES):
        columns = np.stack([FUNCTIONS[term](x) for term in terms], axis=1)
        fitted = sums_of_terms(columns, costs)
        leading = fitted.coefficients[:, -1:] * columns[:, -1]
        whole = ((fitted.values >= MOST_TAKEN * leading) | ~costs.known).all(axis=1)
        allowed = whole & (fitted.coefficients[:, -1] > 0) & (distinct > len(terms))
        scores[place] = np.where(allowed, fitted.deviance + penalty(points, len(terms)), np.inf)
        fits.append(fitted)
    power = products_of_powers(np.stack([np.ones_like(x), np.log(x)], axis=1), costs)
    last, phases = _phases(x, costs, power)
    return _Contest(
        costs,
        scores,
        tuple(fits),
        power.deviance + penalty(points, 2),
        power,
        phases.deviance + penalty(points, PHASES_NUMBERS),
        phases,
        last,
    )


def _chosen(feature: str, x: Floats, bent: float, contest: _Contest, row: int) -> Described:
    """Return the law of one of a contest's costs. What a `bent` power law, by its score, tells as well has no place where it breaks."""
    scores, power, values = contest.scores[:, row], float(contest.power_scores[row]), x[contest.costs.known[row]]
    best = _plainest(scores)
    own = float(scores[best])
    if contest.phase_scores[row] < min(own, power, bent) - PHASES_MARGIN:
        return CostClass.PIECEWISE, _phases_in_words(feature, values, float(contest.last[row]), contest.phases.coefficients[row])
    if not np.isfinite(own) or power < own - MARGIN or _is_rivalled(scores, best, power):
        level, exponent = contest.power.coefficients[row]
        return CostClass.POWER, power_in_words(feature, float(np.exp(level)), float(exponent))
    terms, fitted = CANDIDATES[best], contest.fits[best]
    if terms == ("1",) and fitted.scale[row] > UNTOLD_SCALE:
        return CostClass.NONE, f"not told by {feature}"
    at = far_values(values)[-1]
    parts = fitted.coefficients[row] * np.array([float(FUNCTIONS[term](np.array([at]))[0]) for term in terms])
    dominant = np.flatnonzero(parts >= DOMINANT_SHARE * parts.sum())
    leading = terms[int(dominant[-1])] if len(dominant) else terms[-1]
    return _class_of(leading), in_words([_spelt(term, feature) for term in terms], fitted.coefficients[row])


def _class_of(term: str) -> CostClass:
    return _SHAPES[term][1]


def _spelt(term: str, feature: str) -> str:
    return _SHAPES[term][2].format(feature)


def _plainest(scores: Floats) -> int:
    """Return the best candidate, or the plainest of those it extends that it does not beat by the margin; the constant is one of any."""
    best = int(np.argmin(scores))
    near = [
        place
        for place, terms in enumerate(CANDIDATES)
        if (terms == ("1",) or set(terms) < set(CANDIDATES[best])) and scores[place] <= scores[best] + MARGIN
    ]
    return min(near, key=lambda place: (CANDIDATES[place] != ("1",), len(CANDIDATES[place]), scores[place]), default=best)


def _is_rivalled(scores: Floats, best: int, power: float) -> bool:
    """Return whether a law of another class that is no extension of the best tells the cost as well. Any extends the constant."""
    terms = CANDIDATES[best]
    if terms == ("1",):
        return False
    is_extended = len(terms) == 1 and terms[0] in _PURE_POWERS  # by the free power
    if not is_extended and (power <= scores[best] + MARGIN or not np.isfinite(power)):
        return True
    return any(
        scores[place] <= scores[best] + MARGIN and _class_of(others[-1]) is not _class_of(terms[-1]) and not set(terms) <= set(others)
        for place, others in enumerate(CANDIDATES)
    )


def _phases(x: Floats, costs: CostMatrix, power: TermFit) -> tuple[Floats, TermFit]:
    """Return the last value of each cost's first phase (costs,), NaN where there cannot be two, and a power law below and one above it.

    The break is where lines through the logarithms of both phases leave least, of all points or with points far off drawn in, whichever
    is the likelier once both laws are fitted.
    """
    bounds = 3 * power.scale[:, None] * costs.noise
    expected = np.log(power.values)
    drawn_in = expected + np.clip(costs.logs - expected, -bounds, bounds)
    last, drawn_last = (_likeliest_break(x, logs, costs.known) for logs in (costs.logs, drawn_in))
    phases, drawn_phases = _both_phases(x, last, costs), _both_phases(x, drawn_last, costs)
    worse = phases.deviance > drawn_phases.deviance
    last[worse] = drawn_last[worse]
    return last, _both_phases(x, last, costs)


def _likeliest_break(x: Floats, y: Floats, has_cost: Bools) -> Floats:
    """Return the value after which two lines through `y` (costs, points) part best; NaN where too few values with a cost lie on a side."""
    order = np.argsort(x, kind="stable")
    values, has_cost = x[order], has_cost[:, order]
    left = _left_by_lines(np.log(values), y[:, order], has_cost.astype(np.float64))
    is_last = np.append(np.diff(values) > 0, True)
    starts = np.flatnonzero(np.append(True, is_last[:-1]))
    ranks = np.zeros(has_cost.shape, dtype=np.int64)  # of a value, at its last point: how many up to it have a cost
    ranks[:, is_last] = np.logical_or.reduceat(has_cost, starts, axis=1).cumsum(axis=1)
    possible = is_last & (ranks >= _FEWEST_VALUES) & (ranks[:, -1:] - ranks >= _FEWEST_VALUES)
    best = np.where(possible, left, np.inf).argmin(axis=1)
    return np.where(possible.any(axis=1), values[best], np.nan)


def _left_by_lines(logs: Floats, y: Floats, weights: Floats) -> Floats:
    """Return the squares (costs, points) that a line up to each point and one from the next on leave."""

    def left(xs: Floats, ys: Floats, ws: Floats) -> Floats:
        n = np.maximum(np.cumsum(ws, axis=1), 1)
        sx, sy = np.cumsum(ws * xs, axis=1), np.cumsum(ws * ys, axis=1)
        sxx = np.cumsum(ws * xs**2, axis=1) - sx**2 / n
        sxy = np.cumsum(ws * xs * ys, axis=1) - sx * sy / n
        syy = np.cumsum(ws * ys**2, axis=1) - sy**2 / n
        return np.asarray(syy - np.where(sxx > _ROUNDING, sxy**2 / np.maximum(sxx, _ROUNDING), 0.0))

    x = logs - logs.mean()
    centred = y - (y * weights).sum(axis=1, keepdims=True) / np.maximum(weights.sum(axis=1, keepdims=True), 1)
    below = left(x[None, :], centred, weights)
    above = left(x[None, ::-1], centred[:, ::-1], weights[:, ::-1])[:, ::-1]
    return np.asarray(below + np.append(above[:, 1:], np.zeros((len(y), 1)), axis=1))


def _both_phases(x: Floats, last: Floats, costs: CostMatrix) -> TermFit:
    """Return a power law up to each cost's `last` value and one beyond it, costs with the same break together; infinite without a break."""
    count, points = costs.values.shape
    phases = TermFit(np.zeros((count, 4)), np.ones((count, points)), np.zeros(count), np.full(count, np.inf))
    for value in np.unique(last[np.isfinite(last)]):
        below, rows = x <= value, last == value
        columns = np.stack([below, below * np.log(x), ~below, ~below * np.log(x)], axis=1)
        fitted = products_of_powers(columns, costs.rows(rows))
        for whole, part in ((phases.coefficients, fitted.coefficients), (phases.values, fitted.values)):
            whole[rows] = part
        phases.scale[rows], phases.deviance[rows] = fitted.scale, fitted.deviance
    return phases


def _phases_in_words(feature: str, x: Floats, last: float, coefficients: Floats) -> str:
    low = plain_power(feature, float(coefficients[0]), float(coefficients[1]), x[x <= last])
    high = plain_power(feature, float(coefficients[2]), float(coefficients[3]), x[x > last])
    return f"two phases: up to {feature} = {last:.4g} {low}, beyond {high}"


def plain_power(feature: str, level: float, exponent: float, x: Floats) -> str:
    """Return the law exp(`level`)·x^`exponent` in words, with a plain exponent where that is near, through the middle of the values `x`."""
    nearest = min(_PLAIN_EXPONENTS, key=lambda plain: abs(plain - exponent))
    if abs(nearest - exponent) <= _NEAR:
        middle = float(np.log(x).mean())
        return power_in_words(feature, float(np.exp(level + (exponent - nearest) * middle)), nearest)
    return power_in_words(feature, float(np.exp(level)), exponent)


def power_in_words(feature: str, factor: float, exponent: float) -> str:
    """Return a power law in words: `2.1·n^1.29`, `0.5·n²`."""
    plain = dict(zip(_PLAIN_EXPONENTS, ("1", "n", "n²", "n³"), strict=True)).get(exponent)
    return _times(factor, _spelt(plain, feature) if plain else f"·{feature}^{exponent:.2f}")


def in_words(spelt: Sequence[str], coefficients: Floats) -> str:
    """Return a sum of terms, `spelt` without their coefficients ("·n²", "" for a constant), the last and fastest growing first."""
    said = ""
    for term, coefficient in zip(reversed(spelt), reversed(coefficients), strict=True):
        sign = ("" if coefficient > 0 else "-") if not said else (" + " if coefficient > 0 else " - ")
        said += sign + _times(abs(float(coefficient)), term)
    return said


def _times(coefficient: float, function: str) -> str:
    """Return a term in words, without a coefficient that reads as 1."""
    said = number(coefficient) + function
    return said.removeprefix("1·")


def number(value: float) -> str:
    """Return a coefficient by two digits, from ten to a million by all of its whole ones."""
    if value >= 10:
        return f"{value:,.0f}" if value < 1e6 else f"{value:.2g}"
    return f"{value:.2g}"
