"""Which cases of suites reach what changed: runs of head with probes in all functions, which only count calls, tell it."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfdiff.collect.choosing.callmap import CallMap
from perfdiff.collect.choosing.subjects import Probes, Subjects
from perfdiff.collect.recordings import marks
from perfdiff.collect.recordings.assembly import Assembly
from perfdiff.collect.recordings.marks import MarkedRun
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.suitecases import SuiteCase, in_processes, together
from perfdiff.collect.runs.targets import Targets
from perfdiff.config import WorkloadConfig
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site
from perfdiff.records import plan
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Phase, Point
from perfdiff.records.testfiles import is_of_tests

# Times the patience that one run may take: a listing tried all cases within that, and probes make runs two or three times as long.
_MOST_OF_ONE = 3.0
_LEAST_S = 1.0  # for which tests of a run may begin that is made at all
_PARTS = 8  # that tests of one process are split into where some of them reach the change

_WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])")  # of snake_case, and of CamelCase

Calls = Mapping[int, float]  # in a run, by function


def sought(subjects: Subjects, exclude: Sequence[str]) -> frozenset[int]:
    """Return the functions that a case has to call to tell of the change: what changed, or the nearest callers of what has no probe.

    Functions of tests are what runs, not what is measured, but for what macros make of them where nothing else changed; and what runs as a
    part of the program is loaded, all cases do, which tells none from the others.
    """
    suspects = {id_: subjects.pairs[id_] for id_ in subjects.suspects if not subjects.pairs[id_].shown.loads}
    changed = {id_ for id_, pair in suspects.items() if not is_of_tests(pair.shown.file)} or {*filter(subjects.expands, suspects)}
    unprobed = subjects.unprobed(exclude)
    above = itertools.chain.from_iterable(unprobed[id_] for id_ in changed & unprobed.keys())
    return frozenset((changed - unprobed.keys()) | set(above))


def names_changed(subjects: Subjects) -> frozenset[str]:
    """Return the words in the names of changed functions and of their files, by which tests of them are named as a rule."""
    shown = (subjects.pairs[id_].shown for id_ in subjects.suspects)
    texts = (f"{definition.file} {definition.name}" for definition in shown if not is_of_tests(definition.file))
    return frozenset(word.lower() for text in texts for word in _WORD.findall(text))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run of tests calls of what is wanted; None of what fails.

    `calls` are those of all tests, `apart` those of each that the run tells from the others, by name.
    """

    calls: Calls | None
    apart: Mapping[str, Calls | None] = field(default_factory=dict)


def told_apart(
    tests: Sequence[SuiteCase],
    look: Callable[[Sequence[SuiteCase]], Seen],
    in_time: Callable[[], bool],
    share: Calls | None = None,
) -> Iterator[tuple[SuiteCase, Calls | None]]:
    """Yield tests with their calls of the wanted functions, None for one that fails; several may run in one process.

    They run together first. Where that run tells them apart, those that fail run once more without the others; else they run in ever
    smaller parts where they reach something or fail: of many tests few runs find the few that do (group testing: Dorfman 1943). Of tests
    that there is no time to tell apart, each is taken to make its `share` of what all of them do.
    """
    if not in_time():
        yield from ((test, share) for test in tests)
        return
    seen = look(tests)
    if seen.apart:
        again = [test for test in tests if seen.apart.get(test.name) is None]
        is_final = len(again) == len(tests) == len(seen.apart)
        yield from ((test, seen.apart[test.name]) for test in tests if is_final or seen.apart.get(test.name) is not None)
        yield from told_apart(again, look, in_time) if again and not is_final else ()
        return
    if len(tests) == 1 or seen.calls == {}:
        yield from ((test, seen.calls) for test in tests)
        return
    share = None if seen.calls is None else {function: count / len(tests) for function, count in seen.calls.items()}
    for start, end in itertools.pairwise(_bounds(len(tests))):
        yield from told_apart(tests[start:end], look, in_time, share)


def _marked(tests: Sequence[SuiteCase], workload: WorkloadConfig) -> WorkloadConfig:
    """Return the workload of several tests such that a shell that runs them marks each; drivers do so by themselves."""
    commands = {test.name: test.batch.case for test in tests if test.batch is not None and test.batch.is_of_commands}
    return replace(workload, command=marks.script(commands)) if 1 < len(commands) == len(tests) else workload


