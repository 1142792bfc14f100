"""Programs of a framework in a built tree: executables that hold its marks. No other program is run by a listing."""

from __future__ import annotations

import mmap
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfdiff.languages.listing import Benchmark

_ELF = b"\x7fELF"
_LIBRARY = ".so"  # in the names of files that other programs load
# Folders without programs of the project: what build systems keep there are those of libraries that they fetched, with tests of their own.
_OF_OTHERS = frozenset(("CMakeFiles", "_deps", "subprojects", "node_modules", "vcpkg_installed", "site-packages"))
_MOST_FILES = 100_000  # that are looked at: five times as many as the sources that a project is recognised by


@dataclass(frozen=True, slots=True)
class TestProgram:
    """A program of a framework: the path from the current folder, and the arguments that each of its calls has."""

    path: str
    arguments: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """Return what a command begins with."""
        return [self.path if "/" in self.path else f"./{self.path}", *self.arguments]

    @property
    def text(self) -> str:
        """Return what a shell command begins with."""
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class SelectedPrograms:
    """The programs that the value of a key means; `failures` say by name why others are none."""

    programs: tuple[TestProgram, ...]
    failures: dict[str, str]


def selected(value: str, marks: Sequence[bytes], title: str) -> SelectedPrograms:
    """Return the programs below the current folder that hold a mark of a framework.

    The value is a program or a folder of programs, and arguments; without the first, all programs are meant.
    """
    words = shlex.split(value)
    place = words.pop(0) if words and not words[0].startswith("-") else "."
    path = Path(place)
    if path.is_dir():
        programs = tuple(TestProgram(name, tuple(words)) for name in sorted(_executables(path)) if holds(Path(name), marks))
        return SelectedPrograms(programs, {} if programs or place == "." else {place: f"holds no program with {title}"})
    if not path.is_file():
        return SelectedPrograms((), {place: "no such program was built"})
    if not holds(path, marks):
        return SelectedPrograms((), {place: f"is no program with {title}; it was not run"})
    return SelectedPrograms((TestProgram(place, tuple(words)),), {})


def holds(path: Path, marks: Sequence[bytes]) -> bool:
    """Return whether a file is an executable that holds one of some texts: names of options, or of the library that it loads."""
    try:
        with path.open("rb") as opened:
            if opened.read(len(_ELF)) != _ELF:
                return False
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return any(content.find(mark) >= 0 for mark in marks)
    except OSError:
        return False


def _executables(folder: Path) -> Iterator[str]:
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


def unique(benchmarks: Iterable[Benchmark], others: Iterable[Benchmark], program: TestProgram) -> Iterator[Benchmark]:
    """Yield the benchmarks of a program, named after it as well where those of an earlier program have the name."""
    taken = {benchmark.name for benchmark in others}
    for benchmark in benchmarks:
        yield replace(benchmark, name=f"{Path(program.path).name}: {benchmark.name}") if benchmark.name in taken else benchmark
