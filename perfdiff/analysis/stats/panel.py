"""Two samples of runs as arrays: many questions, asked of the same few runs, are answered at once.

An analysis compares some ten runs a side a hundred thousand times, one question being one stratum of one metric of one function. What is
computed here for all questions together is, for each, what `inference.contrast` returns for one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.stats.runs import Runs
from perfdiff.models.middle import quantile
from perfdiff.models.noise import NORMAL_MAD, OUTLIER_RUN, OUTLIER_RUNS
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.statistics import machines as levels

UNEQUAL = 0.95  # level of the F-test that finds one side to scatter more than the other
# From so many common blocks on, comparing within blocks gains more by removing drift than it loses in degrees of freedom.
PAIRED_BLOCKS = 8
HETEROGENEOUS = 0.95  # level of the F-test that finds effects to differ between points
# Of a group's runs at most this part are outliers, or one; more are a second mode of the machine. Simulated, 5 to 20 runs a side of two
# modes, half or a third of them in the other: false alarms in 4 and 9 % where all are pulled in, in 1.6 and 2 % where a mode is left. Of
# slow-downs by 20 % where 15 % of runs are preempted 73 % are found, not 77 %.
FEW = 0.2
SPLITS = 200  # of one side's runs against each other, for the noise floor
FLOOR_QUANTILE = 0.95
MOST_PAIRS = 100_000  # of runs that are held against each other as one array; more are counted in order


@dataclass(frozen=True, slots=True)
class Panel:
    """Base's and head's runs, outliers pulled in; `clipped` (p, k) of them were. Points with less than two runs a side are left empty."""

    base: Runs
    head: Runs
    clipped: Ints

    @property
    def usable(self) -> Bools:
        """Return which points have runs to compare, for each question (p, k)."""
        usable: Bools = self.base.counts >= 2
        return usable


@dataclass(frozen=True, slots=True)
class Effects:
    """The fields of a `Contrast`, each (k,); `points` is how many points answer a question."""

    effect: Floats
    error: Floats
    freedom: Floats
    agreement: Floats
    chance: Floats
    runs_base: Ints
    runs_head: Ints
    points: Ints
    differ: Floats


def middles(values: Floats) -> Floats:
    """Return the lower medians over the last axis, of the values that are no NaN: values that were there; NaN where there are none."""
    if not values.shape[-1]:
        return np.full(values.shape[:-1], np.nan)
    counts = np.isfinite(values).sum(axis=-1)
    lower: Floats = np.take_along_axis(np.sort(values, axis=-1), np.maximum(counts - 1, 0)[..., None] // 2, axis=-1)[..., 0]
    return lower


def medians(values: Floats) -> Floats:
    """Return the medians over the last axis, of the values that are no NaN; NaN where there are none."""
    if not values.shape[-1]:
        return np.full(values.shape[:-1], np.nan)
    ordered = np.sort(values, axis=-1)
    counts = np.isfinite(values).sum(axis=-1)
    places = np.stack([np.maximum(counts - 1, 0) // 2, np.minimum(counts // 2, values.shape[-1] - 1)], axis=-1)
    middles: Floats = 0.5 * np.take_along_axis(ordered, places, axis=-1).sum(axis=-1)
    return middles


def panel(base: Runs, head: Runs) -> Panel:
    """Return the runs of both sides with outliers pulled in, after what runs that were made together have in common is taken off.

    Every group of runs is clipped around its median, at the scale of a question's groups at all points, for a few runs say little of it,
    or its own if wider; where more than `FEW` lie outside, none is.
    """
    base, head = _apart_from_their_pairs(base, head)
    base, head = _at_one_pace(base, head)
    usable = (np.minimum(base.counts, head.counts) >= 2)[..., None]
    sides = [replace(side, values=np.where(usable, side.values, np.nan)) for side in (base, head)]
    middles = [medians(side.values) for side in sides]
    apart = [np.abs(side.values - middle[..., None]) for side, middle in zip(sides, middles, strict=True)]
    both = np.concatenate(apart, axis=-1)
    points, questions, runs = both.shape
    together = both.transpose(1, 0, 2).reshape(questions, points * runs)
    common = _robust_deviation(together, 2 * usable[..., 0].sum(axis=0))
    pulled, clipped = [], np.zeros(usable.shape[:-1], dtype=np.int64)
    for side, middle, distances in zip(sides, middles, apart, strict=True):
        own = _robust_deviation(distances, 1)
        # Where most runs are equal, that says nothing of how far the others may lie.
        scaled = (common > 0) & (own > 0) & (side.counts >= OUTLIER_RUNS)
        reach = np.where(scaled, OUTLIER_RUN * np.maximum(common, own), np.inf)[..., None]
        outside = (distances > reach).sum(axis=-1)
        is_mode = outside > np.maximum(1, FEW * side.counts)
        clipped += np.where(is_mode, 0, outside)
        reach = np.where(is_mode[..., None], np.inf, reach)
        pulled.append(replace(side, values=np.clip(side.values, middle[..., None] - reach, middle[..., None] + reach)))
    return Panel(pulled[0], pulled[1], clipped)


def _apart_from_their_pairs(base: Runs, head: Runs) -> tuple[Runs, Runs]:
    """Return runs that were made together without what the two of a block have in common: each side's median, and half of the difference.

    A run without another one says nothing then.
    """
    if not (base.together & head.together).any():
        return base, head
    place = (base.blocks[:, :, None] == head.blocks[:, None, :]) & (base.together & head.together)[:, None, None]
    sides = []
    for own, other, to_other in ((base, head, place), (head, base, place.transpose(0, 2, 1))):
        partner = np.take_along_axis(other.values, to_other.argmax(axis=-1)[:, None, :], axis=-1)
        partner = np.where(to_other.any(axis=-1)[:, None, :], partner, np.nan)
        shared = (own.values + partner) / 2
        apart = own.values - shared + medians(shared)[..., None]
        sides.append(replace(own, values=np.where(own.together[:, None, None], apart, own.values)))
    return sides[0], sides[1]


def _at_one_pace(base: Runs, head: Runs) -> tuple[Runs, Runs]:
    """Return runs of several machines without what those of one machine have in common, half of each side's median; of several runs of a
    block the mean.

    Differences between base and head stay on each machine. A machine that has one side alone says nothing.
    """
    if base.machines is None or head.machines is None:
        return base, head
    base, head = _one_a_block(base), _one_a_block(head)
    first, second = np.full_like(base.values, np.nan), np.full_like(head.values, np.nan)
    if base.machines is not None and head.machines is not None:
        for machine in np.unique(np.concatenate([base.machines.ravel(), head.machines.ravel()])).tolist():
            own = [np.where((side.machines == machine)[:, None], side.values, np.nan) for side in (base, head) if side.machines is not None]
            pace = ((medians(own[0]) + medians(own[1])) / 2)[..., None]
            first, second = np.fmax(first, own[0] - pace), np.fmax(second, own[1] - pace)
    return replace(base, values=first), replace(head, values=second)


def _one_a_block(side: Runs) -> Runs:
    if side.machines is None or all(len(np.unique(blocks)) == len(blocks) for blocks in side.blocks):
        return side
    values, blocks, machines = levels.one_a_block(side.values, side.blocks, side.machines)
    return Runs(values, blocks, side.together, machines)


def _robust_deviation(apart: Floats, groups: Ints | int) -> Floats:
    """Return `noise.robust_deviation` over the last axis, of the distances that are no NaN; 0 where there are none."""
    counts = np.isfinite(apart).sum(axis=-1)
    deviations: Floats = np.where(counts > groups, NORMAL_MAD * medians(apart) * counts / np.maximum(counts - groups, 1), 0.0)
    return deviations


def effects(of: Panel) -> Effects:
    """Return head minus base for every question, each point with the same weight.

    The variances of both sides are pooled per point unless one side clearly scatters more, and errors combined with Welch and
    Satterthwaite's degrees of freedom.
    """
    from scipy.special import fdtri

    usable = of.usable
    points = usable.sum(axis=0)
    weight = 1.0 / np.maximum(points, 1)
    effect, variance, freedom = (np.where(usable, part, 0.0) for part in _at_points(of))
    mean, within = effect.sum(axis=0) * weight, variance.sum(axis=0) * weight
    # Effects that differ between points by more than their errors are no effect of all points; each point has a contrast of its own.
    between = (np.where(usable, effect - mean, 0.0) ** 2).sum(axis=0) / np.maximum(points - 1, 1)
    together = freedom.sum(axis=0)
    several = np.maximum(points - 1, 1)
    differ = (points > 1) & (between > fdtri(several, np.maximum(together, 1), HETEROGENEOUS) * within)
    extra = np.where(differ, (between - within) * weight, 0.0)
    parts = variance * weight**2
    over = _over_machines(of)
    between = over.extra if over is not None else np.zeros_like(extra)
    total = parts.sum(axis=0) + extra + between
    spent = (parts**2 / np.where(usable, freedom, 1.0)).sum(axis=0) + extra**2 / several
    if over is not None:
        spent = spent + between**2 / over.freedom
    counts = of.base.counts, of.head.counts
    pairs = np.maximum(counts[0] * counts[1], 1)
    ranks = np.where(usable, (counts[0] + counts[1] + 1) / (12 * pairs), 0.0)
    return Effects(
        effect=mean,
        error=np.sqrt(total),
        freedom=np.where(spent > 0, total**2 / np.where(spent > 0, spent, 1.0), together),
        agreement=(_wins(of) / pairs).sum(axis=0) * weight,
        chance=np.sqrt(ranks.sum(axis=0)) * weight,
        runs_base=counts[0].sum(axis=0),
        runs_head=counts[1].sum(axis=0),
        points=points,
        differ=np.ones(len(mean)) if over is None else over.p,
    )


def on_machine(of: Panel, question: int, machine: int) -> Panel:
    """Return the panel of one machine's runs alone, for one question."""
    sides = []
    for side in (of.base, of.head):
        values = side.values[:, question : question + 1]
        own = values if side.machines is None else np.where((side.machines == machine)[:, None], values, np.nan)
        sides.append(replace(side, values=own, machines=None))
    usable = (np.minimum(sides[0].counts, sides[1].counts) >= 2)[..., None]
    base, head = (replace(side, values=np.where(usable, side.values, np.nan)) for side in sides)
    return Panel(base, head, np.zeros(usable.shape[:-1], dtype=np.int64))


