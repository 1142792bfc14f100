"""Which terms explain a cost: stepwise search over shapes and products, by BIC on the same rows (Freud §3.2, Model Formulation)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from perfdiff.models.annotation import Factors, product
from perfdiff.models.growth import BENT, INVERSE, Shape, cost_level, has_inverse, shapes_for
from perfdiff.records.arrays import Bools, Floats, Ints

# A term must lower BIC by this much: odds of 150 to 1, "very strong" evidence (Raftery 1995), so that noise does not move the class.
MARGIN = 10.0
# Features in one model: Freud's largest has three, which a reader still follows. More are there where each pays on runs held out as well.
FEW_FEATURES = 3
MAX_FEATURES = 6
# A further one must take away this much of what is left of them: of a cost within a hundredth, five features tell as much as six.
WORTH_IT = 0.10
# Features tried in full at each step, after screening all by what one term of theirs would explain.
SCREENED = 6

_SINGLES = ("log", "x", "xlogx", "x2", "x3", INVERSE)
_PRODUCTS = (("x", "x"), ("x", "log"), ("log", "x"), ("x", INVERSE), (INVERSE, "x"))
# Tried where one of those pays, which over a few sizes look like these.
_STEEPER_PRODUCTS = (("x", "xlogx"), ("xlogx", "x"), ("xlogx", "xlogx"), ("x", "x2"), ("x2", "x"))
_BEYOND_CHANCE = 4.0  # standard deviations: the largest of a hundred correlations has no more
_PARTS = 5  # of the runs, each held out once
_RIDGE = 1e-12  # keeps nearly collinear terms solvable; far below any noise


@dataclass(frozen=True, slots=True)
class Basis:
    """Candidate terms: `columns` (n, m), one per entry of `factors`; `shapes` says what each feature can support.

    A product may be divided by the `divisors`.

    What every contest over these terms needs is made with them: `index` is the place of each term, `places` those of the terms of a
    feature's shapes, and `upright` (m,) tells the terms that no cost has less of than none: inverses, and what grows faster than a line.
    """

    factors: tuple[Factors, ...]
    columns: Floats
    shapes: Mapping[str, tuple[Shape, ...]]
    divisors: frozenset[str]
    index: Mapping[Factors, int] = field(init=False)
    places: Mapping[str, list[list[int]]] = field(init=False)
    upright: Bools = field(init=False)

    def __post_init__(self) -> None:
        index = {factors: position for position, factors in enumerate(self.factors)}
        places = {name: [[index[((name, function),)] for function in shape] for shape in shapes] for name, shapes in self.shapes.items()}
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "upright", np.array([_is_upright(factors) for factors in self.factors]))

    def with_products(self, features: Sequence[str], values: Mapping[str, Floats], *, steeper: bool = False) -> Basis:
        """Return the basis with the pairwise products of `features` added, or the `steeper` ones."""
        rows = len(self.columns)
        added = []
        for first, second in combinations(features, 2):
            for pair in _STEEPER_PRODUCTS if steeper else _PRODUCTS:
                factors = tuple(sorted(zip((first, second), pair, strict=True), key=lambda factor: factor[1] == INVERSE))
                if all(self._is_possible(name, function, values[name]) for name, function in factors):
                    added.append(factors)
        columns = [product(factors, values, rows) for factors in added]
        return Basis((*self.factors, *added), np.column_stack([self.columns, *columns]), self.shapes, self.divisors)

    def only(self, features: Collection[str]) -> Basis:
        """Return the basis of some of the features."""
        places = [place for place, factors in enumerate(self.factors) if all(name in features for name, _ in factors)]
        shapes = {name: shapes for name, shapes in self.shapes.items() if name in features}
        return Basis(tuple(self.factors[place] for place in places), self.columns[:, places], shapes, self.divisors)

    def _is_possible(self, name: str, function: str, column: Floats) -> bool:
        """Return whether a feature may enter a product under a function."""
        if function == INVERSE:
            return name in self.divisors
        if function in ("x", "log"):
            return function == "x" or bool(np.min(column) >= 0)
        return ((name, function),) in self.index


def basis(
    values: Mapping[str, Floats],
    rows: int,
    *,
    doublings: float = 0.0,
    cost: Floats | None = None,
    drifting: Collection[str] = (),
) -> Basis:
    """Return the intercept and every transform of every feature that varies, for columns without absent values.

    n log n is among them where a feature's values span so many `doublings`, an inverse where a `cost` that is given may have one, and never
    of a feature that is `drifting`.
    """
    of_cost = None if cost is None else cost_level(cost)
    factors: list[Factors] = [()]
    shapes = {}
    for name, column in values.items():
        possible = shapes_for(column, doublings=doublings, level=of_cost)
        if name in drifting:
            possible = tuple(shape for shape in possible if INVERSE not in shape)
        if possible:
            shapes[name] = possible
            used = {function for shape in possible for function in shape}
            factors += [((name, function),) for function in _SINGLES if function in used]
    columns = np.column_stack([product(own_factors, values, rows) for own_factors in factors])
    return Basis(tuple(factors), columns, shapes, frozenset(name for name in shapes if name not in drifting and has_inverse(values[name])))


def _is_upright(factors: Factors) -> bool:
    return any(function == INVERSE for _, function in factors) or (len(factors) == 1 and factors[0][1] in BENT)


def is_steeper(factors: Factors) -> bool:
    """Return whether a term is a product that grows faster than its features' lines."""
    return tuple(function for _, function in factors) in _STEEPER_PRODUCTS


