"""The user's repository, which is only ever read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository as found from a folder in it.

    `top` is the root of the checkout, None for a bare repository; `folder` is where the project lies below it ("." for the root).
    """

    git_dir: Path
    common_dir: Path
    top: Path | None
    folder: Path


def find_repository(start: Path) -> Repository:
    """Return the repository that `start` lies in; RevisionError `not-a-repository`, `no-git`."""
    raise NotImplementedError
