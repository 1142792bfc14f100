"""Two-sample inference on runs: does head differ from base, by how much, and what could have been seen at all.

The run is the unit: calls of one run share its address layout, its neighbours and its clock, so only runs count as independent.
All values are logarithms of ratios, so that noise is additive and an effect is a factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfdiff.models.middle import median, quantile
from perfdiff.models.noise import OUTLIER_RUN, OUTLIER_RUNS, robust_deviation
from perfdiff.records.schema import Floats, Ints

Bools = npt.NDArray[np.bool_]

UNEQUAL = 0.95  # level of the F-test that finds one side to scatter more than the other
# From so many common blocks on, comparing within blocks gains more by removing drift than it loses in degrees of freedom.
PAIRED_BLOCKS = 8
HETEROGENEOUS = 0.95  # level of the F-test that finds effects to differ between points
SPLITS = 200  # of one side's runs against each other, for the noise floor
FLOOR_QUANTILE = 0.95
# Chance at which counts that vary count as moved: of a function's thirty features at three points, one in a hundred would by chance.
CLEAR = 1e-4
# Of a group's runs at most this part are outliers, or one; more are a second mode of the machine. Simulated, 5 to 20 runs a side of two
# modes, half or a third of them in the other: false alarms in 4 and 9 % where all are pulled in, in 1.6 and 2 % where a mode is left. Of
# slow-downs by 20 % where 15 % of runs are preempted 73 % are found, not 77 %.
FEW = 0.2
ROUNDING = 1e-9  # of a count's mean: less is the arithmetic's


@dataclass(frozen=True, slots=True)
class Group:
    """One statistic per run of one side at one workload point: `values` (n,), `blocks` (n,) of the schedule; outliers already `clipped`."""

    values: Floats
    blocks: Ints
    clipped: int = 0


@dataclass(frozen=True, slots=True)
class Pair:
    """Base's and head's runs at one workload point."""

    base: Group
    head: Group


@dataclass(frozen=True, slots=True)
class Contrast:
    """Head minus base: `effect` with standard error and degrees of freedom; `agreement` is the share of run pairs where head is larger.

    `chance` is the standard deviation of that share under no difference (Mann and Whitney).
    """

    effect: float
    error: float
    freedom: float
    agreement: float
    chance: float
    runs_base: int
    runs_head: int

    @property
    def p(self) -> float:
        """Return the two-sided p-value of no difference (Student's t)."""
        from scipy.special import stdtr

        if self.error == 0:
            return 0.0 if self.effect else 1.0
        return float(2 * stdtr(self.freedom, -abs(self.effect) / self.error))

    def p_beyond(self, least: float) -> float:
        """Return the two-sided p-value of an effect of at most `least` either way (minimum-effect test: Murphy and Myors 1999)."""
        from scipy.special import stdtr

        distance = abs(self.effect) - least
        if distance <= 0:
            return 1.0
        return float(2 * stdtr(self.freedom, -distance / self.error)) if self.error else 0.0

    def interval(self, confidence: float, comparisons: int = 1) -> tuple[float, float]:
        """Return the interval of the effect that holds for `comparisons` contrasts at once (Bonferroni)."""
        half = self.half_width(confidence, comparisons)
        return self.effect - half, self.effect + half

    def half_width(self, confidence: float, comparisons: int = 1) -> float:
        """Return half the width of `interval`."""
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, 1 - (1 - confidence) / (2 * comparisons))) * self.error if self.error else 0.0


