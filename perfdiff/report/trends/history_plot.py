"""The plot of a growth over revisions: the exponent with its intervals and change points, and below it what a run counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfdiff.analysis.trends.growth_history import GrowthHistory
from perfdiff.report.history_plot import name_revisions, width_for
from perfdiff.report.picture import COLOURS, saved, style
from perfdiff.report.plots import is_logarithmic
from perfdiff.report.printable import printable_values

_INCHES = 5.5


def draw(history: GrowthHistory, kind: str) -> bytes:
    """Return a picture of `kind` `svg` or `png`; the same bytes each time. Texts of it are printable."""
    from matplotlib.figure import Figure

    clean: GrowthHistory = printable_values(history)
    with style():
        figure = Figure(figsize=(width_for(len(clean.entries)), _INCHES), layout="constrained")
        exponents, counts = figure.subplots(2, 1, sharex=True)
        _exponents(exponents, clean)
        _counts(counts, clean)
        name_revisions(counts, [entry.revision.rev for entry in clean.entries])
        figure.suptitle(f"{clean.function}, growth over {clean.feature}", parse_math=False)
        return saved(figure, kind)


def _exponents(axes: Any, history: GrowthHistory) -> None:
    """Draw exponents; revisions without one leave a gap."""
    fits = [entry.fit for entry in history.entries]
    value, low, high = np.array([(fit.b, *fit.ci_b) if fit else (np.nan,) * 3 for fit in fits]).T
    reach = np.maximum(value - low, 0.0), np.maximum(high - value, 0.0)
    axes.errorbar(np.arange(len(fits)), value, yerr=reach, color=COLOURS[0], marker="o", markersize=4, linewidth=1.2, capsize=3)
    for place, entry in enumerate(history.entries):
        if entry.step is not None and entry.fit is not None:
            axes.axvline(place - 0.5, color="0.4", linestyle="--", linewidth=1)
            says = f" {entry.step.shift.exponent:+.2f}, {entry.fit.growth.value}"
            axes.text(place - 0.5, 1.0, says, transform=axes.get_xaxis_transform(), va="bottom", fontsize=8, parse_math=False)
    axes.set_ylim(bottom=min(0.0, float(np.nanmin(low))))
    axes.set_ylabel("exponent")


def _counts(axes: Any, history: GrowthHistory) -> None:
    counts = np.array([np.nan if entry.largest is None else entry.largest for entry in history.entries])
    axes.plot(np.arange(len(counts)), counts, color=COLOURS[1], marker="o", markersize=4, linewidth=1.2)
    if is_logarithmic(counts[np.isfinite(counts)]):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_ylabel(f"blocks at {history.at}", parse_math=False)
