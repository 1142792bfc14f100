"""The page of a history: what functions cost over revisions, drawn one at a time, and a table of all that is complete without its script.

Ten thousand revisions of five hundred functions are 27 MB of figures, 32 bits each. So each function's stand in an element of its own,
which the script reads when the function is drawn, and lines in the table have as many points as they have pixels.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff import units
from perfdiff.analysis.annotations.profiles import METRIC, Profiles
from perfdiff.analysis.series import GROWTH, Cost, FunctionHistory
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Revision
from perfdiff.report import history, profile, wording
from perfdiff.report.blocks import Items
from perfdiff.report.page import asset, environment, policy
from perfdiff.report.printable import printable_values

_WIDTH, _HEIGHT, _PADDING = 120, 24, 2  # pixels of a line in the table


@dataclass(frozen=True, slots=True)
class PlottedChange:
    """A change point: at which of the revisions, and in words."""

    at: int
    says: str
    is_rise: bool


@dataclass(frozen=True, slots=True)
class CostSeries:
    """A cost over revisions in a unit of `units.quantity` (`ns`, `bytes`, "" for numbers): (revisions,), NaN where one has none."""

    name: str
    place: str
    unit: str
    values: Floats
    changes: tuple[PlottedChange, ...]

    @property
    def ends(self) -> tuple[float, float] | None:
        """Return the first and the last cost, None where there is none."""
        measured = self.values[np.isfinite(self.values)]
        return (float(measured[0]), float(measured[-1])) if len(measured) else None

    @property
    def ratio(self) -> float | None:
        """Return the last cost over the first, None where either is nothing."""
        return self.ends[1] / self.ends[0] if self.ends and min(self.ends) > 0 else None

    @property
    def says(self) -> str:
        """Return the first and the last cost in words."""
        return " → ".join(units.quantity(value, self.unit) for value in self.ends) if self.ends else wording.ABSENT

    @property
    def line(self) -> str:
        """Return the path of a small picture: the cost from 0 up, over revisions, at most two points a pixel."""
        places = np.flatnonzero(np.isfinite(self.values))
        if not len(places):
            return ""
        columns = np.rint(_PADDING + places / max(len(self.values) - 1, 1) * (_WIDTH - 2 * _PADDING)).astype(int)
        starts = np.flatnonzero(np.diff(columns, prepend=-1))
        values = self.values[places]
        least, most = (extreme.reduceat(values, starts) for extreme in (np.minimum, np.maximum))
        scale = (_HEIGHT - 2 * _PADDING) / (most.max() or 1.0)
        points = (
            f"{x} {_HEIGHT - _PADDING - cost * scale:.1f}" for x, *both in zip(columns[starts], least, most, strict=True) for cost in both
        )
        return f"M{'L'.join(dict.fromkeys(points))}"

    @property
    def data(self) -> dict[str, object]:
        """Return what the script draws: costs as 32-bit numbers, the lowest byte first, NaN where there is none."""
        return {
            "name": self.name,
            "unit": self.unit,
            "values": base64.b64encode(self.values.astype("<f4").tobytes()).decode(),
            "changes": [[change.at, change.says, change.is_rise] for change in self.changes],
        }


@dataclass(frozen=True, slots=True)
class PageHeading:
    """What stands above: the command that was asked, what costs are of, and the answer."""

    command: str
    costs: str
    says: str


def render(value: Profiles | FunctionHistory) -> str:
    """Return the page of what `profile` or `log` found out over several revisions."""
    clean: Profiles | FunctionHistory = printable_values(value)
    if isinstance(clean, Profiles):
        says, remarks, revisions, series = profile.answer(clean), profile.remarks(clean), clean.revisions, _of_profiles(clean)
        return page(PageHeading("profile", "own time in one run of each workload point", says), revisions, list(series), list(remarks))
    costs = "growth of what it executes" if clean.feature else "cost of a call at the same inputs"
    heading = PageHeading("log", costs, history.answer(clean))
    return page(heading, [entry.revision for entry in clean.entries], list(_of_history(clean)), list(history.remarks(clean)))


def _of_profiles(profiles: Profiles) -> Iterator[CostSeries]:
    totals = [(profile.self_ns, profile.peak_bytes) if profile else (math.nan, math.nan) for profile in profiles.profiles]
    own_ns, peak_bytes = np.array(totals).T
    yield CostSeries("all functions", "", "ns", own_ns, ())
    yield CostSeries("peak memory of a run", "", "bytes", peak_bytes, ())
    only = profiles.profiles[0] if len(profiles.revisions) == 1 else None
    for line in only.lines if only else ():
        yield CostSeries(line.info.name, wording.place(line.info), "ns", np.array([line.self_ns]), ())
    for growth in profiles.growths:
        costs = [entry.costs.get(METRIC) for entry in growth.history.entries]
        yield CostSeries(growth.name, growth.file, "ns", np.array(growth.self_ns, float), tuple(_changes(costs, METRIC, "a call ")))


def _of_history(function: FunctionHistory) -> Iterator[CostSeries]:
    for metric in history.metrics_of(function):
        costs = [entry.costs.get(metric) for entry in function.entries]
        unit = "" if metric == GROWTH else wording.metric_unit(metric)
        name = "exponent" if metric == GROWTH else wording.metric_says(metric)
        values = np.array([cost.value if cost else math.nan for cost in costs])
        yield CostSeries(f"{function.function}: {name}", function.file, unit, values, tuple(_changes(costs, metric, "")))


def _changes(costs: Sequence[Cost | None], metric: str, of: str) -> Iterator[PlottedChange]:
    for at, cost in enumerate(costs):
        if cost is not None and cost.step is not None:
            yield PlottedChange(at, of + history.step_says(cost.step, metric), cost.step.is_rise)


def page(heading: PageHeading, revisions: Sequence[Revision], series: Sequence[CostSeries], remarks: Sequence[Items]) -> str:
    """Return the page of these series, whose texts are printable."""
    style = "".join(asset(f"{name}.css") for name in ("report", "sorting", "history"))
    script = asset("sorting.js") + asset("history.js")
    return (
        environment(ratio=units.ratio)
        .get_template("history.html.j2")
        .render(
            heading=heading,
            series=series,
            names=[[wording.revision(revision), revision.summary] for revision in revisions],
            remarks=remarks,
            width=_WIDTH,
            height=_HEIGHT,
            style=style,
            script=script,
            policy=policy(style, script),
        )
    )
