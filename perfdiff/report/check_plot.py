"""The plot of a check: how many functions, and how many runs, pass how often (HotCloud, Figure 2; Freud, Figure 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from perfdiff.analysis.annotations.assertion import Assertion
from perfdiff.analysis.annotations.sweep import Sweep
from perfdiff.analysis.series import CheckedAssertions
from perfdiff.records.arrays import Floats
from perfdiff.report import wording
from perfdiff.report.picture import COLOURS, saved, style
from perfdiff.report.printable import printable
from perfdiff.report.sweep import pass_rates

_INCHES = (9.0, 3.8)
_COLOUR = "#0072B2"
_INCHES_OF_SWEEP = (13.5, 4.2)
_LINES = ("-", "--", "-.", ":")
_MOST_BARS, _LONGEST_NAME = 12, 32


def draw(checked: CheckedAssertions[Any] | Sweep) -> str:
    """Return an SVG; the same bytes each time. Texts of it are printable."""
    return _draw_check(checked) if isinstance(checked, CheckedAssertions) else _draw_sweep(checked)


def _draw_check(checked: CheckedAssertions[Assertion]) -> str:
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=_INCHES, layout="constrained")
        left, right = figure.subplots(1, 2)
        _cumulative(left, by_function(checked), "of its runs pass", "functions")
        _cumulative(right, by_run(checked), "of its assertions pass", "runs")
        figure.suptitle(printable(f"{wording.revision(checked.revision)} against its annotations"), parse_math=False)
        return saved(figure, "svg").decode()


def _draw_sweep(sweep: Sweep) -> str:
    """Return a check at each delay of a service: Figure 2, and how many answers calls wait for."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=_INCHES_OF_SWEEP, layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        for number, step in enumerate(sweep.steps):
            look = {"color": COLOURS[number % len(COLOURS)], "linestyle": _LINES[number % len(_LINES)], "label": f"{step.delay_ms:g} ms"}
            _cumulative(left, by_function(step.checked), "of its runs pass", "functions", look)
            _cumulative(middle, by_run(step.checked), "of its assertions pass", "runs", look)
        left.legend(frameon=False, title="delay")
        _answers(right, sweep)
        revision = wording.revision(sweep.steps[0].checked.revision)
        figure.suptitle(printable(f"{revision} against its annotations, {sweep.service} late"), parse_math=False)
        return saved(figure, "svg").decode()


def _answers(axes: Any, sweep: Sweep) -> None:
    """Draw how many answers of the service a call of each function waits for, with its interval."""
    shown = sweep.sensitive[:_MOST_BARS][::-1]
    places = np.arange(len(shown))
    values = np.array([sensitivity.answers for sensitivity in shown])
    lower, upper = (np.abs(values - np.array([getattr(sensitivity, end) for sensitivity in shown])) for end in ("low", "high"))
    axes.barh(places, values, xerr=np.array([lower, upper]).reshape(2, -1), color=_COLOUR, height=0.6)
    axes.set_yticks(places, [printable(sensitivity.function)[-_LONGEST_NAME:] for sensitivity in shown], parse_math=False)
    axes.set_xlabel(printable(f"answers of {sweep.service} that a call waits for"), parse_math=False)


def by_function(checked: CheckedAssertions[Assertion]) -> Floats:
    """Return the share of runs that pass, for each function the least of its assertions', in rising order."""
    return np.sort(np.array(list(pass_rates(checked).values())))


def by_run(checked: CheckedAssertions[Assertion]) -> Floats:
    """Return the share of assertions that each run passes, in rising order."""
    passes: dict[int, list[bool]] = defaultdict(list)
    for assertion in checked.judged:
        for run, passed in assertion.passed:
            passes[run].append(passed)
    return np.sort(np.array([np.mean(run_passes) for run_passes in passes.values()]))


def _cumulative(axes: Any, shares: Floats, says: str, of: str, look: Mapping[str, Any] = MappingProxyType({"color": _COLOUR})) -> None:
    """Draw what share of things passes at most so often: the further to the right the steps stand, the better."""
    x, counts = np.unique(shares, return_counts=True)
    below = np.concatenate([[0.0], np.cumsum(counts) / max(len(shares), 1)])
    axes.step(100 * np.concatenate([[0.0], x, [1.0]]), 100 * np.append(below, below[-1]), where="post", linewidth=1.8, **look)
    axes.set_xlim(0, 102)
    axes.set_ylim(0, 105)
    axes.set_xlabel(f"% {says}, at most")
    axes.set_ylabel(f"% of {len(shares)} {of}")
