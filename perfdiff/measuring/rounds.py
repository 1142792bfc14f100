"""The rounds of runs of a comparison: each kind makes as many runs as its answer needs, within its time budget."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from perfdiff.analysis import looks
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.collect.choosing import census, folding
from perfdiff.collect.counts import counting
from perfdiff.collect.counts.abreast import Abreast
from perfdiff.collect.counts.counted import Counted
from perfdiff.collect.recordings.assembly import Assembly
from perfdiff.collect.runs import caveats, schedule, workloads
from perfdiff.collect.runs.collector import Collector
from perfdiff.errors import BuildError, DiskFilledError, NothingCalledError, RunFailedError, WorkloadError
from perfdiff.measuring import coverage, linecounts, longruns, unaltered, variants
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.making import Block, Makers, OwnMachine, PairMaker
from perfdiff.measuring.outside import read_outside
from perfdiff.measuring.site import Site, Variant
from perfdiff.measuring.surveying import surveyed
from perfdiff.measuring.wholepairs import CONFIRMED_S, WholePairs
from perfdiff.records import store
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.recorded import Held
from perfdiff.records.schema import Experiment, HotSpot, LibraryCalls, Note, Phase, Point, Run, Skipped, Totals

FIRST_LOOK = 5  # blocks before the first look at the findings: five runs a side is the least the comparison can work with
NEXT_LOOK = 2  # times as many blocks before each next one


@dataclass(slots=True)
class Rounds:
    """All runs of one comparison, and what they recorded; each kind of round adds its own."""

    bench: Bench
    site: Site
    makers: Makers = OwnMachine
    runs: list[Run] = field(default_factory=list)
    notes: tuple[Note, ...] = ()
    _skipped: tuple[Skipped, ...] = ()
    _long: tuple[Point, ...] = ()  # points with so long runs that calls are timed there once a side
    _spots: tuple[HotSpot, ...] = ()
    _library: LibraryCalls | None = None
    _timed: Assembly = field(default_factory=lambda: Assembly({}, {}))
    _counted: Assembly | None = None
    _collector: Collector = field(init=False)
    _abreast: Abreast = field(init=False)
    _maker: PairMaker = field(init=False)
    _pairs: WholePairs = field(init=False)
    _lines: PlaceExperiment | None = None
    _met: tuple[str, ...] = ()
    _outside: tuple[str, ...] = ()
    _seen: tuple[int, Findings] | None = None  # of so many runs
    _open: int | None = None  # the function that kept runs going at the last look

    def __post_init__(self) -> None:
        self._collector = self.bench.collector(self.site.targets)  # one for all rounds: it numbers the runs
        self._abreast = Abreast(self._collector)
        self._maker = self.makers(self.bench, self.site, self._collector)
        self._pairs = WholePairs(self.bench, self._maker, self.budget_s)

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
                self.notes += (unaltered.contradicted(longer),)
                self.site, self.runs = replace(self.site, same_code=False), []
        if not self.site.same_code:
            coverage.require_probes(self.bench, self.site)

    def compare_whole_runs(self) -> None:
        """Run the plain builds in pairs until every point is decided, or patience ends: called again, it goes on where it ended."""
        self._pairs.make(self.runs)

    @property
    def hang_on_whole_runs(self) -> bool:
        """Return whether calls and counts leave the answer open, but more whole runs within the time budget would decide it."""
        return self._pairs.would_decide(self.runs) and self._look().verdict is Verdict.INCONCLUSIVE

    def count_all(self) -> None:
        """Count all functions if whole runs exclude a slow-down: if all counts are the same, no functions need to be chosen.

        Shorter runs come first, as counts that differ mostly do so at small inputs, too: nothing is kept from the first that do, or where
        all points would take longer than the budget at the pace of those before, and a survey then chooses what is counted.
        """
        points, budget_s = self.bench.points, self.bench.request.config.counters.budget_s
        is_affordable = self._countable == points
        if self._wants_calls or self.are_answered or not is_affordable or not self._pairs.judged(self.runs).are_as_fast:
            return
        variant = variants.census(self.bench, self.site)
        if not variant.is_whole:
            return
        ordered = counting.shortest_first(points, self.runs)
        calls, counted = (Counted(self._assembly(variant, points)) for _ in range(2))
        started = time.monotonic()
        self.bench.progress.stage("counting all functions", (1 + len(points) * counting.LEAST_ROUNDS) * len(self.bench.sides))
        if self._failure(variant, ordered[:1], 0, calls):
            return
        variant = variants.counting_apart(self.bench, variant, self._counted_apart(calls, ordered[0]))
        for seen, point in enumerate(ordered, 1):
            if any(self._failure(variant, [point], block, counted) for block in range(counting.LEAST_ROUNDS)):
                return
            is_late = time.monotonic() - started > budget_s * counting.share(ordered[:seen], points, self.runs)
            if (is_late and seen < len(ordered)) or not self._is_same_work(counted, seen):
                return
        self.site = coverage.answered_by_counts(self.bench, self.site, variant, counted, self._collector)
        self._keep(counted, variant)

    @property
    def _countable(self) -> tuple[Point, ...]:
        """Return the points whose counted runs the budget allows."""
        each, budget_s = self.site.slowdown * counting.LEAST_ROUNDS, self.bench.request.config.counters.budget_s
        return counting.affordable(self.bench.points, self.runs, budget_s, len(self.bench.sides), each)

    def _counted_apart(self, calls: Counted, point: Point) -> frozenset[int]:
        """Return the functions whose own counts are worth their cost, given their numbers of calls at a point."""
        cpu_ns = float(np.median([run.cpu_ns for run in self.runs if run.phase is Phase.PLAIN and run.point == point.id]))
        return census.counted_apart(calls.calls, calls.starts, self.site.subjects.suspects, cpu_ns)

    def _is_same_work(self, counted: Counted, points: int) -> bool:
        """Return whether all functions have the same counts on both sides at that many points."""
        functions = self.site.subjects.infos(frozenset().union(*counted.called.values()))
        called = counted.library.named(self.bench.packs.compiled)
        runs, counts = tuple(counted.runs), counted.assembly.totals()
        experiment = replace(self.experiment(), functions=functions, runs=runs, counts=counts, library=called)
        return looks.does_same_work(experiment, points, self.bench.request.config.compare)

    def locate(self) -> None:
        """Choose functions, count them, and time their calls as far as that is needed.

        Of two revisions, whose whole runs have an answer without it, builds with probes that cannot be made or run cost the calls alone.
        """
        try:
            self.choose()
            self.count()
            if not self.are_answered:
                self.time_calls()
        except (BuildError, RunFailedError, NothingCalledError) as error:
            is_answered = not isinstance(error, NothingCalledError) or self._meet_what_differs()
            if len(self.bench.sides) < 2 or not is_answered:
                raise
            self.runs = [run for run in self.runs if run.phase is not Phase.TIMED]
            self._timed = Assembly({}, {})
            self.site = coverage.untimed(self.site)
            self.notes += (caveats.calls_not_timed(error),)

    def _meet_what_differs(self) -> bool:
        """Return whether whole runs are slower and meet files that differ: then they are the project's, though no function is called."""
        if self._pairs.judged(self.runs).slower:
            self.look_for_files()
        return bool(self._met)

    def choose(self) -> None:
        """Survey all functions, and choose those that are counted and timed."""
        points, plain = self.bench.points, [run for run in self.runs if run.phase is Phase.PLAIN]
        if len(self.bench.sides) > 1 and not self._wants_calls:
            self._long = longruns.spared(points, plain, self._pairs.judged(plain), self.budget_s, FIRST_LOOK)
            self.notes += longruns.note(self._long, plain)
        self.site = surveyed(self.bench, self.site, plain, [point for point in points if point not in self._long])

    def count(self) -> None:
        """Count the chosen functions within the budget, until counts of a single thread repeat; discard all counts if a run fails."""
        variant = variants.counted(self.bench, self.site)
        self.notes += variant.notes
        budget_s = self.bench.request.config.counters.budget_s
        points = self._countable if variant.targets else ()
        if variant.targets:
            self.notes += counting.left_out(self.bench.points, points, budget_s, self.site.slowdown)
        if not points:
            return
        counted = Counted(self._assembly(variant, points))
        self.bench.progress.stage("counting", len(points) * len(self.bench.sides) * counting.MOST_ROUNDS)
        started = time.monotonic()
        for block in range(counting.MOST_ROUNDS):
            if failure := self._failure(variant, points, block, counted):
                self.notes += (counting.failed(failure),)
                return
            is_enough = block + 1 >= counting.LEAST_ROUNDS and counted.repeats
            if is_enough or (time.monotonic() - started) * (block + 2) / (block + 1) > budget_s:
                break
        self._keep(counted, variant)

    def _failure(self, variant: Variant, points: Sequence[Point], block: int, counted: Counted) -> str:
        """Make a block of counted runs; return the reason if one of them failed, else ""."""
        self._collector.targets = {**self._collector.targets, **variant.targets}
        slots = schedule.counted_block(points, block, self.bench.request.config.compare.seed, self.bench.sides)
        try:
            for run, recordings in self._abreast.collect(slots, self.runs, self.bench.progress.advance):
                if not all(recording.complete for recording in recordings):
                    return f"a process of {run.side} was killed or could not write on; let it end by exit or return"
                counted.add(run, recordings)
        except DiskFilledError:
            raise  # what fills the disk is cleared away, and nothing can be kept
        except WorkloadError as error:
            return str(error)
        return ""

    def _keep(self, counted: Counted, variant: Variant) -> None:
        self.runs += counted.runs
        self._counted = counted.assembly
        self._spots = counted.spots.named(self.bench.packs.compiled, variant.built)
        self._library = counted.library.named(self.bench.packs.compiled)

    def _assembly(self, variant: Variant, points: Sequence[Point]) -> Assembly:
        return Assembly(variant.probes, {point.id: point for point in points}, counted=True)

    @property
    def are_answered(self) -> bool:
        """Return whether no calls need to be timed: nothing that runs differs, or whole runs and exact counts exclude a slow-down.

        Counts are asked where a function changed, to tell how much of it ran. Who asked for calls, of one function or of all, gets them
        wherever anything has to run.
        """
        if self.site.same_code or self._wants_calls:
            return self.site.same_code
        judged = self._pairs.judged(self.runs)
        if not unaltered.has_changed(self.site):
            return judged.are_as_fast
        return looks.answered(judged, self.experiment(), self.bench.request.config.compare)

    @property
    def _wants_calls(self) -> bool:
        return self.bench.request.config.measure.thorough or bool(self.bench.request.followed)

    def time_calls(self) -> None:
        """Run the builds with probes in interleaved blocks until the findings are settled, or the number of runs or the time is used up."""
        config, points, sides = self.bench.request.config, self.bench.points, self.bench.sides
        variant = self._maker.fitted(variants.recipe(self.bench, self.site))
        self._skipped = variant.skipped
        self._timed = Assembly(variant.probes, {point.id: point for point in points})
        machines = self._maker.count
        runs_at = {id_: machines * runs for id_, runs in workloads.runs_at(config.workloads, points).items()}
        runs_at |= dict.fromkeys((point.id for point in self._long), 1)
        blocks = [schedule.pairs(slots) for slots in schedule.timed_blocks(points, runs_at, config.compare.seed, sides)]
        missing = {block: len(pairs) for block, pairs in enumerate(blocks)}
        runs: list[Run] = []
        incomplete: list[Run] = []
        self.bench.progress.stage("measuring", sum(len(pair) for pairs in blocks for pair in pairs))
        look, started, own, done, is_over = FIRST_LOOK, time.monotonic(), self.runs, 0, False

        def wanted() -> Iterator[Block]:
            yield from itertools.takewhile(lambda _: not is_over, blocks)

        for made in self._maker.made(wanted(), planned=len(blocks) * len(points) * len(sides)):
            for run, recordings in made.runs:
                runs.append(run)
                incomplete += [run] * (not all(recording.complete for recording in recordings))
                self._timed.add(run, recordings)
            missing[made.pair[0].block] -= 1
            if missing[made.pair[0].block]:
                continue
            done += 1
            self.runs = [*own, *runs]
            machines = self._maker.count
            if len(sides) > 1 and not is_over and FIRST_LOOK * machines <= done < len(blocks):
                is_look = done >= look * machines
                is_over = time.monotonic() - started > self.budget_s or (is_look and self._is_settled())
                look = look * NEXT_LOOK if is_look else look
        self.runs = [*own, *runs]
        self._leave_out_unfinished({run.id for run in incomplete})
        self.notes += caveats.recordings_incomplete(incomplete, points)

    def _leave_out_unfinished(self, incomplete: Collection[int]) -> None:
        """Leave out functions that ran in `incomplete` runs alone, and of which no call ended there: nothing can be said of them."""
        totals = self._timed.totals()
        ended = totals.function[(totals.wall_ns > 0) | ~np.isin(totals.run, [*incomplete])]
        unfinished = self.site.measured & {*totals.function.tolist()} - {*ended.tolist()}
        self._skipped += self.site.subjects.unfinished(unfinished)
        self.site = replace(self.site, measured=self.site.measured - unfinished)
        for assembly in filter(None, (self._timed, self._counted)):
            assembly.forget(unfinished)

    def _is_settled(self) -> bool:
        """Return whether more probed runs cannot change the answer; the look ends at the first function whose verdict they could change."""
        config = self.bench.request.config.compare
        seen = looks.glance(self.experiment(), Held(self._timed.tables()), config, self._open)
        self._open = seen.keeps_open
        if seen.findings is not None:
            self._seen = len(self.runs), seen.findings
        return seen.are_settled

    def _look(self) -> Findings:
        """Return the findings so far, from the last look if no run was made since: a look at a large program takes seconds."""
        if self._seen is None or self._seen[0] != len(self.runs):
            found = looks.look(self.experiment(), Held(self._timed.tables()), self.bench.request.config.compare)
            self._seen = len(self.runs), found
        return self._seen[1]

    @property
    def ask_for_files(self) -> bool:
        """Return whether whole runs are slower, and no function explains it: files that differ may."""
        if self.are_answered or not self._pairs.judged(self.runs).slower:
            return False
        findings = self._look()
        return findings.verdict is Verdict.REGRESSION and not any(each.verdict is Verdict.REGRESSION for each in findings.functions)

    def look_for_files(self) -> None:
        """Find which files that differ runs meet at the points that are slower, in the first run that meets any."""
        slower = {end.point.id for end in self._pairs.judged(self.runs).slower}
        self._met = unaltered.met(self.bench, self.site, [point for point in self.bench.points if point.id in slower])

    @property
    def bring_good_news(self) -> bool:
        """Return whether the answer is that nothing is slower, or that the program is faster."""
        return self.site.same_code or self._look().verdict in (Verdict.UNCHANGED, Verdict.IMPROVEMENT)

    def look_outside(self) -> None:
        """Find which files outside of the trees runs read that were written for them: then base and head did not start alike."""
        self.bench.progress.stage("looking what runs read elsewhere", None)
        self._outside = read_outside(self.bench, self.site, self.runs)

    @property
    def ask_for_lines(self) -> bool:
        """Return whether something is slower, or the answer is open, so that lines should be counted."""
        if self.are_answered or not linecounts.affordable(self.bench, self.runs):
            return False
        found = self._look()
        verdicts = {found.verdict, *(each.verdict for each in found.functions)}
        return Verdict.REGRESSION in verdicts or found.verdict is Verdict.INCONCLUSIVE

    def count_lines(self) -> None:
        """Count how often lines run; on failure the report has no lines."""
        found = linecounts.count(self.bench, self.site, self._collector, self.runs)
        self._lines = found.experiment
        self.notes += found.notes

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
            skipped=(*site.skipped, *self._skipped),
            runs=tuple(self.runs),
            totals=self._timed.totals(),
            edges=self._timed.edges(),
            notes=tuple(dict.fromkeys(self._all_notes())),
            counts=self._counts(),
            folded=site.folded,
            spots=self._spots,
            library=self._library,
            same_code=site.same_code,
            stages=bench.progress.seconds,
            machines=self._maker.machines,
            reach=site.reach,
            met=self._met,
            outside=self._outside,
        )

    def _all_notes(self) -> Iterator[Note]:
        """Yield what the reader should know of the runs; the survey and later runs may have told the same."""
        points = self.bench.points
        yield from self.site.notes
        yield from caveats.sizes_not_felt(self.runs, points)
        yield from caveats.sizes_as_texts(points)
        yield from self.notes
        yield from self._maker.notes

    def _counts(self) -> Totals | None:
        if self._counted is None:
            return None
        return folding.with_folded(self._counted, self.site.selection.folds)

    def save(self, folder: Path) -> None:
        """Store the experiment."""
        store.save(folder, self.experiment(), self._timed.tables(), self._counted.tables() if self._counted else (), self._lines)

    @property
    def budget_s(self) -> float:
        """Return how many seconds whole runs may take, and the same again for runs with probes."""
        return self.bench.request.config.measure.budget_for(self.site.built_s)
