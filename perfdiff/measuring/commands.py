"""Pairs of runs of two commands in the user's folder: no revisions, no builds, and nothing is put back between runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perfdiff import processes
from perfdiff.collect.execution.executor import Executor
from perfdiff.collect.hosts import machine
from perfdiff.collect.runs import caveats, workloads
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import Block, Made
from perfdiff.collect.runs.targets import Target
from perfdiff.deadline import CutShortError
from perfdiff.measuring.wholepairs import WholePairs
from perfdiff.progress import Stopwatch
from perfdiff.records.recorded import RecordedExperiment, nothing
from perfdiff.records.schema import ComparedUnit, Edges, Experiment, Note, Phase, Point, Revision, Run, Side, Totals
from perfdiff.request import Request


@dataclass(frozen=True, slots=True)
class CommandBench:
    """The tools of a comparison of two commands, which run in the folder of the request."""

    request: Request
    commands: Mapping[Side, str]
    room: Path
    executor: Executor
    progress: Stopwatch

    @property
    def points(self) -> tuple[Point, ...]:
        """Return all workload points."""
        return workloads.points(self.request.config.workloads)

    def collector(self) -> Collector:
        """Return the collector that makes runs of the commands."""
        return Collector(
            targets={(Phase.PLAIN, side): Target(self.request.repository, None, command=text) for side, text in self.commands.items()},
            workloads={workload.name: workload for workload in self.request.config.workloads},
            environment=self.request.inherited,
            executor=self.executor,
            room=self.room,
            seed=self.request.config.compare.seed,
            slow=self.progress.note,
        )


@dataclass(slots=True)
class CommandPairs:
    """Makes pairs of runs of two commands, one run after the other, as both are in one folder and may write to the same files.

    What runs is as the user has it, and no build of perfdiff's, of which there could be other layouts: each pair counts as one of its own.
    """

    collector: Collector
    progress: Stopwatch
    count: int = 1

    def made(self, blocks: Iterable[Block], planned: int = 0) -> Iterator[Made]:
        """Yield each pair of the blocks when it is made; raise WorkloadError or StoreError."""
        assert not planned, "two commands have whole runs alone"
        for pair in (pair for block in blocks for pair in block):
            started = time.monotonic()
            slots = [replace(slot, layout=slot.block) for slot in pair]
            yield Made(slots, list(self.collector.collect(slots, self.progress.advance)), time.monotonic() - started)


def measured(bench: CommandBench) -> RecordedExperiment:
    """Return runs of both commands, in pairs until every point is decided, or the time is over.

    Raise WorkloadError where a command fails, CutShortError where nothing is known yet.
    """
    deadline, runs = bench.request.deadline, list[Run]()
    collector = bench.collector()
    pairs = WholePairs(bench, CommandPairs(collector, bench.progress), bench.request.config.measure.budget_for(0.0))
    try:
        pairs.make(runs)
        deadline.reached()
    except CutShortError:
        if {run.side for run in runs} != set(Side):
            raise
    notes = [*caveats.sizes_not_felt(runs, bench.points), *caveats.sizes_as_texts(bench.points), *collector.told]
    notes += caveats.processes_stay(processes.staying())
    if deadline.is_cut:
        notes.append(caveats.cut_short(deadline, bench.progress.current, ()))
    return RecordedExperiment(_experiment(bench, runs, notes), nothing)


def _experiment(bench: CommandBench, runs: Sequence[Run], notes: Sequence[Note]) -> Experiment:
    revisions = {side: Revision(text, None, "") for side, text in bench.commands.items()}
    nobody, no_sums = np.empty(0, dtype=np.int64), np.empty(0)
    return Experiment(
        base=revisions[Side.BASE],
        head=revisions[Side.HEAD],
        environment=replace(machine.environment(bench.request.environment), compiler=""),
        workloads=workloads.workloads(bench.request.config.workloads),
        points=bench.points,
        functions=(),
        skipped=(),
        runs=tuple(runs),
        totals=Totals(nobody, nobody, no_sums, no_sums, no_sums, {}),
        edges=Edges(nobody, nobody, nobody, no_sums, no_sums),
        notes=tuple(notes),
        stages=bench.progress.seconds,
        ended_by=bench.request.deadline.ended_by,
        compared=ComparedUnit.COMMANDS,
    )
