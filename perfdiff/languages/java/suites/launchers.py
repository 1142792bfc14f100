"""Where what a suite needs of a built revision is kept, outside of its tree: class paths, and our driver.

Each revision has a folder of its own, which a variable of all its runs names: one command starts a suite of both, each with its own
libraries.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_KEPT = "PERFDIFF_JAVA_SUITES"  # the variable that names the folder
_BUILD = "PERFDIFF_JAVA_BUILD"  # the one that has the command of the build, whose options lead to the same libraries
# What a listing is told by the shell, of the revision that it runs in.
GIVEN = f'"${_KEPT}" "${_BUILD}" "$JAVA_HOME"'


def variables(tree: Path, cache: Path, build: str) -> dict[str, str]:
    """Return the variables of a built tree's runs; `cache` has a place for what is compiled."""
    return {_KEPT: str(cache / f"java-suites-{hashlib.sha256(os.fsencode(tree)).hexdigest()[:24]}"), _BUILD: build}


@dataclass(frozen=True, slots=True)
class BuiltRevision:
    """The built revision that a listing runs in: the folder of its own, what built it, and the folder of its JDK."""

    kept: Path
    build: str
    home: str

    @classmethod
    def read(cls, given: Sequence[str]) -> BuiltRevision:
        """Read the revision from the arguments of a listing."""
        folder, build, home = given
        return cls(Path(folder), build, home)


@dataclass(frozen=True, slots=True)
class Launcher:
    """How the JVM of a suite starts, in a `folder` of the project, with the arguments that a file has."""

    file: Path
    folder: str

    @classmethod
    def written(cls, file: Path, folder: str, class_path: Sequence[str], options: Sequence[str] = ()) -> Launcher:
        """Keep the arguments of a JVM."""
        file.parent.mkdir(parents=True, exist_ok=True)
        arguments = (*options, "-Djava.awt.headless=true", "-cp", os.pathsep.join(class_path))
        file.write_text("".join(f"{_quoted(argument)}\n" for argument in arguments), encoding="utf-8")
        return cls(file, folder)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the command, as words, that starts the launcher in its folder for this revision."""
        return ("java", f"@{self.file}")

    @property
    def command(self) -> str:
        """Return the beginning of a shell command that starts it, in any revision."""
        entered = "" if self.folder == "." else f"cd {shlex.quote(self.folder)} && "
        return f'{entered}java @"${_KEPT}"/{shlex.quote(self.file.name)}'


def _quoted(argument: str) -> str:
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
