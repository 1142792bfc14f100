"""Counted runs of one pair of builds, and what they recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from perfdiff.collect.counts import counting
from perfdiff.collect.recordings.assembly import Assembly
from perfdiff.collect.recordings.hotspots import HotSpots
from perfdiff.collect.recordings.lasting import LastingRuns
from perfdiff.collect.recordings.library import Departures
from perfdiff.records import left_open
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Run, Side


@dataclass(slots=True)
class GatheredCounts:
    """What was counted so far; `is_alone` while no process had a second thread."""

    assembly: Assembly
    runs: list[Run] = field(default_factory=list)
    spots: HotSpots = field(default_factory=HotSpots)
    library: Departures = field(default_factory=Departures)
    lasting: LastingRuns = field(default_factory=LastingRuns)
    is_alone: bool = True

    def add(self, run: Run, recordings: Iterable[Recording]) -> None:
        """Add one run with the recordings of its processes."""
        recordings = list(recordings)
        self.runs.append(replace(run, left_open=left_open.of_run([recording.left_open for recording in recordings])))
        self.assembly.add(run, recordings)
        self.spots.add(run, recordings)
        self.library.add(run, recordings)
        self.lasting.add(run, recordings)
        self.is_alone = self.is_alone and all(recording.threads <= 1 for recording in recordings)

    @property
    def repeats(self) -> bool:
        """Return whether a lone thread counted the same in all runs of each point and side."""
        return self.is_alone and counting.repeats(self.assembly.totals(), self.runs)

    @property
    def calls(self) -> dict[int, float]:
        """Return the most calls of each function in a run."""
        totals = self.assembly.totals()
        most: dict[int, float] = {}
        for function, count in zip(totals.function.tolist(), totals.calls.tolist(), strict=True):
            most[function] = max(count, most.get(function, 0.0))
        return most

    @property
    def starts(self) -> frozenset[int]:
        """Return the functions that threads start with."""
        edges = self.assembly.edges()
        return frozenset(edges.callee[edges.caller == 0].tolist())

    @property
    def called(self) -> dict[tuple[int, Side], frozenset[int]]:
        """Return the functions that were called, by point and side."""
        totals, cells = self.assembly.totals(), {run.id: (run.point, run.side) for run in self.runs}
        functions: dict[tuple[int, Side], set[int]] = {cell: set() for cell in cells.values()}
        for run, function, calls in zip(totals.run.tolist(), totals.function.tolist(), totals.calls.tolist(), strict=True):
            if calls:
                functions[cells[run]].add(function)
        return {cell: frozenset(called) for cell, called in functions.items()}
