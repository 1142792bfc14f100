"""Points and curves of a function's cost, as data: cost over the main feature, or how costs are spread where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfdiff.analysis.findings import FunctionFinding, MetricFinding
from perfdiff.models.annotation import Annotation, Condition
from perfdiff.records.schema import Floats, SampleTable, Side
from perfdiff.report import wording
from perfdiff.report.blocks import Plot, Series
from perfdiff.report.printable import printable

# Enough that a scatter's shape is kept, few enough that 50 functions stay under 2 MB (about 10 bytes a point and side).
MOST_POINTS = 400
# A curve across 600 pixels needs no more corners than this to look smooth.
CURVE_POINTS = 80
# Curves of one side that can still be told apart.
MOST_CURVES = 4
# Beyond two decades the small values of a linear axis fall on one spot.
LINEAR_DECADES = 2
# A logarithmic axis leaves out values of 0 and less; more than this share is not to be left out.
MOST_LEFT_OUT = 0.05


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of one side that can be drawn: x and y (n,), and the values (n,) of every feature by its name."""

    side: Side
    x: Floats
    y: Floats
    features: Mapping[str, Floats]
    annotation: Annotation | None


def function_plot(finding: FunctionFinding, samples: Callable[[int, Side], SampleTable | None]) -> Plot | None:
    """Return the plot of a function's leading metric, or None where no calls were kept. Texts of the result are printable."""
    metric = wording.leading(finding)
    tables = [table for side in Side if (table := samples(finding.info.id, side)) is not None and len(table)]
    if metric is None or not tables or any(metric.metric not in table.metrics for table in tables):
        return None
    named = f"{finding.info.name}: {wording.metric_says(metric.metric)}"
    feature = metric.feature
    if feature is None or any(feature not in _names(table) for table in tables):
        return _spread(metric.metric, tables, named)
    return _scatter(metric, feature, tables, named)


def _scatter(metric: MetricFinding, feature: str, tables: list[SampleTable], named: str) -> Plot | None:
    sides = [_calls(metric, feature, table) for table in tables]
    y_log = is_logarithmic(np.concatenate([side.y for side in sides]))
    # Beside a logarithmic cost a decade of inputs is drawn so too: powers are straight lines then.
    x_log = is_logarithmic(np.concatenate([side.x for side in sides]), decades=1 if y_log else LINEAR_DECADES)
    series: list[Series] = []
    drawn = 0
    for calls in sides:
        visible = _visible(calls.x, x_log) & _visible(calls.y, y_log)
        drawn += int(visible.sum())
        kept = thinned(calls.x[visible], calls.y[visible])
        series.append(_series(calls.side, "", calls.x[visible][kept], calls.y[visible][kept], line=False))
    for calls in sides:
        series += _curves(calls, feature, x_log=x_log, y_log=y_log)
    total = sum(len(table) for table in tables)
    left_out = f" {total - drawn:,} calls at 0 have no place on a logarithmic axis." if total > drawn and (x_log or y_log) else ""
    return Plot(
        title=printable(f"{named}, over {feature}"),
        caption=f"{_shown(series)} of {total:,} measured calls are drawn; lines are the fitted annotations.{left_out}",
        x_label=printable(feature),
        y_label=f"{wording.metric_says(metric.metric)}, a call",
        x_unit="count",
        y_unit=wording.metric_unit(metric.metric),
        x_log=x_log,
        y_log=y_log,
        series=tuple(series),
    )


def _spread(metric: str, tables: list[SampleTable], named: str) -> Plot | None:
    """Return the cumulated shares of calls over their cost, for a cost that follows no feature."""
    series = []
    for table in tables:
        known = np.isfinite(table.metrics[metric])
        cost, weight = table.metrics[metric][known], table.weight[known]
        if not len(cost):
            continue
        order = np.argsort(cost, kind="stable")
        share = np.cumsum(weight[order]) / weight.sum()
        picked = np.unique(np.linspace(0, len(order) - 1, CURVE_POINTS).round().astype(int))
        series.append(_series(table.side, "", cost[order][picked], 100 * share[picked], line=True))
    if not series:
        return None
    costs = np.concatenate([np.array(line.x) for line in series])
    return Plot(
        title=printable(f"{named}, how many calls cost at most so much"),
        caption="The cost follows no measured input; the curves show the share of calls that cost at most so much.",
        x_label=f"{wording.metric_says(metric)}, a call",
        y_label="% of calls",
        x_unit=wording.metric_unit(metric),
        y_unit="count",
        x_log=bool((costs > 0).all()) and is_logarithmic(costs),
        y_log=False,
        series=tuple(series),
    )


