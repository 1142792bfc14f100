"""The plot of profiles: the functions of one revision as bars, or own time over revisions as lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfdiff import units
from perfdiff.analysis.annotations.profiles import Profiles
from perfdiff.analysis.sums.profile import Profile
from perfdiff.report import wording
from perfdiff.report.history_plot import name_revisions, width_for
from perfdiff.report.picture import COLOURS, saved, style, ticks
from perfdiff.report.printable import printable_values, shortened
from perfdiff.report.profile import largest

_MOST_BARS = 25
_INCHES_A_BAR = 0.28
_INCHES_OF_LINES = 5.0
_LONGEST_NAME = 40
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def draw(profiles: Profiles, kind: str) -> bytes:
    """Return a picture of `kind` `svg` or `png`; the same bytes each time. Texts of it are printable."""
    from matplotlib.figure import Figure

    clean: Profiles = printable_values(profiles)
    only = clean.profiles[-1] if len(clean.revisions) == 1 else None
    size = (9.0, 1.2 + _INCHES_A_BAR * min(len(only.lines), _MOST_BARS)) if only else (width_for(len(clean.revisions)), _INCHES_OF_LINES)
    with style():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        if only:
            _bars(axes, only)
        else:
            _lines(axes, clean)
        return saved(figure, kind)


def _bars(axes: Any, profile: Profile) -> None:
    """Draw each function's own time over its time with callees, the largest own time on top."""
    lines = profile.lines[:_MOST_BARS]
    places = np.arange(len(lines))
    axes.barh(places, [line.wall_ns for line in lines], height=0.8, color="0.85", label="with callees")
    axes.barh(places, [line.self_ns for line in lines], height=0.5, color=COLOURS[0], label="own time")
    axes.set_yticks(places, [shortened(line.info.name, _LONGEST_NAME) for line in lines], parse_math=False)
    axes.invert_yaxis()
    axes.set_title(f"{wording.revision(profile.revision)}, one run of each workload point", parse_math=False)
    ticks(axes.xaxis, "ns")
    _legend(axes)


def _lines(axes: Any, profiles: Profiles) -> None:
    """Draw the own time of the functions that take most, revision by revision; gaps where a revision has none."""
    for place, growth in enumerate(largest(profiles, len(COLOURS))):
        values = np.array([np.nan if ns is None else ns for ns in growth.self_ns])
        label = shortened(growth.name, _LONGEST_NAME)
        axes.plot(np.arange(len(values)), values, color=COLOURS[place], marker=_MARKERS[place], markersize=4, linewidth=1.2, label=label)
        for revision, step in growth.steps:
            x = profiles.revisions.index(revision)
            axes.annotate(
                units.ratio(step.ratio.value), (x, values[x]), textcoords="offset points", xytext=(4, 6), color=COLOURS[place], fontsize=8
            )
    axes.set_ylim(bottom=0)
    axes.set_ylabel("own time in one run of each workload point")
    name_revisions(axes, [revision.rev for revision in profiles.revisions])
    ticks(axes.yaxis, "ns")
    if profiles.growths:
        _legend(axes)


def _legend(axes: Any) -> None:
    """Tell the series apart beside the plot, where nothing is covered."""
    for text in axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5)).get_texts():
        text.set_parse_math(False)
