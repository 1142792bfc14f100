"""Small Python projects whose lines are counted, in an environment of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import python_programs
import runtimes
from perfdiff.languages.line_counts import InterpretedPlaces
from perfdiff.languages.python import extension, places
from perfdiff.records.places import Place


@dataclass(frozen=True, slots=True)
class Counts:
    """What one run counted, how many processes were `lost`, and how the run ended."""

    by_place: Mapping[Place, int]
    lost: int
    status: int
    output: str

    def of(self, text: str, function: str | None = None) -> int:
        """Return the count of the only place whose line holds `text`, in a function where one is named."""
        (found,) = [count for place, count in self.by_place.items() if text in place.text and function in (None, place.function)]
        return found


@dataclass(frozen=True, slots=True)
class Project:
    """A tree of Python files, the interpreter of its environment, and what reads its counts; `room` is for its runs."""

    tree: Path
    python: Path
    room: Path
    reader: InterpretedPlaces

    def run(self, command: str, name: str = "run") -> Counts:
        """Run a shell command in the tree, with `$PYTHON` as its interpreter, and return what it counted."""
        folder = self.room / name
        folder.mkdir()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {**self.reader.environment(folder), "PYTHON": str(self.python)}
        ended = subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.tree, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        counts = self.reader.read(folder).tolist()
        by_place = dict(zip(self.reader.places, counts, strict=True))
        return Counts(by_place, self.reader.lost(folder), ended.returncode, ended.stdout + ended.stderr)


def project(room: Path, python: Path, sources: Mapping[str, str]) -> Project:
    """Write `sources` to a tree beside an environment of the interpreter `python`."""
    tree = (room / "tree").resolve()
    for name, text in sources.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (room / "runs").mkdir()
    modules = {name: name.removesuffix(".py").replace("/", ".") for name in sources}
    own = python_programs.environment(room / "venv", python)
    return Project(
        tree, own, room / "runs", places.places(tree, modules, places.PythonLineCounter(own, library(python), {}), room / "lines.sheet")
    )


@cache
def library(python: Path) -> Path:
    """Return what counts lines under an interpreter; nobody may change it."""
    return extension.build_lines(python, "gcc", runtimes.KEPT)
