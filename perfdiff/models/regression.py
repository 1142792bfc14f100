"""One regime of a cost: survey its noise, choose its terms, fit them robustly."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.models import noise
from perfdiff.models.annotation import Factors, product
from perfdiff.models.manifest import growing
from perfdiff.models.middle import median
from perfdiff.models.observations import Observations
from perfdiff.models.selection import (
    MARGIN,
    MAX_FEATURES,
    Basis,
    Contest,
    ContestSetting,
    basis,
    extended,
    further,
    is_steeper,
    multiplier,
    plainest,
    select,
)
from perfdiff.records.arrays import Floats, Ints

# A feature that moves the cost by less than this over the whole range leaves it constant: twice the default smallest effect of
# interest, since growth over a range is read off two ends. Counts are exact.
MATERIAL_NOISY = 0.10
MATERIAL_EXACT = 0.001
# Relative misfit that systematic effects (caches, branch predictors, layout) leave in any model of a time.
FLOOR_NOISY = 0.04
FLOOR_EXACT = 0.001
# Over three doublings, n log n lies within 2 % of a line; a line that outgrows a cache was seen to bend by 4 % there.
DOUBLINGS_NOISY = 4.0
_PILOTS = 2
_ALIKE = 5  # rows with the same inputs whose median says what is usual with them
_ROUNDS = 8  # of reweighting at most
_SETTLED = 1e-4  # relative change of every cost below which reweighting ends


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a model of a metric need not explain: a relative misfit, growth below `material` over the range, and outliers if `robust`.

    n log n is told from a line over so many `doublings` of a feature.
    """

    floor: float
    material: float
    robust: bool
    doublings: float


NOISY = Tolerance(FLOOR_NOISY, MATERIAL_NOISY, robust=True, doublings=DOUBLINGS_NOISY)
EXACT = Tolerance(FLOOR_EXACT, MATERIAL_EXACT, robust=False, doublings=0.0)


@dataclass(frozen=True, slots=True)
class TermChoice:
    """The chosen terms and the standardised, weighted residuals (n,) that they leave."""

    terms: tuple[Factors, ...]
    residuals: Floats

    @property
    def misfit(self) -> float:
        """Return the sum of squares."""
        return float(self.residuals @ self.residuals)


@dataclass(frozen=True, slots=True)
class Fit:
    """A robust fit of given terms: coefficients (k,), absolute residual scale, final weights (n,), 0 for the outliers left out."""

    coefficients: Floats
    sigma: float
    weights: Floats

    @property
    def trimmed(self) -> float:
        """Return the share of rows left out."""
        return float(np.mean(self.weights == 0)) if len(self.weights) else 0.0


@dataclass(frozen=True, slots=True)
class InputGroups:
    """Rows grouped by equal inputs.

    Each row (n,) has the id of its group. For large groups, `rows` lists their rows by group, `group` the group of each of these, and
    `middles` (2, groups) the one or two middle ones.
    """

    inputs: Ints
    rows: Ints
    group: Ints
    middles: Ints

    @classmethod
    def of(cls, inputs: Ints, run: Ints) -> InputGroups:
        """Group rows by their inputs (n,); a group of few rows, or of a single run, cannot tell what is usual with its input."""
        order = np.argsort(inputs, kind="stable")
        begins = np.flatnonzero(np.diff(inputs[order], prepend=-1))
        sizes = np.diff(begins, append=len(order))
        several = np.maximum.reduceat(run[order], begins) > np.minimum.reduceat(run[order], begins)
        large = (sizes >= _ALIKE) & several
        large_sizes, ends = sizes[large], np.cumsum(sizes[large])
        middles = np.array([2 * ends - large_sizes - 1, 2 * ends - large_sizes]) // 2
        return cls(inputs, order[np.repeat(large, sizes)], np.repeat(np.arange(len(large_sizes)), large_sizes), middles)

    def apart(self, standardised: Floats) -> Floats:
        """Return by how much rows stand apart (n,) from the median of those with the same inputs, where these are enough, else from 0."""
        if not len(self.rows):
            return standardised
        values = standardised[self.rows]
        medians = values[np.lexsort((values, self.group))][self.middles].mean(axis=0)
        distances = standardised.copy()
        distances[self.rows] -= medians[self.group]
        return distances


