"""What is compared, and how the inputs of the calls themselves moved between the sides."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.compare.strata import Stratum, Switch, stratify, switched
from perfdiff.analysis.stats.inference import clear_shift
from perfdiff.analysis.stats.panel import middles
from perfdiff.models.annotation import Annotation
from perfdiff.models.middle import median, quantile, quantiles
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.schema import Feature, Origin, Point, SampleTable, Side

# Expected costs further below the largest one than this carry no information on the whole and only make ratios wild.
SMALLEST_SHARE = 1e-6
# Inputs count as equal where their expected costs lie within a factor of two (one octave) of each other.
OCTAVE = math.log(2.0)

_FIRST_ROWS = 64  # most features vary among them, which spares a look at all
# No cost is larger: a curve through huge inputs, followed to larger ones, has no end.
LARGEST = 1e45

Sides = tuple[Floats, Floats]  # a value per call: rows of base, rows of head


class Tables:
    """A function's tables of both sides, with what the comparison of every metric asks of them, found once.

    Where `is_same`, as an unchanged function's code is, calls of head whose arguments have no equals in base are set `apart`: there is
    nothing to compare them with, and the function is not slower for being called with them. `new` are these arguments.
    """

    def __init__(self, base: SampleTable, head: SampleTable, *, is_same: bool = False) -> None:
        self.base = base
        self.new, unlike = new_arguments(base, head) if is_same else ((), None)
        self.head = head if unlike is None else head.rows(np.flatnonzero(~unlike))
        self.apart = None if unlike is None else head.rows(np.flatnonzero(unlike))
        self._is_same = is_same
        self._plain: Yardstick | None = None

    @property
    def sides(self) -> tuple[SampleTable, SampleTable]:
        """Return base's and head's table."""
        return self.base, self.head

    @functools.cached_property
    def unseen(self) -> tuple[Feature, ...]:
        """Return the features of which base cannot say what head's values cost."""
        return unseen_inputs(self.base, self.head, is_same=self._is_same)

    @functools.cached_property
    def members(self) -> tuple[Members, Members]:
        """Return which calls of either side are of which run."""
        return members(self.base), members(self.head)

    @functools.cached_property
    def typical(self) -> Mapping[str, float]:
        """Return the median of each feature over base's calls."""
        return typical_inputs(self.base, slice(None))

    @functools.cached_property
    def spread(self) -> Sides | None:
        """Return the values, from 1 on, of the feature that varies most, in base's and head's calls; None where none varies."""
        return _widest(self.base, self.head)

    @functools.cached_property
    def _switches(self) -> tuple[Switch, ...]:
        return tuple(switched(self.base, self.head))

    @functools.cached_property
    def at_points(self) -> list[tuple[Ints, Bools]]:
        """Return the points (p,) of the calls of each side, and which calls are of them, (p, rows)."""
        points = [np.unique(table.point) for table in self.sides]
        return [(ids, table.point == ids[:, None]) for ids, table in zip(points, self.sides, strict=True)]

    def yardstick(self, annotation: Annotation | None, metric: str, points: Sequence[Point]) -> Yardstick:
        """Return what the calls are compared by, in a metric; without an annotation that is the same for all metrics."""
        if annotation is not None:
            return self._yardstick(expected_costs(self, annotation, metric), points)
        if self._plain is None:
            self._plain = self._yardstick((np.ones(len(self.base)), np.ones(len(self.head))), points)
        return self._plain

    def _yardstick(self, expected: Sides, points: Sequence[Point]) -> Yardstick:
        means = (self.members[0].means(expected[0]), self.members[1].means(expected[1]))
        sizes = expected if np.ptp(expected[0]) > 0 else self.spread or expected
        strata = [] if self.unseen else stratify(self.base, self.head, sizes, points, self._switches)
        masks = [
            np.array([getattr(stratum, side) for stratum in strata], dtype=bool).reshape(len(strata), len(table))
            for side, table in zip(Side, self.sides, strict=True)
        ]
        return Yardstick(expected, means, mix_by_point(self, means), strata, (masks[0], masks[1]))


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What calls are compared by: the `expected` cost of each, with its `means` (r,) in either side's runs, and the `mix` that these show.

    `masks` (k, rows of a side) are those of the `strata`.
    """

    expected: Sides
    means: Sides
    mix: Mapping[int, float]
    strata: Sequence[Stratum]
    masks: tuple[Bools, Bools]

    @property
    def moved(self) -> bool:
        """Return whether head's calls at a point have no equals in base's calls at that point, but in those of another."""
        return any(abs(math.log(factor)) > 0.5 * OCTAVE for factor in self.mix.values())


@dataclass(frozen=True, slots=True)
class MetricQuestion:
    """What is asked: a metric of a function's `tables`, and base's annotation of the metric if one could be fitted."""

    metric: str
    tables: Tables
    annotation: Annotation | None

    @property
    def base(self) -> SampleTable:
        """Return base's calls."""
        return self.tables.base

    @property
    def head(self) -> SampleTable:
        """Return head's calls."""
        return self.tables.head


