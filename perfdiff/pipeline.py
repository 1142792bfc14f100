"""The whole method, from two revisions to findings.

revisions → plain builds → changed functions → survey → probes within the budget → interleaved runs → counted runs → models and comparison
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from perfdiff import __version__, analysis, storage
from perfdiff.analysis.findings import Findings
from perfdiff.analysis.verdicts.settling import settled
from perfdiff.build.builder import Built, compiler_identity
from perfdiff.build.cache import BuildCache
from perfdiff.build.variants import build_environment, keyed
from perfdiff.collect import caveats, counters, counting, folding, machine, reach, schedule, survey, toolchain, workloads
from perfdiff.collect.assembly import Assembly
from perfdiff.collect.collector import Collector, Target
from perfdiff.collect.disturbance import Referee
from perfdiff.collect.executor import Executor, ProcessExecutor
from perfdiff.collect.hotspots import HotSpots
from perfdiff.collect.subjects import Subjects
from perfdiff.collect.survey import Budget, Selection, Survey
from perfdiff.collect.workshop import Probes, Workshop, dropped
from perfdiff.config import CompareConfig, Config
from perfdiff.errors import BuildError, DiskFilledError, RecordingError, WorkloadError
from perfdiff.languages.c.pack import C
from perfdiff.languages.protocol import Counterpart, Language, Program
from perfdiff.progress import Progress, Silent
from perfdiff.records import codec, plan, recorded, store
from perfdiff.records.recorded import Kept, Recorded
from perfdiff.records.schema import Experiment, Floats, Folded, HotSpot, Note, Phase, Point, Run, SampleTable, Side, Skipped
from perfdiff.revisions.overlay import overlay_digest
from perfdiff.revisions.pins import PinnedPair, resolve, resolve_one
from perfdiff.revisions.repository import find_repository

SURVEY_ROUNDS = 2
FIRST_LOOK = 5  # blocks before the first look at the findings: five runs a side is the least the comparison can work with
NEXT_LOOK = 2  # times as many blocks before each next one
RECORDS = 10_000  # single calls kept per function and side; the models gain nothing from more
TABLES = 128  # sample tables held while they are analysed and drawn, which reads each several times; 2 MB each, as a rule


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for. `environment` is handed to builds and workloads; for `followed` see `Subjects.number`."""

    repository: Path
    revisions: tuple[str, ...]
    config: Config
    cache: Path
    environment: Mapping[str, str]
    followed: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The findings, and the recorded calls and runs behind them."""

    findings: Findings
    samples: Callable[[int, Side], SampleTable | None]
    experiment: Experiment | None = None
    counts: Callable[[int, Side], SampleTable | None] = recorded.nothing


@dataclass(frozen=True, slots=True)
class Measurement:
    """What is ready to be measured: the chosen functions, the built trees, and all that could not be had."""

    subjects: Subjects
    selection: Selection
    folded: tuple[Folded, ...]
    probes: Probes
    counted_probes: Probes
    counted: Mapping[Side, Built]
    targets: Mapping[tuple[Phase, Side], Target]
    toolchain: toolchain.Toolchain
    skipped: tuple[Skipped, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """What counted runs gave; no runs where there could be none."""

    assembly: Assembly
    runs: list[Run] = field(default_factory=list)
    spots: tuple[HotSpot, ...] = ()
    notes: tuple[Note, ...] = ()


def compare(request: Request, progress: Progress, *, language: Language | None = None, executor: Executor | None = None) -> Outcome:
    """Compare two revisions and return what was found; raise PerfdiffError where that cannot be done."""
    cache = request.cache
    progress.stage("resolving revisions", None)
    repository = find_repository(request.repository)
    with storage.in_use(cache):
        pins = resolve(repository, request.revisions, snapshots=cache / "snapshots", apart=request.config.own_files(request.repository))
        asked = storage.Asked(experiment_key(request, pins), pins.base.revision, pins.head.revision, pins.notes)
        tools = language or C(cache / "units"), executor or ProcessExecutor(), progress
        found = _recorded(asked, cache, lambda builds, room: Bench(request, pins, builds, room, *tools), progress)
        outcome = analysed(found, request.config.compare, progress)
        try:
            storage.remember(cache, repository.name, asked)
        except OSError as error:
            progress.note(f"`perfdiff explain` will not know of this comparison: {error}")
    return outcome


def record(request: Request, progress: Progress, *, language: Language | None = None, executor: Executor | None = None) -> Recorded:
    """Measure one revision, the working tree where none is asked for, and return its calls, which all are base's.

    Every function that the workloads call is measured; raise PerfdiffError where that cannot be done.
    """
    cache = request.cache
    progress.stage("resolving revisions", None)
    repository, name = find_repository(request.repository), next(iter(request.revisions), None)
    with storage.in_use(cache):
        pins = resolve_one(repository, name, snapshots=cache / "snapshots", apart=request.config.own_files(request.repository))
        asked = storage.Asked(experiment_key(request, pins, (Side.BASE,)), pins.base.revision, pins.head.revision, pins.notes)
        tools = language or C(cache / "units"), executor or ProcessExecutor(), progress
        return _recorded(asked, cache, lambda builds, room: Bench(request, pins, builds, room, *tools, (Side.BASE,)), progress)


def analysed(found: Recorded, config: CompareConfig, progress: Progress) -> Outcome:
    """Compare the two sides of what was recorded."""
    progress.stage("analysing", None)
    samples = Kept(found.samples, TABLES)
    return Outcome(analysis.analyse(found.experiment, samples, config, found.counts), samples, found.experiment, found.counts)


def last(repository: Path, cache: Path, config: Config, progress: Progress) -> Outcome:
    """Return the outcome of the last comparison of a repository, analysed anew; raise RecordingError where there is none."""
    name = find_repository(repository).name
    with storage.in_use(cache):
        asked = storage.last(cache, name)
        if asked is None or not store.exists(storage.experiment(cache, asked)):
            raise RecordingError("no comparison of this repository is in the cache; run `perfdiff BASE HEAD` first", slug="no-comparison")
        return analysed(_named(recorded.load(storage.experiment(cache, asked)), asked), config.compare, progress)


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
    sides: tuple[Side, ...] = tuple(Side)

    def measure(self, folder: Path) -> None:
        """Carry out the comparison and leave the experiment in `folder`."""
        try:
            self._run(self._prepare(), folder)
        except DiskFilledError:
            self.cache.discard()
            raise

    def _prepare(self) -> Measurement:
        """Build plainly, find what changed, survey, choose probes within the budget, build with them."""
        config = self.request.config
        events = counters.choose(config.counters)
        workshop = self._workshop()
        plain = workshop.plain()
        programs = self._programs(plain)
        subjects = self._subjects(programs)
        probeable = subjects.probeable(config.probes.exclude)
        seen, lost, targets = self._surveyed(workshop, subjects, probeable, plain)
        budget = Budget(config.probes.overhead, self._reservoir, bool(events.events), folds=len(self.sides) > 1)
        selection = survey.choose(seen, probeable, subjects.conditions(), budget)
        choices, folds = selection.choices, selection.folds
        subjects = folding.stood_in_for(subjects, folds)

        probes = {side: subjects.timed_probes(side, choices) for side in self.sides}
        timed = workshop.probed(Phase.TIMED, probes, plain)
        entries = {choice.id: choice.entry(self._reservoir) for choice in choices}
        targets |= workshop.targets(Phase.TIMED, timed, entries, probes, events.steering())

        counted_probes = {side: subjects.counted_probes(side, choices, folds) for side in self.sides}
        counted, uncounted = self._counted(workshop, counted_probes, plain)
        if counted:
            own = {id_: plan.Entry.counted(reservoir=self._reservoir) for each in counted_probes.values() for id_ in each}
            steering = counting.steering(config.counters, self.request.environment)
            targets |= workshop.targets(Phase.COUNTED, counted, own, counted_probes, steering)
        return Measurement(
            subjects=subjects,
            selection=selection,
            folded=folding.folded(subjects, selection, seen),
            probes=probes,
            counted_probes=counted_probes,
            counted=counted,
            targets=targets,
            toolchain=toolchain.look(programs, plain, config.workloads, self.request.environment),
            skipped=(
                *(problem for program in programs.values() for problem in program.problems),
                *subjects.obstacles(config.probes.exclude),
                *subjects.generated(lost),
                *subjects.untouched(seen.ran, probeable.keys() - lost),
                *folding.untimed(subjects, folds),
                *dropped(timed, probes),
            ),
            notes=(
                *dict.fromkeys(note for built in plain.values() for note in built.notes),
                *caveats.changes_not_run(subjects, seen.ran),
                *caveats.texts_not_read(subjects, choices),
                *folding.note(subjects, folds),
                *events.notes,
                *uncounted,
            ),
        )

    def _surveyed(
        self, workshop: Workshop, subjects: Subjects, probeable: Mapping[int, Counterpart], plain: Mapping[Side, Built]
    ) -> tuple[Survey, frozenset[int], dict[tuple[Phase, Side], Target]]:
        """Build with probes in all functions and run them; return what was seen, whose probes were lost, and what can be run."""
        probes = {side: subjects.survey_probes(side, probeable) for side in self.sides}
        reach.require_probes(probes, subjects)
        built = workshop.probed(Phase.SURVEY, probes, plain)
        sampled = subjects.sampled_in_survey(probeable)
        modes = {id_: plan.Entry.survey(sampled=id_ in sampled) for id_ in probeable}
        targets = workshop.targets(Phase.PLAIN, plain, {}, {}) | workshop.targets(Phase.SURVEY, built, modes, probes)
        seen = self._survey(targets, probes)
        reach.require_calls(seen, probes)
        return seen, workshop.lost(built, probes), targets

    def _counted(self, workshop: Workshop, probes: Probes, plain: Mapping[Side, Built]) -> tuple[Mapping[Side, Built], tuple[Note, ...]]:
        """Build over the software PMU; a build that fails costs the counts, not the comparison."""
        if not self.request.config.counters.software or len(self.sides) == 1:
            return {}, ()
        try:
            built = workshop.probed(Phase.COUNTED, probes, plain)
        except BuildError as error:
            return {}, (counting.failed(str(error)),)
        return built, counting.left_plain(built.values())

    def _run(self, measurement: Measurement, folder: Path) -> None:
        """Run interleaved blocks until the findings are settled or the configured number is reached; keep the experiment."""
        config = self.request.config
        assembly = Assembly(measurement.probes, {point.id: point for point in self._points})
        collector = self._collector(measurement.targets)
        runs: list[Run] = []
        incomplete: list[Run] = []
        runs_of = {workload.name: workload.runs for workload in config.workloads}
        blocks = schedule.timed_blocks(self._points, runs_of, config.compare.seed, self.sides)
        look = FIRST_LOOK
        referee = Referee(len(blocks) * len(self._points) * len(self.sides))
        self.progress.stage("measuring", sum(map(len, blocks)))
        for block, slots in enumerate(blocks, 1):
            for pair in schedule.pairs(slots):
                made = list(collector.collect(pair, self.progress.advance))
                if referee.repeats([run for run, _ in made]):
                    made = list(collector.collect(pair, lambda _: None))
                for run, recordings in made:
                    runs.append(run)
                    incomplete += [run] * (not all(recording.complete for recording in recordings))
                    assembly.add(run, recordings)
            if block == look < len(blocks) and len(self.sides) > 1:
                if self._is_settled(measurement, runs, assembly):
                    break
                look *= NEXT_LOOK
        counted = self._count(measurement, collector, runs)
        notes = (
            *caveats.outputs_differ(runs, self._points),
            *caveats.recordings_incomplete(incomplete, self._points),
            *referee.notes(runs),
            *counted.notes,
        )
        experiment = self._experiment(measurement, [*runs, *counted.runs], assembly, notes)
        if counted.runs:
            experiment = replace(experiment, counts=folding.with_folded(counted.assembly, measurement.selection.folds), spots=counted.spots)
        store.save(folder, experiment, assembly.tables(), counted.assembly.tables())

    def _count(self, measurement: Measurement, collector: Collector, plain: Sequence[Run]) -> Counted:
        """Make counted runs within the budget, until the counts of a lone thread repeat; where one fails, nothing was counted."""
        budget_s = self.request.config.counters.budget_s
        points = counting.affordable(self._points, plain, budget_s, len(self.sides)) if measurement.counted else ()
        counted = Counted(Assembly(measurement.counted_probes, {point.id: point for point in points}, counted=True))
        spots = HotSpots()
        if not points:
            return replace(counted, notes=counting.left_out(self._points, points, budget_s) if measurement.counted else ())
        self.progress.stage("counting", len(points) * len(self.sides) * counting.MOST_ROUNDS)
        alone, started = True, time.monotonic()
        try:
            for block in range(counting.MOST_ROUNDS):
                slots = schedule.counted_block(points, block, self.request.config.compare.seed, self.sides)
                for run, recordings in collector.collect(slots, self.progress.advance):
                    counted.runs.append(run)
                    counted.assembly.add(run, recordings)
                    spots.add(run, recordings)
                    alone = alone and all(recording.threads <= 1 for recording in recordings)
                enough = alone and block + 1 >= counting.LEAST_ROUNDS and counting.repeats(counted.assembly.totals(), counted.runs)
                if enough or (time.monotonic() - started) * (block + 2) / (block + 1) > budget_s:
                    break
        except DiskFilledError:
            raise  # what fills the disk is cleared away, and nothing can be kept
        except WorkloadError as error:
            return Counted(Assembly({}, {}, counted=True), notes=(counting.failed(str(error)),))
        return replace(
            counted, spots=spots.named(self.language, measurement.counted), notes=counting.left_out(self._points, points, budget_s)
        )

    def _is_settled(self, measurement: Measurement, runs: Sequence[Run], assembly: Assembly) -> bool:
        """Look at the findings half-way: nothing is kept of this, so that what is kept is always a whole measurement."""
        with tempfile.TemporaryDirectory(dir=self.room) as folder:
            store.save(Path(folder) / "look", self._experiment(measurement, runs, assembly, ()), assembly.tables())
            found = recorded.load(Path(folder) / "look")
            return settled(analysis.analyse(found.experiment, found.samples, self.request.config.compare), self.request.config.compare)

    def _experiment(self, measurement: Measurement, runs: Sequence[Run], assembly: Assembly, notes: tuple[Note, ...]) -> Experiment:
        return Experiment(
            base=self.pins.base.revision,
            head=self.pins.head.revision,
            environment=replace(machine.environment(self.request.environment), **asdict(measurement.toolchain)),
            workloads=workloads.workloads(self.request.config.workloads),
            points=self._points,
            functions=measurement.subjects.infos({choice.id for choice in measurement.selection.choices}),
            skipped=measurement.skipped,
            runs=tuple(runs),
            totals=assembly.totals(),
            edges=assembly.edges(),
            notes=(*measurement.notes, *notes),
            folded=measurement.folded,
        )

    def _workshop(self) -> Workshop:
        return Workshop(
            pins={side: self.pins.base if side is Side.BASE else self.pins.head for side in self.sides},
            config=self.request.config.build,
            environment=self.request.environment,
            cache=self.cache,
            root=self.request.cache,
            plans=self.room,
            language=self.language,
            progress=self.progress,
        )

    def _programs(self, plain: Mapping[Side, Built]) -> dict[Side, Program]:
        """Return the functions and declarations of all sides."""
        self.progress.stage("finding functions", len(self.sides))
        programs = {}
        for side in self.sides:
            programs[side] = self.language.index(plain[side].tree, plain[side].commands, depth=self.request.config.probes.depth)
            self.progress.advance(side)
        return programs

    def _subjects(self, programs: Mapping[Side, Program]) -> Subjects:
        if len(self.sides) == 1:
            return Subjects.alone(programs[Side.BASE].functions.values(), self.language.name)
        pairs = self.language.match(programs[Side.BASE], programs[Side.HEAD])
        return Subjects.number(pairs, self.language.name, self.request.followed)

    def _survey(self, targets: Mapping[tuple[Phase, Side], Target], probes: Probes) -> Survey:
        """Run everything a few times with all functions probed, and once without any."""
        slots = schedule.survey_slots(self._points, SURVEY_ROUNDS, self.request.config.compare.seed, self.sides)
        self.progress.stage("surveying", len(slots))
        assembly = Assembly(probes, {point.id: point for point in self._points}, surveying=True)
        runs = []
        for run, recordings in replace(self._collector(targets), slow=self.progress.note).collect(slots, self.progress.advance):
            runs.append(run)
            assembly.add(run, recordings)
        executions: dict[tuple[Side, int], Floats] = {
            (table.side, table.function): np.average(table.executed, axis=0, weights=table.weight) for table in assembly.tables()
        }
        return survey.summarise(runs, assembly.totals(), assembly.edges(), assembly.lengths(), executions)

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

    @property
    def _reservoir(self) -> int:
        """Return how many calls a function keeps per run."""
        runs = sum(workload.runs for workload in self.request.config.workloads for point in self._points if point.workload == workload.name)
        return min(self.request.config.probes.samples, max(1, RECORDS // runs))


def _recorded(asked: storage.Asked, cache: Path, bench: Callable[[BuildCache, Path], Bench], progress: Progress) -> Recorded:
    """Return what was recorded before, else what a bench, given the cache of builds and a room to work in, measures now."""
    folder = storage.experiment(cache, asked)
    found = _kept(folder, progress)
    if found is None:
        with storage.at_work(cache, progress) as room, BuildCache(cache) as builds:
            found = _kept(folder, Silent())  # whoever was waited for may have asked the same
            if found is None:
                bench(builds, room).measure(folder)
    return _named(found or recorded.load(folder), asked)


def _kept(folder: Path, progress: Progress) -> Recorded | None:
    """Return what was recorded before, None where there is nothing or it is damaged."""
    if not store.exists(folder):
        return None
    try:
        store.verify(folder)
        found = recorded.load(folder)
    except RecordingError as error:
        progress.note(f"{error}; measuring again")
        return None
    progress.note(f"measured already, at {found.experiment.environment.created}")
    return found


def _named(found: Recorded, asked: storage.Asked) -> Recorded:
    """Return what was recorded with its revisions under the names by which they were asked for."""
    stored = found.experiment
    return replace(found, experiment=replace(stored, base=asked.base, head=asked.head, notes=(*asked.notes, *stored.notes)))


def experiment_key(request: Request, pins: PinnedPair, sides: tuple[Side, ...] = tuple(Side)) -> str:
    """Return what measuring depends on, digested: the same question is measured once, however it is put and judged."""
    config = request.config
    environment = build_environment(request.environment)
    parts = [
        __version__,
        pins.base.tree,
        pins.head.tree,
        pins.head.repository.folder.as_posix(),
        overlay_digest(pins.head.repository, config.build.overlay),
        codec.encode((config.build, config.workloads, config.probes, config.counters, config.compare.seed)),
        compiler_identity(environment),
        keyed(environment),
        workloads.keyed(config.workloads, request.environment),
        machine.cpu(),
        machine.cores(),
        *sides,
        *sorted(request.followed),
    ]
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()