def machines_of(of: Panel) -> list[int]:
    """Return the machines that both sides have runs of; none where all runs are of one."""
    if of.base.machines is None or of.head.machines is None:
        return []
    return [machine for machine in np.intersect1d(of.base.machines, of.head.machines).tolist() if machine >= 0]


def _over_machines(of: Panel) -> levels.MachineSpread | None:
    """Return how head minus base, the mean over the points that a machine has, differs between machines."""
    machines = machines_of(of)
    if len(machines) < 2:
        return None
    summed = np.zeros((of.base.values.shape[1], len(machines)))
    variances, points, freedom = np.zeros_like(summed), np.zeros_like(summed), np.zeros(len(summed))
    for effect, variance, own_freedom in _on_machines(of, machines):
        finite = np.isfinite(effect)
        summed += np.where(finite, effect, 0.0)
        variances += np.where(finite, variance, 0.0)
        points += finite
        freedom += own_freedom
    with np.errstate(invalid="ignore", divide="ignore"):
        return levels.spread(summed / points, variances / points**2, freedom)


def _on_machines(of: Panel, machines: Sequence[int]) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield, of each point, head minus base on each machine with its variance, (k, m), and the degrees of freedom (k,) of these."""
    is_paired = _are_paired(of)
    for point in range(len(of.base.blocks)):
        sides = [(side.values[point], _places(side, point, machines)) for side in (of.base, of.head)]
        counts, means, squares = (np.array(part) for part in zip(*(levels.cells(*side, len(machines)) for side in sides), strict=True))
        enough = counts.min(axis=0) > 0
        variances, freedom = levels.variance_of_each(np.concatenate([squares[0], squares[1]], axis=1), np.concatenate([*counts], axis=1))
        of_base, of_head = np.split(variances, 2, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = of_base / counts[0] + of_head / counts[1]
        effect = np.where(enough, means[1] - means[0], np.nan)
        if is_paired[point].any():
            differences, member = _differences(of, point, machines)
            number, mean, squared = levels.cells(differences, member, len(machines))
            by_pair, its_freedom = levels.variance_of_each(squared, number)
            with np.errstate(divide="ignore", invalid="ignore"):
                paired = is_paired[point][:, None]
                effect, variance = np.where(paired, mean, effect), np.where(paired, by_pair / number, variance)
                freedom = np.where(is_paired[point], its_freedom, freedom)
        yield effect, variance, freedom


def _places(side: Runs, point: int, machines: Sequence[int]) -> Ints:
    """Return the place of each run's machine among `machines`, -1 where it is none of them."""
    of = np.zeros(side.blocks.shape[1], dtype=np.int64) if side.machines is None else side.machines[point]
    place = np.searchsorted(machines, of)
    return np.where(np.array([*machines, -2])[place] == of, place, -1)  # behind the last one, none


