"""Runs with probes: blocks of them until a look says that more could not change the answer, or runs or time are used up."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from perfdiff import processes
from perfdiff.collect.recordings.assembly import Assembly
from perfdiff.collect.runs import schedule, workloads
from perfdiff.collect.runs.schedule import Block
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.making import PairMaker
from perfdiff.measuring.site import Recipe
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.schema import Point, Run

FIRST_LOOK = 5  # blocks before the first look at the findings: five runs a side is the least the comparison can work with
NEXT_LOOK = 2  # times as many blocks before each next one


@dataclass(slots=True)
class TimedCalls:
    """The runs with probes, and the calls that they recorded; probes of `skipped` functions could not be built in.

    Runs of `long` points are so long that calls are timed there once a side.
    """

    bench: Bench
    maker: PairMaker
    long: tuple[Point, ...] = ()
    runs: list[Run] = field(default_factory=list)
    incomplete: list[Run] = field(default_factory=list)  # processes of these left no whole recording
    assembly: Assembly = field(default_factory=lambda: Assembly({}, {}))
    skipped: tuple[SkippedFunction, ...] = ()

    def make(self, recipe: Recipe, budget_s: float, is_settled: Callable[[Sequence[Run]], bool]) -> None:
        """Run the builds of a recipe in interleaved blocks until the findings are settled by the runs so far, or there are enough."""
        points, sides, maker = self.bench.points, self.bench.sides, self.maker
        variant = maker.fitted(recipe)
        self.skipped = variant.skipped
        self.assembly = Assembly(variant.probes, {point.id: point for point in points})
        blocks = self._blocks()
        missing = {block: len(pairs) for block, pairs in enumerate(blocks)}
        self.bench.progress.stage("measuring", sum(len(pair) for pairs in blocks for pair in pairs))
        look, started, done, is_over = FIRST_LOOK, time.monotonic(), 0, False

        def wanted() -> Iterator[Block]:
            yield from itertools.takewhile(lambda _: not is_over, blocks)

        for pair in maker.made(wanted(), planned=len(blocks) * len(points) * len(sides)):
            with processes.signals_held():  # what ends measuring finds all of a pair, or nothing
                for run, recordings in pair.runs:
                    self.runs.append(run)
                    self.incomplete += [run] * (not all(recording.complete for recording in recordings))
                    self.assembly.add(run, recordings)
            missing[pair.pair[0].block] -= 1
            if missing[pair.pair[0].block]:
                continue
            done += 1
            machines = maker.count
            if len(sides) > 1 and not is_over and FIRST_LOOK * machines <= done < len(blocks):
                is_look = done >= look * machines
                is_over = time.monotonic() - started > budget_s or (is_look and is_settled(self.runs))
                look = look * NEXT_LOOK if is_look else look

    def _blocks(self) -> list[Block]:
        """Return all blocks that there may be, of pairs of runs."""
        config, points = self.bench.request.config, self.bench.points
        runs_at = {point: self.maker.count * runs for point, runs in workloads.runs_at(config.workloads, points).items()}
        runs_at |= dict.fromkeys((point.id for point in self.long), 1)
        return [schedule.pairs(slots) for slots in schedule.timed_blocks(points, runs_at, config.compare.seed, self.bench.sides)]

    def unfinished(self) -> set[int]:
        """Return the functions that ran in incomplete runs alone, and of which no call ended there: nothing can be said of them."""
        totals = self.assembly.totals()
        ended = totals.function[(totals.wall_ns > 0) | ~np.isin(totals.run, [run.id for run in self.incomplete])]
        return {*totals.function.tolist()} - {*ended.tolist()}
