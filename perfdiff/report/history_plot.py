"""The plot of a history over revisions, with intervals and change points: what a call costs at the reference input, or the exponent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perfdiff import units
from perfdiff.analysis.series import GROWTH, FunctionHistory
from perfdiff.report import wording
from perfdiff.report.history import metrics_of, step_says
from perfdiff.report.picture import COLOURS, saved, style, ticks
from perfdiff.report.plots import is_logarithmic
from perfdiff.report.printable import printable_values, shortened

_INCHES_A_REVISION = 0.5
_LEAST_INCHES, _MOST_INCHES = 7.0, 16.0
_INCHES_A_METRIC = 3.2
_INCHES_OF_GROWTH = 5.5
_LONGEST_NAME = 24


def draw(history: FunctionHistory, kind: str) -> bytes:
    """Return a picture of `kind` `svg` or `png`, one panel a metric; the same bytes each time. Texts of it are printable.

    Of growth the exponents stand over what a run counts.
    """
    from matplotlib.figure import Figure

    clean: FunctionHistory = printable_values(history)
    metrics = metrics_of(clean)
    panels = 2 if clean.feature else len(metrics)
    height = _INCHES_OF_GROWTH if clean.feature else _INCHES_A_METRIC * max(panels, 1) + 1
    with style():
        figure = Figure(figsize=(width_for(len(clean.entries)), height), layout="constrained")
        axes: Any = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0] if panels else []
        if clean.feature:
            _exponents(axes[0], clean)
            _counts(axes[1], clean)
        for place, metric in enumerate(() if clean.feature else metrics):
            _costs(axes[place], clean, metric, COLOURS[place % len(COLOURS)])
        if panels:
            name_revisions(axes[-1], [entry.revision.rev for entry in clean.entries])
        over = f", growth over {clean.feature}" if clean.feature else _inputs(clean)
        figure.suptitle(f"{clean.function}{over}", parse_math=False)
        return saved(figure, kind)


def width_for(revisions: int) -> float:
    """Return the width, in inches, of a plot over a number of revisions."""
    return min(max(_LEAST_INCHES, 2 + _INCHES_A_REVISION * revisions), _MOST_INCHES)


def name_revisions(axes: Any, names: Sequence[str]) -> None:
    """Write the names of revisions below an axis that numbers them."""
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_xticks(range(len(names)), [shortened(name, _LONGEST_NAME) for name in names], rotation=45, ha="right", parse_math=False)


def _inputs(history: FunctionHistory) -> str:
    at = ", ".join(f"{name} = {units.count(value)}" for name, value in history.reference.items())
    return f", a call at {at}" if at else ", a call"


def _figures(axes: Any, history: FunctionHistory, metric: str, colour: str) -> tuple[Any, Any]:
    """Draw the figures of one metric, which are returned with the lower ends of their intervals; revisions without it leave a gap."""
    costs = [entry.costs.get(metric) for entry in history.entries]
    value, low, high = np.array([(cost.value, cost.low, cost.high) if cost else (np.nan,) * 3 for cost in costs]).T
    is_told = np.isfinite(high)  # else there were too few runs for an interval
    reach = (np.where(is_told, np.maximum(width, 0.0), 0.0) for width in (value - low, high - value))
    axes.errorbar(np.arange(len(costs)), value, yerr=tuple(reach), color=colour, marker="o", markersize=4, linewidth=1.2, capsize=3)
    for place, cost in enumerate(costs):
        if cost is not None and cost.step is not None:
            axes.axvline(place - 0.5, color="0.4", linestyle="--", linewidth=1)
            says = f" {step_says(cost.step, metric).partition(' [')[0]}, {cost.law.growth.value}"
            axes.text(place - 0.5, 1.0, says, transform=axes.get_xaxis_transform(), va="bottom", fontsize=8, parse_math=False)
    return value, low


def _costs(axes: Any, history: FunctionHistory, metric: str, colour: str) -> None:
    value, _ = _figures(axes, history, metric, colour)
    _scale(axes, value)
    axes.set_ylabel(wording.metric_says(metric), parse_math=False)
    ticks(axes.yaxis, wording.metric_unit(metric))


def _exponents(axes: Any, history: FunctionHistory) -> None:
    _, low = _figures(axes, history, GROWTH, COLOURS[0])
    axes.set_ylim(bottom=min(0.0, float(np.nanmin(low))))
    axes.set_ylabel("exponent")


def _counts(axes: Any, history: FunctionHistory) -> None:
    """Draw what a run of each revision counts at the largest input."""
    counts = np.array([entry.costs[GROWTH].count if GROWTH in entry.costs else np.nan for entry in history.entries])
    axes.plot(np.arange(len(counts)), counts, color=COLOURS[1], marker="o", markersize=4, linewidth=1.2)
    _scale(axes, counts)
    axes.set_ylabel(f"blocks at {history.at}", parse_math=False)


def _scale(axes: Any, values: Any) -> None:
    if is_logarithmic(values[np.isfinite(values)]):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