def _differences(of: Panel, point: int, machines: Sequence[int]) -> tuple[Floats, Ints]:
    """Return head minus base of each block that both sides have at a point (k, blocks), and the places of the blocks' machines."""
    blocks, base, head = np.intersect1d(of.base.blocks[point], of.head.blocks[point], return_indices=True)
    del blocks
    return of.head.values[point][:, head] - of.base.values[point][:, base], _places(of.base, point, machines)[base]


def _at_points(of: Panel) -> tuple[Floats, Floats, Floats]:
    """Return (effect, variance of the effect, degrees of freedom), each (p, k), at every point by itself."""
    base, head = of.base.counts, of.head.counts
    # A clipped value says less than a whole one: the variance grows as that of a Winsorised mean does (Yuen 1974).
    runs = base + head
    whole = np.maximum(runs - of.clipped, 3)
    loss = ((runs - 2) / (whole - 2)) ** 2
    means = [moments(side.values) for side in (of.base, of.head)]
    variance, freedom = _variance(means[0][1], means[1][1], base, head)
    effect = means[1][0] - means[0][0]
    if of.base.machines is not None:
        effect, variance, freedom = _apart_from_machines(of)
    together = (of.base.together & of.head.together)[:, None]
    if together.any() or np.minimum(base, head).max(initial=0) >= PAIRED_BLOCKS:
        differences = _within_blocks(of)
        counts = np.isfinite(differences).sum(axis=-1)
        paired = (counts >= PAIRED_BLOCKS) | (together & (counts >= 2))
        mean, scatter = moments(differences)
        effect = np.where(paired, mean, effect)
        variance = np.where(paired, scatter / np.maximum(counts, 1), variance)
        freedom = np.where(paired, counts - 1.0, freedom)
    return effect, loss * variance, freedom