@dataclass(frozen=True, slots=True)
class Members:
    """The calls of a table by run: the numbers of the `runs` (r,) with their `points` (r,), and the `place` (rows,) of each call's run."""

    runs: Ints
    place: Ints
    points: Ints
    weight: Floats

    def means(self, values: Floats) -> Floats:
        """Return the weighted mean of `values` (rows,) in each run (r,); a sampled call stands for `weight` calls."""
        present = np.isfinite(values)
        weight = np.where(present, self.weight, 0.0)
        sums = np.bincount(self.place, weight * np.where(present, values, 0.0), len(self.runs))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(sums / np.bincount(self.place, weight, len(self.runs)))

    @property
    def grouped(self) -> tuple[Ints, Ints]:
        """Return the rows in the order of their runs, and where the rows of each run (r,) begin among them."""
        order = np.argsort(self.place, kind="stable")
        return order, np.searchsorted(self.place[order], np.arange(len(self.runs)))


def members(table: SampleTable) -> Members:
    """Return the calls of a table by run."""
    runs, first, place = np.unique(table.run, return_index=True, return_inverse=True)
    return Members(runs, place, table.point[first], table.weight)


def typical_inputs(table: SampleTable, rows: Bools | slice) -> dict[str, float]:
    """Return the median of each feature over some calls of a table, one of them; features without any value there are left out."""
    values = middles(np.where(np.isfinite(table.values[rows]), table.values[rows], np.nan).T).tolist()
    return {feature.name: value for feature, value in zip(table.features, values, strict=True) if math.isfinite(value)}


def _widest(base: SampleTable, head: SampleTable) -> Sides | None:
    """Return the values of the feature that varies most over base's calls, 5th to 95th percentile, by a factor; none below zero."""
    widest, sizes = 1.0, None
    of_head = columns(head)
    least, most = (np.fmin(extreme.reduce(base.values, axis=0), LARGEST) for extreme in (np.fmin, np.fmax))
    for name, place in {feature.name: place for place, feature in enumerate(base.features)}.items():
        if name not in of_head or not least[place] >= 0 or not (1 + most[place]) / (1 + least[place]) > widest:
            continue
        column = base.values[:, place]
        if np.nanmin(of_head[name], initial=np.inf) < 0:
            continue
        before, after = np.minimum(column, LARGEST), np.minimum(of_head[name], LARGEST)
        low, high = quantiles(before[np.isfinite(before)], (0.05, 0.95))
        if (spread := (1 + high) / (1 + low)) > widest:
            widest, sizes = float(spread), (1 + np.nan_to_num(before), 1 + np.nan_to_num(after))
    return sizes


def columns(table: SampleTable) -> dict[str, Floats]:
    """Return the features of a table as columns by name."""
    return {feature.name: table.values[:, i] for i, feature in enumerate(table.features)}


def expected_costs(tables: Tables, annotation: Annotation, metric: str) -> Sides:
    """Return base's expected cost of each call of both sides, always positive."""
    # Calls without any feature have one prediction for all.
    base, head = (np.broadcast_to(annotation.predict(columns(table)), len(table)) for table in tables.sides)
    cost = tables.base.metrics[metric]
    positive = cost[np.isfinite(cost) & (cost > 0)]
    # Lines fitted to large inputs may fall below zero at small ones, where the cheapest calls say what is possible.
    least = max(quantile(positive, 0.01) / 2, float(positive.max()) * SMALLEST_SHARE) if len(positive) else 1.0
    return np.fmin(np.fmax(base, least), LARGEST), np.fmin(np.fmax(head, least), LARGEST)


