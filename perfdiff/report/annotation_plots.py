"""The plot of an annotation: calls and curves of each scope over the main feature, or modes of the cost; residuals beside.

A scope whose cost follows a second feature as well has a curve for each third of its calls by that one, each through calls of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perfdiff import units
from perfdiff.models.annotation import Annotation, Scope, blocks, membership, product
from perfdiff.models.observations import Observations, observe
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import SampleTable
from perfdiff.report import wording
from perfdiff.report.picture import COLOURS, saved, style, ticks
from perfdiff.report.plots import CURVE_POINTS, LINEAR_DECADES, MOST_POINTS, is_logarithmic, thinned
from perfdiff.report.printable import printable, shortened

COVERED = 0.95  # of a scope's calls lie within the band about its curve
# Scopes differ in colour, marker and line.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 2)))
_INCHES = (11.0, 4.4)
_BINS = 60
_LONGEST_LABEL = 48
_STRANDS = 3  # curves of a scope that follows a second feature
_TELLING = 0.10  # of the cost: what a second feature moves less over most of its values is no curve of its own
_MOST_VALUES = (0.1, 0.9)  # quantiles that these lie between


@dataclass(frozen=True, slots=True)
class _DrawnScope:
    """A scope with the rows (n,) that are nearest to it, and its place among all that is drawn.

    A strand of one has those rows with like values of a `second` feature, which lie between two `ends`.
    """

    place: int
    scope: Scope
    rows: Ints
    share: float
    second: str | None = None
    ends: tuple[float, float] = (0.0, 0.0)

    @property
    def style(self) -> dict[str, Any]:
        return {"color": COLOURS[self.place % len(COLOURS)]}

    @property
    def marker(self) -> str:
        return _MARKERS[self.place % len(_MARKERS)]

    @property
    def line(self) -> Any:
        return _LINES[self.place % len(_LINES)]

    @property
    def label(self) -> str:
        text = f"{shortened(printable(self.scope.condition), _LONGEST_LABEL)}: " if self.scope.condition else ""
        strand = ""
        if self.second is not None:
            low, high = (units.count(end) for end in self.ends)
            strand = f"; {shortened(printable(self.second), _LONGEST_LABEL)} {low}" + (f" to {high}" if low != high else "")
        return f"{text}{self.scope.cost_class.value}, {wording.percent(self.share)} of calls{strand}"


def draw(annotation: Annotation, table: SampleTable) -> str:
    """Return an SVG of an annotation with the calls it was learnt from; the same bytes each time. Texts of it are printable."""
    from matplotlib.figure import Figure

    rows = observe(table, annotation.metric)
    regimes = list(_regimes(annotation, rows))
    with style():
        figure = Figure(figsize=_INCHES, layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(2, 1))
        feature = _main_feature(annotation, rows)
        if feature is None:
            _draw_modes(left, annotation, rows, regimes)
        else:
            regimes = [
                replace(strand, place=place)
                for place, strand in enumerate(s for regime in regimes for s in _strands(regime, rows, feature))
            ]
            _draw_curves(left, annotation, rows, regimes, feature)
        _draw_residuals(right, annotation, rows, regimes)
        figure.suptitle(_title(annotation), parse_math=False)
        left.legend(fontsize=8, frameon=False).set_in_layout(True)
        return saved(figure, "svg").decode()


def _title(annotation: Annotation) -> str:
    name = shortened(printable(annotation.function), _LONGEST_LABEL)
    quality = f"R² {units.significant(annotation.r2)}, cross-validated {units.significant(annotation.cv_r2)}"
    return f"{name}: {wording.metric_says(annotation.metric)}, {annotation.cost_class.value}; {annotation.n:,} calls, {quality}"


def _regimes(annotation: Annotation, rows: Observations) -> Iterator[_DrawnScope]:
    """Yield each scope with its calls; each call of a mixture goes to the component that it lies nearest to."""
    place = 0
    for scopes in blocks(annotation):
        inside = np.flatnonzero(membership(scopes, rows.columns, len(rows)) > 0)
        distances = [np.abs(rows.cost[inside] - _expected(scope, rows)[inside]) / (scope.sigma or 1.0) for scope in scopes]
        nearest = np.argmin(np.nan_to_num(distances, nan=np.inf), axis=0)
        for component, scope in enumerate(scopes):
            yield _DrawnScope(place, scope, inside[nearest == component], scope.share)
            place += 1


def _strands(regime: _DrawnScope, rows: Observations, feature: str) -> Iterator[_DrawnScope]:
    """Yield the strands of a regime whose cost follows a second feature, one after the other by its values; else the regime."""
    second = _second_feature(regime, rows, feature)
    if second is None:
        yield regime
        return
    column = rows.columns[second][regime.rows]
    values = np.unique(column)
    borders = values[1:] if len(values) <= _STRANDS else np.quantile(column, np.arange(1, _STRANDS) / _STRANDS)
    strand = np.searchsorted(np.unique(borders), column, side="right")
    for number in np.unique(strand):
        within = strand == number
        ends = float(column[within].min()), float(column[within].max())
        yield replace(regime, rows=regime.rows[within], share=regime.share * float(within.mean()), second=second, ends=ends)


def _second_feature(regime: _DrawnScope, rows: Observations, feature: str) -> str | None:
    """Return the feature that moves a regime's cost most beside the main one, None where none moves it by much."""
    names = dict.fromkeys(name for term in regime.scope.terms for name, _ in term.factors)
    columns = {name: rows.columns[name][regime.rows] for name in names}
    if len(names) < 2 or not len(regime.rows) or not all(np.isfinite(column).all() for column in columns.values()):
        return None
    typical = {name: np.full(2, np.median(column)) for name, column in columns.items()}
    moved = {
        name: abs(float(np.ptp(regime.scope.expected({**typical, name: np.quantile(columns[name], _MOST_VALUES)}, 2))))
        for name in names
        if name != feature
    }
    second = max(moved, key=lambda name: moved[name])
    return second if moved[second] >= _TELLING * abs(float(regime.scope.expected(typical, 2)[0])) else None