def contrast(pairs: Sequence[Pair]) -> Contrast | None:
    """Return head minus base over `pairs`, each point with the same weight, or None if no point has two runs a side.

    Outliers are pulled in, the variances of both sides pooled per point unless one side clearly scatters more, and errors combined
    with Welch and Satterthwaite's degrees of freedom.
    """
    from scipy.special import fdtri

    usable = [pair for pair in pairs if min(len(pair.base.values), len(pair.head.values)) >= 2]
    if not usable:
        return None
    usable = _pull_in(usable)
    parts = [_point_contrast(pair) for pair in usable]
    within = np.array([part[1] for part in parts])
    variances = within / len(parts) ** 2
    freedoms = np.array([part[2] for part in parts])
    if len(parts) > 1:
        # Effects that differ between points by more than their errors are no effect of all points; each point has a contrast of its own.
        between, error = float(np.var([part[0] for part in parts], ddof=1)), float(within.mean())
        if between > fdtri(len(parts) - 1, freedoms.sum(), HETEROGENEOUS) * error:
            variances, freedoms = np.append(variances, (between - error) / len(parts)), np.append(freedoms, len(parts) - 1.0)
    variance = float(variances.sum())
    return Contrast(
        effect=float(np.mean([part[0] for part in parts])),
        error=math.sqrt(variance),
        freedom=variance**2 / float((variances**2 / freedoms).sum()) if variance else float(freedoms.sum()),
        agreement=float(np.mean([_agreement(pair) for pair in usable])),
        chance=math.sqrt(sum(_rank_variance(pair) for pair in usable)) / len(usable),
        runs_base=sum(len(pair.base.values) for pair in usable),
        runs_head=sum(len(pair.head.values) for pair in usable),
    )


def _pull_in(pairs: Sequence[Pair]) -> list[Pair]:
    """Clip every group's values around its median, at the scale of all groups, for a few runs say little of it, or its own if wider."""
    groups = [group for pair in pairs for group in (pair.base, pair.head)]
    residuals = np.concatenate([group.values - median(group.values) for group in groups])
    scale = robust_deviation(residuals, len(groups))
    if scale == 0:
        return list(pairs)
    return [Pair(_clipped(pair.base, scale), _clipped(pair.head, scale)) for pair in pairs]


def _clipped(group: Group, common: float) -> Group:
    if len(group.values) < OUTLIER_RUNS:
        return group
    middle = median(group.values)
    own = robust_deviation(group.values - middle, 1)
    if own == 0:  # most runs are equal, which says nothing of how far the others may lie
        return group
    reach = OUTLIER_RUN * max(common, own)
    outside = int((np.abs(group.values - middle) > reach).sum())
    if outside > max(1, FEW * len(group.values)):
        return group
    return Group(np.clip(group.values, middle - reach, middle + reach), group.blocks, outside)


def _point_contrast(pair: Pair) -> tuple[float, float, float]:
    """Return (effect, variance of the effect, degrees of freedom) at one point."""
    base, head = pair.base.values, pair.head.values
    # A clipped value says less than a whole one: the variance grows as that of a Winsorised mean does (Yuen 1974).
    runs = len(base) + len(head)
    whole = max(runs - pair.base.clipped - pair.head.clipped, 3)
    loss = ((runs - 2) / (whole - 2)) ** 2
    differences = _within_blocks(pair)
    if differences is not None:
        return float(differences.mean()), loss * float(differences.var(ddof=1)) / len(differences), len(differences) - 1.0
    variance, freedom = _variance(base, head)
    return float(head.mean() - base.mean()), loss * variance, freedom


def _variance(base: Floats, head: Floats) -> tuple[float, float]:
    """Return the variance of the difference of two means with its degrees of freedom: pooled, or Welch's if one side scatters more."""
    from scipy.special import fdtri

    variances, freedoms = (float(base.var(ddof=1)), float(head.var(ddof=1))), (len(base) - 1.0, len(head) - 1.0)
    low, high = sorted(range(2), key=lambda side: variances[side])
    if variances[high] > variances[low] * fdtri(freedoms[high], freedoms[low], UNEQUAL):
        parts = np.array([variances[0] / len(base), variances[1] / len(head)])
        return float(parts.sum()), float(parts.sum() ** 2 / (parts**2 / freedoms).sum())
    pooled = (variances[0] * freedoms[0] + variances[1] * freedoms[1]) / sum(freedoms)
    return pooled * (1 / len(base) + 1 / len(head)), sum(freedoms)


