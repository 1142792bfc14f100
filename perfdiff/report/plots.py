"""Points and curves of a function's cost, as data: cost over the main feature, or how costs are spread where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff import units
from perfdiff.analysis.findings import FunctionFinding, MetricFinding
from perfdiff.models.annotation import Annotation, Condition
from perfdiff.models.forecast import interval
from perfdiff.models.observations import columns_of
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.schema import Feature, SampleTable, Side
from perfdiff.report import wording
from perfdiff.report.blocks import Band, Plot, PlotSeries, PlottedCalls
from perfdiff.report.printable import printable, shortened

# Enough that a scatter's shape is kept, few enough that 50 functions stay under 2 MB (about 45 bytes a point).
MOST_POINTS = 400
ALL_POINTS = 6_000
# A curve across 600 pixels needs no more corners than this to look smooth.
CURVE_POINTS = 60
# Curves of one side that can still be told apart.
MOST_CURVES = 4
# Beyond two decades the small values of a linear axis fall on one spot.
LINEAR_DECADES = 2
# A logarithmic axis leaves out values of 0 and less; more than this share is not to be left out.
MOST_LEFT_OUT = 0.05
# Of calls lie within the band about their curve.
COVERED = 0.95
# Inputs of a call that are told beside it: more are not read.
MOST_INPUTS = 4
_LONGEST_LABEL = 60


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of one side that can be drawn: x and y (n,), the values (n,) of every column by its name, labels of workload points."""

    side: Side
    x: Floats
    y: Floats
    columns: Mapping[str, Floats]
    features: tuple[Feature, ...]
    points: tuple[str, ...]
    annotation: Annotation | None

    def rows(self, rows: Ints) -> _Calls:
        """Return the calls at `rows`."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        points = tuple(self.points[row] for row in rows)
        return _Calls(self.side, self.x[rows], self.y[rows], columns, self.features, points, self.annotation)


@dataclass(frozen=True, slots=True)
class _SideRegime:
    """A scope of one side as seen over the main feature: its rows (n,), and values of the features that select it, if it has a curve."""

    label: str
    rows: Bools
    others: Mapping[str, float] | None


def points_each(functions: int) -> int:
    """Return how many calls of each function and side a report draws if it has this many functions."""
    return min(MOST_POINTS, ALL_POINTS // (2 * max(functions, 1)))


def function_plot(
    finding: FunctionFinding,
    samples: Callable[[int, Side], SampleTable | None],
    points: Mapping[int, str] | None = None,
    most: int = MOST_POINTS,
) -> Plot | None:
    """Return the plot of a function's leading metric, or None where no calls were kept. Texts of the result are printable.

    `points` are labels of the workload points by id; at most `most` calls a side are drawn.
    """
    tables = [table for side in Side if (table := samples(finding.info.id, side)) is not None and len(table)]
    metric = _drawn_metric(finding, tables)
    if metric is None or not tables:
        return None
    named = f"{finding.info.name}: {wording.metric_says(metric.metric)}"
    feature = metric.feature
    if feature is None or any(feature not in columns_of(table) for table in tables):
        return _spread(metric.metric, tables, named)
    return _scatter(metric, [_calls(metric, feature, table, points or {}) for table in tables], named, most)


def _drawn_metric(finding: FunctionFinding, tables: Sequence[SampleTable]) -> MetricFinding | None:
    """Return the leading metric, or a time where that is not one of single calls, as the sum of a run is not."""
    candidates = (wording.leading(finding), finding.metrics.get("self_ns"), finding.metrics.get("wall_ns"))
    return next((metric for metric in candidates if metric is not None and all(metric.metric in table.metrics for table in tables)), None)


def _scatter(metric: MetricFinding, sides: Sequence[_Calls], named: str, most: int) -> Plot | None:
    feature = metric.feature
    assert feature is not None
    y_log = is_logarithmic(np.concatenate([side.y for side in sides]))
    # Beside a logarithmic cost a decade of inputs is drawn so too: powers are straight lines then.
    x_log = is_logarithmic(np.concatenate([side.x for side in sides]), decades=1 if y_log else LINEAR_DECADES)
    shown_inputs = _shown_inputs(metric, feature, sides)
    dots: list[PlotSeries] = []
    curves: list[PlotSeries] = []
    for calls in sides:
        shown = calls.rows(thinned(calls.x, calls.y, most))
        for regime in _regimes(shown, feature):
            dots.append(_dots(shown, regime, shown_inputs))
        for regime in _regimes(calls, feature):
            curves += _curve(calls, regime, feature)
    total = sum(len(calls.x) for calls in sides)
    hidden = total - sum(int((_visible(calls.x, x_log) & _visible(calls.y, y_log)).sum()) for calls in sides)
    drawn = sum(int((_visible(np.array(series.x), x_log) & _visible(np.array(series.y), y_log)).sum()) for series in dots)
    left_out = f" {hidden:,} calls at 0 have no place on a logarithmic axis." if hidden else ""
    return Plot(
        title=printable(f"{named}, over {feature}"),
        caption=(
            f"{drawn:,} of {total:,} measured calls are drawn. Lines are the fitted annotations, "
            f"bands where {wording.percent(COVERED)} of calls should lie.{left_out}"
        ),
        x_label=printable(feature),
        y_label=f"{wording.metric_says(metric.metric)}, a call",
        x_unit="count",
        y_unit=wording.metric_unit(metric.metric),
        x_log=x_log,
        y_log=y_log,
        series=(*dots, *curves),
    )


def _spread(metric: str, tables: list[SampleTable], named: str) -> Plot | None:
    """Return the cumulated shares of calls over their cost, for a cost that follows no feature."""
    series = []
    for table in tables:
        finite = np.isfinite(table.metrics[metric])
        cost, weight = table.metrics[metric][finite], table.weight[finite]
        if not len(cost):
            continue
        order = np.argsort(cost, kind="stable")
        share = np.cumsum(weight[order]) / weight.sum()
        picked = np.unique(np.linspace(0, len(order) - 1, CURVE_POINTS).round().astype(int))
        series.append(PlotSeries(table.side, "", floats(cost[order][picked]), floats(100 * share[picked]), line=True))
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


def thinned(x: Floats, y: Floats, most: int = MOST_POINTS) -> Ints:
    """Return the indices of at most `most` points that keep the scatter's density and its extremes; the same points each time."""
    order = np.lexsort((y, x))
    if len(order) <= most:
        return order
    spread = order[np.linspace(0, len(order) - 1, most - 2).round().astype(np.int64)]
    return np.unique(np.concatenate([spread, [np.argmin(y), np.argmax(y)]]))