def _are_paired(of: Panel) -> Bools:
    """Return at which points a question is answered by blocks that both sides have (p, k)."""
    counts = np.isfinite(_within_blocks(of)).sum(axis=-1)
    return np.asarray((counts >= PAIRED_BLOCKS) | ((of.base.together & of.head.together)[:, None] & (counts >= 2)))


def _apart_from_machines(of: Panel) -> tuple[Floats, Floats, Floats]:
    """Return (effect, variance of the effect, degrees of freedom), each (p, k), of runs of several machines.

    The effect is the mean of the machines' own, by the runs that each has of both sides; a level of each machine costs a degree of freedom
    (two-way layout without interaction: Cochran 1954).
    """
    machines = machines_of(of)
    shape = of.base.counts.shape
    effect, variance, freedom = np.zeros(shape), np.zeros(shape), np.ones(shape)
    for point in range(shape[0]):
        sides = [(side.values[point], _places(side, point, machines)) for side in (of.base, of.head)]
        counts, means, squares = (np.array(part) for part in zip(*(levels.cells(*side, len(machines)) for side in sides), strict=True))
        weight = counts.prod(axis=0) / np.maximum(counts.sum(axis=0), 1.0)
        total = np.maximum(weight.sum(axis=1), 1e-9)
        own = np.where(weight > 0, means[1] - means[0], 0.0)
        mean = (weight * own).sum(axis=1) / total
        interaction = (weight * (own - mean[:, None]) ** 2).sum(axis=1)
        left = counts.sum(axis=(0, 2)) - (weight > 0).sum(axis=1) - 1
        effect[point], freedom[point] = mean, np.maximum(left, 1.0)
        variance[point] = (squares.sum(axis=(0, 2)) + interaction) / np.maximum(left, 1.0) / total
    return effect, variance, freedom


