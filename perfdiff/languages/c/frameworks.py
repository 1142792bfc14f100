"""Frameworks of benchmarks and tests in C and C++, whose programs a built tree has."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from perfdiff.config import Suite, WorkloadConfig
from perfdiff.languages import listing
from perfdiff.languages.c.suites import named, targets
from perfdiff.languages.c.suites.fuzz import FuzzTargets
from perfdiff.languages.c.suites.hints import hints
from perfdiff.languages.c.suites.samples import Samples
from perfdiff.languages.frameworks import Framework, Material


class BuiltPrograms(Framework):
    """A framework whose programs list and run what is in them by options."""

    def __init__(self, name: str, title: str, material: Material, example: str) -> None:
        """Name the framework and its module in `suites`; `example` is a program with arguments."""
        self.name, self.title, self.material = name, title, material
        self.wanted = f'a built program and its arguments, such as "{example}", or "" for all programs with {title}'

    is_words = True

    def find(self, project: Path) -> Iterator[str]:
        """Yield all programs that the build makes, where sources of the project include the framework."""
        if self.name in hints(project).frameworks:
            yield ""

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return the command that lists what the programs tell."""
        return listing.command(f"perfdiff.languages.c.suites.{self.name}:listed", suite.what)


class BuildSystemTests(Framework):
    """The tests that a build system runs in its build folders."""

    material = Material.TESTS

    def __init__(self, name: str, title: str) -> None:
        """Name the build system's module in `suites`."""
        self.name, self.title = name, title
        self.wanted = 'a build folder, such as "build", or "" for all builds'

    def find(self, project: Path) -> Iterator[str]:
        """Yield all builds, where the build system is told of tests."""
        if self.name in hints(project).frameworks:
            yield ""

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return the command that lists the tests; if the suite was guessed, it leaves out those that other frameworks list."""
        return listing.command(f"perfdiff.languages.c.suites.{self.name}:listed", suite.what, *(("guessed",) if suite.guessed else ()))


class Make(Framework):
    """What a target of make runs."""

    name, title, material = "make", "make", Material.TESTS
    wanted = 'a target, such as "bench"'
    is_words = True

    def read(self, value: object) -> str | None:
        """Return words, one at least."""
        return super().read(value) or None

    def find(self, project: Path) -> Iterator[str]:
        """Yield the target that runs benchmarks, or else tests."""
        yield from hints(project).targets[:1]

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return the command that lists what the target's recipe runs."""
        return listing.command("perfdiff.languages.c.suites.make:listed", suite.what)

    def unbuilt(self, trees: Sequence[Path], value: str) -> Sequence[str]:
        """Return the command of make that compiles what the target runs."""
        return targets.unbuilt(trees, shlex.split(value))


class PlainPrograms(Framework):
    """Programs that the build makes and nobody lists, by what they or their sources are called."""

    name, title, material = "programs", "programs by themselves", Material.PROGRAMS
    wanted = 'a built program and its arguments, such as "build/bench 1000", or "" for those of benchmarks, tests and examples'
    is_words = True

    def find(self, project: Path) -> Iterator[str]:
        """Yield all programs, where a project that is compiled has sources of benchmarks, tests or examples."""
        from perfdiff.configuration import buildsystem  # whose package asks for all frameworks as it is loaded

        if buildsystem.compiles(project) and named.sources(project):
            yield ""

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return the command that lists them; names of sources are those of the checkout."""
        return listing.command("perfdiff.languages.c.suites.plain:listed", str(project), suite.what)


FRAMEWORKS: tuple[Framework, ...] = (
    BuiltPrograms("googlebenchmark", "Google Benchmark", Material.BENCHMARKS, "build/bench/sorting --benchmark_filter=Sort"),
    BuiltPrograms("nanobench", "nanobench", Material.BENCHMARKS, "build/bench/sorting"),
    BuiltPrograms("catch2", "Catch2", Material.TESTS, "build/tests/unit [sort]"),
    BuiltPrograms("googletest", "GoogleTest", Material.TESTS, "build/tests/unit --gtest_filter=Sort.*"),
    BuiltPrograms("doctest", "doctest", Material.TESTS, "build/tests/unit --test-suite=sort"),
    FuzzTargets(),
    Samples(),
    BuildSystemTests("ctest", "CTest"),
    BuildSystemTests("meson", "Meson"),
    Make(),
    PlainPrograms(),
)
