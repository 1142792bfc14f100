"""Lists the tests of JUnit 4 and 5 in a built tree: all of them run in one process, as a driver of ours tells.

A test that ends the process, or does not end, is left out, and what comes after it runs in another process. Tests that passed run once
more, the shortest ones several times: compilers take part in runs that are long enough.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from perfdiff import temporary
from perfdiff.errors import PerfdiffError
from perfdiff.languages import compiled, listing
from perfdiff.languages.java import jdks
from perfdiff.languages.java.suites import built, partners
from perfdiff.languages.java.suites.courses import Course, ReportedTest
from perfdiff.languages.java.suites.following import follow
from perfdiff.languages.java.suites.launchers import BuiltRevision, Launcher
from perfdiff.languages.java.suites.modules import Module
from perfdiff.languages.listing import CALLS, CASES, Batch, Benchmark, SuiteListing

_DRIVER = Path(__file__).parent / "driver"
_ANY = {"*": ".*", "?": "."}
_ALL = "tests"
_AGAIN = 0.5  # of the time: running tests once more ends by then
_NO_TESTS = "the built tree has no compiled tests"


@dataclass(frozen=True, slots=True)
class _Driver:
    """Which of our classes lists and runs tests, by the class of the framework that it needs."""

    main: str
    needs: str


_DRIVERS = (
    _Driver("PlatformSuite", "org/junit/platform/launcher/Launcher.class"),
    _Driver("Junit4Suite", "org/junit/runner/JUnitCore.class"),
)


@dataclass(frozen=True, slots=True)
class _TestSuite:
    """The tests of a module: what starts them, and the main class of our driver."""

    module: Module
    launcher: Launcher
    main: str

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words that start the driver in the module's folder."""
        return (*self.launcher.words, self.main)

    def benchmark(self, test: ReportedTest, name: str, seconds: float) -> Benchmark:
        """Return a test by itself, and how it runs with others."""
        started, word = f"{self.launcher.command} {self.main} run", shlex.quote(test.id)
        batch = Batch(f"{started} 1 {CASES} > /dev/null", word, " ")
        calls = CALLS if test.repeatable else "1"
        return Benchmark(name, f"{started} {calls} {word} > /dev/null", points={(): (seconds, test.repeatable)}, batch=batch)


def listed(pattern: str, *given: str) -> SuiteListing:
    """Return the tests of classes with names such as `Parser*Test`, of all where it is empty; `given` says in which revision."""
    revision, end = BuiltRevision.read(given), time.monotonic() + listing.limit_s()
    project = built.modules(Path.cwd(), revision.build)
    folders = [(module, folder) for module in project.modules for folder in module.tests]
    benchmarks: dict[str, Benchmark] = {}
    failures: dict[str, str] = {}
    start_s, whole = 0.0, True
    for number, (module, folder) in enumerate(folders):
        where = _ALL if module.folder == "." else f"{_ALL} of {module.folder}"
        suite = _suite(revision, module)
        if isinstance(suite, str):
            failures[where] = suite
            continue
        course = _course(suite, folder, _names(pattern, module), (end - time.monotonic()) / (len(folders) - number))
        whole = whole and course.problem is None
        if course.problem:
            failures[where] = course.problem
        for test in course.tests.values():
            name = test.name if test.name not in benchmarks else f"{test.name} ({module.folder})"
            if test.failure:
                failures[name] = test.failure
            elif test.seconds is not None:
                benchmarks[name] = suite.benchmark(test, name, test.seconds)
        start_s = start_s or _start_s(suite, course.shortest, end)
    if not benchmarks and not failures:
        failures[_ALL] = project.problem or ("no test class has such a name" if folders else _NO_TESTS)
    return SuiteListing(benchmarks, failures, start_s, whole)


