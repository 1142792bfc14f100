"""Which distribution the costs of a scope follow, by likelihood: normal, exponential or binomial (Freud §2.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.models import noise
from perfdiff.models.distribution import Binomial, Distribution, Exponential, Normal
from perfdiff.models.middle import median, quantile, quantiles
from perfdiff.models.selection import MARGIN
from perfdiff.records.arrays import Bools, Floats

# Fewer calls say nothing of a distribution's shape.
ENOUGH = 30
# The upper tenth of the calls counts as "above" only, so that outliers, of which no more are ever trimmed, do not choose the shape.
_CENSORED = noise.MAX_TRIMMED
# Of a normal, the quantile skewness (Q90 + Q10 - 2·Q50) / (Q90 - Q10) is 0, of an exponential 0.465: halfway, the latter is worth a trial.
_SKEWED = 0.25
# Delays are the same for cheap and dear calls; where these scatter more unequally than this, it is no delay that makes them scatter.
_UNEQUAL = 3.0
# A deviation that differs less than this between cheap and dear calls is one number.
_EVEN = 1.25
# The slope of an exponential's lower edge is read off this quantile, where its density is high and stray low values have no pull.
_EDGE = 0.10
# Residuals this small beside the cost are those of the arithmetic.
EXACT = 1e-9
_ROUNDS = 30  # of reweighting towards that quantile at most
_SETTLED = 1e-4
_STRAY = 0.001  # share of calls below the lower edge: clock errors
_STEPS = 20  # of expectation and maximisation; censoring a tenth, they converge by a factor of ten each
_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_HAZARD_AT_0 = np.sqrt(2 / np.pi)
_QUASI = 4  # rounds of weights from expected numbers
_NEVER = 1e-3  # calls beyond the cost that fewer than this are expected above are outliers


@dataclass(frozen=True, slots=True)
class DistributionFit:
    """A distribution with the coefficients (k,) and the weights (n,) of rows that go with it."""

    distribution: Distribution
    coefficients: Floats
    weights: Floats


def scattered(columns: Floats, cost: Floats, coefficients: Floats, weights: Floats, *, skewed: bool) -> DistributionFit:
    """Choose between a normal, its deviation constant or partly relative, and, where it may be `skewed`, an exponential above an edge.

    `columns` (n, k) are the terms, `coefficients` and `weights` those of a robust fit. The exponential's terms are learnt anew.
    """
    expected = columns @ coefficients
    residuals = cost - expected
    normal = _normal(expected, residuals, weights)
    plain = DistributionFit(normal, coefficients, weights)
    if not skewed or len(cost) < ENOUGH or not np.all(np.isfinite(residuals)):
        return plain
    if not is_skewed(residuals) or not _scatter_alike(expected, residuals):
        return plain
    return _delays(columns, cost, _edge(columns, cost, coefficients), normal, expected) or plain


def bounded(columns: Floats, cost: Floats, bound: Floats) -> DistributionFit:
    """Choose between an exponential and a normal for costs above a lower bound with coefficients `bound` (k,), slopes as they are."""
    above = cost - columns @ bound
    middle = median(above)
    usual = noise.no_outliers((above - middle) / max(noise.NORMAL_MAD * median(np.abs(above - middle)), 1e-300))
    coefficients = _raised(bound, float(above[usual].mean()))
    normal = Normal(float(above[usual].std()))
    plain = DistributionFit(normal, coefficients, usual / max(normal.sigma, 1e-300) ** 2)
    return _delays(columns, cost, bound, normal, columns @ coefficients) or plain


def trending(columns: Floats, cost: Floats, trend: Floats) -> DistributionFit:
    """Return the normal about a main trend with coefficients `trend` (k,), from the costs below it, which no delay has touched."""
    residuals = cost - columns @ trend
    below = residuals[residuals < 0]
    sigma = float(np.sqrt(np.mean(below**2))) if len(below) else 0.0
    usual = residuals <= noise.OUTLIER * sigma
    return DistributionFit(Normal(sigma), trend, usual / max(sigma, 1e-300) ** 2)


def is_skewed(residuals: Floats) -> bool:
    """Return whether residuals may be delays: skewed upward, whatever the outliers."""
    low, middle, high = quantiles(residuals, (0.1, 0.5, 0.9))
    return bool(high > low and high + low - 2 * middle >= _SKEWED * (high - low))


def _scatter_alike(expected: Floats, residuals: Floats) -> bool:
    """Return whether the cheaper half of the calls scatters about as much as the dearer one."""
    cheap = expected <= median(expected)
    spreads = [median(np.abs(side - median(side))) for side in (residuals[cheap], residuals[~cheap]) if len(side)]
    return max(spreads) <= _UNEQUAL * min(spreads)


def _delays(columns: Floats, cost: Floats, edge: Floats, normal: Normal, expected: Floats) -> DistributionFit | None:
    """Return the exponential above a lower edge with coefficients `edge` (k,), if it is clearly likelier than a normal."""
    deviation = normal.deviation(expected)
    if not np.all(deviation > 0):
        return None
    standardised = (cost - expected) / deviation
    limit = quantile(standardised, 1 - _CENSORED)
    seen = standardised <= limit
    above = cost - columns @ edge
    start, mean = _shifted(np.minimum(above, above + (limit - standardised) * deviation), seen)
    if mean <= 0:
        return None
    exponential = -float(seen.sum()) * (np.log(mean) + 1)
    if 2 * (exponential - _normal_likelihood(standardised[seen], deviation[seen], limit, int((~seen).sum()))) < MARGIN:
        return None
    usual = above - start <= mean * np.log(len(cost) / _NEVER)
    return DistributionFit(Exponential(mean), _raised(edge, start + mean), usual / mean**2)


def _raised(coefficients: Floats, by: float) -> Floats:
    raised = coefficients.copy()
    raised[0] += by  # the intercept comes first
    return raised


def counted(columns: Floats, cost: Floats, coefficients: Floats) -> DistributionFit | None:
    """Return a binomial if it explains counts clearly better than a normal: two values, or counts that scatter less than by chance."""
    n = len(cost)
    values = np.unique(cost)
    sigma = float(np.sqrt(np.mean((cost - columns @ coefficients) ** 2)))
    if n < ENOUGH or len(values) < 2 or sigma <= 0 or np.any(cost != np.round(cost)):
        return None
    constant = columns.shape[1] == 1
    if constant and len(values) == 2:
        law = Binomial(float(np.mean(cost == values[1])), 1, float(values[0]), float(values[1] - values[0]))
        return DistributionFit(law, coefficients, np.ones(n) / sigma**2)
    # Without an intercept, too: a small one may make the expected number of the smallest inputs negative.
    tried = [_successes(columns[:, first:], cost) for first in ((0,) if constant else (0, 1))]
    binomials = [(law, np.append(np.zeros(columns.shape[1] - len(solution)), solution)) for law, solution in tried if law is not None]
    plain = _lattice(Normal(sigma), columns @ coefficients, cost)
    scored = [(_lattice(law, columns @ solution, cost), law, solution) for law, solution in binomials]
    best = max(scored, key=lambda candidate: candidate[0], default=None)
    if best is None or 2 * (best[0] - plain) < MARGIN:
        return None
    return DistributionFit(best[1], best[2], 1.0 / np.maximum(columns @ best[2], 0.5))


def _successes(columns: Floats, cost: Floats) -> tuple[Binomial | None, Floats]:
    """Return the binomial and the coefficients (k,) of its expected number, whose variance it is proportional to (quasi-likelihood)."""
    expected = np.maximum(cost, 0.5)
    for _ in range(_QUASI):
        root = 1 / np.sqrt(np.maximum(expected, 0.5))
        norms = np.maximum(np.sqrt(((columns * root[:, None]) ** 2).sum(axis=0)), 1e-300)
        solution = np.linalg.lstsq(columns * root[:, None] / norms, cost * root, rcond=1e-12)[0] / norms
        expected = columns @ solution
    if expected.min() <= 0 or cost.min() < 0:
        return None, solution
    with np.errstate(over="ignore"):  # of an expected number near 0: no binomial
        chance = 1 - float(np.sum((cost - expected) ** 2 / expected)) / (len(cost) - columns.shape[1])
    if not 0 < chance < 1:
        return None, solution
    if np.ptp(expected) > 0:
        return Binomial(chance), solution
    trials = int(max(round(float(expected[0]) / chance), cost.max()))
    return Binomial(float(cost.mean()) / trials, trials), solution


def _lattice(law: Distribution, expected: Floats, cost: Floats) -> float:
    """Return the likelihood of whole numbers."""
    half = 0.5 if isinstance(law, Normal) else 0.0
    low, high = law.bounds(expected, cost - half)[0], law.bounds(expected, cost + half)[1]
    return float(np.sum(np.log(np.maximum(high - low, 1e-300))))


def _normal(expected: Floats, residuals: Floats, weights: Floats) -> Normal:
    """Return the normal, with a relative part where that clearly explains the scatter of the rows that were kept better."""
    weighted = weights > 0
    expected, residuals = expected[weighted], residuals[weighted]
    sigma = float(np.sqrt(np.mean(residuals**2))) if len(residuals) else 0.0
    if sigma <= EXACT * float(np.abs(expected).max(initial=0.0)):
        return Normal(0.0)
    if len(residuals) < ENOUGH:
        return Normal(sigma)
    estimated = noise.estimate(expected, residuals, floor=0.0)
    deviation = estimated.deviation(expected)
    if deviation.max() < _EVEN * deviation.min():
        return Normal(sigma)
    scale = float(np.sqrt(np.mean((residuals / deviation) ** 2)))  # the parts are robust, their size is the most likely one
    gain = 2 * (len(residuals) * np.log(sigma / scale) - np.sum(np.log(deviation)))
    better = gain >= MARGIN + np.log(len(residuals))
    return Normal(scale * estimated.additive, scale * estimated.relative) if better else Normal(sigma)


def _edge(columns: Floats, cost: Floats, coefficients: Floats) -> Floats:
    """Return the coefficients (k,) of the lower decile (Koenker & Bassett 1978), by reweighted least squares."""
    norms = np.maximum(np.sqrt((columns**2).sum(axis=0)), 1e-300)
    scaled = columns / norms
    solution = coefficients * norms
    solution[0] += quantile(cost - columns @ coefficients, _EDGE) * norms[0]  # the intercept comes first
    smallest = 1e-3 * max(median(np.abs(cost - scaled @ solution)), 1e-100)
    for _ in range(_ROUNDS):
        residuals = cost - scaled @ solution
        weights = np.where(residuals > 0, _EDGE, 1 - _EDGE) / np.maximum(np.abs(residuals), smallest)
        weighted = scaled * weights[:, None]
        updated = np.linalg.lstsq(weighted.T @ scaled, weighted.T @ cost, rcond=1e-12)[0]
        moved = float(np.max(np.abs(scaled @ (updated - solution))))
        solution = updated
        if moved < _SETTLED * 1e3 * smallest:
            break
    return np.asarray(solution / norms)


def _shifted(above: Floats, seen: Bools) -> tuple[float, float]:
    """Return where an exponential starts and its mean, the rows that were not `seen` being larger than given.

    The lowest value lies one n-th of the mean above the start, on average.
    """
    stray = int(_STRAY * len(above))
    lowest = float(np.partition(above, stray)[stray])
    mean = float(np.maximum(above - lowest, 0.0).sum()) / max(int(seen.sum()) - 1, 1)
    return lowest - mean * (stray + 1) / len(above), mean


def _normal_likelihood(seen: Floats, deviation: Floats, bound: float, censored: int) -> float:
    """Return the likelihood of the best normal for standardised residuals, of which some lie above a bound: by EM (Dempster 1977)."""
    from scipy.special import erfcx, log_ndtr

    n = len(seen) + censored
    mean, sigma = float(seen.mean()), max(float(seen.std()), 1e-12)
    for _ in range(_STEPS):
        reached = (bound - mean) / sigma
        hazard = _HAZARD_AT_0 / float(erfcx(reached * np.sqrt(0.5)))  # density over upper tail; precise however far the bound is
        first = mean + sigma * hazard
        second = mean**2 + sigma**2 + sigma * hazard * (bound + mean)
        mean, before = (float(seen.sum()) + censored * first) / n, mean
        sigma = float(np.sqrt(max((float(seen @ seen) + censored * second) / n - mean**2, 1e-24)))
        if abs(mean - before) < _SETTLED * sigma:
            break
    inside = -float((((seen - mean) / sigma) ** 2).sum()) / 2 - len(seen) * (_HALF_LOG_2PI + np.log(sigma))
    return float(inside + censored * log_ndtr((mean - bound) / sigma) - np.log(deviation).sum())
