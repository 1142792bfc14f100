"""A plot as the page's script reads it: both scales of each axis, with ticks and labels, and every point with the call behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from perfdiff.report.blocks import Plot, PlotSeries
from perfdiff.report.chart import AxisScale, labelled, ratio_scale, ratios, scopes, x_scale, y_scale
from perfdiff.report.printable import shortened

# Finer than a pixel of any screen; every digit counts 50 times in a page.
_DIGITS = 4
_SCALE_DIGITS = 7
_LARGEST_WHOLE = 2**53
_MOST_NAME = 40  # characters beside an axis: of the widest ones so many fit in a plot on a telephone


def plot_data(plot: Plot) -> dict[str, Any]:
    """Return a plot as values of JSON. A scale is `[low, high, [[value, label], …]]`, null where no value has a place on it."""
    labels = scopes(plot)
    below = ratios(plot)
    return {
        "x": _axis([value for series in plot.series for value in series.x], lambda log: x_scale(plot, logarithmic=log), plot.x_unit)
        | {"label": plot.x_label, "name": shortened(plot.x_label, _MOST_NAME), "log": plot.x_log},
        "y": _axis([value for series in plot.series for value in series.y], lambda log: y_scale(plot, logarithmic=log), plot.y_unit)
        | {"label": plot.y_label, "name": shortened(plot.y_label, _MOST_NAME), "log": plot.y_log},
        "ratio": _scale(ratio_scale(below), "count") | {"log": ratio_scale(below).logarithmic} if below else None,
        "scopes": list(labels),
        "series": [_series(series, labels.index(series.label)) for series in plot.series if series.x],
    }


def _axis(values: Sequence[float], scale: Callable[[bool], AxisScale], unit: str) -> dict[str, Any]:
    logarithmic = _scale(scale(True), unit) if any(value > 0 for value in values) else None
    return {"unit": unit, "linear": _scale(scale(False), unit), "logarithmic": logarithmic}


def _scale(scale: AxisScale, unit: str) -> dict[str, Any]:
    return {
        "low": short(scale.low, _SCALE_DIGITS),
        "high": short(scale.high, _SCALE_DIGITS),
        "ticks": [[tick.value, tick.label] for tick in labelled(scale, unit)],
    }


def _series(series: PlotSeries, scope: int) -> dict[str, Any]:
    data: dict[str, Any] = {
        "side": series.side.value,
        "scope": scope,
        "line": series.line,
        "x": [short(value) for value in series.x],
        "y": [short(value) for value in series.y],
    }
    if series.band is not None:
        data |= {"low": [short(value) for value in series.band.low], "high": [short(value) for value in series.band.high]}
    if series.calls is not None:
        data |= {
            "point": _coded(series.calls.point),
            "inputs": {name: _coded(values) for name, values in series.calls.inputs.items()},
            "ratio": [None if value is None else short(value) for value in series.calls.ratio],
        }
    return data


def _coded(texts: Sequence[str]) -> list[Any]:
    """Return texts as `[distinct texts, place of each]` where calls share most of theirs, else as `[texts]`."""
    distinct = list(dict.fromkeys(texts))
    if 2 * len(distinct) > len(texts):
        return [list(texts)]
    places = {text: place for place, text in enumerate(distinct)}
    return [distinct, [places[text] for text in texts]]


def short(value: float, digits: int = _DIGITS) -> float | int | None:
    """Return a value with a number of significant digits, None if it is not finite."""
    if not math.isfinite(value):
        return None
    if value == round(value) and abs(value) < _LARGEST_WHOLE:
        return int(value)
    return float(f"{value:.{digits}g}")
