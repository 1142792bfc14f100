"""The plot of a history: what a call costs at the reference input over revisions, with intervals and change points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perfdiff import units
from perfdiff.analysis.annotations.history import History
from perfdiff.report import wording
from perfdiff.report.history import metrics_of, step_says
from perfdiff.report.picture import COLOURS, saved, style, ticks
from perfdiff.report.plots import is_logarithmic
from perfdiff.report.printable import printable_values, shortened

_INCHES_A_REVISION = 0.5
_LEAST_INCHES, _MOST_INCHES = 7.0, 16.0
_INCHES_A_METRIC = 3.2
_LONGEST_NAME = 24


def draw(history: History, kind: str) -> bytes:
    """Return a picture of `kind` `svg` or `png`, one panel a metric; the same bytes each time. Texts of it are printable."""
    from matplotlib.figure import Figure

    clean: History = printable_values(history)
    metrics = metrics_of(clean)
    with style():
        figure = Figure(figsize=(width_for(len(clean.entries)), _INCHES_A_METRIC * max(len(metrics), 1) + 1), layout="constrained")
        panels: Any = figure.subplots(len(metrics), 1, sharex=True, squeeze=False)[:, 0] if metrics else []
        for place, (axes, metric) in enumerate(zip(panels, metrics, strict=True)):
            _panel(axes, clean, metric, COLOURS[place % len(COLOURS)])
        if metrics:
            name_revisions(panels[-1], [entry.revision.rev for entry in clean.entries])
        figure.suptitle(f"{clean.function}{_inputs(clean)}", parse_math=False)
        return saved(figure, kind)


def width_for(revisions: int) -> float:
    """Return the width, in inches, of a plot over so many revisions."""
    return min(max(_LEAST_INCHES, 2 + _INCHES_A_REVISION * revisions), _MOST_INCHES)


def name_revisions(axes: Any, names: Sequence[str]) -> None:
    """Write the names of revisions below an axis that numbers them."""
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_xticks(range(len(names)), [shortened(name, _LONGEST_NAME) for name in names], rotation=45, ha="right", parse_math=False)


def _inputs(history: History) -> str:
    at = ", ".join(f"{name} = {units.count(value)}" for name, value in history.reference.items())
    return f", a call at {at}" if at else ", a call"


def _panel(axes: Any, history: History, metric: str, colour: str) -> None:
    """Draw one metric; revisions without it leave a gap."""
    costs = [entry.costs.get(metric) for entry in history.entries]
    value, low, high = np.array([(cost.value, cost.low, cost.high) if cost else (np.nan,) * 3 for cost in costs]).T
    known = np.isfinite(high)  # else there were too few runs for an interval
    reach = np.where(known, value - low, 0.0), np.where(known, high - value, 0.0)
    axes.errorbar(np.arange(len(costs)), value, yerr=reach, color=colour, marker="o", markersize=4, linewidth=1.2, capsize=3)
    for place, cost in enumerate(costs):
        if cost is not None and cost.step is not None:
            axes.axvline(place - 0.5, color="0.4", linestyle="--", linewidth=1)
            says = f" {step_says(cost.step, metric).partition(' [')[0]}, {cost.annotation.growth.value}"
            axes.text(place - 0.5, 1.0, says, transform=axes.get_xaxis_transform(), va="bottom", fontsize=8, parse_math=False)
    if is_logarithmic(value[np.isfinite(value)]):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_ylabel(wording.metric_says(metric), parse_math=False)
    ticks(axes.yaxis, wording.metric_unit(metric))
