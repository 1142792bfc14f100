"""The plot of a check: how many functions, and how many runs, pass how often (HotCloud, Figure 2; Freud, Figure 4)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from perfdiff.analysis.annotations.checking import Checked
from perfdiff.records.schema import Floats
from perfdiff.report import wording
from perfdiff.report.picture import saved, style
from perfdiff.report.printable import printable

_INCHES = (9.0, 3.8)
_COLOUR = "#0072B2"


def draw(checked: Checked) -> str:
    """Return an SVG; the same bytes each time. Texts of it are printable."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=_INCHES, layout="constrained")
        left, right = figure.subplots(1, 2)
        _cumulative(left, by_function(checked), "of its runs pass", "functions")
        _cumulative(right, by_run(checked), "of its assertions pass", "runs")
        figure.suptitle(printable(f"{wording.revision(checked.revision)} against its annotations"), parse_math=False)
        return saved(figure, "svg").decode()


def by_function(checked: Checked) -> Floats:
    """Return the share of runs that pass, for each function the least of its assertions', in rising order."""
    least: dict[str, float] = {}
    for each in checked.judged:
        if each.pass_rate is not None:
            least[each.annotation.function] = min(each.pass_rate, least.get(each.annotation.function, 1.0))
    return np.sort(np.array(list(least.values())))


def by_run(checked: Checked) -> Floats:
    """Return the share of assertions that each run passes, in rising order."""
    passes: dict[int, list[bool]] = defaultdict(list)
    for each in checked.judged:
        for run, passed in each.passed:
            passes[run].append(passed)
    return np.sort(np.array([np.mean(each) for each in passes.values()]))


def _cumulative(axes: Any, shares: Floats, says: str, of: str) -> None:
    """Draw what share of things passes at most so often: the further to the right the steps stand, the better."""
    x, counts = np.unique(shares, return_counts=True)
    below = np.concatenate([[0.0], np.cumsum(counts) / max(len(shares), 1)])
    axes.step(100 * np.concatenate([[0.0], x, [1.0]]), 100 * np.append(below, below[-1]), where="post", color=_COLOUR, linewidth=1.8)
    axes.set_xlim(0, 102)
    axes.set_ylim(0, 105)
    axes.set_xlabel(f"% {says}, at most")
    axes.set_ylabel(f"% of {len(shares)} {of}")
