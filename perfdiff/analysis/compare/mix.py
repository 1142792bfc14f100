"""What is compared, and how the inputs of the calls themselves moved between the sides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.compare.strata import Switch
from perfdiff.analysis.stats.inference import clear_shift
from perfdiff.models.annotation import Annotation
from perfdiff.models.middle import median, quantile
from perfdiff.records.schema import Feature, Floats, Ints, Origin, SampleTable

# Expected costs further below the largest one than this carry no information on the whole and only make ratios wild.
SMALLEST_SHARE = 1e-6
# Inputs count as equal where their expected costs lie within a factor of two (one octave) of each other.
OCTAVE = math.log(2.0)

_FIRST_ROWS = 64  # most features vary among them, which spares a look at all
# No cost is larger: a curve through huge inputs, followed to larger ones, has no end.
LARGEST = 1e45

Sides = tuple[Floats, Floats]  # a value per call: rows of base, rows of head


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: a metric of a function, its tables of both sides, and base's annotation of the metric if one could be fitted.

    What holds for all metrics is found once: `unseen` features (`unseen_inputs`) and `switches` (`strata.switched`).
    """

    metric: str
    base: SampleTable
    head: SampleTable
    annotation: Annotation | None
    unseen: tuple[Feature, ...]
    switches: tuple[Switch, ...]


def columns(table: SampleTable) -> dict[str, Floats]:
    """Return the features of a table as columns by name."""
    return {feature.name: table.values[:, i] for i, feature in enumerate(table.features)}


def expected_costs(question: Question) -> Sides:
    """Return base's expected cost of each call of both sides, always positive; 1 where there is no annotation."""
    if question.annotation is None:
        return np.ones(len(question.base)), np.ones(len(question.head))
    annotation = question.annotation
    # Calls without any feature have one prediction for all.
    base, head = (np.broadcast_to(annotation.predict(columns(table)), len(table)) for table in (question.base, question.head))
    cost = question.base.metrics[question.metric]
    known = cost[np.isfinite(cost) & (cost > 0)]
    # Lines fitted to large inputs may fall below zero at small ones, where the cheapest calls say what is possible.
    least = max(quantile(known, 0.01) / 2, float(known.max()) * SMALLEST_SHARE) if len(known) else 1.0
    return np.fmin(np.fmax(base, least), LARGEST), np.fmin(np.fmax(head, least), LARGEST)


def run_means(table: SampleTable, values: Floats) -> tuple[Ints, Floats]:
    """Return (runs, weighted mean of `values` per run); a sampled call stands for `weight` calls."""
    runs, place = np.unique(table.run, return_inverse=True)
    present = np.isfinite(values)
    weight = np.where(present, table.weight, 0.0)
    sums = np.bincount(place, weight * np.where(present, values, 0.0), len(runs))
    totals = np.bincount(place, weight, len(runs))
    with np.errstate(divide="ignore", invalid="ignore"):
        return runs, sums / totals


def points_of(table: SampleTable, runs: Ints) -> Ints:
    """Return the workload point of each run."""
    order = np.argsort(table.run, kind="stable")
    points: Ints = table.point[order[np.searchsorted(table.run, runs, sorter=order)]]
    return points


def mix_by_point(question: Question, expected: Sides) -> dict[int, float]:
    """Return, per point on both sides, base's expected cost of head's calls over that of base's calls."""
    sides = []
    for table, values in zip((question.base, question.head), expected, strict=True):
        runs, means = run_means(table, values)
        sides.append((points_of(table, runs), means))
    (base_points, base), (head_points, head) = sides
    mix = {}
    for point in np.intersect1d(base_points, head_points).tolist():
        before, after = base[base_points == point], head[head_points == point]
        mix[point] = median(after) / median(before) if clear_shift(before, after) else 1.0
    return mix


def unseen_inputs(base: SampleTable, head: SampleTable) -> tuple[Feature, ...]:
    """Return features that had one value in every call of base and clearly other ones in every call of head.

    Base cannot say what these inputs cost.
    """
    found = []
    of_base, of_head = columns(base), columns(head)
    for feature in base.features:
        if feature.origin in (Origin.WORKLOAD, Origin.SYSTEM) or _varies(of_base[feature.name][:_FIRST_ROWS]):
            continue
        before, after = of_base[feature.name], of_head[feature.name]
        if _varies(before):
            continue
        before, after = before[np.isfinite(before)], after[np.isfinite(after)]
        if not len(before) or not len(after):
            continue
        moved = abs(math.log((1 + abs(float(np.median(after)))) / (1 + abs(float(before[0]))))) > 0.5 * OCTAVE
        if (moved or feature.category) and not np.any(after == before[0]):
            found.append(feature)
    return tuple(found)


def _varies(column: Floats) -> bool:
    """Return whether the finite values of a column differ."""
    known = column[np.isfinite(column)]
    return len(known) > 0 and bool(np.ptp(known) > 0)


def grown_features(question: Question, mix: Mapping[int, float]) -> tuple[Feature, ...]:
    """Return the features of base's annotation whose values moved most where the mix did."""
    if question.annotation is None or all(factor == 1.0 for factor in mix.values()):
        return ()
    moved = {}
    for feature in question.base.features:
        if feature.name in question.annotation.features and feature in question.head.features:
            sides = [columns(table)[feature.name] for table in (question.base, question.head)]
            means = [np.nan_to_num(np.abs(values), posinf=0.0).clip(max=LARGEST).mean() for values in sides]
            moved[feature.name] = (abs(math.log1p(means[1]) - math.log1p(means[0])), feature)
    largest = max((size for size, _ in moved.values()), default=0.0)
    return tuple(feature for size, feature in moved.values() if size > 0 and size >= largest / 2)
