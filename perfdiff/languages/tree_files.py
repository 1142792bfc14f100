"""Files of two built trees that differ, whatever they are called and wherever they lie."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from filecmp import cmp
from pathlib import Path


def all_differing(base: Path, head: Path) -> Iterator[tuple[str, Mapping[int, Path]]]:
    """Yield the files of two trees that are not the same, in bytes or in who may run them, with where each lies: 0 base's, 1 head's.

    Links are files, whatever they lead to, and so are folders without files.
    """
    yield from _unlike([dict(_files(tree)) for tree in (base, head)])


def regular(places: Mapping[int, Path]) -> tuple[Path, Path] | None:
    """Return where a file lies on both sides that differs in its bytes alone, None where a side lacks it, or it is something else."""
    if len(places) < 2 or _kind(places[0]) != _kind(places[1]) or not stat.S_ISREG(_kind(places[0])):
        return None
    return places[0], places[1]


def _files(tree: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(tree):
        if not (folders or names) and Path(folder) != tree:
            yield Path(folder).relative_to(tree).as_posix(), Path(folder)
        for path in (Path(folder) / name for name in (*names, *folders)):
            if path.is_symlink() or not path.is_dir():
                yield path.relative_to(tree).as_posix(), path


def _unlike(files: Sequence[Mapping[str, Path]]) -> Iterator[tuple[str, Mapping[int, Path]]]:
    for name in sorted(files[0].keys() | files[1].keys()):
        present = {side: found[name] for side, found in enumerate(files) if name in found}
        if len(present) < len(files) or not _is_same_file(present[0], present[1]):
            yield name, present


def _is_same_file(first: Path, second: Path) -> bool:
    kind = _kind(first)
    if kind != _kind(second):
        return False
    if stat.S_ISLNK(kind):
        return first.readlink() == second.readlink()
    return not stat.S_ISREG(kind) or cmp(first, second, shallow=False)


def _kind(path: Path) -> int:
    """Return what a file is, and who may read, write and run it."""
    return path.lstat().st_mode