@dataclass(frozen=True, slots=True)
class ContestSetting:
    """The terms of a fair contest over n rows, taken from a pilot model: all models of these rows are judged by them.

    `deviation` and `weights` (n,) standardise residuals and bound the pull of outliers, `unexplained` is the mean squared standardised
    residual that needs no explanation, `independent` the share of rows that carry information of their own. `run` (n,) tells the rows
    that are held out together. `products` are those in the pilot: their features may say nothing each by itself.
    """

    deviation: Floats
    weights: Floats
    unexplained: float
    independent: float
    run: Ints
    products: tuple[Factors, ...] = ()

    def rows(self, which: Bools) -> ContestSetting:
        """Return the setting for some of the rows."""
        return replace(self, deviation=self.deviation[which], weights=self.weights[which], run=self.run[which])

    def bic(self, misfit: Floats, terms: int | Ints) -> Floats:
        """Return n·log(misfit/n + unexplained) + terms·log n, n independent rows, for weighted sums of squares of models of all rows."""
        n = len(self.deviation)
        effective = max(n * self.independent, 2.0)
        return np.asarray(effective * np.log(misfit / n + self.unexplained + 1e-300) + terms * np.log(effective))


class Contest:
    """Compares sets of terms by BIC on the same rows in the same setting; all are solved from one Gram matrix."""

    def __init__(self, candidates: Basis, cost: Floats, setting: ContestSetting) -> None:
        self.basis = candidates
        self.index = candidates.index
        self.places = candidates.places
        root = np.sqrt(setting.weights) / setting.deviation
        rows, terms = candidates.columns.shape
        scaled = np.empty((rows, terms + 1))
        np.multiply(candidates.columns, root[:, None], out=scaled[:, :-1])
        np.multiply(cost, root, out=scaled[:, -1])
        inner = scaled.T @ scaled
        norms = np.sqrt(np.diagonal(inner))
        unit = np.where(norms > 0, norms, 1.0)
        inner /= unit
        inner /= unit[:, None]
        inner[np.diag_indices_from(inner)] += _RIDGE
        # A column of zeros before the cost's fills sets up to one length, so that all are solved at once.
        self._empty = terms
        self._gram = np.zeros((terms + 2, terms + 2))
        filled = np.r_[:terms, terms + 1]
        self._gram[np.ix_(filled, filled)] = inner
        self._norms = unit
        self._total = norms[-1] ** 2
        self._scaled, self._setting = scaled, setting
        self._upright = np.append(candidates.upright, False)

    def _misfits(self, columns: Ints) -> Floats:
        """Return the weighted sum of squares that each set of columns (sets, k) leaves.

        Infinite where a term that is upright is negative: that is a wiggle, no growth.
        """
        target = self._gram[columns, -1]
        inner = self._gram[columns[:, :, None], columns[:, None, :]]
        diagonal = np.arange(columns.shape[1])
        inner[:, diagonal, diagonal] += columns == self._empty
        solution = np.linalg.solve(inner, target[..., None])[..., 0]
        left = np.maximum(self._gram[-1, -1] - (solution * target).sum(axis=1), 0.0) * self._total
        return np.where((self._upright[columns] & (solution < 0)).any(axis=1), np.inf, left)

    def bic(self, sets: Sequence[Sequence[int]]) -> Floats:
        """Return the BIC of each set of columns."""
        lengths = [len(column_set) for column_set in sets]
        if len(sets) == 1:
            return self._setting.bic(self._misfits(np.array(sets)), lengths[0])
        longest = max(lengths)
        columns = np.array([[*column_set, *[self._empty] * (longest - length)] for column_set, length in zip(sets, lengths, strict=True)])
        return self._setting.bic(self._misfits(columns), np.array(lengths))

    def expected(self, places: Sequence[int]) -> Floats:
        """Return the costs (n,) that columns fit."""
        chosen = list(places)
        solution = np.linalg.solve(self._gram[np.ix_(chosen, chosen)], self._gram[chosen, -1])
        return np.asarray(self.basis.columns[:, chosen] @ (solution * self._norms[-1] / self._norms[chosen]))

    def pays_held_out(self, places: Sequence[int], fewer: Sequence[int]) -> bool:
        """Return whether columns explain materially more of held-out runs than `fewer` columns do."""
        spared = len(self._setting.deviation) * self._setting.unexplained
        return self._held_out(places) + spared <= (1 - WORTH_IT) * (self._held_out(fewer) + spared)

    def _held_out(self, places: Sequence[int]) -> float:
        """Return the weighted sum of squares that columns leave of one part of the runs after the other, fitted to the others."""
        rows = self._scaled[:, [*places, -1]]
        whole, left = rows.T @ rows, 0.0
        runs, index = np.unique(self._setting.run, return_inverse=True)
        part = (index if len(runs) > 1 else np.arange(len(rows))) % _PARTS
        for held in range(_PARTS):
            out = rows[part == held]
            inner = out.T @ out
            rest = whole - inner
            unit = np.sqrt(np.maximum(np.diagonal(rest)[:-1], 1e-300))
            gram = rest[:-1, :-1] / unit / unit[:, None] + _RIDGE * np.eye(len(unit))
            missed = np.append(-np.linalg.solve(gram, rest[:-1, -1] / unit) / unit, 1.0)
            left += float(missed @ inner @ missed)
        return left

    def falls_below_zero(self, place: int, margin: float) -> bool:
        """Return whether the cost, fitted by an intercept and the term at `place` alone, `is_below_zero` where that term is 0."""
        inner, target = self._gram[np.ix_([0, place], [0, place])], self._gram[[0, place], -1]
        with_intercept, without = self.bic([[0, place], [place]])
        least = float(self.basis.columns[:, place].min())
        return is_below_zero(float(np.linalg.solve(inner, target)[0]), least, without - with_intercept, margin)

    def screen(self, chosen: Sequence[int]) -> list[str]:
        """Return the features, best first, by what one term of theirs would explain beside the chosen terms."""
        columns = np.array(chosen)
        inner = self._gram[np.ix_(columns, columns)]
        solved = np.linalg.solve(inner, self._gram[columns])
        left = np.maximum(np.diag(self._gram) - (self._gram[columns] * solved).sum(axis=0), 1e-9)
        gain = (self._gram[-1] - solved[:, -1] @ self._gram[columns]) ** 2 / left
        best: dict[str, float] = {}
        for factors, position in self.index.items():
            if len(factors) == 1:
                best[factors[0][0]] = max(best.get(factors[0][0], 0.0), float(gain[position]))
        return sorted(best, key=lambda name: -best[name])


