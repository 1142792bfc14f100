"""The geometry of a plot: where axes, ticks, points, curves and bands stand in an SVG of fixed view box."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff import units
from perfdiff.records.arrays import Floats
from perfdiff.report.blocks import Plot, PlotSeries, RatioSpan

_WANTED_TICKS = 5
# Powers of ten alone leave an axis of less than two decades without ticks enough.
_DECADES = 2
# Ratios that spread further than this are read by how many times, not by how much.
_RATIO_SPREAD = 3.0
# What a dot looks like by the place of its scope, as what follows `M x y` in a path: dot, cross, triangle, square.
_GLYPHS = ("h0", "m-3 0h6m-3-3v6", "m0-4l4 7h-8z", "m-3-3h6v6h-6z")


@dataclass(frozen=True, slots=True)
class ViewBox:
    """A view box and the part of it within the axes."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int


MAIN = ViewBox(640, 360, 68, 626, 30, 314)
BELOW = ViewBox(640, 150, 68, 626, 24, 128)


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis, in the view box's units, for a value."""

    at: float
    label: str
    value: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A series as the data of SVG paths: a glyph for each point, or a line with the area of its band; `scope` is the place of its label."""

    side: str
    label: str
    scope: int
    line: bool
    path: str
    band: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Everything that an SVG of a plot needs to know."""

    frame: ViewBox
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class AxisScale:
    """Maps `low` to `start` and `high` to `end`, by the logarithm where `logarithmic`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    def __call__(self, value: float) -> float:
        """Return where `value` stands; what lies beyond the axis stands at its nearer end."""
        return float(self.places([value])[0])

    def places(self, values: Sequence[float]) -> Floats:
        """Return where values (n,) stand, NaN where one of 0 or less has no place on a logarithmic axis."""
        given = np.asarray(values, dtype=np.float64)
        within = np.clip(given, self.low, self.high)
        low, high = self.low, self.high
        if self.logarithmic:
            within, low, high = np.log10(within), math.log10(low), math.log10(high)
        places = self.start + (within - low) / (high - low) * (self.end - self.start)
        return np.where(given > 0, places, np.nan) if self.logarithmic else places


@dataclass(frozen=True, slots=True)
class Forest:
    """A row's interval on the axis that all rows share, 0 to 100."""

    low: float
    value: float
    high: float
    one: float


def chart(plot: Plot) -> Chart:
    """Lay out a plot of at least one point."""
    return _laid_out(
        MAIN, plot.series, x_scale(plot, logarithmic=plot.x_log), y_scale(plot, logarithmic=plot.y_log), (plot.x_unit, plot.y_unit)
    )


def residuals(plot: Plot) -> Chart | None:
    """Lay out how far the calls of a plot lie from what was fitted, below it; None where nothing was."""
    series = ratios(plot)
    if not series:
        return None
    return _laid_out(BELOW, series, x_scale(plot, logarithmic=plot.x_log), ratio_scale(series), (plot.x_unit, "count"))


def ratios(plot: Plot) -> tuple[PlotSeries, ...]:
    """Return the points of a plot with the measured over the fitted cost in place of the cost."""
    residuals = []
    for series in plot.series:
        fitted = [(x, ratio) for x, ratio in zip(series.x, series.calls.ratio, strict=True) if ratio] if series.calls else []
        if fitted:
            x, y = zip(*fitted, strict=True)
            residuals.append(PlotSeries(series.side, series.label, x, y, line=False))
    return tuple(residuals)


def x_scale(plot: Plot, *, logarithmic: bool) -> AxisScale:
    """Return the scale across; values of 0 or less have no place on a logarithmic one."""
    return _scale([value for series in plot.series for value in series.x], MAIN.left, MAIN.right, logarithmic)


def y_scale(plot: Plot, *, logarithmic: bool) -> AxisScale:
    """Return the scale upwards. Points and curves fit in; a band may be cut off."""
    return _scale([value for series in plot.series for value in series.y], MAIN.bottom, MAIN.top, logarithmic)


def ratio_scale(series: Sequence[PlotSeries]) -> AxisScale:
    """Return the scale of residuals, which holds 1."""
    values = [1.0, *(value for line in series for value in line.y)]
    return _scale(values, BELOW.bottom, BELOW.top, max(values) > _RATIO_SPREAD * min(values), from_zero=False)


def scopes(plot: Plot) -> tuple[str, ...]:
    """Return the labels of a plot's scopes, in the order of their places."""
    return tuple(dict.fromkeys(series.label for series in plot.series))


