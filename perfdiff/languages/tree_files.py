"""Files of built trees: those of one that a project has itself, and those of two that differ, whatever they are called."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from filecmp import cmp
from pathlib import Path


def own_files(tree: Path, is_left_out: Callable[[Path], bool]) -> Iterator[str]:
    """Yield the paths in a tree of its regular files, in order, but for those in folders that are left out.

    Links are left out: what they lead to has a path of its own.
    """
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(name for name in folders if not is_left_out(Path(folder, name)))
        for path in (Path(folder, name) for name in sorted(names)):
            if not path.is_symlink() and path.is_file():
                yield path.relative_to(tree).as_posix()


def all_differing(base: Path, head: Path) -> Iterator[tuple[str, Mapping[int, Path]]]:
    """Yield the files of two trees that are not the same, in bytes or in who may run them, with where each lies: 0 base's, 1 head's.

    Links are files, whatever they lead to, and so are folders without files.
    """
    files = [dict(_files(tree)) for tree in (base, head)]
    for name in sorted(files[0].keys() | files[1].keys()):
        present = {side: by_name[name] for side, by_name in enumerate(files) if name in by_name}
        if len(present) < len(files) or not _is_same_file(present[0], present[1]):
            yield name, present


def regular(differing: Mapping[str, Mapping[int, Path]]) -> dict[str, tuple[Path, Path]]:
    """Return where files lie on both sides that differ in their bytes alone: no side lacks them, and they are nothing but files."""
    return {
        name: (places[0], places[1])
        for name, places in differing.items()
        if len(places) == 2 and _kind(places[0]) == _kind(places[1]) and stat.S_ISREG(_kind(places[0]))
    }


def _files(tree: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(tree):
        if not (folders or names) and Path(folder) != tree:
            yield Path(folder).relative_to(tree).as_posix(), Path(folder)
        for path in (Path(folder) / name for name in (*names, *folders)):
            if path.is_symlink() or not path.is_dir():
                yield path.relative_to(tree).as_posix(), path


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


def uncommented(file: Path) -> Iterator[str]:
    """Yield the lines of a text without the comments that begin with `#`."""
    return (line.partition("#")[0] for line in file.read_text(errors="replace").splitlines())