def select(contest: Contest, *, margin: float) -> tuple[Factors, ...]:
    """Return the terms that explain the cost, the intercept first.

    Features enter one by one, each with the shape that earns its terms; those beyond a few must pay on runs held out as well. A margin of
    0 gives the richest model that BIC allows.
    """
    chosen: dict[str, int] = {}  # each feature's shape, by its place among those that are possible
    score = _score(contest, chosen)
    while len(chosen) < MAX_FEATURES:
        name, places, gained = _best_feature(contest, _positions(contest, chosen), chosen)
        if name is None or gained > score - margin:
            break
        if len(chosen) >= FEW_FEATURES and not contest.pays_held_out(places, _positions(contest, chosen)):
            break
        chosen[name], score = _best_shape(contest, chosen, name, margin)
        for other in chosen if len(chosen) > 1 else ():
            chosen[other], score = _best_shape(contest, chosen, other, margin)
    return tuple(contest.basis.factors[position] for position in _positions(contest, chosen))


def multiplier(contest: Contest, cost: Floats, terms: tuple[Factors, ...]) -> str | None:
    """Return the feature beside those of the terms that goes most with the cost over what these expect of it, if that is beyond chance.

    Beside a square, a feature that it is multiplied with explains nothing as a term of its own.
    """
    used = {name for factors in terms for name, _ in factors}
    columns, others = contest.basis.columns, [bool(factors) and factors[0][0] not in used for factors in contest.basis.factors]
    if not 0 < len(used) < FEW_FEATURES or not any(others):
        return None
    expected = np.abs(contest.expected([contest.index[factors] for factors in terms]))
    whole = np.abs(cost) + expected
    share = np.divide(cost, whole, out=np.zeros(len(cost)), where=whole > 0)  # bounded, and rises with the ratio
    share -= share.mean()
    varies = np.einsum("ij,ij->j", columns, columns) - columns.sum(axis=0) ** 2 / len(cost)
    scale = np.sqrt(np.maximum(varies, 0.0)) * np.sqrt(share @ share)
    correlation = np.abs(np.divide(share @ columns, scale, out=np.zeros(len(scale)), where=others & (scale > 0)))
    best = int(correlation.argmax())
    return contest.basis.factors[best][0][0] if correlation[best] * np.sqrt(len(cost)) > _BEYOND_CHANCE else None