class Regime:
    """Some rows that one regime may explain, with what every model of them needs, made once: candidate terms, and fits by their terms."""

    def __init__(self, rows: Observations, tolerance: Tolerance) -> None:
        self.rows = rows
        self.tolerance = tolerance
        self._bases: dict[tuple[str, ...], Basis] = {}
        self._products: dict[tuple[tuple[str, ...], bool], Basis] = {}
        self._fits: dict[tuple[Factors, ...], tuple[Floats, Fit]] = {}

    @functools.cached_property
    def usable(self) -> dict[str, Floats]:
        """Return the numeric columns that may enter a regression."""
        return self.rows.usable()

    def candidates(self, products_of: tuple[str, ...] = ()) -> Basis:
        """Return the candidate terms, with the products of some features."""
        if products_of not in self._bases:
            self._bases[products_of] = (
                self.candidates().with_products(products_of, self.usable).with_products(products_of, self.usable, steeper=True)
                if products_of
                else self._plain_candidates()
            )
        return self._bases[products_of]

    def _plain_candidates(self) -> Basis:
        rows, doublings = self.rows, self.tolerance.doublings
        return basis(self.usable, len(rows), doublings=doublings, cost=rows.cost, drifting=rows.drifting)

    def products(self, features: tuple[str, ...], *, steeper: bool = False) -> Basis:
        """Return the candidate terms of some features alone, with their products, and with the `steeper` ones."""
        key = features, steeper
        if key not in self._products:
            plain = self.products(features) if steeper else self.candidates().only(features)
            self._products[key] = plain.with_products(features, self.usable, steeper=steeper)
        return self._products[key]

    def fitted(self, terms: tuple[Factors, ...]) -> tuple[Floats, Fit]:
        """Return the columns (n, k) of terms and their robust fit."""
        if terms not in self._fits:
            columns = matrix(terms, self.rows.columns, len(self.rows))
            self._fits[terms] = columns, fit_terms(columns, self.rows.cost, self.tolerance, self.alike)
        return self._fits[terms]

    @functools.cached_property
    def alike(self) -> InputGroups:
        """Return which rows have the same inputs."""
        return InputGroups.of(_inputs(self), self.rows.run)

    @functools.cached_property
    def setting(self) -> ContestSetting:
        """Return the noise of the rows, as a pilot tells it."""
        return _survey(self)


def _survey(regime: Regime) -> ContestSetting:
    """Learn the noise of some rows from a pilot: the richest model that BIC allows.

    The first pilot weighs rows by their own costs, which favours the cheap among calls of one input; the second by the noise that the
    first one left.
    """
    rows, tolerance = regime.rows, regime.tolerance
    weights = np.ones(len(rows))
    products: tuple[Factors, ...] = ()
    deviation = noise.observed_deviation(rows.cost)
    for _ in range(_PILOTS):
        pilot = _chosen(regime, ContestSetting(deviation, weights, tolerance.floor**2, 1.0, rows.run, products), margin=0.0)
        products = tuple(factors for factors in pilot if len(factors) > 1)
        columns, fit = regime.fitted(pilot)
        expected = columns @ fit.coefficients
        deviation = noise.estimate(expected, rows.cost - expected, floor=tolerance.floor).deviation(expected)
        standardised = (rows.cost - expected) / deviation
        if tolerance.robust:
            weights = noise.huber_weights(regime.alike.apart(standardised))
    clipped = standardised * weights
    effect = max(noise.design_effect(clipped, groups) for groups in (rows.run, regime.alike.inputs))
    unexplained = float(np.mean(weights * (tolerance.floor * expected / deviation) ** 2))
    return ContestSetting(deviation, weights, unexplained, 1.0 / effect, rows.run, products)


def decide(regime: Regime, setting: ContestSetting) -> TermChoice:
    """Choose the terms that earn their place by the margin, or as growth is manifest, and whose effect is material."""
    rows = regime.rows
    terms = _chosen(regime, setting, margin=MARGIN)
    for features, falling in zip(growing(rows, regime.usable) if len(terms) == 1 else (), (False, True), strict=False):
        if len(terms) == 1 and features:
            terms = plainest(Contest(regime.candidates(), rows.cost, setting), features, margin=MARGIN, falling=falling)
    columns = matrix(terms, rows.columns, len(rows))
    root = np.sqrt(setting.weights) / setting.deviation
    solution = _solve(columns, rows.cost, root)
    magnitude = np.maximum(np.abs(columns @ solution), 1e-200)
    material = set(terms)
    for name in {name for factors in terms for name, _ in factors}:
        mine = [any(name == other for other, _ in factors) for factors in terms]
        part = columns[:, mine] @ solution[mine]
        if np.max(np.abs(part - median(part)) / magnitude) < regime.tolerance.material:
            material -= {factors for factors, has in zip(terms, mine, strict=True) if has}
    if len(material) < len(terms):
        terms = tuple(factors for factors in terms if factors in material)
        columns = matrix(terms, rows.columns, len(rows))
        solution = _solve(columns, rows.cost, root)
    return TermChoice(terms, (rows.cost - columns @ solution) * root)