def moments(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance over the last axis, of the values that are no NaN."""
    present = np.isfinite(values)
    counts = present.sum(axis=-1)
    mean = np.where(present, values, 0.0).sum(axis=-1) / np.maximum(counts, 1)
    squares = np.where(present, values - mean[..., None], 0.0) ** 2
    return mean, squares.sum(axis=-1) / np.maximum(counts - 1, 1)


def _variance(base: Floats, head: Floats, n: Ints, m: Ints) -> tuple[Floats, Floats]:
    """Return the variance of the difference of two means with its degrees of freedom: pooled, or Welch's if one side scatters more."""
    from scipy.special import fdtri

    of_base, of_head = np.maximum(n - 1.0, 1.0), np.maximum(m - 1.0, 1.0)
    wider = head > base
    low, high = np.where(wider, base, head), np.where(wider, head, base)
    unequal = high > low * fdtri(np.where(wider, of_head, of_base), np.where(wider, of_base, of_head), UNEQUAL)
    n, m = np.maximum(n, 1), np.maximum(m, 1)
    parts = base / n, head / m
    spent = parts[0] ** 2 / of_base + parts[1] ** 2 / of_head
    welch = (parts[0] + parts[1]) ** 2 / np.where(spent > 0, spent, 1.0)
    pooled = (base * of_base + head * of_head) / (of_base + of_head)
    return np.where(unequal, parts[0] + parts[1], pooled * (1 / n + 1 / m)), np.where(unequal, welch, of_base + of_head)


def _within_blocks(of: Panel) -> Floats:
    """Return head minus base per block (p, k, blocks), NaN in those that not both have; of several runs of a block, their mean."""
    blocks = np.unique(np.concatenate([side.blocks.ravel() for side in (of.base, of.head)]))
    means = []
    for side in (of.base, of.head):
        member = (side.blocks[..., None] == blocks).astype(np.float64)
        present = np.isfinite(side.values)
        counts = present.astype(np.float64) @ member
        means.append(np.where(counts > 0, (np.where(present, side.values, 0.0) @ member) / np.maximum(counts, 1.0), np.nan))
    differences: Floats = means[1] - means[0]
    return differences


def _wins(of: Panel) -> Floats:
    """Return in how many pairs of runs head is larger (p, k), equal ones as one half."""
    if of.base.values.shape[-1] * of.head.values.shape[-1] > MOST_PAIRS:
        return np.array(
            [[_wins_of_many(*runs) for runs in zip(*sides, strict=True)] for sides in zip(of.base.values, of.head.values, strict=True)]
        )
    base, head = of.base.values[..., None, :], of.head.values[..., :, None]
    wins: Floats = (head > base).sum(axis=(-2, -1)) + 0.5 * (head == base).sum(axis=(-2, -1))
    return wins


def _wins_of_many(base: Floats, head: Floats) -> float:
    ordered, values = np.sort(base[np.isfinite(base)]), head[np.isfinite(head)]
    return 0.5 * float((np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")).sum())


def noise_floor(of: Panel, question: int, *, seed: int) -> float:
    """Return the effect that base shows against base, and head against head, by chance alone (log scale), in one question.

    The runs of each side and point are split into halves at random, many times; the floor is the `FLOOR_QUANTILE` of the differences,
    scaled from halves to whole sides. Without any points nothing could have been seen: infinity. Of runs that were made together half
    of the difference is left on each side, which has a quarter of the variance of two runs' difference, not half of it.
    """
    groups = [
        [_centred(values) * (math.sqrt(2) if together else 1.0) for values, together in point_runs if np.isfinite(values).any()]
        for point_runs in (zip(side.values[:, question], side.together, strict=True) for side in (of.base, of.head))
    ]
    if not groups[0]:
        return math.inf
    sizes = tuple(tuple(len(values) for values in side) for side in groups)
    differences = [
        np.mean([values @ halves for values, halves in zip(side, splits, strict=True)], axis=0)
        for side, splits in zip(groups, _splits(sizes, seed), strict=True)
    ]
    return quantile(np.abs(np.concatenate(differences)), FLOOR_QUANTILE)


def _centred(values: Floats) -> Floats:
    """Return the values that are no NaN, from the first one on, so that equal ones differ by exactly 0 however they are split."""
    present = values[np.isfinite(values)]
    return np.asarray(present - present[0])


@functools.lru_cache(maxsize=64)  # most questions are of the same runs
def _splits(sizes: tuple[tuple[int, ...], ...], seed: int) -> Sequence[Sequence[Floats]]:
    """Return, per side and group of n runs, the weights (n, `SPLITS`) that turn its values into differences of random halves."""
    rng = np.random.default_rng(seed)
    return [[_halves(n, rng) for n in side] for side in sizes]


def _halves(n: int, rng: np.random.Generator) -> Floats:
    half = n // 2
    scale = math.sqrt((2 / n) / (1 / half + 1 / (n - half)))
    weights = np.empty((n, SPLITS))
    weights[np.argsort(rng.random((SPLITS, n)), axis=1).T, np.arange(SPLITS)] = np.where(np.arange(n) < half, 1 / half, -1 / (n - half))[
        :, None
    ]
    return weights * scale