def plainest(contest: Contest, features: Sequence[str], *, margin: float, falling: bool = False) -> tuple[Factors, ...]:
    """Return the terms of a cost that grows with one of some features: the best one's, in the plainest shape that fits it.

    That is one that no other beats by the margin, and by which the cost is not negative at 0. A `falling` cost has an inverse, as any other
    shape would make it negative at large values; the intercept alone where no feature has one.
    """
    named = [
        (name, place)
        for name in features
        for place, shape in enumerate(contest.basis.shapes.get(name, ()))
        if not falling or INVERSE in shape
    ]
    if not named:
        return ((),)
    scores = contest.bic([[0, *contest.places[name][shape]] for name, shape in named])
    best = named[int(scores.argmin())][0]
    fitting = [
        (contest.places[name][shape], float(score))
        for (name, shape), score in zip(named, scores.tolist(), strict=True)
        if name == best and score <= scores.min() + margin
    ]
    sound = [(places, score) for places, score in fitting if len(places) > 1 or not contest.falls_below_zero(places[0], 0.0)]
    places = sound[0][0] if sound else min(fitting, key=lambda fit: fit[1])[0]
    return tuple(contest.basis.factors[place] for place in (0, *places))


def extended(contest: Contest, terms: tuple[Factors, ...], *, margin: float) -> tuple[Factors, ...]:
    """Return the terms with the products that pay added, and every term that does not pay dropped.

    A product is tried beside the terms, beside its features' lines, and alone: the bends of a wrong model only mimic it.
    """
    current = [contest.index[factors] for factors in terms]
    products = {factors: position for factors, position in contest.index.items() if len(factors) == 2}
    score = float(contest.bic([current])[0])
    while products:
        lines = {factors: [contest.index[((name, "x"),)] for name, _ in factors] for factors in products}
        sets = [[*start, at] for f, at in products.items() if at not in current for start in (current, [0, *lines[f]], [0])]
        scores = contest.bic(sets) if sets else np.array([np.inf])
        if scores.min() >= score - margin:
            break
        current, score = sets[int(scores.argmin())], float(scores.min())
    return tuple(contest.basis.factors[position] for position in _pruned(contest, current, score, margin))


