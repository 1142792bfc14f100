"""Pairs of whole runs at the same time, on one CPU: what the machine does to one of them, it does to the other.

Neighbours that share a core, a cache or memory slow a run down for milliseconds to seconds, which no order of runs evens out. Two runs that
take turns on one CPU, some milliseconds each, meet the same of it (duet benchmarking: Bulej, Horký, Tůma, Farquet and Prokopec 2020, who
use two cores; where two CPUs are threads of one core, as in many virtual machines, runs on both disturb each other).
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.waiting import has_several, points_where_head_waits, waits
from perfdiff.analysis.verdicts.ways import seem_apart
from perfdiff.collect.counts.abreast import Collected, may_meet, prints_otherwise
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import Slot
from perfdiff.config import CompareConfig
from perfdiff.errors import DiskFilledError, StraysError, WorkloadError
from perfdiff.records.schema import Note, Phase, Point, Run, Side

# Pairs of a point that are made one run after the other first: they tell whether its runs wait, how much memory they take, and whether
# they always print the same.
APART = 2
# Runs that take turns take as much CPU time as alone, or more, and last twice as long; those that a clock ends last as long on half of it.
# So do some while a busy machine happens to be twice as fast: so many pairs must show it, against runs before and after them, before any
# shows that its runs do their work in any case.
DOES_LESS, DOES_ALL, LASTS_AS_LONG = 0.75, 0.9, 1.25
SIGNS = 3
SEVERAL_SIGNS = 2  # runs that show several tasks at work
_SHARES = "they seem to share something outside their trees"
_CLOCKED = ("takes much less CPU time", "it seems to end by the clock")


@dataclass(slots=True)
class Duets:
    """Makes pairs of runs, both at the same time unless the workload does not allow it or says `alone`.

    Runs that wait, head's more than base's, or use several threads, would be others on one CPU. Threads of a runtime's own, such as those
    that compile, are none of the program: a run with `Target.calm` tells whether it has others, and what a machine that is busy makes it
    wait is no waiting. Where runs are made of requests, both sides' are sent in turns: a server may wait, as nobody uses the CPU meanwhile.
    Runs that fail together, or print what they did not print before, share something outside their trees, and what takes much less CPU time
    several times, or once where it prints something else, ends by the clock: the workload's further runs are made apart, in the latter case
    marked so, and a note tells. They are made apart as well where runs leave processes of which nobody can tell whose they are.
    """

    collector: Collector
    config: CompareConfig = field(default_factory=CompareConfig)
    notes: tuple[Note, ...] = ()
    _alone: set[str] = field(default_factory=set)
    _clocks: dict[str, int] = field(default_factory=dict)  # signs that one ends runs, by workload
    _works: set[str] = field(default_factory=set)  # workloads whose runs no clock ends
    _calm: dict[int, bool] = field(default_factory=dict)  # by point
    _points: dict[int, Point] = field(default_factory=dict)  # of pairs so far, by their numbers

    def collect(self, pair: Sequence[Slot], runs: Sequence[Run], advance: Callable[[str], None]) -> Collected:
        """Return the runs of a pair with what they recorded, after those of `runs`; raise WorkloadError or StoreError."""
        before = [run for run in runs if run.phase is Phase.PLAIN and run.point == pair[0].point.id and not run.together]
        is_duet = self._may_run_together(pair, before, runs) and not self._wants_alone(pair, before, runs)
        together = self._together(pair, before, advance) if is_duet else None
        if together and self._has_several(pair, together, runs):
            together = None
        if together and not self._seems_clocked(pair, together, before):
            if not self._waits_at_times(pair, together, runs):
                return together
            together = None
        apart = list(self.collector.collect(pair, advance))
        name = pair[0].point.workload
        if together and self._seems_clocked(pair, together, [run for run, _ in apart]):
            self._clocks[name] = self._clocks.get(name, 0) + 1
            if self._clocks[name] == SIGNS:
                self._part(pair[0], *_CLOCKED)
        return [(replace(run, clocked=self._clocks.get(name, 0) == SIGNS), recording) for run, recording in apart]

    def _may_run_together(self, pair: Sequence[Slot], before: Sequence[Run], runs: Sequence[Run]) -> bool:
        by_side = [[run for run in before if run.side is side] for side in Side]
        if pair[0].point.workload in self._alone or not may_meet(self.collector, pair, by_side):
            return False
        if not _may_bind() or any(len(runs) < APART for runs in by_side):
            return False
        if self.collector.takes_turns(pair[0]):
            return all(run.cpu_ns <= run.wall_ns for run in before)
        if self._head_waits(pair, runs):
            return False
        return not (any(waits(runs) for runs in by_side) or _have_several(before)) or self._is_one_thread(pair)

    def _wants_alone(self, pair: Sequence[Slot], before: Sequence[Run], runs: Sequence[Run]) -> bool:
        """Return whether a pair is made alone to tell whether the program does other work then."""
        whole = [run for run in runs if run.phase is Phase.PLAIN and run.point == pair[0].point.id]
        if not seem_apart(whole):
            return False
        return pair[0].phase is not Phase.PLAIN or 2 * len(before) < len(whole)

    def _head_waits(self, pair: Sequence[Slot], runs: Sequence[Run]) -> bool:
        """Return whether head's runs of a workload wait more than base's so far; then the others are made apart, and timed as well."""
        point = pair[0].point
        self._points[point.id] = point
        alike = [other for other in self._points.values() if other.workload == point.workload]
        if point.id not in points_where_head_waits(alike, runs, self.config):
            return False
        self._alone.add(point.workload)
        return True

    def _has_several(self, pair: Sequence[Slot], together: Collected, runs: Sequence[Run]) -> bool:
        """Return whether runs made together show that the program has several tasks of its own; then the others are made apart.

        On a busy machine they take no more CPU time than one would, and only those that wait for a CPU tell.
        """
        alike = [run for run in runs if run.phase is Phase.PLAIN and run.point == pair[0].point.id]
        if not _have_several([*alike, *(run for run, _ in together)]) or self._is_one_thread(pair):
            return False
        self._alone.add(pair[0].point.workload)
        return True

    def _waits_at_times(self, pair: Sequence[Slot], together: Collected, runs: Sequence[Run]) -> bool:
        """Return whether runs made together show that the program waits now and then; then the others are made apart, and timed as well."""
        alike = [run for run in runs if run.phase is Phase.PLAIN and run.point == pair[0].point.id and run.together]
        duets = [*alike, *(run for run, _ in together)]
        if self.collector.takes_turns(pair[0]) or not any(waits([run for run in duets if run.side is side]) for side in Side):
            return False
        self._alone.add(pair[0].point.workload)
        return True

    def _is_one_thread(self, pair: Sequence[Slot]) -> bool:
        """Return whether the program of a point neither waits nor uses several threads itself, where its runtime has threads of its own."""
        point = pair[0].point.id
        if point not in self._calm:
            try:
                runs = [self.collector.calmed(slot) for slot in pair]
            except DiskFilledError:
                raise
            except WorkloadError:  # options of its own that cannot stand beside those
                runs = [None]
            self._calm[point] = all(run is not None and _keeps_one_cpu_busy(run) for run in runs)
        return self._calm[point]

    def _together(self, pair: Sequence[Slot], before: Sequence[Run], advance: Callable[[str], None]) -> Collected | None:
        """Return the runs of a pair made at the same time, None where they disturbed each other by more than their speed."""
        cpu = random.Random(f"{self.collector.seed}:{pair[0].point.id}:{pair[0].block}").choice(sorted(os.sched_getaffinity(0)))
        try:
            collected = self.collector.collect_together(pair, {cpu}, advance)
        except DiskFilledError:
            raise
        except StraysError as error:
            self._part(pair[0], f"leaves processes ({error.names})", "nobody can tell which of the two runs started them")
            return None
        except WorkloadError as error:
            self._part(pair[0], f"fails ({error})", _SHARES)
            return None
        plain = [(run, [earlier for earlier in before if earlier.side is run.side]) for run, _ in collected if run.phase is Phase.PLAIN]
        if any(prints_otherwise(run, alone) for run, alone in plain):
            is_clocked = self._seems_clocked(pair, collected, before)
            if is_clocked:  # what it prints is how often it did its work
                self._clocks[pair[0].point.workload] = SIGNS
            self._part(pair[0], *(_CLOCKED if is_clocked else ("prints something else", _SHARES)))
            return None
        return collected

    def _seems_clocked(self, pair: Sequence[Slot], together: Collected, alone: Sequence[Run]) -> bool:
        """Return whether whole runs made together lasted as long as those `alone`, on much less CPU time; learn where they did it all."""
        name = pair[0].point.workload
        if name in self._works or together[0][0].phase is not Phase.PLAIN or self.collector.takes_turns(pair[0]):
            return False
        runs = [(run, [other for other in alone if other.side is run.side]) for run, _ in together]
        if all(run.cpu_ns >= DOES_ALL * min(other.cpu_ns for other in others) for run, others in runs):
            self._works.add(name)
        return all(_ended_by_the_clock(*comparison) for comparison in runs)

    def _part(self, slot: Slot, what: str, why: str) -> None:
        name = slot.point.workload
        self._alone.add(name)
        text = (
            f"workload `{name}` {what} where base and head run at the same time: {why}, so its runs are made one after the other, which "
            "takes more of them; `alone = true` spares the attempt"
        )
        self.notes += (Note("runs-disturb-each-other", text),)


def _have_several(runs: Sequence[Run]) -> bool:
    """Return whether several tasks could work at the same time in runs: one alone may have been looked at as it started another program."""
    return sum(has_several(run.concurrency) for run in runs) >= SEVERAL_SIGNS


def _ended_by_the_clock(run: Run, alone: Sequence[Run]) -> bool:
    """Return whether a run beside another one lasted as long as those alone, and got much less CPU time."""
    least_ns, last_ns = min(other.cpu_ns for other in alone), min(other.wall_ns for other in alone)
    return run.cpu_ns < DOES_LESS * least_ns and run.wall_ns < LASTS_AS_LONG * last_ns


def _keeps_one_cpu_busy(run: Run) -> bool:
    """Return whether a run took as long as its CPU time, but for what others made it wait for a CPU, and had one task to do."""
    if has_several(run.concurrency):
        return False
    return (1 - POLICY.waits) * (1 - (run.waited or 0.0)) * run.wall_ns <= run.cpu_ns <= (1 + POLICY.waits) * run.wall_ns


@functools.cache
def _may_bind() -> bool:
    """Return whether processes may be bound to CPUs: some sandboxes forbid it."""
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except OSError:
        return False
    return True
