"""Frameworks of benchmarks and tests in C and C++, whose programs a built tree has."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from perfdiff.config import WorkloadConfig
from perfdiff.languages import listing
from perfdiff.languages.c.suites.fuzz import FuzzTargets
from perfdiff.languages.c.suites.hints import hints
from perfdiff.languages.frameworks import Framework, Material


class BuiltPrograms(Framework):
    """A framework whose programs list and run what is in them by options."""

    def __init__(self, name: str, title: str, material: Material, example: str) -> None:
        """Name the framework and its module in `suites`; `example` is a program with arguments."""
        self.name, self.title, self.material = name, title, material
        self.wanted = f'a built program and its arguments, such as "{example}", or "" for all programs with {title}'

    def read(self, value: object) -> str | None:
        """Return words that the shell can split."""
        return _words(value)

    def find(self, project: Path) -> Iterator[str]:
        """Yield all programs that the build makes, where sources of the project include the framework."""
        if self.name in hints(project):
            yield ""

    def command(self, project: Path, workload: WorkloadConfig) -> str:
        """Return the command that lists what the programs tell."""
        assert workload.suite is not None, "only suites are listed"
        return listing.command(f"perfdiff.languages.c.suites.{self.name}:listed", workload.suite.what)


def _words(value: object) -> str | None:
    try:
        return value if isinstance(value, str) and shlex.split(value) is not None else None
    except ValueError:
        return None


FRAMEWORKS: tuple[Framework, ...] = (
    BuiltPrograms("googlebenchmark", "Google Benchmark", Material.BENCHMARKS, "build/bench/sorting --benchmark_filter=Sort"),
    FuzzTargets(),
)
