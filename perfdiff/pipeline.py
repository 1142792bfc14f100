"""The whole method, from two revisions to findings.

revisions → plain builds → changed functions → survey → probes within the budget → interleaved runs → models and comparison
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfdiff import __version__, analysis
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.build.builder import Built
from perfdiff.build.cache import BuildCache
from perfdiff.collect import machine, schedule, survey, workloads
from perfdiff.collect.assembly import Assembly
from perfdiff.collect.collector import Collector, Target
from perfdiff.collect.executor import Executor, ProcessExecutor
from perfdiff.collect.subjects import Subjects
from perfdiff.collect.survey import Choice, Survey
from perfdiff.collect.workshop import Probes, Workshop, dropped
from perfdiff.config import Config
from perfdiff.errors import RecordingError
from perfdiff.languages.c.pack import C
from perfdiff.languages.protocol import Language, Program
from perfdiff.progress import Progress
from perfdiff.records import codec, plan, store
from perfdiff.records.schema import Experiment, Floats, Note, Phase, Point, Run, SampleTable, Side, Skipped
from perfdiff.revisions.overlay import overlay_digest
from perfdiff.revisions.pins import PinnedPair, resolve
from perfdiff.revisions.repository import find_repository

SURVEY_ROUNDS = 2
FIRST_LOOK = 5  # blocks before the first look at the findings: five runs a side is the least the comparison can work with
RECORDS = 10_000  # single calls kept per function and side; the models gain nothing from more


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for. `environment` is handed to builds and workloads."""

    repository: Path
    revisions: tuple[str, ...]
    config: Config
    cache: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The findings, and the recorded calls behind them."""

    findings: Findings
    samples: Callable[[int, Side], SampleTable | None]


@dataclass(frozen=True, slots=True)
class Measurement:
    """What is ready to be measured: the chosen functions, the built trees, and all that could not be had."""

    subjects: Subjects
    choices: tuple[Choice, ...]
    probes: Probes
    targets: Mapping[tuple[Phase, Side], Target]
    skipped: tuple[Skipped, ...]
    notes: tuple[Note, ...]


def compare(request: Request, progress: Progress, *, language: Language | None = None, executor: Executor | None = None) -> Outcome:
    """Compare two revisions and return what was found; raise PerfdiffError where that cannot be done."""
    request.cache.mkdir(parents=True, exist_ok=True)
    progress.stage("resolving revisions", None)
    pins = resolve(find_repository(request.repository), request.revisions, snapshots=request.cache / "snapshots")
    folder = request.cache / "experiments" / _experiment_key(request, pins)
    if not store.exists(folder):
        with BuildCache(request.cache) as cache, tempfile.TemporaryDirectory(dir=request.cache, prefix=".recordings-") as room:
            bench = Bench(request, pins, cache, Path(room), language or C(), executor or ProcessExecutor(), progress)
            bench.measure(bench.prepare(), folder)
    _last_file(request.repository, request.cache).write_text(folder.name, encoding="utf-8")
    return _outcome(folder, request.config, progress)


def last(repository: Path, cache: Path, config: Config, progress: Progress) -> Outcome:
    """Return the outcome of the last comparison of a repository, analysed anew; raise RecordingError where there is none."""
    try:
        name = _last_file(repository, cache).read_text(encoding="utf-8")
    except OSError as error:
        raise RecordingError("this repository was not compared yet; run `perfdiff BASE HEAD` first", slug="no-comparison") from error
    return _outcome(cache / "experiments" / name, config, progress)


@dataclass(frozen=True, slots=True)
class Bench:
    """One comparison at work: what was asked, and where and with what it is carried out."""

    request: Request
    pins: PinnedPair
    cache: BuildCache
    room: Path
    language: Language
    executor: Executor
    progress: Progress

    def prepare(self) -> Measurement:
        """Build plainly, find what changed, survey, choose probes within the budget, build with them."""
        config = self.request.config
        workshop = self._workshop()
        plain = workshop.plain()
        programs = self._programs(plain)
        subjects = Subjects.number(self.language.match(programs[Side.BASE], programs[Side.HEAD]), self.language.name)
        probeable = subjects.probeable(config.probes.exclude)

        survey_probes = {side: subjects.survey_probes(side, probeable) for side in Side}
        surveyed = workshop.probed(Phase.SURVEY, survey_probes, plain)
        modes = {id_: plan.Entry.survey(conditions=bool(pair.change.is_suspect)) for id_, pair in probeable.items()}
        targets = workshop.targets(Phase.PLAIN, plain, {}, {}) | workshop.targets(Phase.SURVEY, surveyed, modes, survey_probes)
        seen = self._survey(targets, survey_probes)
        choices = survey.choose(seen, probeable, subjects.branch_counts(), overhead=config.probes.overhead)

        probes = {side: subjects.timed_probes(side, choices) for side in Side}
        timed = workshop.probed(Phase.TIMED, probes, plain)
        modes = {choice.id: plan.Entry.timed(period=choice.period, detail=choice.detail, reservoir=self._reservoir) for choice in choices}
        return Measurement(
            subjects=subjects,
            choices=choices,
            probes=probes,
            targets=targets | workshop.targets(Phase.TIMED, timed, modes, probes),
            skipped=(
                *(problem for program in programs.values() for problem in program.problems),
                *subjects.obstacles(config.probes.exclude),
                *subjects.untouched(seen.ran, probeable),
                *dropped(timed, probes),
            ),
            notes=tuple(dict.fromkeys((*self.pins.notes, *(note for built in plain.values() for note in built.notes)))),
        )

    def measure(self, measurement: Measurement, folder: Path) -> None:
        """Run interleaved blocks until the findings are settled or the configured number is reached; leave the experiment in `folder`."""
        config = self.request.config
        assembly = Assembly(measurement.probes, {point.id: point for point in self._points})
        collector = self._collector(measurement.targets)
        runs: list[Run] = []
        blocks = max(workload.runs for workload in config.workloads)
        self.progress.stage("measuring", None)
        for block in range(blocks):
            slots = schedule.timed_block(self._points_of(block), block, config.compare.seed)
            for run, recordings in collector.collect(slots, self.progress.advance):
                runs.append(run)
                assembly.add(run, recordings)
            if block + 1 in (FIRST_LOOK, blocks):
                store.save(folder, self._experiment(measurement, runs, assembly), assembly.tables())
                if block + 1 < blocks and settled(_outcome(folder, config, self.progress).findings, config):
                    break

    def _experiment(self, measurement: Measurement, runs: Sequence[Run], assembly: Assembly) -> Experiment:
        return Experiment(
            base=self.pins.base.revision,
            head=self.pins.head.revision,
            environment=machine.environment(self.request.environment),
            workloads=workloads.workloads(self.request.config.workloads),
            points=self._points,
            functions=measurement.subjects.infos({choice.id for choice in measurement.choices}),
            skipped=measurement.skipped,
            runs=tuple(runs),
            totals=assembly.totals(),
            edges=assembly.edges(),
            notes=(*measurement.notes, *_differing_outputs(runs, self._points)),
        )

    def _workshop(self) -> Workshop:
        return Workshop(
            pins={Side.BASE: self.pins.base, Side.HEAD: self.pins.head},
            config=self.request.config.build,
            environment=self.request.environment,
            cache=self.cache,
            root=self.request.cache,
            plans=self.room,
            language=self.language,
            progress=self.progress,
        )

    def _programs(self, plain: Mapping[Side, Built]) -> dict[Side, Program]:
        """Return the functions and declarations of both sides."""
        self.progress.stage("finding changed functions", len(Side))
        programs = {}
        for side in Side:
            programs[side] = self.language.index(plain[side].tree, plain[side].commands, depth=self.request.config.probes.depth)
            self.progress.advance(side)
        return programs

    def _survey(self, targets: Mapping[tuple[Phase, Side], Target], probes: Probes) -> Survey:
        """Run everything a few times with all functions probed, and once without any."""
        slots = schedule.survey_slots(self._points, SURVEY_ROUNDS, self.request.config.compare.seed)
        self.progress.stage("surveying", len(slots))
        assembly = Assembly(probes, {point.id: point for point in self._points})
        runs = []
        for run, recordings in self._collector(targets).collect(slots, self.progress.advance):
            runs.append(run)
            assembly.add(run, recordings)
        executions: dict[tuple[Side, int], Floats] = {
            (table.side, table.function): np.average(table.executed, axis=0, weights=table.weight) for table in assembly.tables()
        }
        return survey.summarise(runs, assembly.totals(), assembly.edges(), executions)

    def _collector(self, targets: Mapping[tuple[Phase, Side], Target]) -> Collector:
        return Collector(
            targets=targets,
            workloads={workload.name: workload for workload in self.request.config.workloads},
            environment={name: value for name, value in self.request.environment.items() if not name.startswith("PERFDIFF_")},
            executor=self.executor,
            room=self.room,
            seed=self.request.config.compare.seed,
        )

    @property
    def _points(self) -> tuple[Point, ...]:
        return workloads.points(self.request.config.workloads)

    def _points_of(self, block: int) -> tuple[Point, ...]:
        """Return the points that still have runs to make in this block."""
        wanted = {workload.name for workload in self.request.config.workloads if workload.runs > block}
        return tuple(point for point in self._points if point.workload in wanted)

    @property
    def _reservoir(self) -> int:
        """Return how many calls a function keeps per run."""
        runs = sum(workload.runs for workload in self.request.config.workloads for point in self._points if point.workload == workload.name)
        return min(self.request.config.probes.samples, max(1, RECORDS // runs))


def settled(findings: Findings, config: Config) -> bool:
    """Return whether more runs could not change the answer: every function is clearly one thing or the other.

    Called once, after FIRST_LOOK blocks. Regressions must stand well clear of the threshold and functions without one must have been
    measured finely enough to see it; the rest gets all its runs.
    """
    margin = 1 + 2 * config.compare.min_effect
    for function in findings.functions:
        if function.verdict is Verdict.INCONCLUSIVE:
            return False
        if function.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT):
            ratios = [metric.ratio for metric in function.metrics.values() if metric.ratio is not None]
            if not any(ratio.low > margin or ratio.high < 1 / margin for ratio in ratios):
                return False
    return findings.verdict is not Verdict.INCONCLUSIVE


def _outcome(folder: Path, config: Config, progress: Progress) -> Outcome:
    """Analyse a stored experiment."""
    progress.stage("analysing", None)
    experiment = store.load(folder)

    def samples(function: int, side: Side) -> SampleTable | None:
        return store.samples(folder, function, side)

    return Outcome(analysis.analyse(experiment, samples, config.compare), samples)


def _differing_outputs(runs: Iterable[Run], points: Sequence[Point]) -> tuple[Note, ...]:
    """Tell where base and head printed different things: they may not do the same work."""
    printed: dict[tuple[int, Side], set[str]] = {}
    for run in runs:
        printed.setdefault((run.point, run.side), set()).add(run.output)
    differing = [
        point.label
        for point in points
        if len(printed.get((point.id, Side.BASE), ())) == len(printed.get((point.id, Side.HEAD), ())) == 1
        and printed[point.id, Side.BASE] != printed[point.id, Side.HEAD]
    ]
    if not differing:
        return ()
    shown = ", ".join(differing[:3]) + (f" and {len(differing) - 3} more" if len(differing) > 3 else "")
    return (Note("outputs-differ", f"base and head print different output for {shown}; make sure that they do the same work"),)


def _experiment_key(request: Request, pins: PinnedPair) -> str:
    """Return what a comparison depends on, digested: the same question is measured once."""
    parts = [
        __version__,
        pins.base.tree,
        pins.head.tree,
        pins.base.revision.rev,
        pins.head.revision.rev,
        overlay_digest(pins.head.repository, request.config.build.overlay),
        codec.encode(request.config),
        {name: request.environment.get(name) for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")},
    ]
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def _last_file(repository: Path, cache: Path) -> Path:
    digest = hashlib.blake2b(str(find_repository(repository).common_dir).encode(), digest_size=16).hexdigest()
    return cache / f"last-{digest}"
