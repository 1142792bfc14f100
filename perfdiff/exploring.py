"""Trying out a project: it is built once as it lies, and what it has of benchmarks and tests is listed, and run, until something works.

What works calls functions of the project: a run with probes that only count calls tells it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfdiff import storage
from perfdiff.build.cache import BuildCache
from perfdiff.collect.built.toolchain import is_elf
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs.suitecases import SuiteCase
from perfdiff.collect.runs.suites import Suites
from perfdiff.config import Config, Suite, WorkloadConfig
from perfdiff.errors import BuildError, DiskFilledError, NothingCompiledError, WorkloadError
from perfdiff.languages.frameworks import frameworks
from perfdiff.languages.listing import LIMIT_S
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.changes import site_of
from perfdiff.measuring.guesses import benches
from perfdiff.measuring.reaching import Reaching
from perfdiff.measuring.site import Site
from perfdiff.measuring.switching import Switching
from perfdiff.progress import Progress, Stopwatch
from perfdiff.records.schema import Phase, Side
from perfdiff.request import Request
from perfdiff.revisions.pins import resolve_one
from perfdiff.revisions.repository import find_repository

_MOST_PROGRAMS = 5
_MOST_FILES = 20_000  # of a tree that are looked at for programs


@dataclass(frozen=True, slots=True)
class TriedSuite:
    """A suite that works: how many cases it has, and the shortest that calls functions of the project, in seconds, and how many of them."""

    suite: Suite
    cases: int
    shortest: str
    run_s: float
    functions: int


@dataclass(frozen=True, slots=True)
class Tryout:
    """The outcome of trying a project: the suites or else the `command` that works, and why others do not.

    `programs` are those that the build made, relative to the project, where nothing works. `config` is what was built.
    """

    suites: tuple[TriedSuite, ...] = ()
    command: WorkloadConfig | None = None
    failures: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    config: Config | None = None

    @property
    def works(self) -> bool:
        """Return whether there is something to run."""
        return bool(self.suites or self.command)


def explored(request: Request, commands: Sequence[WorkloadConfig], progress: Progress) -> Tryout:
    """Build the working tree and try the suites of the configuration, what tells most first, then `commands`, until something works.

    Where nothing does, it is built with options of its benchmarks and tests switched on. Raises PerfdiffError where it cannot be built.
    """
    progress.stage("resolving revisions", None)
    repository = find_repository(request.repository)
    with storage.in_use(request.cache, progress):
        pins = resolve_one(repository, None, snapshots=request.cache / "snapshots", apart=request.config.own_files(request.repository))
        with storage.at_work(request.cache, progress, wait_s=request.config.measure.wait_s) as room, BuildCache(request.cache) as builds:
            tools = request.packs, ProcessExecutor(), Stopwatch(progress)
            bench = Bench(request, pins, builds, room, *tools, (Side.BASE,))
            with closing(bench.upkeep):
                return _best(bench, commands)


def _best(bench: Bench, commands: Sequence[WorkloadConfig]) -> Tryout:
    """Return the tryout of the first guess that works: as it is, then with options of its build, then with what takes long.

    Where none does, it is that of the first that can be built; raises BuildError where none can.
    """
    tryouts: list[tuple[Bench, Tryout]] = []
    errors: list[BuildError] = []
    switchings: list[Switching] = []
    for guess in benches(bench):
        try:
            built = guess.workshop.plain()
        except BuildError as error:
            errors.append(error)
            switchings.append(Switching(guess, error.switches if isinstance(error, NothingCompiledError) else ()))
            continue
        tryouts.append((guess, _Tryout(guess, site_of(guess, built)).tryout(commands)))
        if tryouts[-1][1].works:
            return tryouts[-1][1]
        switchings.append(Switching.of_plain(guess, built))
    for switching in switchings:
        for _, switched in switching.builds():
            tryout = _Tryout(switched, site_of(switched, switched.workshop.plain())).tryout(commands)
            if tryout.works:
                return tryout
    if not tryouts:
        why = "; ".join((str(errors[0]), *switchings[0].failures))
        raise BuildError(why, slug=errors[0].slug, detail=errors[0].detail) from errors[0]
    for guess, _ in tryouts:
        patient = _Tryout(guess, site_of(guess, guess.workshop.plain()), patient=True).tryout(commands)
        if patient.works:
            return patient
    failures = [f"the build: {error}" for error in errors]
    failures += [failure for _, tryout in tryouts for failure in tryout.failures]
    return replace(tryouts[0][1], failures=(*failures, *(failure for switching in switchings for failure in switching.failures)))


@dataclass(slots=True)
class _Tryout:
    """One project, and why what was tried so far does not work."""

    bench: Bench
    site: Site
    patient: bool = False
    failures: list[str] = field(default_factory=list)
    _reaching: Reaching = field(init=False)

    def __post_init__(self) -> None:
        everything = frozenset(self.site.subjects.pairs)
        self._reaching = Reaching(self.bench, self.site, everything, LIMIT_S)

    def tryout(self, commands: Sequence[WorkloadConfig]) -> Tryout:
        suites = tuple(self._suites())
        working = next(filter(self._works, commands), None) if not suites else None
        plain = self.site.plain[Side.BASE]
        programs = () if suites or working else tuple(_programs(plain.folder))
        return Tryout(suites, working, tuple(self.failures), programs, self.bench.request.config)

    def _suites(self) -> Iterator[TriedSuite]:
        """Yield the suites that work, of the most telling material that any of them has."""
        config, telling = self.bench.request.config, None
        lists = Suites(
            {Side.BASE: self.site.targets[Phase.PLAIN, Side.BASE]}, self.bench.request.inherited, self.bench.room, self.bench.upkeep
        )
        for workload in config.workloads:
            if workload.suite is None:
                continue
            framework = frameworks()[workload.suite.kind].framework
            if telling is not None and framework.material != telling:
                return
            self.bench.progress.stage(f"trying {framework.title}", None)
            try:
                cases = lists.cases(workload, self.bench.executor, patient=self.patient).cases
            except DiskFilledError:
                raise
            except WorkloadError as error:
                self.failures.append(f"{framework.title}: {error}")
                continue
            tried = self._tried(workload.suite, cases)
            if tried is None:
                self.failures.append(f"{framework.title}: none of its cases that were tried calls a function of the project")
            else:
                telling = framework.material
                yield tried

    def _tried(self, suite: Suite, cases: Sequence[SuiteCase]) -> TriedSuite | None:
        """Return what is told of a suite, None where no case calls a function of the project."""
        shortest = sorted(cases, key=lambda case: case.run_s)
        reached = next(self._reaching.of(shortest), None)
        if reached is None:
            return None
        case, calls = reached
        return TriedSuite(suite, len(cases), case.name, case.run_s, len(calls))

    def _works(self, workload: WorkloadConfig) -> bool:
        calls = self._reaching.calls(workload)
        if calls:
            return True
        why = "it fails" if calls is None else "it calls no function of the project"
        self.failures.append(f"`{workload.command}`: {why}")
        return False


def _programs(folder: Path) -> Iterator[str]:
    """Yield the first programs that lie in a built tree, as they are started there."""
    seen = programs = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "CMakeFiles")
        for path in (Path(place) / name for name in sorted(names)):
            seen += 1
            if seen > _MOST_FILES or programs == _MOST_PROGRAMS:
                return
            is_own = ".so" not in path.name and path.suffix != ".o" and path.is_file() and not path.is_symlink()
            if is_own and os.access(path, os.X_OK) and is_elf(path):
                programs += 1
                yield f"./{path.relative_to(folder).as_posix()}"