def _calls(metric: MetricFinding, feature: str, table: SampleTable, points: Mapping[int, str]) -> _Calls:
    columns = columns_of(table)
    cost = table.metrics[metric.metric]
    finite = np.isfinite(columns[feature]) & np.isfinite(cost)
    columns = {name: column[finite] for name, column in columns.items()}
    labels = tuple(printable(points.get(point, "")) for point in table.point[finite].tolist())
    annotation = metric.base if table.side is Side.BASE else metric.head
    return _Calls(table.side, columns[feature], cost[finite], columns, table.features, labels, annotation)


def _shown_inputs(metric: MetricFinding, feature: str, sides: Sequence[_Calls]) -> tuple[str, ...]:
    """Return the features that are told of a call besides that of the axis: those its cost follows, then others that say something."""
    fitted = [name for annotation in (metric.base, metric.head) if annotation for name in annotation.features]
    recorded = [input_feature.name for calls in sides for input_feature in calls.features]
    candidates = dict.fromkeys([*(name for name in fitted if name in recorded), *recorded])
    return tuple(name for name in candidates if name != feature and any(_says_more(name, feature, calls) for calls in sides))[:MOST_INPUTS]


def _says_more(name: str, feature: str, calls: _Calls) -> bool:
    """Return whether a column varies, and not as the main feature does."""
    column = calls.columns.get(name)
    return column is not None and bool((column != column[0]).any()) and not np.array_equal(column, calls.columns[feature], equal_nan=True)


