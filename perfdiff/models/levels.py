"""How far the calls of a run lie above or below an annotation: the run as one number, which other runs can be held against."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perfdiff.models.annotation import Annotation, Levels
from perfdiff.models.clock import RESOLUTION_NS
from perfdiff.models.distribution import DIGITS
from perfdiff.models.forecast import cdf
from perfdiff.models.middle import median
from perfdiff.models.noise import OUTLIER_RUN, OUTLIER_RUNS, robust_deviation
from perfdiff.models.observations import columns_of
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import SampleTable

# Levels are looked for within this factor of the annotated cost; what lies beyond is as certain.
LARGEST = math.log(1e6)
_HALVINGS = 30  # of that range: levels are then known to a ten-millionth
# A smaller count of a call is none, and so is a time that a probe cannot resolve, since none has no ratio to anything.
NONE_A_CALL = 1e-3


@dataclass(frozen=True, slots=True)
class AnnotatedCalls:
    """n calls of a function as an annotation judges them; `weight` is how many calls a row stands for."""

    values: Mapping[str, Floats]
    cost: Floats
    run: Ints
    point: Ints
    weight: Floats

    def __len__(self) -> int:
        return len(self.cost)

    def rows(self, which: Bools | Ints) -> AnnotatedCalls:
        """Return some of the calls."""
        values = {name: column[which] for name, column in self.values.items()}
        return AnnotatedCalls(values, self.cost[which], self.run[which], self.point[which], self.weight[which])


@dataclass(frozen=True, slots=True)
class RunLevels:
    """The level of each of r runs, as `run_levels` defines it, beside the run's number and workload point; all (r,)."""

    run: Ints
    point: Ints
    level: Floats


def calls_of(table: SampleTable, metric: str) -> AnnotatedCalls:
    """Return the calls of a table with one of its metrics as their cost."""
    return AnnotatedCalls(columns_of(table), table.metrics[metric], table.run, table.point, table.weight)


def judged(annotation: Annotation, calls: AnnotatedCalls) -> Bools:
    """Return which calls (n,) the annotation says something of: their cost, and the features of their scope, are known."""
    return np.asarray(np.isfinite(cdf(annotation, calls.values, calls.cost, seed=0)))


def run_levels(annotation: Annotation, calls: AnnotatedCalls, *, seed: int) -> RunLevels:
    """Return the level of each run: the logarithm of what its calls cost over what the annotation says at their inputs.

    Of times it is the factor by which costs must be divided for their probability-integral transforms to be ½ on average (the
    one-sample analogue of Hodges and Lehmann's shift): 0 where calls follow the annotation, whatever its distribution, and no
    delayed call has more pull than any other above the middle. Of counts it is that of the sums, which are exact, and of times too
    short for a probe that of the medians. All calls must be `judged`.
    """
    runs, first, place = np.unique(calls.run, return_index=True, return_inverse=True)
    return RunLevels(runs, calls.point[first], _levels(annotation, calls, place, seed))


def _levels(annotation: Annotation, calls: AnnotatedCalls, place: Ints, seed: int) -> Floats:
    expected = annotation.predict(calls.values)
    if metric_of(annotation.metric).unit != "ns":
        total = np.bincount(place, calls.weight)
        return _ratios(*(np.bincount(place, calls.weight * costs) / total for costs in (calls.cost, expected)), none=NONE_A_CALL)
    if _is_short(annotation):
        return _ratios(_medians(calls.cost, place), _medians(expected, place), none=RESOLUTION_NS)
    return _of_transforms(annotation, calls, place, seed)


def _is_short(annotation: Annotation) -> bool:
    """Return whether an annotated time is below what a probe can tell, whatever the inputs."""
    if not {*annotation.features} <= {*annotation.ranges}:
        return False
    ends = {name: np.array(bounds) for name, bounds in annotation.ranges.items()}
    return bool(np.all(annotation.predict(ends) < RESOLUTION_NS))


def _ratios(cost: Floats, expected: Floats, *, none: float) -> Floats:
    level = np.log(np.maximum(cost, none) / np.maximum(expected, none))
    return np.asarray(np.clip(np.where(np.abs(level) <= DIGITS, 0.0, level), -LARGEST, LARGEST))


def _medians(values: Floats, place: Ints) -> Floats:
    return np.array([median(values[place == run]) for run in range(place.max() + 1)])


def _of_transforms(annotation: Annotation, calls: AnnotatedCalls, place: Ints, seed: int) -> Floats:
    total = np.bincount(place, calls.weight)
    low, high = np.full(len(total), -LARGEST), np.full(len(total), LARGEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        transformed = cdf(annotation, calls.values, calls.cost * np.exp(-middle[place]), seed=seed)
        above = np.bincount(place, calls.weight * transformed) / total > 0.5
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray((low + high) / 2)


def summary(levels: RunLevels) -> Levels:
    """Return the levels of runs as their number, mean, and spread within and between workload points; outliers are pulled in."""
    points, place = np.unique(levels.point, return_inverse=True)
    level = _pulled_in(levels.level, place)
    means = np.bincount(place, level) / np.bincount(place)
    freedom = len(level) - len(points)
    spread = math.sqrt(float(((level - means[place]) ** 2).sum()) / freedom) if freedom else 0.0
    misfit = float(means.std(ddof=1)) if len(points) > 1 else 0.0
    return Levels(len(level), len(points), float(means.mean()), spread, misfit)


def _pulled_in(level: Floats, place: Ints) -> Floats:
    """Clip levels around the median of their point, by the scale of all points: one run that was preempted stands for itself alone."""
    middle = np.array([median(level[place == point]) for point in range(place.max() + 1)])[place]
    apart = level - middle
    groups = place.max() + 1
    if len(level) < OUTLIER_RUNS * groups:
        return level
    reach = OUTLIER_RUN * robust_deviation(apart, groups)
    # Where most runs are equal to the last digit, as counts are, those that are not are no outliers.
    return np.asarray(middle + np.clip(apart, -reach, reach)) if reach > DIGITS else level
