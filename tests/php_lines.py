"""Small PHP projects whose lines are counted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import php_programs
import runtimes
from perfdiff.languages.line_counts import InterpretedPlaces
from perfdiff.languages.php import extension, places
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
    """A tree of PHP files, and what reads its counts; `room` is for its runs."""

    tree: Path
    room: Path
    reader: InterpretedPlaces

    def run(self, *arguments: str, name: str = "run", timeout: float = 60.0) -> Counts:
        """Run PHP with `arguments` in the tree, and return what it counted."""
        folder = self.room / name
        folder.mkdir()
        ended = subprocess.run(
            [php_programs.interpreter().executable, *(arguments or ("main.php",))],
            cwd=self.tree,
            env=os.environ | self.reader.environment(folder),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return self.counts(folder, ended.returncode, ended.stdout + ended.stderr)

    def counts(self, folder: Path, status: int, output: str) -> Counts:
        """Return what lies in a folder of counts."""
        by_place = dict(zip(self.reader.places, self.reader.read(folder).tolist(), strict=True))
        return Counts(by_place, self.reader.lost(folder), status, output)


def project(room: Path, sources: Mapping[str, str]) -> Project:
    """Write `sources` to a tree, and tell its lines."""
    tree = (room / "tree").resolve()
    for name, text in sources.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (room / "runs").mkdir()
    host = places.PhpLineCounter(php_programs.interpreter().executable, module(), os.environ)
    return Project(tree, room / "runs", places.places(tree, list(sources), host, room / "lines.sheet"))


@cache
def module() -> Path:
    """Return what counts lines under the PHP of the PATH; nobody may change it."""
    return extension.build_lines(php_programs.interpreter(), "gcc", runtimes.KEPT)
