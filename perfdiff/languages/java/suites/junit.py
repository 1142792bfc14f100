"""Lists the tests of JUnit 4 and 5 in a built tree: all of them run in one process, as a driver of ours tells.

A test that ends the process, or does not end, is left out, and what comes after it runs in another process. Tests that passed run once
more, the shortest ones several times: compilers take part in runs that are long enough.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from perfdiff import temporary
from perfdiff.errors import PerfdiffError
from perfdiff.languages import compiled, listing
from perfdiff.languages.java import jdks
from perfdiff.languages.java.suites import built, partners
from perfdiff.languages.java.suites.courses import Course
from perfdiff.languages.java.suites.following import follow
from perfdiff.languages.java.suites.launchers import Launcher, kept
from perfdiff.languages.java.suites.modules import Module
from perfdiff.languages.listing import CALLS, CASES, Batch, Benchmark, Listing

_DRIVER = Path(__file__).parent / "driver"
_AGAIN = 0.5  # of the time, for running tests once more


@dataclass(frozen=True, slots=True)
class _Driver:
    """Which of our classes lists and runs tests, by the class of the framework that it needs."""

    main: str
    needs: str


_DRIVERS = (
    _Driver("PlatformSuite", "org/junit/platform/launcher/Launcher.class"),
    _Driver("Junit4Suite", "org/junit/runner/JUnitCore.class"),
)


@dataclass(slots=True)
class _Tests:
    """What is known of the tests of a project so far."""

    benchmarks: dict[str, Benchmark] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    start_s: float = 0.0

    def add(self, module: Module, started: str, course: Course) -> None:
        """Add the tests of a module, by the command that starts them."""
        for case in course.cases.values():
            name = case.name if case.name not in self.benchmarks else f"{case.name} ({module.folder})"
            if case.failure:
                self.failures[name] = case.failure
            elif case.seconds is not None:
                word = shlex.quote(case.id)
                self.benchmarks[name] = Benchmark(
                    name,
                    f"{started} run {CALLS if case.repeatable else 1} {word} > /dev/null",
                    points={(): (case.seconds, case.repeatable)},
                    batch=Batch(f"{started} run 1 {CASES} > /dev/null", word, " "),
                )


def listed(pattern: str) -> Listing:
    """Return the tests of classes whose names match a pattern such as `Parser*Test`, of all where it is empty."""
    end = time.monotonic() + listing.limit_s()
    project = built.modules(Path.cwd())
    tests = _Tests()
    modules = [(module, folder) for module in project.modules for folder in module.tests]
    for number, (module, folder) in enumerate(modules):
        share_s = (end - time.monotonic()) / (len(modules) - number)
        problem = _listed(module, folder, _names(pattern, module), share_s, tests)
        if problem:
            tests.failures[module.folder if module.folder != "." else "tests"] = problem
    if not tests.benchmarks and not tests.failures:
        tests.failures["tests"] = project.problem or "no compiled tests are in the tree; the build has to compile them"
    return Listing(tests.benchmarks, tests.failures, tests.start_s)


def _listed(module: Module, folder: str, names: str, seconds: float, tests: _Tests) -> str | None:
    """Add the tests of a folder of classes; return why that is not possible."""
    whole = replace(module, class_path=partners.completed(module.folder, module.class_path))
    if lacking := partners.missing(whole.class_path):
        return f"{lacking} is not on this machine in the version of the project; run its tests by hand once, or add it to their class path"
    driver = next((driver for driver in _DRIVERS if built.has_class(whole, driver.needs)), None)
    if driver is None:
        return "no JUnit is on the class path of its tests"
    try:
        classes = _compiled(whole, driver)
    except PerfdiffError as error:
        return f"{error}: {error.detail.strip().partition(chr(10))[0]}".removesuffix(": ")
    launcher = Launcher.written(
        f"junit-{re.sub(r'[^A-Za-z0-9.]', '-', module.folder)}", module.folder, (str(classes), *whole.class_path), ("-ea", *module.options)
    )
    main = f"perfdiff.suites.{driver.main}"
    end = time.monotonic() + seconds
    course = _course((*launcher.words, main), module.folder, folder, names, seconds)
    tests.add(module, f"{launcher.command} {main}", course)
    if not tests.start_s and course.shortest is not None and time.monotonic() < end:
        case = course.shortest
        ran = listing.tried((*launcher.words, main, "run", "1", case.id), max(end - time.monotonic(), 1.0), Path(module.folder))
        tests.start_s = max(ran.cpu_s - (case.seconds or 0.0), 0.0)
    return course.problem


def _course(started: Sequence[str], directory: str, folder: str, names: str, seconds: float) -> Course:
    """Run the tests of a folder until all were tried, in as many processes as that takes."""
    end, course = time.monotonic() + seconds, Course()
    while (left_s := end - time.monotonic()) > 0:
        with temporary.folder("perfdiff-junit-") as room:
            report = room / "report"
            words = (*started, "list", str(report), f"{_AGAIN * left_s:g}", folder, names, *course.tried)
            follow(words, Path(directory), report, course, left_s)
        if course.is_over:
            return course
    course.problem = f"the rest was not tried: the tests take longer than {seconds:.0f} s"
    return course


def _compiled(module: Module, driver: _Driver) -> Path:
    jdk = jdks.find(os.environ)
    sources = [_DRIVER / f"{name}.java" for name in ("Report", "Suite", driver.main)]
    class_path = os.pathsep.join(str(module.path(entry).absolute()) for entry in module.class_path)
    name = compiled.fingerprint(None, (jdk.identity, class_path), sources)
    # A project's annotations are not for processors here: `compiling` has none.
    words = [*jdk.compiling, "-cp", class_path]
    return compiled.kept(kept().parent, f"java-junit-{name}", partial(_compile, words, sources))


def _compile(words: Sequence[str], sources: Sequence[Path], made: Path) -> None:
    compiled.run([*words, "-d", str(made), *map(str, sources)])


def _names(pattern: str, module: Module) -> str:
    """Return the regular expression of names of classes that a pattern stands for: simple names, or whole ones."""
    if not pattern:
        return module.names or ".*"
    return "|".join(_expression(part.strip()) for part in pattern.split(","))


def _expression(pattern: str) -> str:
    return r"(?:.*[.])?" + "".join(_translated(pattern))


def _translated(pattern: str) -> Iterator[str]:
    for character in pattern:
        yield {"*": ".*", "?": "."}.get(character) or re.escape(character)
