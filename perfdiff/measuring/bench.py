"""The bench of one comparison: what carries its builds and runs out, whatever is built and run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from perfdiff.build.cache import BuildCache
from perfdiff.collect.built.workshop import Workshop
from perfdiff.collect.execution.executor import Executor
from perfdiff.collect.runs import workloads
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.inputs import InputFiles
from perfdiff.collect.runs.targets import Targets
from perfdiff.collect.serving.services import Services
from perfdiff.collect.trees.upkeep import Upkeep
from perfdiff.config import WorkloadConfig
from perfdiff.languages.packs import Packs
from perfdiff.progress import Stopwatch
from perfdiff.records.schema import Point, Side
from perfdiff.request import Request
from perfdiff.revisions.pins import PinnedPair

RECORDS = 10_000  # single calls kept per function and side; the models gain nothing from more


@dataclass(frozen=True, slots=True)
class Bench:
    """The tools of one comparison: the request, and the folders and services that carry it out."""

    request: Request
    pins: PinnedPair
    cache: BuildCache
    room: Path
    packs: Packs
    executor: Executor
    progress: Stopwatch
    sides: tuple[Side, ...] = tuple(Side)
    upkeep: Upkeep = field(default_factory=Upkeep)
    inputs: InputFiles = field(init=False)  # as they are from now on
    services: Services = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "services", self.request.services)
        object.__setattr__(self, "inputs", InputFiles.seen(self.request.repository, self.request.config.workloads))

    def for_workloads(self, workloads: tuple[WorkloadConfig, ...]) -> Bench:
        """Return the same tools for other workloads."""
        return replace(self, request=replace(self.request, config=replace(self.request.config, workloads=workloads)))

    @property
    def points(self) -> tuple[Point, ...]:
        """Return all workload points."""
        return workloads.points(self.request.config.workloads, self.request.config.services)

    @property
    def reservoir(self) -> int:
        """Return how many calls a function keeps per run."""
        runs = sum(workloads.runs_at(self.request.config.workloads, self.points).values())
        return min(self.request.config.probes.samples, max(1, RECORDS // runs))

    def collector(self, targets: Targets) -> Collector:
        """Return the collector that makes runs of these targets."""
        return Collector(
            targets=targets,
            workloads={workload.name: workload for workload in self.request.config.workloads},
            environment=self.request.inherited,
            executor=self.executor,
            room=self.room,
            seed=self.request.config.compare.seed,
            upkeep=self.upkeep,
            services=self.services,
            inputs=self.inputs,
            slow=self.progress.note,
        )

    @property
    def workshop(self) -> Workshop:
        """Return the workshop that builds both sides."""
        return Workshop(
            pins={side: self.pins.base if side is Side.BASE else self.pins.head for side in self.sides},
            config=self.request.config.build,
            environment=self.request.environment,
            cache=self.cache,
            root=self.request.cache,
            plans=self.room,
            packs=self.packs,
            progress=self.progress,
            deadline=self.request.deadline,
        )
