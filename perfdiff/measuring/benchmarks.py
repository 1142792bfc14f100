"""Suites of benchmarks and tests, as workloads: which there are, the builds tell, and which of them are run, what changed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from perfdiff import units
from perfdiff.collect.choosing import witnesses
from perfdiff.collect.choosing.witnesses import CaseCandidate
from perfdiff.collect.execution import kernel
from perfdiff.collect.runs.suitecases import SuiteCase, joined
from perfdiff.collect.runs.suites import Suites, apart
from perfdiff.config import WorkloadConfig
from perfdiff.deadline import CutShortError
from perfdiff.errors import BuildError, DiskFilledError, NothingToRunError, WorkloadError
from perfdiff.languages.frameworks import frameworks, unlisted
from perfdiff.languages.listing import LIMIT_S
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.firstwords import FirstRuns
from perfdiff.measuring.reaching import Calls, Reaching, names_changed, sought
from perfdiff.measuring.site import Site
from perfdiff.records.endless import EndlessCase
from perfdiff.records.schema import Note, Phase

_RUNS = 20  # that a comparison makes of each point, as a rule: ten of each side
_SHOWN = 8  # names of cases in a note
_MOST_CHARACTERS = 400  # of why nothing is in a suite: some frameworks say all that they have called
# Of the time that a user gives: whole runs answer first, and counts, calls and lines come after them.
_RUN_SHARE, _LOOK_SHARE = 1 / 3, 1 / 10
_IDLE_CPUS = 1.5  # with fewer, two listings at the same time are in each other's way: two, less what the system itself does
_LONGER = 1.5  # times its limit that each of them may take then: both get 2/3 of a CPU where one other program is at work
_MOST_LOOK_S = 30.0  # a first answer is to be there within three minutes: two listings, runs with probes, and then whole runs


def with_benchmarks(
    bench: Bench, site: Site, built_with: str = "", *, patient: bool = False, begun: Selecting | None = None
) -> tuple[Bench, Site]:
    """Return the bench with suites replaced by those of their cases that tell most of the change, as many as the time allows.

    Its later builds make what these run, and no more. `built_with` are options that the build was guessed to need. If it is `patient`,
    benchmarks of guessed suites may take long. What was `begun` before functions were found goes on. Raises WorkloadError where a
    configured suite cannot be listed, or nothing is in it, NothingToRunError where none is found that runs.
    """
    config = bench.request.config
    if not any(workload.suite for workload in config.workloads):
        return bench, site
    bench.progress.stage("listing benchmarks", None)
    selecting = begun or Selecting(bench, site, built_with, patient)
    try:
        if begun:
            begun.look_for_changes(site)
        selecting.list_suites()
    except CutShortError:
        first = selecting.first
        if first is None or not first.tell_something:
            raise
        unchosen = Note("cases-chosen", f"it was not known yet which cases reach the change: these are runs{first.of}")
        return first.bench, replace(site, notes=(*site.notes, *selecting.notes, unchosen), first_runs=tuple(first.runs))
    written = [workload for workload in config.workloads if workload.suite is None]
    chosen = selecting.chosen()
    workloads = tuple(apart([*written, *(case.workload(case.calls, selecting.at_most(LIMIT_S)) for case in chosen)]))
    for note in selecting.notes:
        bench.progress.note(note.text)
    listed = tuple({case.suite.name: case.suite for case in chosen}.values())
    build, commands = config.build, [command for workload in workloads for command in workload.commands]
    for kind in dict.fromkeys(workload.suite.kind for workload in config.workloads if workload.suite):
        build = frameworks()[kind].framework.needed(build, commands)
    request = replace(bench.request, config=replace(config, build=build, workloads=workloads, listed=listed))
    site = replace(
        site,
        notes=(*site.notes, *selecting.notes),
        endless=tuple(selecting.endless),
        failing=tuple(selecting.failing_in_head),
        is_idle=selecting.is_idle,
    )
    return replace(bench, request=request), site


def _turns(workloads: Sequence[WorkloadConfig]) -> Iterator[list[WorkloadConfig]]:
    """Yield the suites that are configured, and then those that are guessed, what is alike together and the most telling first."""
    suites = [(workload, workload.suite) for workload in workloads if workload.suite is not None]
    yield [workload for workload, suite in suites if not suite.guessed]
    guessed = [(workload, frameworks()[suite.kind].framework.material) for workload, suite in suites if suite.guessed]
    for _, alike in itertools.groupby(guessed, key=itemgetter(1)):
        yield [workload for workload, _ in alike]


@dataclass(slots=True)
class Selecting:
    """Chooses among what is in suites, as they are listed: all cases where the user named the suites and there is time for it."""

    bench: Bench
    site: Site
    built_with: str = ""
    patient: bool = False
    notes: list[Note] = field(default_factory=list)
    endless: list[EndlessCase] = field(default_factory=list)
    failing_in_head: list[str] = field(default_factory=list)
    first: FirstRuns | None = None
    _listed: list[SuiteCase] = field(default_factory=list)
    _reaching: list[tuple[SuiteCase, Calls]] = field(default_factory=list)
    _missing: list[str] = field(default_factory=list)
    _failing: list[str] = field(default_factory=list)
    _wanted: frozenset[int] = field(init=False)
    _waiting: Iterator[list[WorkloadConfig]] = field(init=False)  # suites that were not listed yet

    def __post_init__(self) -> None:
        self._waiting = _turns(self.bench.request.config.workloads)
        self._wanted = self._changed()

    def _changed(self) -> frozenset[int]:
        """Return the functions that cases are to reach."""
        # What takes long as it is takes minutes with probes in all functions, and there is no choice.
        is_choice = len(self.bench.sides) > 1 and not self.patient
        return sought(self.site.subjects, self.bench.request.config.probes.exclude) if is_choice else frozenset()

    @property
    def is_complete(self) -> bool:
        """Return whether the cases that were listed reach all that changed; where no function did, any case will do."""
        reached = {function for _, calls in self._reaching for function in calls}
        return bool(self._listed) and self._wanted <= reached

    @property
    def is_idle(self) -> bool:
        """Return whether cases of guessed suites were tried, and none reaches what changed."""
        was_tried = len(self._listed) > len(self._failing)
        return self._are_guessed and was_tried and bool(self._wanted) and not self._reaching and not self.endless

    @property
    def listed(self) -> Sequence[SuiteCase]:
        """Return the cases of the suites that were listed so far."""
        return self._listed

    def list_suites(self) -> None:
        """List suites, the most telling first, until their cases reach all that changed."""
        while not self.is_complete and (suites := next(self._waiting, None)) is not None:
            self.add(suites)

    def look_for_changes(self, site: Site) -> None:
        """Take note of what changed, and see which of the cases that were listed before reach it."""
        self.site = site
        self._wanted = self._changed()
        self._look_if_asked(self._listed)

    def add(self, suites: Sequence[WorkloadConfig]) -> None:
        """List suites, and see which of their cases reach the change; one that was guessed may have nothing."""
        bench = self.bench
        plain = {side: self.site.targets[Phase.PLAIN, side] for side in bench.sides}
        abreast = len(plain) > 1 and kernel.granted_cpus() >= len(plain)
        longer = _LONGER if abreast and kernel.idle_cpus() < _IDLE_CPUS else 1.0
        likely = names_changed(self.site.subjects) if len(plain) > 1 else ()
        lists = Suites(plain, bench.request.inherited, bench.room, bench.upkeep, abreast, likely)
        fresh: list[SuiteCase] = []
        for workload in suites:
            assert workload.suite is not None, "only suites are listed"
            try:
                limit_s, is_patient = (_MOST_LOOK_S, self.patient) if workload.suite.guessed else (LIMIT_S, True)
                listed = lists.cases(workload, bench.executor, limit_s=longer * self.at_most(limit_s), patient=is_patient)
            except DiskFilledError:
                raise
            except WorkloadError as error:
                if not workload.suite.guessed:
                    raise
                self._missing.append(f"{_title(workload)}: {(error.detail or str(error))[:_MOST_CHARACTERS]}")
                continue
            fresh += listed.cases
            self.notes += listed.notes
            self.endless += listed.endless
            self.failing_in_head += listed.failing
        self._listed += fresh
        self._look_if_asked(fresh)

    def _look_if_asked(self, cases: Sequence[SuiteCase]) -> None:
        if cases and self._wanted and (self._are_guessed or not self._fit):
            self._look(cases)

    def _look(self, cases: Sequence[SuiteCase]) -> None:
        """See which cases reach the change; where no probes can be had, all are as good.

        Those that seem slower are kept in any case: with probes they would take the time of all others.
        """
        reaching = Reaching(self.bench, self.site, self._wanted, self.at_most(_MOST_LOOK_S), lambda: self._run_first(cases))
        slower = [case for case in cases if case.seems_slower]
        try:
            reached = list(reaching.of([case for case in cases if not case.seems_slower]))
        except BuildError as error:
            self._wanted = frozenset()
            self.bench.progress.note(f"which cases reach the change is not known: {error}")
            return
        self._reaching += (*reached, *((case, {}) for case in slower))
        self._failing += reaching.failing
        if reaching.failing:
            text = f"in a run with probes, these cases failed or had no time, and are left out: {units.listed(reaching.failing, _SHOWN)}"
            self.notes.append(Note("benchmarks-left-out", text))

    def _run_first(self, cases: Sequence[SuiteCase]) -> None:
        """Make whole runs of cases, whichever reach the change, and say once what they show."""
        if self.first is None and (first := FirstRuns.planned(self.bench, self.site, cases)):
            self.first = first
            first.make(self.site)

    def chosen(self) -> list[SuiteCase]:
        """Return the cases that are run, tests of one process together, and tell of the choice; raise NothingToRunError without any."""
        if not self._listed and self.endless:
            return []
        if not self._listed:
            raise NothingToRunError(self._nothing())
        if self._fit and not self._are_guessed:
            return self._listed
        candidates = self._reaching or [(case, {}) for case in self._listed]
        places = witnesses.chosen(
            [CaseCandidate(case.run_s, _in_all(case, calls), _added_s(case), case.seems_slower) for case, calls in candidates],
            self._affordable_s,
        )
        cases = list(joined([candidates[place][0] for place in places]))
        text = self._told(cases)
        if self.built_with or sum(case.size for case in cases) < len(self._listed):
            self.notes.append(Note("cases-chosen", text))
        elif self._are_guessed:
            self.bench.progress.note(text)
        return cases

    def _told(self, cases: Sequence[SuiteCase]) -> str:
        suites = units.listed(list(dict.fromkeys(_title(case.suite) for case in self._listed)), _SHOWN)
        tried = len(self._listed) - len(self._failing)
        count = len(self._reaching)
        if not self._wanted:
            seen = f"{_counted(len(self._listed))} of {suites} can be run"
        elif not tried:
            seen = f"of {_counted(len(self._listed))} of {suites} it is not known which reach the change"
        else:
            seen = f"{count} of {_counted(tried)} of {suites} {'reaches' if count == 1 else 'reach'} the change"
        built = f", built with {self.built_with}" if self.built_with else ""
        text = f"{seen}{built}; what is run: {units.listed([case.name for case in cases], _SHOWN)}"
        return f"{text}; `perfdiff init` writes this down" if self._are_guessed else text

    def _nothing(self) -> str:
        looked = "; ".join(self._missing)
        return (
            f"nothing to run was found in what was built ({looked}){unlisted(self.bench.request.repository)}; write what a user of the "
            "program runs, as `perfdiff BASE HEAD --param n=1000,3000,10000 -- ./program {n}`, or a [[workload]]"
        )

    @property
    def _are_guessed(self) -> bool:
        return any(case.suite.suite is not None and case.suite.suite.guessed for case in self._listed)

    @property
    def _affordable_s(self) -> float:
        """Return how many seconds a run of every point may take, all together, so that whole runs keep within their time."""
        budget_s = self.bench.request.config.measure.budget_for(self.site.built_s)
        return min(budget_s, _RUN_SHARE * self.bench.request.deadline.left_s) / _RUNS

    @property
    def _fit(self) -> bool:
        return sum(case.run_s for case in self._listed) <= self._affordable_s

    def at_most(self, seconds: float) -> float:
        """Return how long listing a side, or finding what its cases reach, may take: `seconds`, or a part of the time that is left."""
        return min(seconds, _LOOK_SHARE * self.bench.request.deadline.left_s)


def _counted(number: int) -> str:
    return "1 case" if number == 1 else f"{number} cases"


def _in_all(case: SuiteCase, calls: Calls) -> Calls:
    """Return how often runs of all points of a case call functions that one call of it calls so often."""
    return {function: number * case.calls * case.points for function, number in calls.items()}


def _added_s(case: SuiteCase) -> float:
    """Return what a case adds to the runs of others: a short test is run in the process of the others of its suite."""
    return case.call_s if case.is_short else case.run_s


def _title(workload: WorkloadConfig) -> str:
    """Return what people call a suite."""
    suite = workload.suite
    assert suite is not None, "only suites are listed"
    title = frameworks()[suite.kind].framework.title
    return f"{suite.what} ({title})" if suite.what else title