def is_logarithmic(values: Floats, *, decades: int = LINEAR_DECADES) -> bool:
    """Return whether an axis of `values` should be logarithmic: they span more than `decades`, and hardly one is 0 or less."""
    positive = values[values > 0]
    if not len(positive) or len(positive) < (1 - MOST_LEFT_OUT) * len(values):
        return False
    return bool(positive.max() >= 10.0**decades * positive.min())


def thinned(x: Floats, y: Floats, most: int = MOST_POINTS) -> npt.NDArray[np.int64]:
    """Return the indices of at most `most` points that keep the scatter's density and its extremes; the same points each time."""
    order = np.lexsort((y, x))
    if len(order) <= most:
        return order
    spread = order[np.linspace(0, len(order) - 1, most - 2).round().astype(np.int64)]
    return np.unique(np.concatenate([spread, [np.argmin(y), np.argmax(y)]]))


def _names(table: SampleTable) -> list[str]:
    return [feature.name for feature in table.features]


def _calls(metric: MetricFinding, feature: str, table: SampleTable) -> _Calls:
    columns = dict(zip(_names(table), table.values.T, strict=True))
    cost = table.metrics[metric.metric]
    known = np.isfinite(columns[feature]) & np.isfinite(cost)
    features = {name: column[known] for name, column in columns.items()}
    return _Calls(table.side, features[feature], cost[known], features, metric.base if table.side is Side.BASE else metric.head)


def _visible(values: Floats, logarithmic: bool) -> npt.NDArray[np.bool_]:
    return values > 0 if logarithmic else np.ones(len(values), dtype=np.bool_)


def _series(side: Side, label: str, x: Floats, y: Floats, *, line: bool) -> Series:
    return Series(side, label, tuple(map(float, x)), tuple(map(float, y)), line)


def _shown(series: list[Series]) -> str:
    return f"{sum(len(one.x) for one in series if not one.line):,}"


def _curves(calls: _Calls, feature: str, *, x_log: bool, y_log: bool) -> Iterator[Series]:
    """Yield the annotation's curve over the main feature, one for each regime that other features select."""
    annotation = calls.annotation
    if annotation is None:
        return
    for label, rows, others in _regimes(calls, annotation, feature):
        x = calls.x[rows & _visible(calls.x, x_log)]
        if not len(x):
            continue
        grid = np.geomspace(x.min(), x.max(), CURVE_POINTS) if x_log else np.linspace(x.min(), x.max(), CURVE_POINTS)
        predicted = annotation.predict({feature: grid, **{name: np.full(CURVE_POINTS, value) for name, value in others.items()}})
        shown = np.isfinite(predicted) & _visible(predicted, y_log)
        yield _series(calls.side, label, grid[shown], predicted[shown], line=True)


def _regimes(calls: _Calls, annotation: Annotation, feature: str) -> Iterator[tuple[str, npt.NDArray[np.bool_], dict[str, float]]]:
    """Yield each regime's conditions as text, its rows, and values of the features that select it, taken from its middle row."""
    everything = np.ones(len(calls.x), dtype=np.bool_)
    shares: dict[tuple[Condition, ...], float] = {}
    for scope in annotation.scopes:
        others = tuple(condition for condition in scope.conditions if condition.feature != feature)
        shares[others] = shares.get(others, 0.0) + scope.share
    if any(condition.feature not in calls.features for others in shares for condition in others):
        yield "", everything, {}
        return
    for others in sorted(shares, key=lambda key: -shares[key])[:MOST_CURVES]:
        rows = everything.copy()
        for condition in others:
            rows &= condition.holds(calls.features[condition.feature])
        if not rows.any():
            continue
        chosen = np.flatnonzero(rows)[np.argsort(calls.x[rows], kind="stable")[int(rows.sum()) // 2]]
        text = printable(" && ".join(condition.text(condition.feature) for condition in others))
        yield text, rows, {condition.feature: float(calls.features[condition.feature][chosen]) for condition in others}