def left_out(regime: Regime, terms: Sequence[Factors]) -> str | None:
    """Return the best further feature of a model that has as many as it may have; None if it has fewer, or none would pay."""
    used = tuple(dict.fromkeys(name for factors in terms for name, _ in factors))
    if len(used) < MAX_FEATURES or not regime.usable.keys() >= set(used):
        return None
    candidates = regime.candidates(used)
    if not candidates.index.keys() >= set(terms):
        return None
    return further(Contest(candidates, regime.rows.cost, regime.setting), terms, margin=MARGIN)


def matrix(terms: Sequence[Factors], values: Mapping[str, Floats], rows: int) -> Floats:
    """Return the columns (n, k) of terms."""
    return np.column_stack([product(factors, values, rows) for factors in terms])


def fit_terms(columns: Floats, cost: Floats, tolerance: Tolerance, alike: InputGroups | None = None) -> Fit:
    """Fit coefficients by iteratively reweighted least squares, Huber's weights on residuals in units of the estimated noise.

    The noise is part additive, part relative (`noise.estimate`). Upward outliers are left out altogether, since preemption only ever
    adds time. Rows are outliers among those `alike`, where there are enough of these: what most calls with an input cost, a model has to
    explain. Exact metrics have no outliers: all rows count, relative to their expected cost.
    """
    solution = _solve(columns, cost, 1.0 / noise.observed_deviation(cost))
    deviation = noise.observed_deviation(columns @ solution)
    if not tolerance.robust:
        solution = _solve(columns, cost, 1.0 / deviation)
        return Fit(solution, _scatter(cost - columns @ solution, columns.shape[1]), 1.0 / deviation**2)
    for _ in range(_ROUNDS):
        expected = columns @ solution
        deviation = noise.estimate(expected, cost - expected, floor=tolerance.floor).deviation(expected)
        standardised = (cost - expected) / deviation
        apart = standardised if alike is None else alike.apart(standardised)
        weights = noise.huber_weights(apart) * noise.no_outliers(apart)
        updated = _solve(columns, cost, np.sqrt(weights) / deviation)
        moved = np.max(np.abs(columns @ updated - expected) / np.maximum(np.abs(expected), 1e-200))
        solution = updated
        if moved < _SETTLED:
            break
    sigma = _scatter((cost - columns @ solution)[weights > 0], columns.shape[1])
    return Fit(solution, sigma, weights / deviation**2)


def _chosen(regime: Regime, setting: ContestSetting, *, margin: float) -> tuple[Factors, ...]:
    candidates = regime.candidates()
    if not candidates.shapes:
        return candidates.factors
    contest = Contest(candidates, regime.rows.cost, setting)
    terms = select(contest, margin=margin)
    used = {name for factors in (*terms, *setting.products) for name, _ in factors}
    if not margin and (beside := multiplier(contest, regime.rows.cost, terms)) is not None:  # of a pilot, whose products are tried again
        used.add(beside)
    features = tuple(name for name in candidates.shapes if name in used)
    for steeper in (False, True) if len(features) > 1 else ():
        if not (steeper and margin) or any(map(is_steeper, setting.products)):
            contest = Contest(regime.products(features, steeper=steeper), regime.rows.cost, setting)
            terms = extended(contest, terms, margin=margin)
    return terms if len(features) > 1 else extended(contest, terms, margin=margin)


def _inputs(regime: Regime) -> Ints:
    """Return an id per distinct input: rows with the same values of all numeric features deviate together from any model."""
    rows = len(regime.rows)
    identifier = np.zeros(rows, dtype=np.int64)
    for column in regime.usable.values():
        _, index = np.unique(column, return_inverse=True)
        values, identifier = np.unique(identifier * (index.max() + 1) + index, return_inverse=True)
        if len(values) == rows:  # no further feature can tell more apart
            break
    return identifier


def _scatter(residuals: Floats, terms: int) -> float:
    return float(np.sqrt(residuals @ residuals / max(len(residuals) - terms, 1)))


def _solve(columns: Floats, cost: Floats, root: Floats) -> Floats:
    scaled = columns * root[:, None]
    norms = np.sqrt((scaled**2).sum(axis=0))
    if len(norms) == 1 and norms[0] > 0:  # as most costs are constant
        return np.asarray((scaled[:, 0] / norms[0]) @ (cost * root) / norms)
    norms = np.where(norms > 0, norms, 1.0)
    return np.asarray(np.linalg.lstsq(scaled / norms, cost * root, rcond=1e-12)[0] / norms)
