"""Where one revision spends its time: functions by their own cost, their calls, and what they cost with all that they call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.models.middle import median
from perfdiff.records.recorded import Recorded
from perfdiff.records.schema import Experiment, Floats, FunctionInfo, Phase, Revision, Side


@dataclass(frozen=True, slots=True)
class Line:
    """A function in one run of each workload point: sums over all its calls, medians over runs."""

    info: FunctionInfo
    calls: float
    self_ns: float
    wall_ns: float


@dataclass(frozen=True, slots=True)
class Profile:
    """The functions of a revision that ran, those with the largest own time first. `self_ns` is that of all of them."""

    revision: Revision
    lines: tuple[Line, ...]

    @property
    def self_ns(self) -> float:
        """Return the own time of all functions."""
        return sum(line.self_ns for line in self.lines)

    def share(self, line: Line) -> float:
        """Return a function's part of all own time."""
        return line.self_ns / self.self_ns if self.self_ns > 0 else 0.0


def profile(found: Recorded) -> Profile:
    """Return the profile of what was recorded of base."""
    experiment, totals = found.experiment, found.experiment.totals
    calls, own, whole = (_sums(experiment, values) for values in (totals.calls, totals.self_ns, totals.wall_ns))
    lines = [
        Line(info, calls[info.id], max(own[info.id], 0.0), max(whole[info.id], 0.0))
        for info in experiment.functions
        if calls.get(info.id, 0.0) > 0
    ]
    return Profile(experiment.base, tuple(sorted(lines, key=lambda line: (-line.self_ns, -line.wall_ns, line.info.id))))


def calls_of(function: int, found: Recorded) -> float:
    """Return how often base calls a function in one run of each workload point."""
    return _sums(found.experiment, found.experiment.totals.calls, function).get(function, 0.0)


def _sums(experiment: Experiment, values: Floats, only: int | None = None) -> dict[int, float]:
    """Return what each function, or one, adds up to in one run of each point; in a run without it, it adds up to 0."""
    totals = experiment.totals
    phases = {run.phase for run in experiment.runs}
    phase = Phase.TIMED if Phase.TIMED in phases else Phase.SURVEY
    wanted = totals.function == only if only is not None else np.ones(len(totals.function), dtype=bool)
    points: dict[int, list[int]] = {}
    for run in experiment.runs:
        if run.side is Side.BASE and run.phase is phase:
            points.setdefault(run.point, []).append(run.id)
    found: dict[int, float] = {}
    for runs in points.values():
        rows = np.flatnonzero(np.isin(totals.run, runs) & wanted)
        for function in np.unique(totals.function[rows]).tolist():
            mine = rows[totals.function[rows] == function]
            own = np.zeros(len(runs))
            own[: len(mine)] = np.nan_to_num(values[mine])
            found[function] = found.get(function, 0.0) + median(own)
    return found
