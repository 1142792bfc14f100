"""What the parts of the accuracy study share: how large they are run, how shares are told, and repositories made of text."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from perfdiff.config import BuildConfig, CompareConfig, Config, WorkloadConfig
from perfdiff.request import Request
from programs import git
from studies import FIXTURES
from studies.null import interval

ACCURACY = FIXTURES / "accuracy"


class Size(StrEnum):
    """How much of the study is run: enough to see that it works, minutes a part, an hour or two all in all, or most of a day."""

    QUICK = "quick"
    SHORT = "short"
    LONG = "long"
    FULL = "full"


def say(text: str) -> None:
    """Print a line of what is being measured."""
    print(text, flush=True)


def share(seen: int, n: int) -> str:
    """Return a share with its exact interval."""
    return f"{seen} of {n}, {100 * seen / n:.1f} % ({interval(seen, n)})" if n else "none"


def listed(what: str, items: Sequence[str]) -> str:
    """Return misses by name, as a list in Markdown."""
    return f"{what}: none." if not items else "\n".join((f"{what}:\n", *(f"- {item}" for item in items)))


def repository(folder: Path, revisions: Mapping[str, Mapping[str, str]]) -> Path:
    """Return `folder` as a repository with a tagged commit of the named texts per revision; it is kept where it is already one."""
    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    for tag, files in revisions.items():
        for name, text in files.items():
            (folder / name).write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", tag)
        git(folder, "tag", tag)
    return folder


def texts(folder: Path) -> dict[str, str]:
    """Return the files of a fixture by name."""
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def request(checkout: Path, revisions: tuple[str, ...], workload: WorkloadConfig, cache: Path, *, seed: int) -> Request:
    """Return a comparison, or a measurement, of a program that `make` builds."""
    config = Config(BuildConfig("make"), (workload,), compare=CompareConfig(seed=seed))
    return Request(checkout, revisions, config, cache, dict(os.environ))


def anew(folder: Path) -> Path:
    """Return an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
