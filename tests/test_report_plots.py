"""What plots show: points thinned without loss of shape, curves by regime, round ticks."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import findings as made
from perfdiff import units
from perfdiff.analysis.findings import FunctionFinding
from perfdiff.models.annotation import Condition, CostClass, Operator, Scope, Term
from perfdiff.records.schema import Feature, Origin, SampleTable, Side
from perfdiff.report.blocks import Plot
from perfdiff.report.chart import MAIN, AxisScale, chart, residuals, ticks
from perfdiff.report.plots import ALL_POINTS, CURVE_POINTS, MOST_POINTS, function_plot, points_each, thinned


def plotted(finding: FunctionFinding, tables: dict[Side, SampleTable]) -> Plot:
    plot = function_plot(finding, lambda _, side: tables.get(side))
    assert plot is not None
    return plot


def tables() -> dict[Side, SampleTable]:
    load = made.Samples(made.findings())
    return {side: table for side in Side if (table := load(1, side)) is not None}


def test_thinning_keeps_extremes_and_is_repeatable() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.uniform(0, 1, 10_000), rng.lognormal(0, 1, 10_000)
    kept = thinned(x, y)
    assert len(kept) <= MOST_POINTS
    assert len(kept) > 0.9 * MOST_POINTS
    assert {int(np.argmin(y)), int(np.argmax(y)), int(np.argmin(x)), int(np.argmax(x))} <= set(kept.tolist())
    assert (thinned(x, y) == kept).all()
    assert abs(np.median(x[kept]) - np.median(x)) < 0.02


def test_few_points_are_all_kept() -> None:
    assert sorted(thinned(np.array([2.0, 1.0]), np.array([1.0, 1.0])).tolist()) == [0, 1]


def test_curves_follow_the_annotation() -> None:
    plot = plotted(made.regressed(), tables())
    head = next(series for series in plot.series if series.line and series.side is Side.HEAD)
    assert np.allclose(head.y, 38.0 + 0.912 * np.array(head.x))
    assert 0.9 * CURVE_POINTS <= len(head.x) <= CURVE_POINTS
    assert plot.y_log


def test_a_curve_stands_in_the_band_that_most_calls_lie_in() -> None:
    plot = plotted(made.regressed(), tables())
    for curve in (series for series in plot.series if series.line):
        assert curve.band is not None
        low, high = np.array(curve.band.low), np.array(curve.band.high)
        assert (low < curve.y).all()
        assert (curve.y < high).all()
        sigma = 6.0 if curve.side is Side.BASE else 85.0
        assert np.allclose(high - low, 2 * 1.96 * sigma, rtol=0.001)


def test_a_call_is_told_with_its_workload_point_its_inputs_and_how_far_it_is_from_what_was_fitted() -> None:
    sampled = {side: replace(table, values=table.values * (1.0, 2.0)) for side, table in tables().items()}
    plot = function_plot(made.regressed(), lambda _, side: sampled.get(side), {0: "sort n=1000"})
    assert plot is not None
    dots = next(series for series in plot.series if not series.line and series.side is Side.HEAD)
    assert dots.calls is not None
    assert set(dots.calls.point) == {"sort n=1000"}
    assert list(dots.calls.inputs) == ["n"]  # that of the axis is told anyway
    assert dots.calls.inputs["n"][0] == units.count(2 * dots.x[0])
    assert dots.calls.ratio[0] == pytest.approx(dots.y[0] / (38.0 + 0.912 * dots.x[0]))


def test_residuals_lie_about_one() -> None:
    below = residuals(plotted(made.regressed(), tables()))
    assert below is not None
    assert [mark.side for mark in below.marks] == ["base", "head"]
    assert [tick.label for tick in below.y_ticks if tick.value == 1.0] == ["1"]


def test_more_functions_are_drawn_with_fewer_calls_each() -> None:
    assert points_each(1) == MOST_POINTS
    assert points_each(50) * 2 * 50 <= ALL_POINTS


def test_a_leading_metric_of_runs_gives_way_to_the_time_of_calls() -> None:
    finding = made.regressed()
    of_runs = replace(finding.metrics["wall_ns"], metric="run_ns")
    slower = replace(finding, metrics={"run_ns": of_runs, "wall_ns": replace(finding.metrics["wall_ns"], ratio=None)})
    assert plotted(slower, tables()).y_label == "time, callees included, a call"


def test_each_regime_that_another_feature_selects_has_its_curve() -> None:
    finding = made.regressed()
    wall = finding.metrics["wall_ns"]
    assert wall.head is not None
    fast = Condition("mode", Operator.IN, (0.0,), ("FAST",))
    scopes = tuple(
        Scope(CostClass.LINEAR, (Term(100.0), Term(slope, (("list->size", "x"),))), 1.0, 0.5, 450, (condition,))
        for slope, condition in ((1.0, fast), (7.0, fast.negated()))
    )
    annotation = replace(wall.head, scopes=scopes, cost_class=CostClass.PIECEWISE, features=("list->size", "mode"))
    sampled = tables()
    mode = np.arange(1_000.0) % 2
    sampled[Side.HEAD] = replace(
        sampled[Side.HEAD],
        features=(*sampled[Side.HEAD].features, Feature("mode", Origin.ARGUMENT, True, {0: "FAST", 1: "SAFE"})),
        values=np.column_stack([sampled[Side.HEAD].values, mode]),
    )
    plot = plotted(replace(finding, metrics={"wall_ns": replace(wall, head=annotation)}), sampled)
    curves = {series.label: series for series in plot.series if series.line and series.side is Side.HEAD}
    assert set(curves) == {"mode == FAST", "mode != FAST"}
    dots = {series.label: series for series in plot.series if not series.line and series.side is Side.HEAD}
    assert set(dots) == set(curves)
    assert dots["mode == FAST"].calls is not None
    assert set(dots["mode == FAST"].calls.inputs["mode"]) == {"FAST"}
    for label, slope in (("mode == FAST", 1.0), ("mode != FAST", 7.0)):
        assert np.allclose(curves[label].y, 100.0 + slope * np.array(curves[label].x))


def test_zeros_that_a_logarithmic_axis_cannot_show_are_counted() -> None:
    sampled = tables()
    values = sampled[Side.BASE].values.copy()
    values[:7] = 0.0
    sampled[Side.BASE] = replace(sampled[Side.BASE], values=values)
    plot = plotted(made.regressed(), sampled)
    assert plot.x_log
    assert "7 calls at 0 have no place on a logarithmic axis." in plot.caption


def test_inputs_of_two_decades_stay_linear_unless_the_cost_is_logarithmic() -> None:
    sampled = {side: replace(table, values=np.clip(table.values, 400.0, None)) for side, table in tables().items()}
    plot = plotted(made.regressed(), sampled)
    assert (plot.x_log, plot.y_log) == (True, True)
    flat = {side: replace(table, metrics={"wall_ns": np.full(len(table), 40.0)}) for side, table in sampled.items()}
    plot = plotted(made.regressed(), flat)
    assert (plot.x_log, plot.y_log) == (False, False)


def test_a_cost_without_a_feature_is_shown_as_shares_of_calls() -> None:
    finding = made.regressed()
    wall = replace(finding.metrics["wall_ns"], feature=None)
    plot = plotted(replace(finding, metrics={"wall_ns": wall}), tables())
    assert [series.side for series in plot.series] == [Side.BASE, Side.HEAD]
    for series in plot.series:
        assert all(low <= high for low, high in itertools.pairwise(series.y))
        assert series.y[-1] == pytest.approx(100.0)


def test_one_side_alone_is_drawn_and_no_calls_are_no_plot() -> None:
    added = made.findings().functions[4]
    plot = plotted(added, {Side.HEAD: tables()[Side.HEAD]})
    assert {series.side for series in plot.series} == {Side.HEAD}
    assert function_plot(added, lambda *_: None) is None


def test_absent_values_are_not_drawn() -> None:
    sampled = tables()
    cost = sampled[Side.HEAD].metrics["wall_ns"].copy()
    cost[::2] = np.nan
    sampled[Side.HEAD] = replace(sampled[Side.HEAD], metrics={"wall_ns": cost})
    plot = plotted(made.regressed(), sampled)
    assert all(np.isfinite(series.y).all() for series in plot.series)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (AxisScale(0.0, 10.0, 0.0, 1.0, False), (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)),
        (AxisScale(0.0, 0.034, 0.0, 1.0, False), (0.0, 0.01, 0.02, 0.03)),
        (AxisScale(30.0, 20_000.0, 0.0, 1.0, True), (100.0, 1_000.0, 10_000.0)),
        (AxisScale(90.0, 900.0, 0.0, 1.0, True), (100.0, 200.0, 500.0)),
        (AxisScale(0.97, 1.06, 0.0, 1.0, True), (0.98, 1.0, 1.02, 1.04, 1.06)),
        (AxisScale(1.0, 1e12, 0.0, 1.0, True), (1.0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12)),
    ],
)
def test_ticks_are_round_and_few(scale: AxisScale, expected: tuple[float, ...]) -> None:
    assert ticks(scale) == pytest.approx(expected)


@pytest.mark.parametrize("value", [0.0, 5.0, -3.0])
def test_equal_values_have_a_place(value: float) -> None:
    sampled = {side: replace(table, values=np.full_like(table.values, value)) for side, table in tables().items()}
    drawn = chart(plotted(made.regressed(), sampled))
    assert drawn.x_ticks
    for tick in drawn.x_ticks:
        assert MAIN.left <= tick.at <= MAIN.right
    for tick in drawn.y_ticks:
        assert MAIN.top <= tick.at <= MAIN.bottom