def _dots(calls: _Calls, regime: _SideRegime, shown_inputs: tuple[str, ...]) -> PlotSeries:
    rows = np.flatnonzero(regime.rows)
    labels = {feature.name: feature.labels for feature in calls.features}
    inputs = {
        printable(name): tuple(_input(value, labels.get(name, {})) for value in calls.columns[name][rows])
        for name in shown_inputs
        if name in calls.columns
    }
    ratio = _ratio(calls)[rows]
    return PlotSeries(
        side=calls.side,
        label=regime.label,
        x=floats(calls.x[rows]),
        y=floats(calls.y[rows]),
        line=False,
        calls=PlottedCalls(
            point=tuple(calls.points[row] for row in rows),
            inputs=inputs,
            ratio=tuple(float(value) if np.isfinite(value) else None for value in ratio),
        ),
    )


def _input(value: float, labels: Mapping[int, str]) -> str:
    if not np.isfinite(value):
        return ""
    return printable(shortened(labels.get(int(value), ""), _LONGEST_LABEL)) or units.count(float(value))


def _ratio(calls: _Calls) -> Floats:
    """Return the measured over the fitted cost, (n,); NaN where nothing was fitted, or no cost."""
    annotation = calls.annotation
    if annotation is None or not {*annotation.features} <= {*calls.columns}:
        return np.full(len(calls.x), np.nan)
    fitted = annotation.predict(calls.columns)
    return np.where(fitted > 0, calls.y / np.where(fitted > 0, fitted, 1.0), np.nan)


def _visible(values: Floats, logarithmic: bool) -> Bools:
    return values > 0 if logarithmic else np.ones(len(values), dtype=np.bool_)


def floats(values: Floats) -> tuple[float, ...]:
    """Return values (n,) as numbers of Python."""
    return tuple(map(float, values))


def _curve(calls: _Calls, regime: _SideRegime, feature: str) -> Iterator[PlotSeries]:
    """Yield the annotation's curve over the main feature in one regime, with the band that most calls lie in."""
    x = calls.x[regime.rows]
    if calls.annotation is None or regime.others is None or not len(x):
        return
    places = grid(x)
    values = {feature: places, **{name: np.full(len(places), value) for name, value in regime.others.items()}}
    predicted = calls.annotation.predict(values)
    low, high = interval(calls.annotation, values, COVERED)
    shown = np.isfinite(predicted) & np.isfinite(low) & np.isfinite(high)
    band = Band(floats(low[shown]), floats(high[shown]))
    yield PlotSeries(calls.side, regime.label, floats(places[shown]), floats(predicted[shown]), line=True, band=band)


def grid(x: Floats) -> Floats:
    """Return places along an axis at which a curve looks smooth on a linear and on a logarithmic scale."""
    even = np.linspace(x.min(), x.max(), CURVE_POINTS // 2)
    positive = x[x > 0]
    if not len(positive):
        return even
    return np.unique(np.concatenate([even, np.geomspace(positive.min(), positive.max(), CURVE_POINTS // 2)]))


def _regimes(calls: _Calls, feature: str) -> Iterator[_SideRegime]:
    """Yield each regime that features other than the main one select, the largest first; one of all calls where none does."""
    everything = np.ones(len(calls.x), dtype=np.bool_)
    shares: dict[tuple[Condition, ...], float] = {}
    for scope in calls.annotation.scopes if calls.annotation else ():
        others = tuple(condition for condition in scope.conditions if condition.feature != feature)
        shares[others] = shares.get(others, 0.0) + scope.share
    if len(shares) < 2 or any(condition.feature not in calls.columns for others in shares for condition in others):
        yield _SideRegime("", everything, {})
        return
    left = everything.copy()
    for others in sorted(shares, key=lambda key: -shares[key])[:MOST_CURVES]:
        rows = everything.copy()
        for condition in others:
            rows &= condition.holds(calls.columns[condition.feature])
        rows &= left
        if not rows.any():
            continue
        left &= ~rows
        chosen = np.flatnonzero(rows)[np.argsort(calls.x[rows], kind="stable")[int(rows.sum()) // 2]]
        text = shortened(printable(" && ".join(condition.text(condition.feature) for condition in others)), _LONGEST_LABEL)
        yield _SideRegime(text, rows, {condition.feature: float(calls.columns[condition.feature][chosen]) for condition in others})
    if left.any():
        yield _SideRegime("other calls", left, None)
