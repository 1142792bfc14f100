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

SUITES = "PERFDIFF_JAVA_SUITES"  # the variable that names the folder
BUILD = "PERFDIFF_JAVA_BUILD"  # the one that has the command of the build, whose options lead to the same libraries


def variables(tree: Path, cache: Path, build: str) -> dict[str, str]:
    """Return the variables of a built tree's runs; `cache` has a place for what is compiled."""
    return {SUITES: str(cache / f"java-suites-{hashlib.sha256(os.fsencode(tree)).hexdigest()[:24]}"), BUILD: build}


def kept() -> Path:
    """Return the folder of the built tree that a listing runs in."""
    return Path(os.environ[SUITES])


@dataclass(frozen=True, slots=True)
class Launcher:
    """How the JVM of a suite starts, in a `folder` of the project: `name` is that of the file with its arguments."""

    name: str
    folder: str

    @classmethod
    def written(cls, name: str, folder: str, class_path: Sequence[str], options: Sequence[str] = ()) -> Launcher:
        """Keep the arguments of a JVM."""
        place = kept()
        place.mkdir(parents=True, exist_ok=True)
        arguments = (*options, "-Djava.awt.headless=true", "-cp", os.pathsep.join(class_path))
        (place / name).write_text("".join(f"{_quoted(argument)}\n" for argument in arguments), encoding="utf-8")
        return cls(name, folder)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words that start it from within its folder, for this revision."""
        return ("java", f"@{kept() / self.name}")

    @property
    def command(self) -> str:
        """Return the beginning of a shell command that starts it, in any revision."""
        entered = "" if self.folder == "." else f"cd {shlex.quote(self.folder)} && "
        return f'{entered}java @"${SUITES}"/{shlex.quote(self.name)}'


def _quoted(argument: str) -> str:
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