def mix_by_point(tables: Tables, means: Sequence[Floats]) -> dict[int, float]:
    """Return, per point on both sides, the expected cost of head's calls over that of base's, by its `means` (r,) in either side's runs."""
    base_points, head_points = (side.points for side in tables.members)
    mix = {}
    for point in np.intersect1d(base_points, head_points).tolist():
        before, after = means[0][base_points == point], means[1][head_points == point]
        mix[point] = median(after) / median(before) if clear_shift(before, after) else 1.0
    return mix


def unseen_inputs(base: SampleTable, head: SampleTable, *, is_same: bool = False) -> tuple[Feature, ...]:
    """Return features that had one value in every call of base and clearly other ones in every call of head.

    Base cannot say what these inputs cost. Where the code `is_same`, arguments of one value on each side are other ones by however little:
    what a call takes more then is not the function's.
    """
    unseen = []
    of_base, of_head = columns(base), columns(head)
    for feature in _may_have_one_value(base):
        if feature.origin in (Origin.WORKLOAD, Origin.SYSTEM):
            continue
        before, after = of_base[feature.name], of_head[feature.name]
        if _varies(before):
            continue
        before, after = before[np.isfinite(before)], after[np.isfinite(after)]
        if not len(before) or not len(after):
            continue
        moved = abs(math.log((1 + abs(median(after))) / (1 + abs(float(before[0]))))) > 0.5 * OCTAVE
        moved |= is_same and feature.origin is Origin.ARGUMENT and not _varies(after)
        if (moved or feature.category) and not np.any(after == before[0]):
            unseen.append(feature)
    return tuple(unseen)


def new_arguments(base: SampleTable, head: SampleTable) -> tuple[tuple[Feature, ...], Bools | None]:
    """Return the arguments with one value in every call of base, and clearly other ones in some calls of head, and these calls (rows,).

    None where there are no such calls, or no others in some run that made calls of either kind: then nothing is left to compare.
    """
    arguments = []
    unlike = np.zeros(len(head), dtype=bool)
    of_base, of_head = columns(base), columns(head)
    for feature in _may_have_one_value(base):
        if feature.origin is not Origin.ARGUMENT or feature.name not in of_head:
            continue
        before, after = of_base[feature.name], of_head[feature.name]
        if not len(before) or not np.isfinite(before).all() or _varies(before):
            continue
        only = float(before[0])
        with np.errstate(invalid="ignore", divide="ignore"):
            moved = np.abs(np.log((1 + np.abs(after)) / (1 + abs(only)))) > 0.5 * OCTAVE
        here = (after != only) & np.isfinite(after) & (moved | feature.category)
        if here.any():
            arguments.append(feature)
            unlike |= here
    if not arguments or len(np.unique(head.run[~unlike])) < len(np.unique(head.run)):
        return (), None
    return tuple(arguments), unlike


def cost_apart(question: MetricQuestion) -> dict[int, tuple[float, float]]:
    """Return, per point, the part of head's calls that are set apart, and what one of them costs: the median over runs of their means."""
    apart, alike = question.tables.apart, question.head
    if apart is None:
        return {}
    of = members(apart)
    means, by_point = of.means(apart.metrics[question.metric]), {}
    for point in np.unique(of.points).tolist():
        weight = float(apart.weight[apart.point == point].sum())
        part = weight / (weight + float(alike.weight[alike.point == point].sum()))
        by_point[point] = (part, median(means[of.points == point]))
    return by_point


def _may_have_one_value(table: SampleTable) -> list[Feature]:
    """Return the features whose finite values do not differ among the first rows."""
    first = np.where(np.isfinite(table.values[:_FIRST_ROWS]), table.values[:_FIRST_ROWS], np.nan)
    varies = np.fmax.reduce(first, axis=0) > np.fmin.reduce(first, axis=0)
    return [feature for feature, does in zip(table.features, varies.tolist(), strict=True) if not does]


def _varies(column: Floats) -> bool:
    """Return whether the finite values of a column differ."""
    finite = column[np.isfinite(column)]
    return len(finite) > 0 and bool(np.ptp(finite) > 0)


def grown_features(question: MetricQuestion, mix: Mapping[int, float]) -> tuple[Feature, ...]:
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
