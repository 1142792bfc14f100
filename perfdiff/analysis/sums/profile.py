"""Where one revision spends its time: functions by their own cost, their calls, and what they cost with all that they call."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfdiff.analysis.sums.ledger import open_ledger
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import FunctionInfo, Revision, Run, Side


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """A function in one run of each workload point: sums over all its calls, medians over runs."""

    info: FunctionInfo
    calls: float
    self_ns: float
    wall_ns: float


@dataclass(frozen=True, slots=True)
class Profile:
    """The functions of a revision that ran, those with the largest own time first. `self_ns` is that of all of them.

    `peak_bytes` is the peak memory of a run, probes included: the median of the point with the largest, NaN where none was seen.
    """

    revision: Revision
    lines: tuple[ProfileLine, ...]
    peak_bytes: float

    @property
    def self_ns(self) -> float:
        """Return the own time of all functions."""
        return sum(line.self_ns for line in self.lines)

    def share(self, line: ProfileLine) -> float:
        """Return a function's part of all own time."""
        return line.self_ns / self.self_ns if self.self_ns > 0 else 0.0


def profile(recorded: RecordedExperiment) -> Profile:
    """Return the profile of what was recorded of base."""
    experiment = recorded.experiment
    ledger = open_ledger(experiment, (Side.BASE,))
    sums = [ledger.of_a_run(metric, Side.BASE).tolist() for metric in ("calls", "self_ns", "wall_ns")]
    lines = [
        ProfileLine(info, calls, max(own, 0.0), max(whole, 0.0))
        for info, calls, own, whole in zip(experiment.functions, *sums, strict=True)
        if calls > 0
    ]
    ordered = tuple(sorted(lines, key=lambda line: (-line.self_ns, -line.wall_ns, line.info.id)))
    return Profile(experiment.base, ordered, _peak_bytes(experiment.runs))


def _peak_bytes(runs: Sequence[Run]) -> float:
    peaks: dict[int, list[float]] = {}
    for run in runs:
        if run.side is Side.BASE and math.isfinite(run.max_rss_bytes):
            peaks.setdefault(run.point, []).append(run.max_rss_bytes)
    return max(map(statistics.median, peaks.values()), default=math.nan)


def calls_of(function: FunctionInfo, recorded: RecordedExperiment) -> float | None:
    """Return how often base calls a function in one run of each workload point, None where it never does."""
    alone = replace(recorded.experiment, functions=(function,))
    return open_ledger(alone, (Side.BASE,)).calls(function.id, Side.BASE)
