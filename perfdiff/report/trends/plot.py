"""Points and curves of trends: counts of whole runs over a feature, with the power laws fitted to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from perfdiff.analysis.trends.findings import Cluster, Difference, TrendFindings
from perfdiff.models.trend import Law
from perfdiff.records.places import Place
from perfdiff.records.schema import Floats, Side
from perfdiff.report.blocks import Calls, Plot, Series
from perfdiff.report.plots import CURVE_POINTS, MOST_INPUTS, is_logarithmic, thinned
from perfdiff.report.trends import wording


@dataclass(frozen=True, slots=True)
class _Counted:
    """Counts (points,) of one side, None where it has none, with the law fitted over the drawn feature, if there is one."""

    side: Side
    counts: Floats | None
    fit: Law | None


def cluster_plot(found: TrendFindings, cluster: Cluster, most: int) -> Plot | None:
    """Return a cluster's costs over the feature that tells them best, head's beside base's, or None where no feature was fitted.

    At most `most` points a side are drawn.
    """
    if not cluster.fits:
        return None
    side, fit = wording.shown_side(found), cluster.fits[0]
    sides = [_Counted(side, cluster.costs, fit)]
    if side is Side.HEAD:
        before = base_members(found, cluster.members)
        sides.insert(0, _Counted(Side.BASE, found.experiment.sides[Side.BASE].counts[before].sum(axis=0), None))
    return _plot(found, f"{wording.called(cluster)}: counts of its places", fit.feature, sides, most)


def difference_plot(found: TrendFindings, difference: Difference, most: int) -> Plot | None:
    """Return what the function of a difference executes over its feature, on each side that has it, and the laws of both."""
    each_side = ((Side.BASE, difference.base_counts, difference.base), (Side.HEAD, difference.head_counts, difference.head))
    sides = [_Counted(side, counts if counts.any() else None, fit) for side, counts, fit in each_side]
    return _plot(found, f"{difference.place.function}: blocks that it executes", difference.feature, sides, most)


def base_members(found: TrendFindings, members: Sequence[int]) -> list[int]:
    """Return base's indices of those of head's places that base has as well."""
    wanted = set(members)
    return [base for base, head in enumerate(found.experiment.heads.tolist()) if head in wanted]


def index_of(found: TrendFindings, place: Place, side: Side, *, of: Side) -> int | None:
    """Return the index on `side` of a place of side `of`, None where that side lacks it."""
    places = found.experiment.sides[of].places
    if place not in places:
        return None
    index, heads = places.index(place), found.experiment.heads.tolist()
    if side is of:
        return index
    if side is Side.BASE:
        return heads.index(index) if index in heads else None
    return heads[index] if heads[index] >= 0 else None


def _plot(found: TrendFindings, title: str, feature: str, sides: Sequence[_Counted], most: int) -> Plot | None:
    drawn = [each for each in sides if feature in found.experiment.sides[each.side].features]
    series = [one for of in (partial(_dots, most=most), _line) for each in drawn for one in of(found, each, feature)]
    dots = [each for each in series if not each.line and each.x]
    if not dots:
        return None
    x, y = (np.concatenate([np.array(getattr(each, axis)) for each in dots]) for axis in "xy")
    number = sum(len(each.x) for each in dots)
    return Plot(
        title=f"{title}, over {feature}",
        caption=f"{number:,} points. Lines are the fitted power laws; in logarithms they are straight.",
        x_label=feature,
        y_label="times a run",
        x_unit="times",
        y_unit="times",
        x_log=is_logarithmic(x, decades=1),
        y_log=is_logarithmic(y, decades=1),
        series=tuple(each for each in series if each.x),
    )


def _dots(found: TrendFindings, counted: _Counted, feature: str, *, most: int) -> Iterator[Series]:
    """Yield the counts as points, at most `most` of them."""
    if counted.counts is None:
        return
    features = found.experiment.sides[counted.side].features
    x = features[feature]
    known = np.flatnonzero(np.isfinite(x))
    rows = known[thinned(x[known], counted.counts[known], most)]
    yield Series(
        side=counted.side,
        label="",
        x=tuple(map(float, x[rows])),
        y=tuple(map(float, counted.counts[rows])),
        line=False,
        calls=Calls(
            point=tuple(found.experiment.points[row].label for row in rows),
            inputs={name: tuple(wording.amount(float(values[row])) for row in rows) for name, values in _others(features, feature)},
            ratio=_ratios(x[rows], counted.counts[rows], counted.fit),
        ),
    )


def _others(features: Mapping[str, Floats], feature: str) -> Iterator[tuple[str, Floats]]:
    """Yield further features that vary, as far as they are told of a point."""
    told = [(name, values) for name, values in features.items() if name != feature and np.unique(values).size > 1]
    yield from told[:MOST_INPUTS]


def _ratios(x: Floats, y: Floats, fit: Law | None) -> tuple[float | None, ...]:
    """Return the measured over the fitted count of each point, None where one of them has no logarithm."""
    if fit is None:
        return (None,) * len(x)
    return tuple(float(count / _law(fit, at)) if at > 0 and count > 0 else None for at, count in zip(x, y, strict=True))


def _line(found: TrendFindings, counted: _Counted, feature: str) -> Iterator[Series]:
    """Yield the fitted law over the values of its feature that were run."""
    x = found.experiment.sides[counted.side].features[feature]
    positive = x[np.isfinite(x) & (x > 0)]
    if counted.fit is None or not len(positive):
        return
    even, far = (
        np.linspace(positive.min(), positive.max(), CURVE_POINTS // 2),
        np.geomspace(positive.min(), positive.max(), CURVE_POINTS // 2),
    )
    grid = np.unique(np.concatenate([even, far]))
    yield Series(counted.side, "", tuple(map(float, grid)), tuple(float(_law(counted.fit, at)) for at in grid), line=True)


def _law(fit: Law, at: float) -> float:
    return float(fit.a * at**fit.b)