def named(marked: MarkedRun, tests: Sequence[SuiteCase]) -> MarkedRun:
    """Return a marked run with the names of tests in place of those that their driver marks them with."""
    names = {word: test.name for test in tests if test.batch is not None for word in shlex.split(test.batch.case)}
    passed = {names.get(name, name): calls for name, calls in marked.passed.items()}
    return replace(marked, passed=passed, failed=frozenset(names.get(name, name) for name in marked.failed))


def _one_process(tests: Sequence[SuiteCase]) -> SuiteCase:
    return tests[0] if len(tests) == 1 else together(tests, f"{tests[0].name} and {len(tests) - 1} more")


@dataclass(slots=True)
class Reaching:
    """Runs cases once in head, and sees how often each calls what is `wanted`; what earlier comparisons saw does not run again.

    All these runs may take `patience_s` seconds, builds apart; `failing` are the names of cases that failed, or were not run by then.
    `before_build` is called once it is known that a build with probes is needed.
    """

    bench: Bench
    site: Site
    wanted: frozenset[int]
    patience_s: float
    before_build: Callable[[], None] = lambda: None
    failing: list[str] = field(default_factory=list)
    _heads: Mapping[str, tuple[int, str]] = field(init=False)  # number and digest of head's functions, by key
    _probes: Probes = field(default_factory=dict)
    _targets: Targets = field(default_factory=dict)
    _spent_s: float = 0.0

    def __post_init__(self) -> None:
        pairs = self.site.subjects.pairs
        sides = {id_: pair.head or pair.base for id_, pair in pairs.items() if pair.head or len(self.bench.sides) == 1}
        self._heads = {definition.key: (id_, definition.tokens) for id_, definition in sides.items() if definition is not None}

    def of(self, cases: Sequence[SuiteCase]) -> Iterator[tuple[SuiteCase, Calls]]:
        """Yield the cases that reach what is wanted, each with its calls of that; raise BuildError where no probes can be had."""
        for _, suite in itertools.groupby(cases, key=lambda case: case.suite):
            yield from self._of_suite(list(suite))

    def _of_suite(self, cases: Sequence[SuiteCase]) -> Iterator[tuple[SuiteCase, Calls]]:
        file = self._file(cases[0])
        callmap = CallMap.read(file, {key: text for key, (_, text) in self._heads.items()})
        unknown: list[SuiteCase] = []
        for case in cases:
            earlier = callmap.known(case.name)
            reached = self._wanted(earlier.calls) if earlier else {}
            if earlier is None or (reached and earlier.is_bound):
                unknown.append(case)
            elif reached:
                yield case, reached

        def look(tests: Sequence[SuiteCase]) -> Seen:
            workload = _marked(tests, _one_process(tests).workload(1))
            bounded = replace(workload, timeout_s=min(workload.timeout_s, _MOST_OF_ONE * self.patience_s))
            calls, marked = self._called_apart(bounded) if len(tests) > 1 else (self._called(bounded), None)
            if marked is not None:
                return self._kept(named(marked, tests), callmap)
            if calls is None:
                return Seen(None)
            callmap.keep([test.name for test in tests], calls)
            return Seen(self._wanted(calls))

        for group in sorted(
            in_processes(unknown), key=lambda group: sum(case.call_s for case in group)
        ):  # long ones take no time of others
            for case, calls in told_apart(group, look, lambda: self._spent_s < self.patience_s):
                if calls:
                    yield case, calls
                elif calls is None:
                    self.failing.append(case.name)
        with contextlib.suppress(OSError):  # it is looked for again next time
            callmap.write(file)

    def calls(self, workload: WorkloadConfig) -> Calls | None:
        """Return how often a run of a workload, at its first point, calls what is wanted; None where it fails."""
        calls = self._called(workload)
        return None if calls is None else self._wanted(calls)

    def _wanted(self, calls: Mapping[str, float]) -> dict[int, float]:
        numbered = {self._heads[key][0]: count for key, count in calls.items() if key in self._heads}
        return {function: count for function, count in numbered.items() if function in self.wanted and count > 0}

    def _called(self, workload: WorkloadConfig) -> dict[str, float] | None:
        """Return how often a run calls each function, by its key.

        It is that of the last point, as a rule the largest; where that calls nothing that is wanted, that of one in the middle, or the
        first: inputs differ in what they reach.
        """
        if not self._targets:
            self._build()
        once = self.bench.for_workloads((workload,))
        points = once.points
        calls: dict[str, float] | None = None
        for point in {point.id: point for point in (points[-1], points[len(points) // 2], points[0])}.values():
            if calls is None or not self._wanted(calls):
                seen = self._called_at(once, point)
                calls = calls if seen is None else seen
        return calls

    def _called_apart(self, workload: WorkloadConfig) -> tuple[dict[str, float] | None, MarkedRun | None]:
        """Return how often a run of several tests calls each function, and what each of them does, where their driver marks them."""
        if not self._targets:
            self._build()
        file = self.bench.room / "marks"
        wanted = {marks.WANTED: str(file), marks.LIMIT_S: f"{max(_LEAST_S, self.patience_s - self._spent_s):g}"}
        once = self.bench.for_workloads((workload,))
        recordings: list[Recording] = []
        calls = self._called_at(once, once.points[0], wanted, recordings)
        marked = marks.read(file, recordings)
        file.unlink(missing_ok=True)
        return calls, marked

    def _kept(self, marked: MarkedRun, callmap: CallMap) -> Seen:
        """Return what each test that passed calls of what is wanted, and keep what it calls.

        Functions that run before the first test, and in none of them, are called by whichever test runs.
        """
        keys = {id_: key for key, (id_, _) in self._heads.items()}
        in_tests = {function for calls in marked.passed.values() for function in calls}
        before = {keys[function]: calls * (function not in in_tests) for function, calls in marked.start.items() if function in keys}
        passed = {
            name: {keys[function]: count for function, count in own.items() if function in keys} for name, own in marked.passed.items()
        }
        callmap.keep_apart(passed, before)
        return Seen(None, {**dict.fromkeys(marked.failed), **{name: self._wanted({**before, **calls}) for name, calls in passed.items()}})

    def _called_at(
        self, bench: Bench, point: Point, variables: Mapping[str, str] | None = None, gathered: list[Recording] | None = None
    ) -> dict[str, float] | None:
        """Return the same of a point; None where the run fails.

        Its commands get `variables`, and what its processes record is added to what is `gathered`.
        """
        targets = {place: replace(target, variables={**target.variables, **(variables or {})}) for place, target in self._targets.items()}
        collector = replace(bench.collector({**self.site.targets, **targets}), sums_only=True)
        began_s = time.monotonic()
        try:
            ((run, recordings),) = collector.collect([Slot(Phase.SURVEY, point, bench.sides[-1], 0)], bench.progress.advance)
        except DiskFilledError:
            raise
        except WorkloadError:
            return None
        finally:
            self._spent_s += time.monotonic() - began_s
        if gathered is not None:
            gathered += recordings
        assembly = Assembly(self._probes, {point.id: point})
        assembly.add(run, recordings)
        totals = assembly.totals()
        keys = {id_: key for key, (id_, _) in self._heads.items()}
        counts = zip(totals.function.tolist(), totals.calls.tolist(), strict=True)
        return {keys[function]: calls for function, calls in counts if function in keys}

    def _build(self) -> None:
        """Make head's build with probes in all functions: where counts answer, base needs none."""
        self.before_build()
        head, subjects = replace(self.bench, sides=self.bench.sides[-1:]), self.site.subjects
        probeable = subjects.probeable(head.request.config.probes.exclude)
        self._probes = {side: subjects.survey_probes(side, probeable) for side in head.sides}
        built = head.workshop.probed(Phase.SURVEY, self._probes, self.site.plain)
        self._targets = head.workshop.targets(Phase.SURVEY, built, dict.fromkeys(probeable, plan.ProbePlan.tally()), self._probes)
        self.bench.progress.stage("looking which cases reach the change", None)

    def _file(self, case: SuiteCase) -> Path:
        """Return where it is kept what the cases of a suite call."""
        name = hashlib.blake2b(f"{self.bench.request.repository}\0{case.suite.command}".encode(), digest_size=16).hexdigest()
        return self.bench.request.cache / "callmaps" / f"{name}.json"


def _bounds(count: int) -> list[int]:
    """Return where so many tests are split into parts that are about as large as each other."""
    parts = min(_PARTS, count)
    return [round(count * part / parts) for part in range(parts + 1)]
