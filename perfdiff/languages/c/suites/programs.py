"""Programs in a built tree, and those of a framework: executables that hold its marks. No other is run by a listing of these."""

from __future__ import annotations

import mmap
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfdiff.languages.c.suites.attempts import Attempts
from perfdiff.languages.c.suites.switches import with_switches
from perfdiff.languages.listing import Benchmark, SuiteListing

# Names of options, or of the library that is loaded, by the frameworks that they tell of.
MARKS = {
    "googlebenchmark": (b"benchmark_list_tests", b"libbenchmark.so"),
    "nanobench": (b"NANOBENCH_ENDLESS",),
    "catch2": (b" is a Catch v", b" is a Catch2 v", b"libCatch2"),
    "googletest": (b"gtest_list_tests", b"libgtest.so"),
    "doctest": (b"dt-list-test-cases",),
}
_ELF = b"\x7fELF"
_LIBRARY = ".so"  # in the names of files that other programs load
# Folders without programs of the project: what build systems keep there are those of libraries that they fetched, with tests of their own.
_OF_OTHERS = frozenset(("CMakeFiles", "_deps", "subprojects", "node_modules", "vcpkg_installed", "site-packages"))
_MOST_FILES = 100_000  # that are looked at: five times as many as the sources that a project is recognised by


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """A program of a framework: the path from the current folder, and the arguments that each of its calls has."""

    path: str
    arguments: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """Return the first words of the program's command."""
        return [self.path if "/" in self.path else f"./{self.path}", *self.arguments]

    @property
    def text(self) -> str:
        """Return what a shell command begins with."""
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class SelectedPrograms:
    """The programs that the value of a key means; `failures` say by name why others are none."""

    programs: tuple[BuiltProgram, ...]
    failures: dict[str, str]


def selected(value: str, framework: str, title: str) -> SelectedPrograms:
    """Return the programs below the current folder that hold a mark of a framework.

    The value is a program or a folder of programs, and arguments; without the first, all programs are meant.
    """
    words, marks = shlex.split(value), MARKS[framework]
    place = words.pop(0) if words and not words[0].startswith("-") else "."
    path = Path(place)
    if path.is_dir():
        programs = tuple(BuiltProgram(name, tuple(words)) for name in sorted(executables(path)) if holds(Path(name), marks))
        return SelectedPrograms(programs, {} if programs or place == "." else {place: f"holds no program with {title}"})
    if not path.is_file():
        return SelectedPrograms((), {place: "no such program was built"})
    if not holds(path, marks):
        return SelectedPrograms((), {place: f"is no program with {title}; it was not run"})
    return SelectedPrograms((BuiltProgram(place, tuple(words)),), {})


def is_program(path: Path) -> bool:
    """Return whether a file is an executable that was compiled."""
    try:
        with path.open("rb") as opened:
            return opened.read(len(_ELF)) == _ELF and os.access(path, os.X_OK)
    except OSError:
        return False


def holds(path: Path, marks: Sequence[bytes]) -> bool:
    """Return whether a file is an executable that holds one of some marks."""
    if not is_program(path):
        return False
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(mark) >= 0 for mark in marks)


def executables(folder: Path) -> Iterator[str]:
    """Yield the paths of files in a built folder that may be executed, without those of libraries that were fetched."""
    seen = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _OF_OTHERS and name != ".git")
        seen += len(names)
        if seen > _MOST_FILES:
            return
        for name in names:
            path = Path(parent, name)
            if _LIBRARY not in name and os.access(path, os.X_OK) and path.is_file() and not path.is_symlink():
                yield path.as_posix()


Lists = Callable[[BuiltProgram, Attempts, dict[str, str]], tuple[Iterable[Benchmark], float]]


def listed(value: str, framework: str, title: str, lists: Lists) -> SuiteListing:
    """Return what the programs that a value means have, all of those in the current folder by "".

    `lists` returns the benchmarks of a program, and the CPU time in seconds of a process before its first call; it adds why others fail.
    Benchmarks are named after their program as well where those of an earlier one have the name.
    """
    selection, attempts = selected(value, framework, title), Attempts.within_limit()
    benchmarks: dict[str, Benchmark] = {}
    failures, starts_s = dict(selection.failures), [0.0]
    for program in selection.programs:
        own, start_s = lists(program, attempts, failures)
        starts_s.append(start_s)
        of_others = set(benchmarks)
        for benchmark in own:
            name = f"{Path(program.path).name}: {benchmark.name}" if benchmark.name in of_others else benchmark.name
            benchmarks[name] = replace(benchmark, name=name)
    return with_switches(SuiteListing(benchmarks, failures, max(starts_s)))
