"""Modes that no input separates: cluster costs by their density (Freud §3.2, Algorithm 2; §4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfdiff.models.annotation import Factors, Scope
from perfdiff.models.middle import median, quantiles
from perfdiff.models.observations import Observations
from perfdiff.models.regression import NOISY, Regime, decide, matrix
from perfdiff.records.arrays import Bools, Floats, Ints

# The density between two modes must fall below this share of the lower one; a noisy constant, skewed or not, never does.
VALLEY = 0.5
# A mode holds at least this share of the calls: half as many again as may be trimmed as outliers (`noise.MAX_TRIMMED`).
SMALLEST_MODE = 0.15
# Neighbouring modes lie at least this far apart, relative to the cost: nearer ones are steps of a clock, or not worth a name.
APART = 0.20
# Densities of fewer calls have valleys by chance.
_ENOUGH = 50
# More would be a description of the sample.
MODES = 4
# Modes that differ between runs but not within them are states of the machine: at least this share of the variance of membership
# must lie within runs.
_WITHIN_RUNS = 0.5
_GRID = 512


def split_modes(regime: Regime, terms: tuple[Factors, ...]) -> list[tuple[tuple[Factors, ...], Ints]]:
    """Return each mode's terms and rows (indices); one mode with the given terms where the costs are not clearly multimodal."""
    rows = regime.rows
    everything = np.arange(len(rows))
    columns, fit = regime.fitted(terms)
    relative = _relative(rows.cost, columns @ fit.coefficients)
    borders = _borders(relative, rows.run)
    if not borders:
        return [(terms, everything)]
    modes = []
    labels = np.searchsorted(borders, relative)
    for label in range(len(borders) + 1):
        members = everything[labels == label]
        part = Regime(rows.rows(members), regime.tolerance)
        modes.append((decide(part, part.setting).terms, members))
    return modes


def _relative(cost: Floats, expected: Floats) -> Floats:
    """Return costs relative to what is expected of them: logarithms of ratios where all is positive, else differences over the mean."""
    if cost.min() > 0 and expected.min() > 0:
        return np.asarray(np.log(cost) - np.log(expected))
    return np.asarray((cost - expected) / max(float(np.mean(np.abs(cost))), 1e-300))


def _borders(values: Floats, run: Ints) -> list[float]:
    """Return the borders between modes, rising; found by halving at the deepest valley, again within each half."""
    pending = [np.ones(len(values), dtype=bool)]
    borders: list[float] = []
    smallest = max(_ENOUGH / 2, SMALLEST_MODE * len(values))
    while pending and len(borders) < MODES - 1:
        members = pending.pop(0)
        border = _valley(values[members], smallest)
        if border is None:
            continue
        above = members & (values > border)
        below = members & ~above
        if median(values[above]) - median(values[below]) >= APART and _within_runs(above[members], run[members]):
            borders.append(border)
            pending += [below, above]
    return sorted(borders)


EXACT = 1e-9  # of a value: what arithmetic may leave
_BULK = (0.005, 0.995)  # quantiles: what lies beyond would only stretch the grid


def _valley(values: Floats, smallest: float) -> float | None:
    """Return the deepest valley of the density that leaves `smallest` values on both sides, or None."""
    low, high = quantiles(values, _BULK) if len(values) >= 2 * smallest and len(values) else (0.0, 0.0)
    bulk = values[(values >= low) & (values <= high)]
    if low == high or np.ptp(bulk) <= EXACT * np.abs(bulk).max():  # too few, or all one value but for outliers
        return None
    grid, density = _density(bulk)
    below = np.searchsorted(np.sort(values), grid)
    left, right = np.maximum.accumulate(density), np.maximum.accumulate(density[::-1])[::-1]
    depth = density / np.minimum(left, right)
    depth[(below < smallest) | (len(values) - below < smallest)] = np.inf
    deepest = np.flatnonzero(depth <= depth.min() * (1 + 1e-9))
    return float(grid[deepest[len(deepest) // 2]]) if depth.min() < VALLEY else None


def _density(values: Floats) -> tuple[Floats, Floats]:
    """Return a grid and the kernel density on it; the bandwidth is Silverman's (1986, eq. 3.31) by standard deviation.

    On several distant modes that bandwidth is too wide for the narrow ones; halving repeats it within each.
    """
    from scipy.ndimage import gaussian_filter1d

    bandwidth = 0.9 * float(values.std()) * min(len(values), 1000) ** -0.2
    ends = (float(values.min()) - 3 * bandwidth, float(values.max()) + 3 * bandwidth)
    counts, edges = np.histogram(values, bins=_GRID, range=ends)
    density = gaussian_filter1d(counts.astype(np.float64), bandwidth / (edges[1] - edges[0]), mode="constant")
    return (edges[1:] + edges[:-1]) / 2, density + 1e-12


def _within_runs(above: Bools, run: Ints) -> bool:
    _, index, sizes = np.unique(run, return_inverse=True, return_counts=True)
    if len(sizes) == len(run):
        return True
    shares = np.bincount(index, weights=above) / sizes
    within = float(sizes @ (shares * (1 - shares))) / len(run)
    total = above.mean() * (1 - above.mean())
    return bool(total > 0 and within >= _WITHIN_RUNS * total)


def members(modes: Sequence[Scope], rows: Observations) -> list[Ints]:
    """Return each mode's rows (indices): those that meet the conditions, each given to the mode it lies nearest to.

    Rows that lack a feature of the terms belong to none.
    """
    meets = np.ones(len(rows), dtype=bool)
    for condition in modes[0].conditions:
        meets &= condition.holds(rows.columns[condition.feature])
    for name in {name for mode in modes for term in mode.terms for name, _ in term.factors}:
        meets &= np.isfinite(rows.columns[name])
    index = np.flatnonzero(meets)
    if len(modes) == 1 or not len(index):
        return [index, *[index[:0]] * (len(modes) - 1)]
    inside = rows.rows(index)
    distances = [_distance(mode, inside) for mode in modes]
    nearest = np.argmin(distances, axis=0)
    return [index[nearest == place] for place in range(len(modes))]


def _distance(mode: Scope, rows: Observations) -> Floats:
    expected = matrix([term.factors for term in mode.terms], rows.columns, len(rows)) @ [term.coefficient for term in mode.terms]
    return np.asarray(np.abs(rows.cost - expected) / np.sqrt(mode.sigma**2 + (NOISY.floor * expected) ** 2 + 1e-300))
