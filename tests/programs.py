"""Fixture programs as real git repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import runtimes
from java_sources import write
from perfdiff import configuration
from perfdiff.request import Request

FIXTURES = Path(__file__).parent.parent / "fixtures"
PROGRAMS = FIXTURES / "programs"
PYTHON = FIXTURES / "python"  # of which some have an extension module in C
JAVA = FIXTURES / "java"  # built by javac alone, by ant, or by Maven from what Debian's packages bring
SERVER = FIXTURES / "server"  # programs behind a server, in several languages, with a database of their own
PHP = FIXTURES / "php"  # run as they lie; one asks a database of SQLite's over PDO
TRENDS = FIXTURES / "trends"  # of which some have a single revision, and some make their inputs
HIDDEN = FIXTURES / "hidden"  # heads whose change lies elsewhere than in the functions that take longer, and heads with such changes alone
LESS = FIXTURES / "less"  # heads that are faster for doing less, and heads that are truly faster
SEARCH = FIXTURES / "search"  # heads that are slower on inputs unlike their samples, and heads that are slower on none
INPUTS = "inputs.sh"
COMMON = "common"  # the files that both sides of a case share
IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main")


@dataclass(frozen=True, slots=True)
class Case:
    """A pair of programs with one known change; `expected` is its `expected.toml`."""

    folder: Path
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def is_counted(self) -> bool:
        """Return whether it is judged by counts as well: they change no verdict on the others, and take as long as all the rest."""
        return bool(self.expected.get("counted"))


def cases(programs: Path = PROGRAMS) -> list[Case]:
    """Return all cases of a folder by name."""
    return [Case(path.parent, tomllib.loads(path.read_text())) for path in sorted(programs.glob("*/expected.toml"))]


def git(repository: Path, *arguments: str) -> str:
    """Run git in `repository` and return what it printed."""
    command = ["git", *IDENTITY, "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def empty(checkout: Path) -> None:
    """Remove all from a checkout but its repository."""
    for entry in checkout.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def environment() -> dict[str, str]:
    """Return this process's variables, with its interpreter first, and nothing of perfdiff's own on its path."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return inherited | {"PATH": os.pathsep.join((str(Path(sys.executable).parent), inherited["PATH"]))}


def repository(case: Case, folder: Path) -> Path:
    """Make `folder` a repository of a commit a side, tagged `base` and `head`, with the configuration in the checkout, and the inputs."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    shared = case.folder / COMMON
    for side in filter(lambda side: shared.is_dir() or (case.folder / side).is_dir(), ("base", "head")):
        empty(folder)
        for files in filter(Path.is_dir, (shared, case.folder / side)):
            shutil.copytree(files, folder, symlinks=True, dirs_exist_ok=True, copy_function=shutil.copy)  # with times of its own
        shutil.copy(case.folder / "perfdiff.toml", folder)
        git(folder, "read-tree", "--empty")  # links keep their times, by which git would take another of the same length for the same
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"{case.name}: {side}")
        git(folder, "tag", side)
    if (case.folder / INPUTS).exists():
        subprocess.run(["sh", str(case.folder / INPUTS)], cwd=folder, check=True)
    return folder


def committed(project: Path, history: Sequence[Mapping[str, str]]) -> None:
    """Make a project a repository with a tag for each revision, `v0` and on, each with some files that differ from the one before."""
    project.mkdir()
    git(project, "init", "-q")
    for number, files in enumerate(history):
        write(project, files)
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", str(number))
        git(project, "tag", f"v{number}")


def first_two(room: Path, history: Sequence[Mapping[str, str]], variables: Mapping[str, str] = os.environ) -> Request:
    """Make a project in a room, and return what asks to compare its first two revisions."""
    project = room / "project"
    committed(project, history)
    config = configuration.load(project, environment={})
    return Request(project, ("v0", "v1"), config, runtimes.lent_to(room / "cache"), variables)


def by_whole_runs(request: Request) -> Request:
    """Return the same comparison, answered by whole runs alone."""
    return replace(request, config=replace(request.config, measure=replace(request.config.measure, fast=True)))
