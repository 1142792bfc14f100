"""Programs with and without a defect of sharing or placement, as repositories of a commit for each revision: base, and heads by their kind.

Those of `fixtures/sharing` have a defective and a harmless head; those of `fixtures/tiny`, whose functions take some nanoseconds, one in
which threads write to the same lines (`false`), one in which they write the same data (`true`), and a harmless one.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfdiff import configuration
from perfdiff.config import Config
from perfdiff.request import Request
from programs import git

FIXTURES = Path(__file__).parent.parent / "fixtures"
SHARING, TINY = FIXTURES / "sharing", FIXTURES / "tiny"
REVISIONS = ("base", "defective", "harmless")


@dataclass(frozen=True, slots=True)
class Program:
    """A program whose heads are laid over its base; `expected` is its `expected.toml`."""

    name: str
    expected: Mapping[str, Any]
    family: Path = SHARING

    @property
    def folder(self) -> Path:
        return self.family / self.name

    @property
    def revisions(self) -> tuple[str, ...]:
        return ("base", *(name for name, said in self.expected.items() if isinstance(said, Mapping)))

    def lay_out(self, revision: str, folder: Path) -> None:
        """Copy a revision into `folder`, with times of its own, as they may be compared by `make`."""
        layers = [SHARING / "common" / self.expected["common"], self.folder / "base"]
        if revision != "base":
            layers.append(self.folder / revision)
        for layer in layers:
            shutil.copytree(layer, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
        shutil.copyfile(self.folder / "perfdiff.toml", folder / "perfdiff.toml")


def programs(family: Path = SHARING) -> list[Program]:
    """Return all programs of a family by name."""
    return [Program(path.parent.name, tomllib.loads(path.read_text()), family) for path in sorted(family.glob("*/expected.toml"))]


def repository(program: Program, folder: Path) -> Path:
    """Make `folder` a repository with a commit for each revision, tagged with its name; base is checked out."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    for revision in program.revisions:
        if revision != "base":
            git(folder, "checkout", "-q", "base")
        program.lay_out(revision, folder)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", f"{program.name}: {revision}")
        git(folder, "tag", revision)
    git(folder, "checkout", "-q", "base")
    return folder


def with_workload(config: Config, *, threads: tuple[int, ...], sizes: tuple[float | str, ...], runs: int) -> Config:
    """Return the configuration with other values of the workload's parameters."""
    parameters = {"threads": threads, "n": sizes}
    return replace(config, workloads=tuple(replace(workload, parameters=parameters, runs=runs) for workload in config.workloads))


def plain_name(name: str) -> str:
    """Return a function's name without scopes and arguments, as `expected.toml` gives it."""
    return name.split("(", maxsplit=1)[0].rsplit("::", maxsplit=1)[-1]


def request(program: Program, room: Path, *revisions: str) -> Request:
    """Return a comparison as the program's configuration asks for; its repository and the cache lie in `room`."""
    checkout = room / program.name
    if not checkout.exists():
        repository(program, checkout)
    config = configuration.load(checkout, environment={})
    return Request(checkout, revisions, config, room / "cache", dict(os.environ))
