"""The geometry of a plot: where axes, ticks, points and curves stand in an SVG of fixed view box."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from perfdiff import units
from perfdiff.report.blocks import Plot, Series, Span

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 68, 14, 30, 46
_WANTED_TICKS = 5


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis, in the view box's units."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A series as the data of one SVG path: dots of no length for points, a line for a curve."""

    side: str
    label: str
    line: bool
    path: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Everything that an SVG of a plot needs to know."""

    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low` to `start` and `high` to `end`, by the logarithm where `logarithmic`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    def __call__(self, value: float) -> float:
        """Return where `value` stands."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.logarithmic else (self.low, self.high)
        place = math.log10(value) if self.logarithmic else value
        return self.start + (place - low) / (high - low) * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Forest:
    """A row's interval on the axis that all rows share, 0 to 100."""

    low: float
    value: float
    high: float
    one: float


def chart(plot: Plot) -> Chart:
    """Lay out a plot of at least one point."""
    x_values = [value for series in plot.series for value in series.x]
    y_values = [value for series in plot.series for value in series.y]
    x_scale = _scale(x_values, LEFT, WIDTH - RIGHT, plot.x_log)
    y_scale = _scale(y_values, HEIGHT - BOTTOM, TOP, plot.y_log)
    return Chart(
        x_ticks=tuple(Tick(round(x_scale(value), 1), units.quantity(value, plot.x_unit)) for value in ticks(x_scale)),
        y_ticks=tuple(Tick(round(y_scale(value), 1), units.quantity(value, plot.y_unit)) for value in ticks(y_scale)),
        marks=tuple(
            Mark(series.side.value, series.label, series.line, _path(series, x_scale, y_scale)) for series in plot.series if series.x
        ),
    )


def _scale(values: list[float], start: float, end: float, logarithmic: bool) -> Scale:
    low, high = min(values), max(values)
    if logarithmic:
        return Scale(low / 1.15, high * 1.15, start, end, True)
    if 0 <= low < 0.5 * high:  # an axis that shows ratios as lengths, where that wastes less than half of it
        return Scale(0.0, high * 1.04, start, end, False)
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return Scale(low - margin, high + margin, start, end, False)


def ticks(scale: Scale) -> tuple[float, ...]:
    """Return round values within a scale: powers of ten, or steps of 1, 2 or 5 of one."""
    return tuple(_powers(scale) if scale.logarithmic else _steps(scale))


def _powers(scale: Scale) -> Iterator[float]:
    low, high = math.ceil(math.log10(scale.low)), math.floor(math.log10(scale.high))
    every = max(1, math.ceil((high - low) / (_WANTED_TICKS + 1)))
    for power in range(low, high + 1, every):
        yield 10.0**power


def _steps(scale: Scale) -> Iterator[float]:
    rough = (scale.high - scale.low) / _WANTED_TICKS
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= rough)
    for index in range(math.ceil(scale.low / step), math.floor(scale.high / step) + 1):
        yield index * step


def _path(series: Series, x_scale: Scale, y_scale: Scale) -> str:
    places = [(round(x_scale(x), 1), round(y_scale(y), 1)) for x, y in zip(series.x, series.y, strict=True)]
    if series.line:
        return "M" + "L".join(f"{x:g} {y:g}" for x, y in places)
    return "".join(f"M{x:g} {y:g}h0" for x, y in sorted(set(places)))


def forest(spans: list[Span | None]) -> list[Forest | None]:
    """Place intervals of ratios on one logarithmic axis that holds 1; None stays None."""
    known = [span for span in spans if span is not None]
    bounds = [1.0, *(bound for span in known for bound in (span.low, span.high))]
    # At least from half to double, so that a page of small shifts does not look like a page of large ones.
    scale = Scale(min(0.5, *bounds), max(2.0, *bounds), 2.0, 98.0, True)
    return [
        Forest(round(scale(span.low), 1), round(scale(span.value), 1), round(scale(span.high), 1), round(scale(1.0), 1)) if span else None
        for span in spans
    ]
