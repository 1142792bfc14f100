"""Runs that count: of all functions, the shortest point first and until counts differ, or of those that were chosen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiff.analysis.counts.work import does_same_work
from perfdiff.collect.choosing import census
from perfdiff.collect.counts import counting
from perfdiff.collect.counts.abreast import Abreast
from perfdiff.collect.counts.counted import GatheredCounts
from perfdiff.collect.recordings.assembly import Assembly
from perfdiff.collect.recordings.lasting import SideCode
from perfdiff.collect.runs import schedule
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import Slot
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.measuring import coverage, variants
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site, Variant
from perfdiff.records.lasting import LastingMemory
from perfdiff.records.schema import Experiment, HotSpot, LibraryCalls, Note, Phase, Point, Run


@dataclass(frozen=True, slots=True)
class CountsOfRuns:
    """What counted runs recorded."""

    runs: Sequence[Run] = ()
    assembly: Assembly | None = None
    spots: tuple[HotSpot, ...] = ()
    library: LibraryCalls | None = None
    lasting: tuple[LastingMemory, ...] = ()


@dataclass(slots=True)
class CountedRuns:
    """Makes runs that count, within the budget of counts."""

    bench: Bench
    collector: Collector
    _abreast: Abreast = field(init=False)

    def __post_init__(self) -> None:
        self._abreast = Abreast(self.collector)

    def of_all(self, site: Site, before: Experiment) -> tuple[Site, CountsOfRuns] | None:
        """Count all functions if the budget allows it at all points; return None unless all counts are the same: others are to be chosen.

        `before` are the runs without counts. Shorter ones come first, as counts that differ mostly do so at small inputs, too: nothing is
        kept from the first that do, or where all points would take longer than the budget at the pace of those before.
        """
        points, budget_s = self.bench.points, self._budget_s
        if self._affordable(site, before.runs, points) != points:
            return None
        variant = variants.census(self.bench, site)
        if not variant.is_whole:
            return None
        ordered = counting.shortest_first(points, before.runs)
        calls, counted = (_nothing_counted(variant, points) for _ in range(2))
        started = time.monotonic()
        self.bench.progress.stage("counting all functions", (1 + len(points) * counting.LEAST_ROUNDS) * len(self.bench.sides))
        if self._failure(variant, self._slots(ordered[:1], 0), before.runs, calls):
            return None
        variant = variants.counting_apart(self.bench, variant, _apart(site, calls, ordered[0], before.runs))
        for done, point in enumerate(ordered, 1):
            blocks = (self._slots([point], block) for block in range(counting.LEAST_ROUNDS))
            if any(self._failure(variant, slots, before.runs, counted) for slots in blocks):
                return None
            is_late = time.monotonic() - started > budget_s * counting.share(ordered[:done], points, before.runs)
            if (is_late and done < len(ordered)) or not self._is_same_work(site, before, counted, done):
                return None
        return coverage.answered_by_counts(self.bench, site, variant, counted, self.collector), self._kept(counted, variant, site)

    def of_chosen(self, site: Site, before: Sequence[Run], at: Sequence[Point]) -> tuple[CountsOfRuns | None, tuple[Note, ...]]:
        """Count the chosen functions at some points within the budget, until counts of one thread repeat; discard all if a run fails."""
        budget_s, points = self._budget_s, self._affordable(site, before, at)
        is_of_time = budget_s < self.bench.request.config.counters.budget_s
        variant = variants.counted(self.bench, site)
        if not variant.targets:
            return None, variant.notes
        notes = (*variant.notes, *counting.left_out(at, points, budget_s, site.slowdown, is_of_time=is_of_time))
        if not points:
            return None, notes
        counted = _nothing_counted(variant, points)
        self.bench.progress.stage("counting", len(points) * len(self.bench.sides) * counting.MOST_ROUNDS)
        started = time.monotonic()
        for block in range(counting.MOST_ROUNDS):
            if failure := self._failure(variant, self._slots(points, block), before, counted):
                return None, (*notes, counting.failed(failure))
            is_enough = block + 1 >= counting.LEAST_ROUNDS and counted.repeats
            if is_enough or (time.monotonic() - started) * (block + 2) / (block + 1) > budget_s:
                break
        return self._kept(counted, variant, site), notes

    def _affordable(self, site: Site, runs: Sequence[Run], at: Sequence[Point]) -> tuple[Point, ...]:
        """Return those of some points whose counted runs the budget allows."""
        config_s, plain_runs = self.bench.request.config.counters.budget_s, site.slowdown * counting.LEAST_ROUNDS
        usual, points = (
            counting.affordable(at, runs, budget_s, len(self.bench.sides), plain_runs) for budget_s in (config_s, self._budget_s)
        )
        self.bench.request.deadline.is_short |= len(points) < len(usual)
        return points

    @property
    def _budget_s(self) -> float:
        """Return how many seconds counted runs may take, now."""
        return min(self.bench.request.config.counters.budget_s, max(0.0, self.bench.request.deadline.left_s))

    def _slots(self, points: Sequence[Point], block: int) -> Sequence[Slot]:
        return schedule.counted_block(points, block, self.bench.request.config.compare.seed, self.bench.sides)

    def _failure(self, variant: Variant, slots: Sequence[Slot], before: Sequence[Run], counted: GatheredCounts) -> str:
        """Make a block of counted runs; return the reason if one of them failed, else ""."""
        self.collector.targets = {**self.collector.targets, **variant.targets}
        try:
            for run, recordings in self._abreast.collect(slots, before, self.bench.progress.advance):
                if not all(recording.complete for recording in recordings):
                    return f"a process of {run.side} was killed or could not write on; let it end by exit or return"
                counted.add(run, recordings)
        except DiskFilledError:
            raise  # what fills the disk is cleared away, and nothing can be kept
        except WorkloadError as error:
            return str(error)
        return ""

    def _is_same_work(self, site: Site, before: Experiment, counted: GatheredCounts, points: int) -> bool:
        """Return whether all functions have the same counts on both sides at that many points."""
        functions = site.subjects.infos(frozenset().union(*counted.called.values()))
        called = counted.library.named(self.bench.packs.compiled)
        runs, counts = tuple(counted.runs), counted.assembly.totals()
        experiment = replace(before, functions=functions, runs=runs, counts=counts, library=called)
        return does_same_work(experiment, points, self.bench.request.config.compare)

    def _kept(self, counted: GatheredCounts, variant: Variant, site: Site) -> CountsOfRuns:
        compiled = self.bench.packs.compiled
        spots, library = counted.spots.named(compiled, variant.built), counted.library.named(compiled)
        codes = {
            side: SideCode(built.tree, site.plain[side].tree, variant.probes[side], site.subjects.by_file(side))
            for side, built in variant.built.items()
        }
        lasting = counted.lasting.named(compiled, codes)
        return CountsOfRuns(counted.runs, counted.assembly, spots, library, lasting)


def _nothing_counted(variant: Variant, points: Sequence[Point]) -> GatheredCounts:
    return GatheredCounts(Assembly(variant.probes, {point.id: point for point in points}, counted=True))


def _apart(site: Site, calls: GatheredCounts, point: Point, runs: Sequence[Run]) -> frozenset[int]:
    """Return the functions whose own counts are worth their cost, given their numbers of calls at a point."""
    cpu_ns = float(np.median([run.cpu_ns for run in runs if run.phase is Phase.PLAIN and run.point == point.id]))
    return census.counted_apart(calls.calls, calls.starts, site.subjects.suspects, cpu_ns)