def provided(_pattern: str, *given: str) -> SuiteListing:
    """Prepare to run tests that another machine listed; return why they cannot be run, if so."""
    revision = BuiltRevision.read(given)
    project = built.modules(Path.cwd(), revision.build)
    suites = {module.folder: _suite(revision, module) for module in project.modules if module.tests}
    if not suites:
        return SuiteListing(failures={_ALL: project.problem or _NO_TESTS})
    failures = {folder: suite for folder, suite in suites.items() if isinstance(suite, str)}
    return SuiteListing(failures=failures if len(failures) == len(suites) else {})


def _suite(revision: BuiltRevision, module: Module) -> _TestSuite | str:
    """Return how the tests of a module start, or why they cannot."""
    whole = replace(module, class_path=partners.completed(module.folder, module.class_path))
    if lacking := partners.missing(whole.class_path):
        return f"{lacking} is not on this machine in the version of the project: run its tests once by hand, or add it to their class path"
    driver = next((driver for driver in _DRIVERS if built.has_class(whole, driver.needs)), None)
    if driver is None:
        return "no JUnit is on their class path"
    try:
        classes = _compiled(revision, whole, driver)
    except PerfdiffError as error:
        return f"{error}: {error.detail.strip().splitlines()[0]}" if error.detail.strip() else str(error)
    file = revision.kept / "-".join(("junit", *Path(module.folder).parts))
    launcher = Launcher.written(file, module.folder, (str(classes), *whole.class_path), ("-ea", *module.options))
    return _TestSuite(module, launcher, f"perfdiff.suites.{driver.main}")


def _course(suite: _TestSuite, folder: str, names: str, seconds: float) -> Course:
    """Run the tests of a folder until all were tried, in as many processes as that takes."""
    end, course = time.monotonic() + seconds, Course()
    while not course.is_over and (left_s := end - time.monotonic()) > 0:
        with temporary.folder("perfdiff-junit-") as room:
            report = room / "report"
            words = (*suite.words, "list", str(report), f"{_AGAIN * left_s:g}", folder, names, *course.tried)
            follow(words, Path(suite.module.folder), report, course, left_s)
    if not course.is_over:
        course.problem = (
            f"the rest was not tried: they take longer than {seconds:.0f} s" if seconds > 0 else "there was no time left for them"
        )
    return course


def _start_s(suite: _TestSuite, shortest: ReportedTest | None, end: float) -> float:
    """Return the CPU time of a process that runs the shortest test, without that of the test."""
    left_s = end - time.monotonic()
    if shortest is None or left_s <= 0:
        return 0.0
    ran = listing.tried((*suite.words, "run", "1", shortest.id), left_s, Path(suite.module.folder))
    return max(ran.cpu_s - (shortest.seconds or 0.0), 0.0)


def _compiled(revision: BuiltRevision, module: Module, driver: _Driver) -> Path:
    jdk = jdks.find({}, revision.home)
    sources = [_DRIVER / f"{name}.java" for name in ("Report", "Suite", driver.main)]
    jars = replace(module, class_path=tuple(entry for entry in module.class_path if module.path(entry).is_file()))
    needed = jars if built.has_class(jars, driver.needs) else module  # revisions share what is compiled without their classes
    class_path = os.pathsep.join(str(needed.path(entry).absolute()) for entry in needed.class_path)
    name = compiled.fingerprint(None, (jdk.identity, class_path), sources)
    return compiled.kept(revision.kept.parent, f"java-junit-{name}", partial(_compile, [*jdk.compiling, "-cp", class_path], sources))


def _compile(words: Sequence[str], sources: Sequence[Path], folder: Path) -> None:
    compiled.run([*words, "-d", str(folder), *map(str, sources)])


def _names(pattern: str, module: Module) -> str:
    """Return the regular expression of names of classes that a pattern stands for: simple names, or whole ones."""
    if not pattern:
        return module.names or ".*"
    return "|".join(_expression(part.strip()) for part in pattern.split(","))


def _expression(pattern: str) -> str:
    return r"(?:.*[.])?" + "".join(_ANY.get(character) or re.escape(character) for character in pattern)
