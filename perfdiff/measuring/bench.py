"""The bench of one comparison: its builds, the functions chosen in them, and what runs them; `rounds` decides what is run how often."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from perfdiff.build.builder import Built
from perfdiff.build.cache import BuildCache
from perfdiff.collect import (
    caveats,
    counters,
    counting,
    folding,
    machine,
    placing,
    reach,
    remarks,
    schedule,
    survey,
    tally,
    toolchain,
    workloads,
)
from perfdiff.collect.abreast import Abreast
from perfdiff.collect.assembly import Assembly
from perfdiff.collect.collector import Collector, Target
from perfdiff.collect.counted import Counted
from perfdiff.collect.executor import Executor
from perfdiff.collect.inputs import InputFiles
from perfdiff.collect.rates import Rate
from perfdiff.collect.services import Services
from perfdiff.collect.spread import Spread
from perfdiff.collect.subjects import Subjects, cleared
from perfdiff.collect.suites import Suites
from perfdiff.collect.survey import Budget, Selection, Survey
from perfdiff.collect.tally import Tally
from perfdiff.collect.upkeep import Upkeep
from perfdiff.collect.workshop import Probes, Workshop, dropped
from perfdiff.errors import BuildError, RecordingError
from perfdiff.languages.packs import Packs
from perfdiff.languages.protocol import CodeComparison, Counterpart, ProbeCosts, Program
from perfdiff.progress import Stopwatch
from perfdiff.records import plan
from perfdiff.records.reach import Reach
from perfdiff.records.schema import Environment, Floats, Folded, Note, Phase, Point, Run, Side, Skipped
from perfdiff.request import Request
from perfdiff.revisions.pins import PinnedPair

SURVEY_ROUNDS = 2
RECORDS = 10_000  # single calls kept per function and side; the models gain nothing from more

Targets = Mapping[tuple[Phase, Side], Target]


@dataclass(frozen=True, slots=True)
class Site:
    """The state before probes are chosen: functions, plain builds ready to run, their toolchain, and what is not available.

    `measured` are the functions that the report tells of: those of the `selection`, or all that ran where counts answer and nothing is
    chosen. `steering` is what timed builds are told of counters. Where both sides are proved to be the `same_code`, whole runs only confirm
    it. `reach` tells how much of what changed ran, None where that is not known.
    """

    subjects: Subjects
    plain: Mapping[Side, Built]
    toolchain: toolchain.Toolchain
    skipped: tuple[Skipped, ...]
    notes: tuple[Note, ...]
    targets: Targets
    selection: Selection = field(default_factory=Selection)
    measured: frozenset[int] = frozenset()
    folded: tuple[Folded, ...] = ()
    steering: Mapping[str, str] = field(default_factory=dict)
    slowdown: float = 1.0  # of counted runs, as a rule
    code: CodeComparison | None = None  # of two sides
    same_code: bool = False
    reach: Reach | None = None

    @property
    def built_s(self) -> float:
        """Return how long the plain builds took."""
        return sum(built.duration_s for built in self.plain.values())


@dataclass(frozen=True, slots=True)
class Variant:
    """Builds with probes, ready to run; without targets if they could not be made."""

    probes: Probes
    targets: Targets
    built: Mapping[Side, Built]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Return whether the builds have all their probes, and counters in all objects if they count."""
        return bool(self.targets) and not self.skipped and not any(each.uncounted for each in self.built.values())


