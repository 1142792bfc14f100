"""Which cases of suites reach what changed: runs of head with probes in all functions, which only count calls, tell it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfdiff.collect.built.workshop import Probes
from perfdiff.collect.choosing.subjects import Subjects, is_of_tests
from perfdiff.collect.recordings.assembly import Assembly
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.suites import SuiteCase, in_processes, together
from perfdiff.config import WorkloadConfig
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site, Targets
from perfdiff.records import plan
from perfdiff.records.schema import Phase

_PARTS = 8  # that tests of one process are split into where some of them reach the change

Calls = Mapping[int, float]  # in a run, by function


def sought(subjects: Subjects, exclude: Sequence[str]) -> frozenset[int]:
    """Return the functions that a case has to call to tell of the change: what changed, or the nearest callers of what has no probe.

    Functions of tests are what runs, not what is measured.
    """
    changed = {id_ for id_ in subjects.suspects if not is_of_tests(subjects.pairs[id_].shown.file)}
    unprobed = subjects.unprobed(exclude)
    above = itertools.chain.from_iterable(unprobed[id_] for id_ in changed & unprobed.keys())
    return frozenset((changed - unprobed.keys()) | set(above))


def told_apart(
    tests: Sequence[SuiteCase], calls: Callable[[SuiteCase], Calls | None], in_time: Callable[[], bool]
) -> Iterator[tuple[SuiteCase, Calls | None]]:
    """Yield which of some tests that may run in one process reach what is wanted, with their calls of it; None of those that fail.

    They run together first, and in ever smaller parts where that reaches something or fails: of many tests few runs find the few that do
    (group testing: Dorfman 1943). Parts that do not run `in_time` stay together.
    """
    case = tests[0] if len(tests) == 1 else together(tests, f"{tests[0].name} and {len(tests) - 1} more")
    called = calls(case) if in_time() else None
    if len(tests) == 1 or called == {} or not in_time():
        yield case, called
        return
    for start, end in itertools.pairwise(_bounds(len(tests))):
        yield from told_apart(tests[start:end], calls, in_time)


@dataclass(slots=True)
class Reaching:
    """Runs cases once in head, and sees how often each calls what is `wanted`.

    All these runs may take `patience_s` seconds; `failing` are the names of cases that failed, or were not run by then. Making it builds
    both sides; it raises BuildError.
    """

    bench: Bench
    site: Site
    wanted: frozenset[int]
    patience_s: float
    failing: list[str] = field(default_factory=list)
    _probes: Probes = field(init=False)
    _targets: Targets = field(init=False)

    def __post_init__(self) -> None:
        workshop, subjects = self.bench.workshop, self.site.subjects
        probeable = subjects.probeable(self.bench.request.config.probes.exclude)
        self._probes = {side: subjects.survey_probes(side, probeable) for side in self.bench.sides}
        built = workshop.probed(Phase.SURVEY, self._probes, self.site.plain)
        self._targets = workshop.targets(Phase.SURVEY, built, dict.fromkeys(probeable, plan.Entry.tally()), self._probes)

    def of(self, cases: Sequence[SuiteCase]) -> Iterator[tuple[SuiteCase, Calls]]:
        """Yield the cases that reach what is wanted, tests that could not be told apart as one, each with its calls of that."""
        self.bench.progress.stage("looking which cases reach the change", None)
        ends_s = time.monotonic() + self.patience_s
        for group in in_processes(cases):
            for case, calls in told_apart(group, lambda case: self.calls(case.workload(1)), lambda: time.monotonic() < ends_s):
                if calls:
                    yield case, calls
                elif calls is None:
                    self.failing.append(case.name)

    def calls(self, workload: WorkloadConfig) -> Calls | None:
        """Return how often a run of a workload, at its first point, calls what is wanted; None where it fails."""
        config = self.bench.request.config
        once = replace(self.bench, request=replace(self.bench.request, config=replace(config, workloads=(workload,))))
        point, side = once.points[0], self.bench.sides[-1]
        try:
            ((run, recordings),) = once.collector({**self.site.targets, **self._targets}).collect(
                [Slot(Phase.SURVEY, point, side, 0)], self.bench.progress.advance
            )
        except DiskFilledError:
            raise
        except WorkloadError:
            return None
        assembly = Assembly(self._probes, {point.id: point})
        assembly.add(run, recordings)
        totals = assembly.totals()
        return {
            function: float(calls)
            for function, calls in zip(totals.function.tolist(), totals.calls, strict=True)
            if function in self.wanted and calls > 0
        }


def _bounds(count: int) -> list[int]:
    """Return where so many tests are split into parts that are about as large as each other."""
    parts = min(_PARTS, count)
    return [round(count * part / parts) for part in range(parts + 1)]
