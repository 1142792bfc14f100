"""Points and curves of trends: counts of whole runs over a feature, with the power laws fitted to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.trends.findings import GrowthDifference, PlaceCluster, TrendFindings
from perfdiff.models.trend import Law
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Side
from perfdiff.report.blocks import Plot, PlotSeries, PlottedCalls
from perfdiff.report.plots import MOST_INPUTS, floats, grid, is_logarithmic, thinned
from perfdiff.report.trends import wording


@dataclass(frozen=True, slots=True)
class _SideCounts:
    """Counts (points,) of one side, None where it has none, with the law fitted over the drawn feature, if there is one."""

    side: Side
    counts: Floats | None
    law: Law | None


def cluster_plot(findings: TrendFindings, cluster: PlaceCluster, most: int) -> Plot | None:
    """Return a cluster's costs over the feature that tells them best, head's beside base's, or None where no feature was fitted.

    At most `most` points a side are drawn.
    """
    if not cluster.fits:
        return None
    side, law = wording.shown_side(findings), cluster.fits[0]
    sides = [_SideCounts(side, cluster.costs, law)]
    if side is Side.HEAD:
        before = np.flatnonzero(np.isin(findings.experiment.heads, cluster.members))
        sides.insert(0, _SideCounts(Side.BASE, findings.experiment.sides[Side.BASE].counts[before].sum(axis=0), None))
    return _plot(findings, f"{wording.called(cluster)}: counts of its places", law.feature, sides, most)


def difference_plot(findings: TrendFindings, difference: GrowthDifference, most: int) -> Plot | None:
    """Return what the function of a difference executes over its feature, on each side that has it, and the laws of both."""
    each_side = ((Side.BASE, difference.base_counts, difference.base), (Side.HEAD, difference.head_counts, difference.head))
    sides = [_SideCounts(side, counts if counts.any() else None, law) for side, counts, law in each_side]
    return _plot(findings, f"{difference.place.function}: blocks that it executes", difference.feature, sides, most)


def _plot(findings: TrendFindings, title: str, feature: str, sides: Sequence[_SideCounts], most: int) -> Plot | None:
    drawn = [counted for counted in sides if feature in findings.experiment.sides[counted.side].features]
    dots = [series for counted in drawn for series in _dots(findings, counted, feature, most) if series.x]
    if not dots:
        return None
    x, y = (np.concatenate([np.array(getattr(series, axis)) for series in dots]) for axis in "xy")
    return Plot(
        title=f"{title}, over {feature}",
        caption=f"{len(x):,} points. Lines are the fitted power laws; in logarithms they are straight.",
        x_label=feature,
        y_label="times a run",
        x_unit="times",
        y_unit="times",
        x_log=is_logarithmic(x, decades=1),
        y_log=is_logarithmic(y, decades=1),
        series=(*dots, *(line for counted in drawn for line in _line(findings, counted, feature))),
    )


def _dots(findings: TrendFindings, counted: _SideCounts, feature: str, most: int) -> Iterator[PlotSeries]:
    """Yield the counts as points, at most `most` of them, each with further features that vary and its count over the fitted one."""
    if counted.counts is None:
        return
    features = findings.experiment.sides[counted.side].features
    finite = np.flatnonzero(np.isfinite(features[feature]))
    rows = finite[thinned(features[feature][finite], counted.counts[finite], most)]
    x, y = features[feature][rows], counted.counts[rows]
    others = [(name, values) for name, values in features.items() if name != feature and np.unique(values).size > 1]
    calls = PlottedCalls(
        point=tuple(findings.experiment.points[row].label for row in rows),
        inputs={name: tuple(wording.amount(float(values[row])) for row in rows) for name, values in others[:MOST_INPUTS]},
        ratio=tuple(
            float(count / counted.law.at(at)) if counted.law and at > 0 and count > 0 else None for at, count in zip(x, y, strict=True)
        ),
    )
    yield PlotSeries(side=counted.side, label="", x=floats(x), y=floats(y), line=False, calls=calls)


def _line(findings: TrendFindings, counted: _SideCounts, feature: str) -> Iterator[PlotSeries]:
    """Yield the fitted law over the values of its feature that were run."""
    x = findings.experiment.sides[counted.side].features[feature]
    positive = x[np.isfinite(x) & (x > 0)]
    if counted.law is not None and len(positive):
        places = grid(positive)
        yield PlotSeries(counted.side, "", floats(places), tuple(float(counted.law.at(place)) for place in places), line=True)