def _laid_out(frame: ViewBox, series: Sequence[PlotSeries], x: AxisScale, y: AxisScale, of: tuple[str, str]) -> Chart:
    labels = tuple(dict.fromkeys(line.label for line in series))
    return Chart(
        frame=frame,
        x_ticks=labelled(x, of[0]),
        y_ticks=labelled(y, of[1]),
        marks=tuple(
            Mark(line.side.value, line.label, place, line.line, _path(line, place, x, y), _band(line, x, y))
            for line in series
            if line.x
            for place in (labels.index(line.label),)
        ),
    )


def _scale(values: Sequence[float], start: float, end: float, logarithmic: bool, *, from_zero: bool = True) -> AxisScale:
    if logarithmic:
        positive = [value for value in values if value > 0]
        return AxisScale(min(positive) / 1.15, max(positive) * 1.15, start, end, True)
    low, high = min(values), max(values)
    if from_zero and 0 <= low < 0.5 * high:  # an axis that shows ratios as lengths, where that wastes less than half of it
        return AxisScale(0.0, high * 1.04, start, end, False)
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return AxisScale(low - margin, high + margin, start, end, False)


def labelled(scale: AxisScale, unit: str) -> tuple[Tick, ...]:
    """Return a scale's ticks with their labels."""
    return tuple(Tick(round(scale(value), 1), units.quantity(value, unit), value) for value in ticks(scale))


def ticks(scale: AxisScale) -> tuple[float, ...]:
    """Return round values within a scale: powers of ten, or steps of 1, 2 or 5 of one."""
    if not scale.logarithmic:
        return tuple(_steps(scale))
    if scale.high >= 10.0**_DECADES * scale.low:
        return tuple(_powers(scale))
    fine = tuple(_fine_powers(scale))
    return fine if len(fine) > 1 else tuple(step for step in _steps(scale) if step > 0)


def _powers(scale: AxisScale) -> Iterator[float]:
    low, high = math.ceil(math.log10(scale.low)), math.floor(math.log10(scale.high))
    every = max(1, math.ceil((high - low) / (_WANTED_TICKS + 1)))
    for power in range(low, high + 1, every):
        yield 10.0**power


def _fine_powers(scale: AxisScale) -> Iterator[float]:
    for power in range(math.floor(math.log10(scale.low)), math.floor(math.log10(scale.high)) + 1):
        yield from (factor * 10.0**power for factor in (1, 2, 5) if scale.low <= factor * 10.0**power <= scale.high)


def _steps(scale: AxisScale) -> Iterator[float]:
    rough = (scale.high - scale.low) / _WANTED_TICKS
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= rough)
    for index in range(math.ceil(scale.low / step), math.floor(scale.high / step) + 1):
        yield index * step


def _path(series: PlotSeries, scope: int, x_scale: AxisScale, y_scale: AxisScale) -> str:
    places = np.column_stack([x_scale.places(series.x), y_scale.places(series.y)])
    shown = places[np.isfinite(places).all(axis=1)]
    if series.line:
        return _joined(shown)
    glyph = _GLYPHS[scope % len(_GLYPHS)]
    return "".join(f"M{x} {y}{glyph}" for x, y in np.unique(np.round(shown).astype(int), axis=0).tolist())


def _band(series: PlotSeries, x_scale: AxisScale, y_scale: AxisScale) -> str:
    """Return the outline of a curve's band, there and back; where its lower edge has no place it ends at the axis."""
    if series.band is None:
        return ""
    x, low, high = x_scale.places(series.x), y_scale.places(series.band.low), y_scale.places(series.band.high)
    shown = np.isfinite(x) & np.isfinite(high)
    there = np.column_stack([x, high])[shown]
    back = np.column_stack([x, np.where(np.isfinite(low), low, y_scale.start)])[shown]
    return f"{_joined(np.concatenate([there, back[::-1]]))}Z" if shown.any() else ""


def _joined(places: Floats) -> str:
    corners = "L".join(f"{x:g} {y:g}" for x, y in np.round(places, 1).tolist())
    return f"M{corners}" if corners else ""


def forest(spans: list[RatioSpan | None]) -> list[Forest | None]:
    """Place intervals of ratios on one logarithmic axis that holds 1; None stays None."""
    present = [span for span in spans if span is not None]
    bounds = [1.0, *(bound for span in present for bound in (span.low, span.high))]
    # At least from half to double, so that a page of small shifts does not look like a page of large ones.
    scale = AxisScale(min(0.5, *bounds), max(2.0, *bounds), 2.0, 98.0, True)
    return [
        Forest(round(scale(span.low), 1), round(scale(span.value), 1), round(scale(span.high), 1), round(scale(1.0), 1)) if span else None
        for span in spans
    ]