def _pruned(contest: Contest, current: list[int], score: float, margin: float) -> list[int]:
    """Return the places of the terms left of those whose BIC is `score` when those that do not pay are dropped, one by one."""
    while len(current) > 1:
        smaller = [[*current[:place], *current[place + 1 :]] for place in range(1, len(current))]
        scores = contest.bic(smaller)
        if scores.min() >= score + margin:
            break
        current, score = smaller[int(scores.argmin())], float(scores.min())
    return current


def _positions(contest: Contest, chosen: Mapping[str, int]) -> list[int]:
    return [0, *(position for name, shape in chosen.items() for position in contest.places[name][shape])]


def _score(contest: Contest, chosen: Mapping[str, int]) -> float:
    return float(contest.bic([_positions(contest, chosen)])[0])


def further(contest: Contest, terms: Sequence[Factors], *, margin: float) -> str | None:
    """Return the feature that pays most beside terms of as many features as a model has, if there is one."""
    start = [contest.index[factors] for factors in terms]
    used = {name for factors in terms for name, _ in factors}
    name, places, gained = _best_feature(contest, start, used)
    is_paid = gained <= float(contest.bic([start])[0]) - margin and contest.pays_held_out(places, start)
    return name if is_paid else None


def _best_feature(contest: Contest, start: list[int], used: Collection[str]) -> tuple[str | None, list[int], float]:
    """Return the feature whose best shape beside a start lowers BIC most, with all places, and that BIC; of equals, the first."""
    names = [name for name in contest.screen(start) if name not in used][:SCREENED]
    moves = [(name, [*start, *places]) for name in names for places in contest.places[name]]
    if not moves:
        return None, start, np.inf
    scores = contest.bic([places for _, places in moves])
    best = int(scores.argmin())
    return (*moves[best], float(scores[best]))


def _best_shape(contest: Contest, chosen: Mapping[str, int], name: str, margin: float) -> tuple[int, float]:
    """Return the plainest shape of a feature that no other beats by the margin, beside the other chosen features, and its BIC.

    A single term that alone would make the cost negative at 0 is not plainer than one that grows faster: without the margin, a square
    measured over a few sizes in noise passes for such a line, which says too little of larger inputs.
    """
    shapes = contest.basis.shapes[name]
    scores = contest.bic([_positions(contest, {**chosen, name: shape}) for shape in range(len(shapes))])
    is_alone = not chosen.keys() - {name}
    best = 0
    for place in range(1, len(shapes)):
        if scores[place] >= scores[best]:  # also of two that are both ruled out, with infinite scores
            continue
        if scores[best] - scores[place] > margin or (is_alone and _is_bent_short(contest, name, (best, place), margin)):
            best = place
    return best, float(scores[best])


def is_below_zero(intercept: float, least: float, gained: float, margin: float) -> bool:
    """Return whether a cost that grows by one term alone would be negative at 0, and not by chance: then the term stands for a bend.

    The term is 0 at 0, and its `least` value is not negative; the intercept earns its place, as it has `gained` more than a margin of
    information beside a cost through 0.
    """
    return intercept < 0 <= least and gained > margin


def _is_bent_short(contest: Contest, name: str, places: tuple[int, int], margin: float) -> bool:
    """Return whether of two shapes, each one term, the second one grows faster and stands for a bend that the first one lacks."""
    first, second = (contest.basis.shapes[name][place] for place in places)
    if len(first) > 1 or len(second) > 1 or first[0] == "log" or second[0] not in BENT:
        return False
    return contest.falls_below_zero(contest.places[name][places[0]][0], margin)
