"""A plot as a picture of its own, SVG and PNG, for tickets: the same points and curves as in the HTML report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perfdiff.records.schema import Side
from perfdiff.report.blocks import Plot, PlotSeries
from perfdiff.report.picture import COLOURS, saved, style, ticks
from perfdiff.report.printable import shortened

_INCHES = (8.0, 4.6)
_LONGEST = 110
# Sides differ in colour and marker, curves of one side in their line.
_COLOUR = {Side.BASE: COLOURS[0], Side.HEAD: COLOURS[1]}
_MARKER = {Side.BASE: "o", Side.HEAD: "s"}
_LINES = ("-", "--", "-.", ":")


@dataclass(frozen=True, slots=True)
class Picture:
    """A plot, drawn twice."""

    svg: bytes
    png: bytes


def draw(plot: Plot) -> Picture:
    """Return the plot as SVG and as PNG; the same bytes each time. Texts of it are printable."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=_INCHES, layout="constrained")
        axes = figure.subplots()
        if plot.x_log:
            axes.set_xscale("log", nonpositive="mask")
        if plot.y_log:
            axes.set_yscale("log", nonpositive="mask")
        curves = dict.fromkeys(Side, 0)
        for series in plot.series:
            _add(axes, series, curves[series.side])
            curves[series.side] += series.line
        axes.set_title(shortened(plot.title, _LONGEST), parse_math=False, fontsize=10)
        axes.set_xlabel(shortened(plot.x_label, _LONGEST), parse_math=False)
        axes.set_ylabel(shortened(plot.y_label, _LONGEST), parse_math=False)
        ticks(axes.xaxis, plot.x_unit)
        ticks(axes.yaxis, plot.y_unit)
        for text in axes.legend(fontsize=8, frameon=False).get_texts():
            text.set_parse_math(False)
        return Picture(saved(figure, "svg"), saved(figure, "png"))


def _add(axes: Any, series: PlotSeries, curve: int) -> None:
    colour = _COLOUR[series.side]
    label = f"{series.side.value} {shortened(series.label, _LONGEST)}".strip()
    if series.line:
        axes.plot(series.x, series.y, linestyle=_LINES[curve % len(_LINES)], color=colour, linewidth=1.8, label=f"{label}, curve")
    else:
        axes.plot(series.x, series.y, _MARKER[series.side], color=colour, markersize=3, alpha=0.45, linestyle="", label=label)
