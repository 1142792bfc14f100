"""Frameworks of Python's benchmarks and tests, which a driver in the project's environment lists and runs."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from perfdiff.config import DRIVER, Suite, WorkloadConfig
from perfdiff.errors import ConfigError
from perfdiff.languages.frameworks import Framework, Material, Needs
from perfdiff.languages.python import asv
from perfdiff.languages.python.benchmarks import scanning

_FUNCTION = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")
_NAME = re.compile(r"[\w.-]+")
_MOST_STARTS = 3  # folders from which discovery starts: a project with more has its own way to run them
_PYTHON = ("pyproject.toml", "setup.cfg", "*.py", "*/__init__.py", "src/*/__init__.py", "requirements*.txt")


class _ByWords(Framework):
    """What runs by words that the driver passes on, with what tests and benchmarks of the project need beside the project itself."""

    is_words = True

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return the shell command by which the driver lists the suite."""
        return _driver(self.name, suite.what)

    def needs(self, project: Path, values: Sequence[str]) -> Needs:
        """Return what tests and benchmarks of the project need."""
        return _test_needs(project)


class Pytest(_ByWords):
    """Tests that pytest collects, and benchmarks of pytest-benchmark among them where arguments select them."""

    name, title, material = "pytest", "pytest", Material.TESTS
    wanted = 'arguments of pytest, such as "tests/test_bench.py -k sort", or ""'

    def find(self, project: Path) -> Iterator[str]:
        """Yield "", which means all tests, if some test needs pytest."""
        if _is_python(project) and scanning.has_pytest_tests(project):
            yield ""

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return the shell command by which the driver lists the suite, without its benchmarks where nothing selects them."""
        return _driver("pytest", suite.what, *([] if suite.what.strip() else ["tests"]))


class PytestBenchmark(_ByWords):
    """Benchmarks of pytest-benchmark or pytest-codspeed: tests with the fixture `benchmark`, or marked so, in files of any name."""

    name, title, material = "pytest-benchmark", "pytest-benchmark", Material.BENCHMARKS
    wanted = 'arguments of pytest, such as "benchmarks -k sort", or ""'

    def find(self, project: Path) -> Iterator[str]:
        """Yield "", which means all benchmarks, if the project has any."""
        if _is_python(project) and next(scanning.benchmark_files(project), None):
            yield ""

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return the shell command by which the driver lists the suite."""
        return _driver("pytest", suite.what, "benchmarks")


class Unittest(_ByWords):
    """Test cases of the standard library."""

    name, title, material = "unittest", "unittest", Material.TESTS
    wanted = 'arguments of "python -m unittest", such as "discover -s tests" or "tests.test_sort", or ""'

    def find(self, project: Path) -> Iterator[str]:
        """Yield arguments of `python -m unittest` that discover all tests; nothing where some test needs pytest."""
        if not _is_python(project) or scanning.has_pytest_tests(project):
            return
        starts = dict.fromkeys(_start(project, file) for file in scanning.unittest_files(project))
        yield from ("" if start == Path() else f"discover -s {shlex.quote(str(start))}" for start in islice(starts, _MOST_STARTS))


class Pyperf(_ByWords):
    """Scripts with a runner of pyperf."""

    name, title, material = "pyperf", "pyperf", Material.BENCHMARKS
    wanted = 'scripts of pyperf, such as "bench/run.py", or ""'

    def find(self, project: Path) -> Iterator[str]:
        """Yield "", which means all scripts, if the project has any."""
        if _is_python(project) and next(scanning.pyperf_scripts(project), None):
            yield ""


class Asv(Framework):
    """The suite of airspeed velocity that a project has."""

    name, title, material = "asv", "asv", Material.BENCHMARKS
    wanted = 'a regular expression of names of benchmarks, such as "time_sort", or ""'

    def read(self, value: object) -> str | None:
        """Return a regular expression."""
        try:
            return value if isinstance(value, str) and re.compile(value) else None
        except (re.error, OverflowError, RecursionError):
            return None

    def find(self, project: Path) -> Iterator[str]:
        """Yield "", which means all benchmarks of the suite, if the project has one."""
        if asv.find(project):
            yield ""

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return the shell command by which the driver lists the benchmarks of asv's folder, with the variables that asv sets for them."""
        own = asv.find(project)
        if own is None:
            raise ConfigError(
                f"workload {workload.name}: there is no {asv.FILE} in {project}, nor in a folder within it", slug="config-asv"
            )
        before = "".join(f"{name}={shlex.quote(value)} " for name, value in own.variables.items())
        return before + _driver(self.name, own.folder, suite.what, *own.variables)

    def needs(self, project: Path, values: Sequence[str]) -> Needs:
        """Return that both revisions run the checkout's benchmarks, as with asv, and the requirements of asv's environments."""
        suite = asv.find(project)
        if suite is None:
            return Needs()
        return Needs(
            overlay=() if suite.folder == "." else (suite.folder,),
            settings={"requirements": suite.requirements} if suite.requirements else {},
        )


class OneFunction(Framework):
    """A function of the project's, called with the parameters of the workload."""

    name, title, material = "callable", "a function", Material.BENCHMARKS
    wanted = 'a module and a function in it, such as "package.module:function"'
    takes_parameters = True

    def read(self, value: object) -> str | None:
        """Return the name of a function in a module."""
        return value if isinstance(value, str) and _FUNCTION.fullmatch(value) else None

    def find(self, project: Path) -> Iterator[str]:
        """Yield nothing: which function is meant is for the user to say."""
        yield from ()

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return the shell command by which the driver lists a function of the project at the values of the workload's parameters."""
        return _driver(self.name, suite.what, json.dumps(workload.parameters))


FRAMEWORKS = (Asv(), PytestBenchmark(), Pyperf(), OneFunction(), Pytest(), Unittest())


def _driver(*words: str) -> str:
    return " ".join(["python", "-m", DRIVER, "list", *map(shlex.quote, words)])


def _is_python(project: Path) -> bool:
    """Return whether a project has Python at its top: tests in Python may as well drive a program of another language."""
    return any(next(project.glob(pattern), None) for pattern in _PYTHON)


def _start(project: Path, file: Path) -> Path:
    """Return the folder from which discovery comes to a file: it enters packages alone."""
    start = Path()
    for folder in [*file.parents][-2::-1]:
        if not (project / folder / "__init__.py").is_file():
            start = folder
    return start


def _test_needs(project: Path) -> Needs:
    """Return what tests and benchmarks of a project need: what is declared, and the plugin or library that is seen to be used."""
    from perfdiff.languages.python import testing  # what reads requirements takes a tenth of a second to import

    declared = testing.requirements(project)
    named = {match[0] for line in declared if (match := _NAME.match(line))}
    needs_plugin = "pytest-codspeed" not in named and next(scanning.benchmark_files(project), None)
    used = (
        *(["pytest-benchmark"] if needs_plugin else []),
        *(["pyperf"] if next(scanning.pyperf_scripts(project), None) else []),
    )
    optional = (*declared, *(name for name in used if name not in named))
    return Needs(settings={"optional": optional} if optional else {})
