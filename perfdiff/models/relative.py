"""Robust fits of costs by relative errors, many costs at once: what models of growth are compared by."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from perfdiff.models.loglines import ROUNDING_SD
from perfdiff.models.noise import NORMAL_MAD
from perfdiff.records.arrays import Bools, Floats, Ints

# Errors of logarithms follow Student's t with so few degrees of freedom, so that single points far off decide little (Lange, Little and
# Taylor 1989 estimate 3 to 6 on real data with outliers).
FREEDOM = 4.0
# Nothing is concluded from misfits below a thousandth of the cost: counts of real algorithms ripple by more around the simplest laws.
LEAST_ERROR = 1e-3

_STEPS = 10  # each halves a wrong scale at least: enough from 1 down to `LEAST_ERROR`
_SHORTEST = 0.1  # of a cost's fitted value: a step that would leave less is halved
_HALVINGS = 6
_RIDGE = 1e-12  # keeps nearly collinear terms solvable; far below any noise
_SETTLED = LEAST_ERROR / 10  # of fitted costs: moves of no account
_SETTLED_SCALE = 0.02  # 1 in 50 of a scale moves the deviance of 100 points by less than 1
_WIDEST = 700.0  # of a logarithm's error: e to this power is still a number
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class CostMatrix:
    """Costs (costs, points) above 0 where `known`, any number above 0 elsewhere. `noise` (costs, points) is the form of their errors.

    Errors of logarithms are a scale times the noise's form, whose logarithms have a mean of 0, and not below `least`.
    """

    values: Floats
    known: Bools
    noise: Floats
    logs: Floats = field(init=False)
    least: Floats = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "logs", np.log(self.values))
        object.__setattr__(self, "least", np.hypot(LEAST_ERROR, ROUNDING_SD / self.values))

    @property
    def n(self) -> Ints:
        """Return the number of known points of each cost."""
        return np.asarray(self.known.sum(axis=1))

    def rows(self, which: slice | Bools) -> CostMatrix:
        """Return some of the costs."""
        return CostMatrix(self.values[which], self.known[which], self.noise[which])


@dataclass(frozen=True, slots=True)
class TermFit:
    """What terms fit: `coefficients` (costs, terms), `values` (costs, points), the errors' `scale` and -2·log likelihood (costs,)."""

    coefficients: Floats
    values: Floats
    scale: Floats
    deviance: Floats

    def rows(self, which: slice) -> TermFit:
        """Return the fit restricted to some rows."""
        return TermFit(self.coefficients[which], self.values[which], self.scale[which], self.deviance[which])


def even(costs: Floats, usable: Bools) -> CostMatrix:
    """Return costs whose errors have the same relative size everywhere."""
    return CostMatrix(np.where(usable, costs, 1.0), usable, np.ones(costs.shape))


def like_counts(costs: CostMatrix, expected: Floats) -> CostMatrix:
    """Return costs whose errors are those of counts of chances: relatively smaller, the larger the `expected` cost, by its square root."""
    logs = -0.5 * np.log(expected)
    mean = (logs * costs.known).sum(axis=1, keepdims=True) / np.maximum(costs.n, 1)[:, None]
    return CostMatrix(costs.values, costs.known, np.exp(logs - mean))


def sums_of_terms(columns: Floats, costs: CostMatrix) -> TermFit:
    """Return the sums of terms, `columns` (points, terms), that tell the costs best: maximum likelihood by Gauss and Newton's steps."""
    lengths = np.sqrt((columns**2).mean(axis=0))
    unit = columns / np.where(lengths > 0, lengths, 1.0)
    products = _products(unit)
    coefficients = _first_sums(unit, products, costs)
    fitted = np.where(costs.known, coefficients @ unit.T, 1.0)
    residuals = np.where(costs.known, costs.logs - np.log(fitted), 0.0)
    scale = _first_scale(costs, residuals)
    for _ in range(_STEPS):
        weights, next_scale = _weights(costs, residuals, scale)
        pulls = weights / fitted
        step = _solved(unit, products, pulls / fitted, pulls * residuals)
        moved = _short_enough(step, unit, fitted, costs.known)
        coefficients = coefficients + step
        fitted = np.where(costs.known, fitted + moved, 1.0)
        residuals = np.where(costs.known, costs.logs - np.log(fitted), 0.0)
        if _is_settled(scale, next_scale) and np.abs(moved / fitted).max(initial=0.0, where=costs.known) < _SETTLED:
            break
        scale = next_scale
    return _finished(coefficients / np.where(lengths > 0, lengths, 1.0), fitted, residuals, costs, scale)


