"""Files of a checkout, as far as frameworks look for suites among them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

_MOST_FILES = 20_000  # that are looked at: a tenth of a second
_MOST_OF_FOLDER = 2_000  # a corpus may hold more than all the rest of a project
_NOT_OWN = frozenset(
    ("node_modules", "third_party", "third-party", "thirdparty", "vendor", "vendored", "external", "extern", "deps", "subprojects")
)
_BUILD_STATE = frozenset(("CMakeCache.txt", "build.ninja", "config.status"))  # files of folders that an earlier build made

SOURCES = frozenset((".c", ".cc", ".cpp", ".cxx", ".c++", ".C"))


def files(project: Path) -> Iterator[Path]:
    """Yield files of a project by their paths in it, those of upper folders first, without what others wrote, hides or was built."""
    folders, seen = deque([Path()]), 0
    while folders and seen < _MOST_FILES:
        folder = folders.popleft()
        try:
            with os.scandir(project / folder) as entries:
                listed = sorted((entry.name, entry.is_dir(follow_symlinks=False), entry.is_file()) for entry in entries)
        except OSError:  # a folder that is not ours to read
            continue
        if folder != Path() and any(name in _BUILD_STATE for name, _, _ in listed):
            continue
        names = [name for name, _, is_file in listed if is_file and not name.startswith(".")][:_MOST_OF_FOLDER]
        seen += len(names)
        yield from (folder / name for name in names)
        folders.extend(
            folder / name for name, is_folder, _ in listed if is_folder and not name.startswith(".") and name.lower() not in _NOT_OWN
        )


def nearness(path: Path, other: Path) -> int:
    """Return how many folders two paths have in common from the top."""
    return next((number for number, (own, its) in enumerate(zip(path.parts, other.parts, strict=False)) if own != its), len(path.parts))
