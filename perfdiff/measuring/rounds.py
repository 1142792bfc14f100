"""The rounds of runs of a comparison: each kind makes as many runs as its answer needs, within its time budget."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path

from perfdiff import processes, units
from perfdiff.analysis.counts.work import does_same_work
from perfdiff.analysis.findings import EndToEnd, Findings, Verdict
from perfdiff.analysis.looks import Looking
from perfdiff.analysis.verdicts.requests import points_that_wait
from perfdiff.collect.choosing import folding
from perfdiff.collect.counts import counting
from perfdiff.collect.runs import caveats, workloads
from perfdiff.collect.runs.collector import Collector
from perfdiff.errors import BuildError, NothingCalledError, RunFailedError, TooLittleTimeError
from perfdiff.measuring import coverage, executables, linecounts, longruns, unaltered, variants
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.calls import FIRST_LOOK, TimedCalls
from perfdiff.measuring.counts import CountedRuns, CountsOfRuns
from perfdiff.measuring.making import Makers, OwnMachine, PairMaker
from perfdiff.measuring.outside import read_outside
from perfdiff.measuring.site import Site
from perfdiff.measuring.surveying import SurveyPoints, surveyed
from perfdiff.measuring.uncompared import killed, uncompared
from perfdiff.measuring.wholepairs import CONFIRMED_S, WholePairs
from perfdiff.records import store
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.recorded import TablesInMemory
from perfdiff.records.schema import Experiment, Note, Phase, Point, Run, Side, Totals
from perfdiff.records.uncompared import ComparisonGap

SHOWN_POINTS = 3  # that a sentence lists before it only counts
FEWEST_TO_CHOOSE = 1 + 1 + counting.LEAST_ROUNDS  # one that counts calls, one that times them, and what makes use of the choice


@dataclass(slots=True)
class Rounds:
    """The runs of one comparison and their recordings, which each round extends."""

    bench: Bench
    site: Site
    makers: InitVar[Makers] = OwnMachine
    runs: list[Run] = field(default_factory=list)
    notes: tuple[Note, ...] = ()
    _collector: Collector = field(init=False)
    _maker: PairMaker = field(init=False)
    _pairs: WholePairs = field(init=False)
    _looking: Looking = field(init=False)
    _counting: CountedRuns = field(init=False)
    _calls: TimedCalls = field(init=False)
    _counts: CountsOfRuns = field(default_factory=CountsOfRuns)
    _telling: Sequence[Point] = ()  # points at which work and lines are counted
    _lines: PlaceExperiment | None = None
    _met: tuple[str, ...] = ()
    _outside: tuple[str, ...] = ()
    _uncompared: tuple[ComparisonGap, ...] = ()

    def __post_init__(self, makers: Makers) -> None:
        self._telling = self.bench.points
        self._collector = self.bench.collector(self.site.targets)  # one for all rounds: it numbers the runs
        self._maker = makers(self.bench, self.site, self._collector)
        self._pairs = WholePairs(self.bench, self._maker, self.budget_s)
        self._looking = Looking(self.bench.request.config.compare)
        self._counting = CountedRuns(self.bench, self._collector)
        self._calls = TimedCalls(self.bench, self._maker)

    def confirm(self) -> None:
        """Run the plain builds in some pairs where nothing that runs is said to differ.

        What takes clearly longer all the same contradicts the proof: it counts no more, and everything is measured. Without a proof, make
        sure that something can be measured.
        """
        if self.site.same_code:
            maker = OwnMachine(self.bench, self.site, self._collector, is_spread=False)
            longer = WholePairs(self.bench, maker, CONFIRMED_S).confirm(self.runs)
            self.notes += maker.notes
            if longer is not None:
                self._doubt(longer)
                self.runs = []
        if not self.site.same_code:
            coverage.require_probes(self.bench, self.site)

    def _doubt(self, longer: Point | None) -> None:
        """Let the proof that nothing differs count no more where runs of a point take clearly longer."""
        if longer is not None:
            self.notes += (unaltered.contradicted(longer),)
            self.site = replace(self.site, same_code=False)

    def compare_whole_runs(self) -> None:
        """Run the plain builds in pairs until every point is decided, or patience ends: called again, it goes on where it ended."""
        self._pairs.make(self.runs)

    def look_what_runs_use(self) -> None:
        """Look which programs and libraries runs use, before builds with probes or counters are made of these alone."""
        if not self.are_answered:
            self.site = executables.with_used(self.bench, self.site, self.runs)

    @property
    def hang_on_whole_runs(self) -> bool:
        """Return whether calls and counts leave the answer open, but more whole runs may decide it.

        Within the time budget they would, by those so far; or they were halted as the comparison's time is limited.
        """
        may_decide = self._pairs.would_decide(self.runs) or self._pairs.was_halted
        return may_decide and self._look().verdict is Verdict.INCONCLUSIVE

    def count_all(self) -> None:
        """Count all functions if whole runs exclude a slow-down: if all counts are the same, no functions need to be chosen."""
        if self.bench.request.wants_calls or self.are_answered or not self._pairs.judged(self.runs).are_as_fast:
            return
        counted = self._counting.of_all(self.site, self.experiment())
        if counted is not None:
            self.site, counts = counted
            self._keep_counts(counts)

    def _keep_counts(self, counts: CountsOfRuns) -> None:
        with processes.signals_held():  # what ends measuring finds counts with their runs, or neither
            self._counts = counts
            self.runs += counts.runs

    def locate(self) -> None:
        """Choose functions, count their work, and time their calls if counts leave a question.

        Of two revisions, whose whole runs have an answer without it, builds with probes that cannot be made or run cost the calls alone.
        """
        try:
            self._locate()
        except (BuildError, RunFailedError, NothingCalledError) as error:
            is_answered = not isinstance(error, NothingCalledError) or self._meet_what_differs()
            if len(self.bench.sides) < 2 or not is_answered:
                raise
            self.runs = self._untimed_runs
            self._calls = TimedCalls(self.bench, self._maker, skipped=self._calls.skipped)
            self.site = coverage.untimed(self.site)
            self.notes += (caveats.calls_not_timed(error),)

    def _locate(self) -> None:
        """Look at what has to do with the change first where a program is large, and at all functions where that does not explain it."""
        whole, runs, notes = self.site, list(self.runs), self.notes
        near = coverage.vicinity_of(self.bench, whole)
        if near is not None:
            self.site = near
            try:
                self._measure_functions()
                is_found = self.are_answered or not self._is_unexplained
            except NothingCalledError:
                is_found = False
            if is_found:
                return
            self.site, self.runs, self.notes, self._counts = whole, runs, notes, CountsOfRuns()
            self._calls = TimedCalls(self.bench, self._maker)
        self._measure_functions()

    def _measure_functions(self) -> None:
        self.choose()
        self.count()
        if not self.are_answered:
            self.time_calls()

    @property
    def _is_unexplained(self) -> bool:
        """Return whether whole runs are slower, and no function is that may be the reason."""
        if not self._pairs.judged(self.runs).slower:
            return False
        slower = (function.info for function in self._look().functions if function.verdict is Verdict.REGRESSION)
        return not any(info.change.is_suspect for info in slower)

    @property
    def _untimed_runs(self) -> list[Run]:
        return [run for run in self.runs if run.phase is not Phase.TIMED]

    @property
    def tell_something(self) -> bool:
        """Return whether there are runs of base and head, or cases that do not end, so that something is known if measuring ends here."""
        return bool(self.site.endless) or {run.side for run in self.runs if run.phase is Phase.PLAIN} == set(Side)

    def end_here(self) -> None:
        """Keep what is known where measuring ends in the middle of a stage: pairs of runs, and counts that were completed."""
        if self.site.same_code:
            self._doubt(self._pairs.contradicting(self.runs))
        self._keep_calls()
        if not self._calls.runs and not self.site.same_code:
            self.site = coverage.untimed(self.site)

    def end_without_runs(self) -> None:
        """Leave open what no case tells of, as none is left that ends."""
        self.site = coverage.untimed(self.site)

    def end_with_whole_runs(self) -> None:
        """End the measurement with whole runs: which function takes longer stays open."""
        self.site = coverage.untimed(self.site)
        self.notes += (caveats.whole_runs_alone(),)

    def _meet_what_differs(self) -> bool:
        """Return whether whole runs are slower and meet files that differ: then they are the project's, though no function is called."""
        if self._pairs.judged(self.runs).slower:
            self.look_for_files()
        return bool(self._met)

    def choose(self) -> None:
        """Survey all functions, and choose those that are counted and timed."""
        points, plain = self.bench.points, [run for run in self.runs if run.phase is Phase.PLAIN]
        far, slower = tuple[EndToEnd, ...](), frozenset[int]()
        if len(self.bench.sides) > 1 and not self.bench.request.wants_calls:
            limit_s = min(longruns.AFFORDED * self.budget_s, self.bench.request.deadline.left_s)
            ends = self._pairs.judged(plain).slower
            slower = frozenset(end.point.id for end in ends)
            self._calls.long = longruns.spared(points, plain, ends, limit_s, FIRST_LOOK)
            far = self._pairs.slower_by_far(plain)
        self._require_time(FEWEST_TO_CHOOSE, "that choose functions and count them")
        afforded = [point for point in points if point not in self._calls.long]
        untimed, uncounted = (
            longruns.beyond_need(afforded, plain, far, FIRST_LOOK, sizes) if far else ()
            for sizes in (longruns.TIMED_SIZES, longruns.COUNTED_SIZES)
        )
        places = SurveyPoints(afforded, untimed, slower)
        self.site, timed_at = surveyed(self.bench, self.site, places, plain)
        self._calls.long = tuple(point for point in self.bench.points if point not in timed_at)
        self.notes += longruns.note(self._calls.long, plain)
        telling = [point for point in afforded if point in timed_at or point not in uncounted]
        self._telling = telling if far else self.bench.points

    def count(self) -> None:
        """Count the chosen functions."""
        counts, notes = self._counting.of_chosen(self.site, self.runs, self._telling)
        self.notes += notes
        if counts is not None:
            self._keep_counts(counts)

    @property
    def are_answered(self) -> bool:
        """Return whether no calls need to be timed: nothing that runs differs, or whole runs and exact counts exclude a slow-down.

        Counts are asked where a function changed, to tell how much of it ran. Who asked for calls, of one function or of all, gets them
        wherever anything has to run.
        """
        if self.site.same_code or self.bench.request.wants_calls:
            return self.site.same_code
        if not self._pairs.judged(self.runs).are_as_fast:
            return False
        experiment, config = self.experiment(), self.bench.request.config.compare
        return not unaltered.has_changed(self.site) or does_same_work(experiment, len(experiment.points), config)

    def time_calls(self) -> None:
        """Run the builds with probes until the findings are settled, or the number of runs or the time is used up."""
        before = self.runs

        def is_settled(runs: Sequence[Run]) -> bool:
            self.runs = [*before, *runs]
            return self._looking.is_settled(self.experiment(), self._tables())

        self._require_time(FIRST_LOOK, "with probes")
        self._calls.make(variants.recipe(self.bench, self.site), self.budget_s, is_settled)
        self._keep_calls()

    def _require_time(self, rounds: int, which: str) -> None:
        """Raise TooLittleTimeError where so many runs of each side and point, as long as plain ones, would not end in time."""
        deadline, points = self.bench.request.deadline, [point for point in self.bench.points if point not in self._calls.long]
        needed_s = rounds * len(self.bench.sides) * counting.plain_s(points, self.runs)
        if not deadline.allows(needed_s):
            raise TooLittleTimeError(
                f"{rounds} runs of each side {which} would take {units.duration(needed_s * 1e9)} or more, and "
                f"{units.duration(max(deadline.left_s, 0.0) * 1e9)} are left; give the comparison more with --time",
                slug="too-little-time",
            )

    def _keep_calls(self) -> None:
        """Add what runs with probes recorded, without functions of which no call ended."""
        self.runs = [*self._untimed_runs, *self._calls.runs]
        self._leave_out(self.site.measured & self._calls.unfinished())
        self.notes += caveats.recordings_incomplete(self._calls.incomplete, self.bench.points)

    def _leave_out(self, unfinished: frozenset[int]) -> None:
        """Leave out functions of which no call ended."""
        self._calls.skipped += self.site.subjects.unfinished(unfinished)
        self.site = replace(self.site, measured=self.site.measured - unfinished)
        for assembly in filter(None, (self._calls.assembly, self._counts.assembly)):
            assembly.forget(unfinished)

    def _look(self) -> Findings:
        """Return the findings so far."""
        return self._looking.findings(self.experiment(), self._tables)

    def _tables(self) -> TablesInMemory:
        return TablesInMemory(self._calls.assembly.tables())

    @property
    def ask_for_files(self) -> bool:
        """Return whether whole runs are slower, and no function explains it: files that differ may."""
        if self.are_answered or not self._pairs.judged(self.runs).slower:
            return False
        findings = self._look()
        return findings.verdict is Verdict.REGRESSION and not any(function.verdict is Verdict.REGRESSION for function in findings.functions)

    def look_for_files(self) -> None:
        """Find which files that differ runs meet at the points that are slower, in the first run that meets any."""
        slower = {end.point.id for end in self._pairs.judged(self.runs).slower}
        self._met = unaltered.met(self.bench, self.site, [point for point in self.bench.points if point.id in slower])

    @property
    def bring_good_news(self) -> bool:
        """Return whether the answer is that nothing is slower, or that the program is faster."""
        return self.site.same_code or self._look().verdict in (Verdict.UNCHANGED, Verdict.IMPROVEMENT)

    def look_outside(self) -> None:
        """Find which files outside of the trees runs read for both sides, so that they did not start alike, and what is not compared."""
        self.bench.progress.stage("looking what runs read elsewhere", None)
        self._outside, met = read_outside(self.bench, self.site, self.runs)
        waiting = points_that_wait(self.experiment(), self._pairs.judged(self.runs), self.bench.request.config.compare)
        gaps = killed(self._calls.incomplete, self.bench.points)
        self._uncompared = gaps or uncompared(self.bench, self.site, self.runs, met, waiting)

    @property
    def ask_for_lines(self) -> bool:
        """Return whether something is slower, or the answer is open, so that lines should be counted."""
        if self.are_answered or not linecounts.affordable(self.bench, self.runs, self._telling):
            return False
        findings = self._look()
        verdicts = {findings.verdict, *(function.verdict for function in findings.functions)}
        return Verdict.REGRESSION in verdicts or findings.verdict is Verdict.INCONCLUSIVE

    def count_lines(self) -> None:
        """Count how often lines run; on failure the report has no lines."""
        line_counts = linecounts.count(self.bench, self.site, self._collector, self.runs, self._telling, self._files_in_question())
        self._lines = line_counts.experiment
        self.notes += line_counts.notes

    def _files_in_question(self) -> Collection[str] | None:
        """Return the files of functions that are slower, or changed, and the sources of those that they call; None where none is slower."""
        functions = self._look().functions
        slower = [function.info for function in functions if function.verdict is Verdict.REGRESSION]
        changed = [function.info for function in functions if function.info.change.is_suspect]
        called = frozenset[int]().union(*(info.calls for info in slower))
        below = {self.site.subjects.pairs[id_].shown.file for id_ in called}.intersection(coverage.compiled(self.site))
        return below.union(info.file for info in (*slower, *changed)) if slower else None

    def experiment(self) -> Experiment:
        """Return the experiment measured so far."""
        bench, site = self.bench, self.site
        return Experiment(
            base=bench.pins.base.revision,
            head=bench.pins.head.revision,
            environment=site.environment(bench.request.environment),
            workloads=workloads.workloads(bench.request.config.workloads),
            points=bench.points,
            functions=site.subjects.infos(site.measured),
            skipped=(*site.skipped, *self._calls.skipped),
            runs=tuple(self.runs),
            totals=self._calls.assembly.totals(),
            edges=self._calls.assembly.edges(),
            notes=tuple(dict.fromkeys(self._all_notes())),
            counts=self._counted,
            folded=site.folded,
            spots=self._counts.spots,
            library=self._counts.library,
            lasting=self._counts.lasting,
            same_code=site.same_code,
            stages=bench.progress.seconds,
            machines=self._maker.machines,
            reach=site.reach,
            met=self._met,
            outside=self._outside,
            endless=site.endless,
            uncompared=self._uncompared,
            build=bench.request.config.build.command,
            ended_by=bench.request.deadline.ended_by,
        )

    def _all_notes(self) -> Iterator[Note]:
        """Yield what the reader should know of the runs; the survey and later runs may have told the same."""
        points = self.bench.points
        yield from self.site.notes
        yield from caveats.sizes_not_felt(self.runs, points)
        yield from caveats.sizes_as_texts(points)
        yield from self.notes
        yield from self._maker.notes
        if self.bench.request.deadline.is_cut:
            yield caveats.cut_short(self.bench.request.deadline, self.bench.progress.current, [*self._missing()])

    def _missing(self) -> Iterator[str]:
        """Yield what is not known that a whole comparison may tell."""
        run = {(run.point, run.side) for run in self.runs}
        points = [point.label for point in self.bench.points if not all((point.id, side) in run for side in Side)]
        if points:
            yield f"there are no runs of both sides at {units.listed(points, SHOWN_POINTS)}"
        if not self.site.subjects.pairs:
            yield "functions were not found yet"
        if self._counts.assembly is None and self.bench.request.config.counters.software:
            yield "work was not counted"
        if not self._calls.runs:
            yield "no calls were timed"

    @property
    def _counted(self) -> Totals | None:
        """Return what the chosen functions did, with that of those folded into them."""
        assembly = self._counts.assembly
        return None if assembly is None else folding.with_folded(assembly, self.site.selection.folds)

    def save(self, folder: Path) -> None:
        """Store the experiment."""
        counted = self._counts.assembly.tables() if self._counts.assembly else ()
        store.save(
            folder,
            self.experiment(),
            self._calls.assembly.tables(),
            counted,
            self._lines,
        )

    @property
    def budget_s(self) -> float:
        """Return how many seconds whole runs may take, and the same again for runs with probes."""
        return self.bench.request.config.measure.budget_for(self.site.built_s)
