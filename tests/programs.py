"""Fixture programs as real git repositories."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent.parent / "fixtures" / "programs"
IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main")


@dataclass(frozen=True, slots=True)
class Case:
    """A pair of programs with one known change; `expected` is its `expected.toml`."""

    name: str
    expected: dict[str, Any]

    @property
    def folder(self) -> Path:
        return PROGRAMS / self.name


def cases() -> list[Case]:
    """Return all cases by name."""
    return [Case(path.parent.name, tomllib.loads(path.read_text())) for path in sorted(PROGRAMS.glob("*/expected.toml"))]


def git(repository: Path, *arguments: str) -> str:
    """Run git in `repository` and return what it printed."""
    command = ["git", *IDENTITY, "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def repository(case: Case, folder: Path) -> Path:
    """Make `folder` a repository of two commits, tagged `base` and `head`, with the configuration in the checkout."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    for side in ("base", "head"):
        for entry in folder.iterdir():
            if entry.name != ".git":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.copytree(case.folder / side, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)  # with times of its own
        shutil.copy(case.folder / "perfdiff.toml", folder)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"{case.name}: {side}")
        git(folder, "tag", side)
    return folder
