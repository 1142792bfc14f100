"""Pairs of runs that only count, at the same time on several CPUs: as nothing is timed, one of a pair need not wait for the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from perfdiff.collect.hosts import machine
from perfdiff.collect.runs import schedule
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import Slot
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Run, Side

Collected = list[tuple[Run, list[Recording]]]


@dataclass(slots=True)
class Abreast:
    """Makes the runs of both sides at the same time, where each has a CPU to itself and nothing that it counts can hang on the other.

    That is so for programs of one thread in trees of their own, without services, where a user has not denied it by `alone`. Which runs
    have several threads, fail beside each other, or print what those before did not, is seen when they are over: they are made again
    apart, as are all further ones of the workload.
    """

    collector: Collector
    _apart: set[str] = field(default_factory=set)

    def collect(self, slots: Sequence[Slot], runs: Sequence[Run], advance: Callable[[str], None]) -> Iterator[tuple[Run, list[Recording]]]:
        """Yield each run with what its processes recorded, in the order of `slots`; `runs` were made before.

        Raises WorkloadError and StoreError.
        """
        for pair in schedule.pairs(slots):
            alike = [[run for run in runs if (run.point, run.side) == (slot.point.id, slot.side)] for slot in pair]
            together = self._together(pair, alike, advance) if self._may_run_together(pair, alike) else None
            yield from together or self.collector.collect(pair, advance)

    def _may_run_together(self, pair: Sequence[Slot], alike: Sequence[Sequence[Run]]) -> bool:
        if pair[0].point.workload in self._apart or self.collector.is_served(pair[0]) or len(os.sched_getaffinity(0)) < len(pair):
            return False
        return may_meet(self.collector, pair, alike)

    def _together(self, pair: Sequence[Slot], alike: Sequence[Sequence[Run]], advance: Callable[[str], None]) -> Collected | None:
        """Return the runs of a pair made at the same time, None where they may have counted something else than alone."""
        messages: list[str] = []
        try:
            collected = self.collector.collect_together(pair, os.sched_getaffinity(0), messages.append)
        except DiskFilledError:
            raise
        except WorkloadError:  # it is told where it fails alone as well
            collected = []
        if not collected or any(_may_differ(run, recordings, before) for (run, recordings), before in zip(collected, alike, strict=True)):
            self._apart.add(pair[0].point.workload)
            return None
        for what in messages:
            advance(what)
        return collected


def may_meet(collector: Collector, pair: Sequence[Slot], alike: Sequence[Sequence[Run]]) -> bool:
    """Return whether the runs of both sides may be made at the same time at all: a user may deny it, trees and memory may not suffice.

    `alike` are runs of each of these slots that were made before, and tell their memory.
    """
    is_alone = collector.workloads[pair[0].point.workload].alone
    return len(pair) == len(Side) and not is_alone and collector.apart(pair) and machine.has_room(alike)


def prints_otherwise(run: Run, before: Iterable[Run]) -> bool:
    """Return whether a run printed something else than all of those before, which always printed the same."""
    printed = {earlier.output for earlier in before}
    return len(printed) == 1 and run.output not in printed


def _may_differ(run: Run, recordings: Sequence[Recording], before: Sequence[Run]) -> bool:
    """Return whether a run might count something else where nothing runs beside it."""
    return any(recording.threads > 1 for recording in recordings) or prints_otherwise(run, before)