@dataclass(frozen=True, slots=True)
class Recipe:
    """The recipe of timed builds, for this machine or another one that has the same plain builds."""

    probes: Probes
    modes: Mapping[int, plan.Entry]
    steering: Mapping[str, str]


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

    def plain(self) -> dict[Side, Built]:
        """Build all sides as they are; raise BuildError."""
        return self._workshop().plain()

    def site(self, plain: Mapping[Side, Built]) -> Site:
        """Find what changed, and make the plain builds ready to run."""
        programs = self._programs(plain)
        subjects, code = self._subjects(programs, plain)
        return Site(
            subjects=subjects,
            plain=plain,
            code=code,
            toolchain=self._toolchain(programs, plain),
            skipped=tuple(dict.fromkeys(problem for program in programs.values() for problem in program.problems)),
            notes=tuple(dict.fromkeys((*(note for built in plain.values() for note in built.notes), *self._told(plain)))),
            targets=self._workshop().targets(Phase.PLAIN, plain, {}, {}),
            slowdown=max(self.packs.slowdown(built) for built in plain.values()),
        )

    def require_probes(self, site: Site) -> None:
        """Raise MeasurementError where a side has no function that can be measured."""
        reach.require_probes(self._census_probes(site), site.subjects)

    def with_benchmarks(self, site: Site) -> tuple[Bench, Site]:
        """Return the bench with suites replaced by their benchmarks; raise WorkloadError if there are none."""
        config = self.request.config
        if not any(workload.suite for workload in config.workloads):
            return self, site
        self.progress.stage("listing benchmarks", None)
        suites = Suites({side: site.targets[Phase.PLAIN, side] for side in self.sides}, self.request.inherited, self.room, self.upkeep)
        workloads, notes = suites.expanded(config.workloads, self.executor)
        request = replace(self.request, config=replace(config, workloads=workloads))
        return replace(self, request=request), replace(site, notes=(*site.notes, *notes))

    def surveyed(self, site: Site, plain: Sequence[Run] = (), points: Sequence[Point] | None = None) -> Site:
        """Run a build with probes in all functions, and use it to choose the functions to measure within the budget of probes.

        `plain` runs that were made before are not made again. It runs at all `points`, or some.
        """
        config, subjects = self.request.config, site.subjects
        events = counters.choose(config.counters)
        probeable = subjects.probeable(config.probes.exclude)
        seen, lost, elsewhere = self._survey(site, probeable, plain, points or self.points)
        overhead, compares = config.probes.overhead, len(self.sides) > 1
        keeping = overhead if compares else max(overhead, survey.ALONE_SHARE)
        budget = Budget(overhead, keeping, self.reservoir, self._probe_costs(site), bool(events.events), folds=compares)
        subjects = folding.affected_by_unprobed(subjects.as_seen(probeable.keys() - lost, seen.edges), config.probes.exclude)
        selection = survey.choose(seen, subjects.probeable(config.probes.exclude), subjects.conditions(), budget)
        subjects = folding.stood_in_for(subjects, selection.folds)
        measured = {choice.id for choice in selection.choices}
        found = self._with_coverage(replace(site, subjects=subjects), measured, seen.ran, lost, seen.edges)
        return replace(
            found,
            selection=selection,
            folded=(*folding.folded(found.subjects, selection, seen), *found.folded),
            steering=events.steering(),
            skipped=(*folding.untimed(subjects, selection), *found.skipped),
            notes=(
                *found.notes,
                *elsewhere,
                *caveats.texts_not_read(subjects, selection.choices, budget.keeping),
                *folding.note(subjects, selection.folds),
                *events.notes,
            ),
        )

    def answered_by_counts(self, site: Site, variant: Variant, counted: Counted, collector: Collector) -> Site:
        """Return what there is to tell where the counts of all functions answer; raise WorkloadError where they are of other code."""
        ran = frozenset().union(*counted.called.values())
        reach.require_tree(collector.misplaced, ran, site.subjects)
        self._require_calls(counted.called, variant.probes, variant.built)
        lost = self._workshop().lost(variant.built, variant.probes)
        return self._with_coverage(site, ran, ran, lost, counted.assembly.edges().pairs)

    def _with_coverage(
        self, site: Site, measured: Collection[int], ran: frozenset[int], lost: frozenset[int], edges: Iterable[tuple[int, int]]
    ) -> Site:
        """Add which functions are measured, which call which, and of which changed ones nothing is known, of all that `ran`.

        Probes of some were `lost`; `edges` are the calls that were seen, (caller, callee).
        """
        exclude = self.request.config.probes.exclude
        probed = site.subjects.probeable(exclude).keys() - lost
        subjects = site.subjects.as_seen(probed, edges)
        return replace(
            site,
            subjects=subjects,
            measured=frozenset(measured),
            folded=folding.unprobed(subjects, exclude, measured),
            skipped=(
                *site.skipped,
                *subjects.obstacles(exclude),
                *subjects.generated(lost),
                *subjects.untouched(ran, probed),
            ),
            reach=reach.reached(subjects, ran, probed) if len(self.sides) > 1 else None,
        )

    def untimed(self, site: Site) -> Site:
        """Return what there is to tell where no build with probes could be made or run: what changed is open, and may have run."""
        known = site.reach or reach.reached(site.subjects, (), ())
        return replace(site, measured=site.measured | site.subjects.suspects, reach=known)

    def spread(self, site: Site) -> Spread:
        """Return what whole runs are spread over."""
        config = self.request.config
        layouts = self._workshop().layouts(site.plain, config.measure.layouts)
        return Spread(layouts, self.upkeep, config.compare.seed, config.measure.layouts)

    def timed(self, site: Site) -> Recipe:
        """Return what builds of all sides with the chosen probes are made of."""
        probes = {side: site.subjects.timed_probes(side, site.selection.choices) for side in self.sides}
        modes = {choice.id: choice.entry for choice in site.selection.choices}
        return Recipe(probes, modes, site.steering)

    def followed(self, recipe: Recipe, site: Site) -> Variant:
        """Build all sides by a recipe; raise BuildError."""
        workshop, probes = self._workshop(), recipe.probes
        built = workshop.probed(Phase.TIMED, probes, site.plain)
        targets = workshop.targets(Phase.TIMED, built, recipe.modes, probes, recipe.steering)
        return Variant(probes, targets, built, skipped=dropped(built, probes))

    def census(self, site: Site) -> Variant:
        """Build all sides over the software PMU with all probes, which only count calls."""
        return self._counting(site, self._census_probes(site), plan.Entry.calls())

    def counting_apart(self, variant: Variant, functions: Collection[int]) -> Variant:
        """Return the same builds with separate counts for the calls of some functions, and other probes switched off."""
        return replace(variant, targets=self._counted_targets(variant.built, variant.probes, dict.fromkeys(functions, plan.Entry.sums())))

    def counted(self, site: Site) -> Variant:
        """Build all sides over the software PMU with the chosen probes."""
        probes = {side: site.subjects.counted_probes(side, site.selection.choices, site.selection.folds) for side in self.sides}
        return self._counting(site, probes, plan.Entry.counted(reservoir=self.reservoir))

    def _counting(self, site: Site, probes: Probes, entry: plan.Entry) -> Variant:
        """Build all sides over the software PMU; a build that fails costs the counts, not the comparison."""
        config = self.request.config
        probes = {side: self.packs.countable(each) for side, each in probes.items()}
        is_asked = len(self.sides) > 1 or self.request.is_counted
        if not config.counters.software or not is_asked or not all(probes.values()):
            return Variant(probes, {}, {})
        try:
            built = self._workshop().probed(Phase.COUNTED, probes, site.plain)
            targets = self._counted_targets(built, probes, {id_: entry for each in probes.values() for id_ in each})
        except BuildError as error:
            return Variant(probes, {}, {}, notes=(counting.failed(str(error)),))
        return Variant(probes, targets, built, dropped(built, probes), counting.left_plain(built.values()))

    def placed(self, site: Site) -> Variant:
        """Build all sides with the compilers' counters of lines; a build that fails costs the lines, not the comparison."""
        workshop = self._workshop()
        try:
            built = workshop.placed(site.plain)
            return Variant({}, workshop.counting_lines(built), built)
        except (BuildError, RecordingError) as error:
            return Variant({}, {}, {}, notes=(placing.failed(str(error)),))

    def _counted_targets(self, built: Mapping[Side, Built], probes: Probes, entries: Mapping[int, plan.Entry]) -> Targets:
        steering = counting.steering(self.request.config.counters, self.request.environment)
        return self._workshop().targets(Phase.COUNTED, built, entries, probes, steering)

    def _census_probes(self, site: Site) -> Probes:
        probeable = site.subjects.probeable(self.request.config.probes.exclude)
        return {side: site.subjects.census_probes(side, probeable) for side in self.sides}

    def _survey(
        self, site: Site, probeable: Mapping[int, Counterpart], plain: Sequence[Run], points: Sequence[Point]
    ) -> tuple[Survey, frozenset[int], tuple[Note, ...]]:
        """Build with probes in all functions and run them; return what was seen, whose probes were lost, and which code lies elsewhere."""
        workshop = self._workshop()
        probes = {side: site.subjects.survey_probes(side, probeable) for side in self.sides}
        built = workshop.probed(Phase.SURVEY, probes, site.plain)
        tallying = workshop.targets(Phase.SURVEY, built, dict.fromkeys(probeable, plan.Entry.tally()), probes)
        sampled, costs = site.subjects.sampled_in_survey(probeable), self._probe_costs(site).values()

        def timing(counted: Tally, point: int) -> Targets:
            rates = counted.rates(point, costs)
            often = {id_: rates.get(id_, Rate(1)) for id_ in probeable}
            modes = {id_: plan.Entry.survey(sampled=id_ in sampled).paced(**rate._asdict()) for id_, rate in often.items()}
            return workshop.targets(Phase.SURVEY, built, modes, probes)

        collector = self.collector({**site.targets, **tallying})
        seen = self._seen(collector, timing, probes, plain, points)
        if len(self.sides) > 1:
            reach.require_tree(collector.misplaced, seen.ran, site.subjects)
        self._require_calls(seen.called, probes, built)
        return seen, workshop.lost(built, probes), remarks.of_other_code(collector.told)

    def _require_calls(self, called: Mapping[tuple[int, Side], frozenset[int]], probes: Probes, built: Mapping[Side, Built]) -> None:
        """Raise WorkloadError where no function takes part in a workload's runs of a side, MeasurementError where none has a probe."""
        workload = {point.id: point.workload for point in self.points}
        by_workload: dict[tuple[str, Side], frozenset[int]] = {}
        for (point, side), functions in called.items():
            by_workload[workload[point], side] = by_workload.get((workload[point], side), frozenset()) | functions
        reach.require_calls(by_workload, probes, built)

    def _probe_costs(self, site: Site) -> dict[str, ProbeCosts]:
        return {language: costs for built in site.plain.values() for language, costs in self.packs.probe_costs(built).items()}

    def environment(self, site: Site) -> Environment:
        """Return the machine and what the builds were made with."""
        return replace(machine.environment(self.request.environment), **asdict(site.toolchain))

    def collector(self, targets: Targets) -> Collector:
        """Return what carries out runs of these targets."""
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

    def _workshop(self) -> Workshop:
        return Workshop(
            pins={side: self.pins.base if side is Side.BASE else self.pins.head for side in self.sides},
            config=self.request.config.build,
            environment=self.request.environment,
            cache=self.cache,
            root=self.request.cache,
            plans=self.room,
            packs=self.packs,
            progress=self.progress,
        )

    def _programs(self, plain: Mapping[Side, Built]) -> dict[Side, Program]:
        """Return the functions and declarations of all sides."""
        self.progress.stage("finding functions", len(self.sides))
        programs = {}
        for side in self.sides:
            programs[side] = self.packs.index(plain[side], depth=self.request.config.probes.depth, others=list(plain.values()))
            self.progress.advance(side)
        return programs

    def _subjects(self, programs: Mapping[Side, Program], plain: Mapping[Side, Built]) -> tuple[Subjects, CodeComparison | None]:
        """Return the numbered functions, and what the code of both sides has in common."""
        if len(self.sides) == 1:
            return Subjects.alone(programs[Side.BASE].functions.values()), None
        pairs = self.packs.match(programs[Side.BASE], programs[Side.HEAD])
        code = self.packs.same_code(plain[Side.BASE], plain[Side.HEAD], pairs)
        known = pairs if self.request.followed else self.packs.compared(pairs, code)
        return Subjects.number(cleared(known, code), self.request.followed), code

    def _toolchain(self, programs: Mapping[Side, Program], plain: Mapping[Side, Built]) -> toolchain.Toolchain:
        """Return what the sides are made of, and what head runs on, or base where it is measured alone."""
        found = toolchain.look(programs, plain, self.request.config.workloads, self.request.environment)
        return replace(found, libraries=(*found.libraries, *self.packs.runs_on(plain[self.sides[-1]])))

    def _told(self, plain: Mapping[Side, Built]) -> tuple[Note, ...]:
        """Return what else there is to tell of how the builds differ."""
        return self.packs.told(plain[Side.BASE], plain[Side.HEAD]) if len(self.sides) > 1 else ()

    def _seen(
        self,
        collector: Collector,
        timing: Callable[[Tally, int], Targets],
        probes: Probes,
        plain: Sequence[Run],
        points: Sequence[Point],
    ) -> Survey:
        """Run all `points` once with probes that only count, then with probes that time as often as that allows.

        `collector` runs those that count; `timing` gives what times calls at a point, by what was counted. `plain` runs tell the CPU time
        without probes: one is made where there are none.
        """
        seed, by_id = self.request.config.compare.seed, {point.id: point for point in points}
        known = {(run.point, run.side) for run in plain}
        missing = [slot for slot in schedule.plain_slots(points, seed, self.sides) if (slot.point.id, slot.side) not in known]
        slots = schedule.tally_slots(points, seed, self.sides)
        self.progress.stage("surveying", len(missing) + len(slots) + len(points) * len(self.sides) * SURVEY_ROUNDS)
        counting, timed = Assembly(probes, by_id), Assembly(probes, by_id, surveying=True)
        runs = [*(run for run in plain if run.point in by_id), *(run for run, _ in collector.collect(missing, self.progress.advance))]
        tallied = []
        for run, recordings in Abreast(collector).collect(slots, runs, self.progress.advance):
            tallied.append(run)
            counting.add(run, recordings)
        counted = tally.counted([*runs, *tallied], counting.totals(), counting.edges())
        steered = {point: timing(counted, point) for point in by_id}
        for block in range(SURVEY_ROUNDS):
            again = [point for point in points if block == 0 or point.id in counted.unsteady()]
            for slot in schedule.survey_slots(again, block, seed, self.sides):
                collector.targets = steered[slot.point.id]
                for run, recordings in collector.collect([slot], self.progress.advance):
                    runs.append(run)
                    timed.add(run, recordings)
        executions: dict[tuple[Side, int], Floats] = {
            (table.side, table.function): np.average(table.executed, axis=0, weights=table.weight) for table in timed.tables()
        }
        return survey.summarise(runs, timed.totals(), timed.edges(), timed.lengths(), executions)

    @property
    def points(self) -> tuple[Point, ...]:
        """Return all workload points."""
        return workloads.points(self.request.config.workloads, self.request.config.services)

    @property
    def reservoir(self) -> int:
        """Return how many calls a function keeps per run."""
        runs = sum(workloads.runs_at(self.request.config.workloads, self.points).values())
        return min(self.request.config.probes.samples, max(1, RECORDS // runs))
