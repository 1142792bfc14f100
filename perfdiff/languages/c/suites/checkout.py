"""Files of a checkout, as far as frameworks look for suites among them."""

from __future__ import annotations

import os
import re
from collections import deque
from dataclasses import dataclass
from pathlib import Path

_MOST_FILES = 20_000  # that are looked at: a tenth of a second
_MOST_OF_FOLDER = 2_000  # a corpus may hold more than all the rest of a project
_NOT_OWN = frozenset(
    ("node_modules", "third_party", "third-party", "thirdparty", "vendor", "vendored", "external", "extern", "deps", "subprojects")
)
_BUILD_STATE = frozenset(("CMakeCache.txt", "build.ninja", "config.status"))  # files of folders that an earlier build made
_FIRST = re.compile(r"fuzz|test|check|corp|seed|sample|example|data|^t$", re.IGNORECASE)  # folders that are not to be missed among many

SOURCES = frozenset((".c", ".cc", ".cpp", ".cxx", ".c++", ".C"))


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a checkout, by its path in the project, with the names of its files."""

    path: Path
    names: tuple[str, ...]

    @property
    def files(self) -> list[Path]:
        """Return the paths of its files."""
        return [self.path / name for name in self.names]


def folders(project: Path) -> tuple[Folder, ...]:
    """Return folders of a project, without what others wrote, hides or was built."""
    waiting, listed, seen = deque([Path()]), list[Folder](), 0
    while waiting and seen < _MOST_FILES:
        path = waiting.popleft()
        try:
            with os.scandir(project / path) as entries:
                shown = sorted(
                    (entry.name, entry.is_dir(follow_symlinks=False), entry.is_file())
                    for entry in entries
                    if not entry.name.startswith(".")
                )
        except OSError:  # a folder that is not ours to read
            continue
        names = tuple(name for name, _, is_file in shown if is_file)[:_MOST_OF_FOLDER]
        if path != Path() and _BUILD_STATE.intersection(names):
            continue
        seen += len(names)
        listed.append(Folder(path, names))
        below = [path / name for name, is_folder, _ in shown if is_folder and name.lower() not in _NOT_OWN]
        waiting.extend(folder for folder in below if not _FIRST.search(folder.name))
        waiting.extendleft(folder for folder in reversed(below) if _FIRST.search(folder.name))
    return tuple(listed)


def nearness(path: Path, other: Path) -> int:
    """Return how many folders two paths have in common from the top."""
    return next((number for number, (own, its) in enumerate(zip(path.parts, other.parts, strict=False)) if own != its), len(path.parts))