def products_of_powers(columns: Floats, costs: CostMatrix) -> TermFit:
    """Return the sums of `columns` (points, terms) that tell the costs' logarithms best."""
    logs = np.where(costs.known, costs.logs, 0.0)
    products = _products(columns)
    coefficients = _solved(columns, products, costs.known.astype(np.float64), logs)
    residuals = np.where(costs.known, logs - coefficients @ columns.T, 0.0)
    scale = _first_scale(costs, residuals)
    for _ in range(_STEPS):
        weights, next_scale = _weights(costs, residuals, scale)
        coefficients = _solved(columns, products, weights, weights * logs)
        last, residuals = residuals, np.where(costs.known, logs - coefficients @ columns.T, 0.0)
        if _is_settled(scale, next_scale) and np.abs(residuals - last).max(initial=0.0) < _SETTLED:
            break
        scale = next_scale
    fitted = np.where(costs.known, np.exp(logs - residuals), 1.0)
    return _finished(coefficients, fitted, residuals, costs, scale)


def _products(columns: Floats) -> Floats:
    return np.asarray((columns[:, :, None] * columns[:, None, :]).reshape(len(columns), -1))


def _solved(columns: Floats, products: Floats, weights: Floats, targets: Floats) -> Floats:
    """Return the solutions (costs, terms) of the normal equations Σ w·g·gᵀ c = Σ t·g, with the terms' `products` at each point."""
    terms = columns.shape[1]
    gram = (weights @ products).reshape(-1, terms, terms)
    right = targets @ columns
    diagonal = np.sqrt(np.maximum(np.einsum("mii->mi", gram), _TINY))
    scaled = gram / diagonal[:, :, None] / diagonal[:, None, :] + _RIDGE * np.eye(terms)
    return np.asarray(np.linalg.solve(scaled, (right / diagonal)[..., None])[..., 0] / diagonal)


def _first_sums(unit: Floats, products: Floats, costs: CostMatrix) -> Floats:
    """Return coefficients by least squares of relative errors, or on the last term alone where these leave the costs not above 0."""
    reciprocals = np.asarray(costs.known / costs.values)
    coefficients = _solved(unit, products, reciprocals**2, reciprocals)
    wrong = ((coefficients @ unit.T <= 0) & costs.known).any(axis=1)
    if wrong.any():
        ratio = costs.logs[wrong] - np.log(np.maximum(unit[:, -1], _TINY))
        coefficients[wrong] = 0.0
        coefficients[wrong, -1] = np.exp((ratio * costs.known[wrong]).sum(axis=1) / np.maximum(costs.n[wrong], 1))
    return coefficients


def _short_enough(step: Floats, unit: Floats, fitted: Floats, usable: Bools) -> Floats:
    """Return what a step moves fitted costs, halved in place until none loses most of itself; 0 where that takes too long."""
    moved = np.asarray(step @ unit.T)
    for halvings in range(_HALVINGS + 1):
        long = ((fitted + moved < _SHORTEST * fitted) & usable).any(axis=1)
        if not long.any():
            break
        shorter = 0.5 if halvings < _HALVINGS else 0.0
        step[long] *= shorter
        moved[long] *= shorter
    return moved


def _first_scale(costs: CostMatrix, residuals: Floats) -> Floats:
    """Return the scale of errors by the median of their absolute values."""
    sizes = np.sort(np.where(costs.known, np.abs(residuals) / costs.noise, np.inf), axis=1)
    middle = np.maximum(costs.n, 1) // 2
    return np.asarray(NORMAL_MAD * np.minimum(sizes[np.arange(len(sizes)), np.minimum(middle, np.maximum(costs.n - 1, 0))], _WIDEST))


def _weights(costs: CostMatrix, residuals: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Return the weights of points over their variance, and the next scale: a step of the EM algorithm for Student's t."""
    variance = np.maximum(scale[:, None] * costs.noise, costs.least) ** 2
    squares = residuals**2
    weights = costs.known * (FREEDOM + 1) / (FREEDOM + squares / variance)
    scale = np.sqrt((weights * squares / costs.noise**2).sum(axis=1) / np.maximum(costs.n, 1))
    return weights / variance, scale


def _is_settled(before: Floats, after: Floats) -> bool:
    """Return whether no scale that matters changes any more."""
    return bool((np.abs(after - before) <= _SETTLED_SCALE * np.maximum(after, LEAST_ERROR)).all())


def _finished(coefficients: Floats, fitted: Floats, residuals: Floats, costs: CostMatrix, scale: Floats) -> TermFit:
    _, scale = _weights(costs, residuals, scale)
    errors = np.maximum(scale[:, None] * costs.noise, costs.least)
    terms = 2 * np.log(errors) + (FREEDOM + 1) * np.log1p((residuals / errors) ** 2 / FREEDOM)
    return TermFit(coefficients, fitted, scale, np.asarray((costs.known * terms).sum(axis=1)))
