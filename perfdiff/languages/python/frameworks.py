"""Frameworks of Python's benchmarks and tests, which a driver in the project's environment lists and runs."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from perfdiff.config import DRIVER, WorkloadConfig
from perfdiff.errors import ConfigError
from perfdiff.languages.frameworks import Framework, Material, Needs
from perfdiff.languages.python import asv

_FUNCTION = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")


class Pytest(Framework):
    """Tests that pytest collects, and benchmarks of pytest-benchmark among them."""

    name, title, material = "pytest", "pytest", Material.TESTS
    wanted = 'arguments of pytest, such as "tests/test_bench.py -k sort"'

    def read(self, value: object) -> str | None:
        """Return words that the shell can split."""
        try:
            return value if isinstance(value, str) and shlex.split(value) is not None else None
        except ValueError:
            return None

    def find(self, project: Path) -> Iterator[str]:
        """Yield nothing: tests are named by who wants them measured."""
        yield from ()

    def command(self, project: Path, workload: WorkloadConfig) -> str:
        """Return what the driver is called by."""
        return _driver(self.name, _what(workload))


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
        """Yield all of the suite, where there is one."""
        if asv.find(project):
            yield ""

    def command(self, project: Path, workload: WorkloadConfig) -> str:
        """Return what the driver is called by, with the folder of the benchmarks."""
        suite = asv.find(project)
        if suite is None:
            raise ConfigError(
                f"workload {workload.name}: there is no {asv.FILE} in {project}, nor in a folder within it", slug="config-asv"
            )
        return _driver(self.name, suite.folder, _what(workload))

    def needs(self, project: Path) -> Needs:
        """Return that both revisions run the checkout's benchmarks, as they do with asv, and what its environments require."""
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

    def command(self, project: Path, workload: WorkloadConfig) -> str:
        """Return what the driver is called by, with the values of the parameters."""
        return _driver(self.name, _what(workload), json.dumps(workload.parameters))


FRAMEWORKS = (Asv(), OneFunction(), Pytest())


def _what(workload: WorkloadConfig) -> str:
    assert workload.suite is not None, "only suites are listed"
    return workload.suite.what


def _driver(*words: str) -> str:
    return " ".join(["python", "-m", DRIVER, "list", *map(shlex.quote, words)])