def _within_blocks(pair: Pair) -> Floats | None:
    """Return head minus base per block that both have (blocks,), or None where these are too few to compare within."""
    base, head = pair.base.blocks, pair.head.blocks
    if np.array_equal(base, head) and np.all(base[1:] > base[:-1]):  # one run a side in each, as a rule
        return pair.head.values - pair.base.values if len(base) >= PAIRED_BLOCKS else None
    shared = np.intersect1d(base, head)
    return _block_means(pair.head, shared) - _block_means(pair.base, shared) if len(shared) >= PAIRED_BLOCKS else None


def _block_means(group: Group, blocks: Ints) -> Floats:
    member = group.blocks[None, :] == blocks[:, None]
    means: Floats = (member * group.values).sum(axis=1) / member.sum(axis=1)
    return means


def _agreement(pair: Pair) -> float:
    difference = pair.head.values[:, None] - pair.base.values[None, :]
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))


def _rank_variance(pair: Pair) -> float:
    base, head = len(pair.base.values), len(pair.head.values)
    return (base + head + 1) / (12 * base * head)


def noise_floor(pairs: Sequence[Pair], *, seed: int) -> float:
    """Return the effect that base shows against base, and head against head, by chance alone (log scale).

    The runs of each side and point are split into halves at random, many times; the floor is the `FLOOR_QUANTILE` of the differences,
    scaled from halves to whole sides. Without any pairs nothing could have been seen: infinity.
    """
    usable = [pair for pair in pairs if min(len(pair.base.values), len(pair.head.values)) >= 2]
    if not usable:
        return math.inf
    usable = _pull_in(usable)
    rng = np.random.default_rng(seed)
    differences = [
        np.mean([_split_differences(side, rng) for side in sides], axis=0)
        for sides in ([pair.base.values for pair in usable], [pair.head.values for pair in usable])
    ]
    return quantile(np.abs(np.concatenate(differences)), FLOOR_QUANTILE)


def _split_differences(values: Floats, rng: np.random.Generator) -> Floats:
    n = len(values)
    half = n // 2
    shuffled = values[np.argsort(rng.random((SPLITS, n)), axis=1)]
    scale = math.sqrt((2 / n) / (1 / half + 1 / (n - half)))
    differences: Floats = (shuffled[:, :half].mean(axis=1) - shuffled[:, half:].mean(axis=1)) * scale
    return differences


def false_discovery(p: Sequence[float]) -> Floats:
    """Return Benjamini and Hochberg's q-value of each p-value (1995, step-up).

    `scipy.stats.false_discovery_control` does the same, and importing it costs 0.6 s of CPU in each process that studies functions.
    """
    values = np.asarray(p, dtype=np.float64)
    if not len(values):
        return values
    order = np.argsort(values)
    stepped = values[order] * len(values) / np.arange(1, len(values) + 1)
    q = np.empty_like(values)
    q[order] = np.minimum(np.minimum.accumulate(stepped[::-1])[::-1], 1.0)
    return q


def clear_shift(base: Floats, head: Floats) -> bool:
    """Return whether counts of runs, (n,) and (m,), moved beyond any doubt.

    Counts of deterministic code do not vary at all, and every difference is clear; of counts that depend on timing the means must differ
    by Welch's t-test (1947) at `CLEAR`. Simulated, a shift by five standard deviations is seen in half of all pairs at five runs a side,
    in all from eight runs on.
    """
    from scipy.special import stdtr

    n, m = len(base), len(head)
    if min(n, m) < 2:
        return False
    apart = abs(float(head.mean() - base.mean()))
    rounding = ROUNDING * max(float(np.abs(base).max()), float(np.abs(head).max()))
    if max(np.ptp(base), np.ptp(head)) <= rounding:
        return apart > rounding
    of_base, of_head = float(base.var(ddof=1)) / n, float(head.var(ddof=1)) / m
    freedom = (of_base + of_head) ** 2 / (of_base**2 / (n - 1) + of_head**2 / (m - 1))
    return bool(2 * stdtr(freedom, -apart / math.sqrt(of_base + of_head)) <= CLEAR)