def _expected(scope: Scope, rows: Observations) -> Floats:
    return scope.expected(rows.columns, len(rows))


def _main_feature(annotation: Annotation, rows: Observations) -> str | None:
    """Return the feature of the terms that make most of the cost, None where the cost is constant in each scope."""
    cost_by_feature: dict[str, float] = {}
    for scope in annotation.scopes:
        for term in scope.terms:
            cost = scope.share * abs(term.coefficient) * float(np.nanmean(np.abs(product(term.factors, rows.columns, len(rows)))))
            for name, _ in term.factors:
                cost_by_feature[name] = cost_by_feature.get(name, 0.0) + cost
    return max(cost_by_feature, key=lambda name: cost_by_feature[name], default=None)


def _draw_curves(axes: Any, annotation: Annotation, rows: Observations, regimes: Sequence[_DrawnScope], feature: str) -> None:
    """Draw cost over the main feature: calls, curves, and the bands that most calls lie in."""
    x = rows.columns[feature]
    y_log = is_logarithmic(rows.cost)
    x_log = is_logarithmic(x[np.isfinite(x)], decades=1 if y_log else LINEAR_DECADES)
    _scales(axes, x_log=x_log, y_log=y_log)
    for regime in regimes:
        seen = regime.rows[
            np.isfinite(x[regime.rows]) & ((x[regime.rows] > 0) | (not x_log)) & ((rows.cost[regime.rows] > 0) | (not y_log))
        ]
        drawn = seen[thinned(x[seen], rows.cost[seen], MOST_POINTS)]
        axes.plot(x[drawn], rows.cost[drawn], regime.marker, markersize=3, alpha=0.5, linestyle="", label=regime.label, **regime.style)
        if not len(seen):
            continue
        ends = float(x[seen].min()), float(x[seen].max())
        grid = np.geomspace(*ends, CURVE_POINTS) if x_log else np.linspace(*ends, CURVE_POINTS)
        middle = seen[np.argsort(x[seen], kind="stable")[len(seen) // 2]]
        others = {name: np.full(CURVE_POINTS, column[middle]) for name, column in rows.columns.items()}
        if regime.second is not None:
            others[regime.second] = np.full(CURVE_POINTS, np.median(rows.columns[regime.second][seen]))
        curve = regime.scope.expected({**others, feature: grid}, CURVE_POINTS)
        low, high = (regime.scope.scatter.quantile(curve, level) for level in ((1 - COVERED) / 2, (1 + COVERED) / 2))
        axes.fill_between(
            grid, np.maximum(low, rows.cost[rows.cost > 0].min() if y_log else -np.inf), high, alpha=0.15, linewidth=0, **regime.style
        )
        axes.plot(grid, curve, linestyle=regime.line, linewidth=1.8, **regime.style)
    axes.set_xlabel(printable(feature), parse_math=False)
    axes.set_ylabel(f"{wording.metric_says(annotation.metric)}, a call", parse_math=False)
    axes.set_title(f"calls, curves, and where {wording.percent(COVERED)} of calls lie", fontsize=9)
    ticks(axes.xaxis, "count")
    ticks(axes.yaxis, wording.metric_unit(annotation.metric))


def _draw_modes(axes: Any, annotation: Annotation, rows: Observations, regimes: Sequence[_DrawnScope]) -> None:
    """Draw how often each cost occurs, by scope or component, with the expected cost of each."""
    log = is_logarithmic(rows.cost)
    cost = rows.cost[rows.cost > 0] if log else rows.cost
    low, high = float(cost.min()), float(cost.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    bins = np.geomspace(low, high, _BINS) if log else np.linspace(low, high, _BINS)
    _scales(axes, x_log=log, y_log=False)
    for regime in regimes:
        mean = float(np.nanmean(_expected(regime.scope, rows)))
        axes.hist(rows.cost[regime.rows], bins=bins, alpha=0.5, label=regime.label, **regime.style)
        axes.axvline(mean, linestyle=regime.line, linewidth=1.5, **regime.style)
    axes.set_xlabel(f"{wording.metric_says(annotation.metric)}, a call", parse_math=False)
    axes.set_ylabel("calls")
    axes.set_title("how often each cost occurs; lines are the expected costs", fontsize=9)
    ticks(axes.xaxis, wording.metric_unit(annotation.metric))


def _draw_residuals(axes: Any, annotation: Annotation, rows: Observations, regimes: Sequence[_DrawnScope]) -> None:
    """Draw what is left of each call's cost over what its scope expects: structure in it is what the annotation misses."""
    for regime in regimes:
        expected = _expected(regime.scope, rows)[regime.rows]
        left = rows.cost[regime.rows] - expected
        finite = np.flatnonzero(np.isfinite(left))
        drawn = finite[thinned(expected[finite], left[finite], MOST_POINTS)]
        axes.plot(expected[drawn], left[drawn], regime.marker, markersize=3, alpha=0.5, linestyle="", **regime.style)
    axes.axhline(0.0, color="0.4", linewidth=0.8)
    axes.set_xlabel("expected cost")
    axes.set_title("residuals: measured less expected", fontsize=9)
    for axis in (axes.xaxis, axes.yaxis):
        ticks(axis, wording.metric_unit(annotation.metric))


def _scales(axes: Any, *, x_log: bool, y_log: bool) -> None:
    if x_log:
        axes.set_xscale("log")
    if y_log:
        axes.set_yscale("log")
