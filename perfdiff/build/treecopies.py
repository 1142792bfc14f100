"""Copies of built trees that do not know of the first one: paths into the tree, in texts and in programs, become paths into the copy."""

from __future__ import annotations

import mmap
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Root:
    """The end of a tree's path that names it among all: the folder of its cache entry, and its own.

    All roots are equally long, so that one can stand for another within a program.
    """

    text: str

    @classmethod
    def of(cls, tree: Path) -> Root:
        """Return the root of a tree."""
        return cls(f"{tree.parent.name}{os.sep}{tree.name}")


def relocated(text: str, old: Root, new: Root) -> str:
    """Return a path, or any text, with one root in place of the other."""
    return text.replace(old.text, new.text)


def mentions(tree: Path) -> tuple[Path, ...]:
    """Return which files of a tree hold its own path, and which symbolic links lead by it; all relative to the tree."""
    root = Root.of(tree).text.encode()
    return tuple(path.relative_to(tree) for path in files(tree) if _holds(path, root))


def files(tree: Path) -> Iterator[Path]:
    """Yield all regular files and symbolic links of a tree, sorted by folder."""
    for place, folders, names in os.walk(tree):
        folders.sort()
        linked = (name for name in folders if Path(place, name).is_symlink())
        for name in sorted((*names, *linked)):
            path = Path(place, name)
            if path.is_symlink() or path.is_file():
                yield path


def copy_tree(tree: Path, copy: Path, mentioned: Sequence[Path]) -> None:
    """Copy a tree, sharing blocks where the file system can, and rewrite what is `mentioned` (by `mentions`); raise OSError.

    Nothing of it is shared by hard links with the first tree: workloads write to what they find.
    """
    if len(Root.of(tree).text) != len(Root.of(copy).text):
        raise ValueError(f"{copy} is not as long a path as {tree}")
    answer = subprocess.run(["cp", "-a", "--reflink=auto", "--", tree, copy], capture_output=True, text=True, errors="replace", check=False)
    if answer.returncode != 0:
        raise OSError(f"{tree} could not be copied: {answer.stderr.strip()}")
    old, new = Root.of(tree).text.encode(), Root.of(copy).text.encode()
    for name in mentioned:
        path = copy / name
        if path.is_symlink():
            target = os.fsencode(path.readlink()).replace(old, new)
            path.unlink()
            path.symlink_to(os.fsdecode(target))
        else:
            rewrite(path, lambda content: content.replace(old, new))


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change what a file holds and nothing else: `make` would build anew what depends on a newer file."""
    before = path.stat()
    path.chmod(before.st_mode | stat.S_IWUSR)
    path.write_bytes(change(path.read_bytes()))
    path.chmod(stat.S_IMODE(before.st_mode))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_file(path: Path, other: Path) -> None:
    """Put another file's content in a file's place, with the first one's mode and times."""
    before = path.stat()
    path.unlink()
    shutil.copyfile(other, path)
    path.chmod(stat.S_IMODE(before.st_mode))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _holds(path: Path, text: bytes) -> bool:
    """Return whether a file, or the target of a symbolic link, holds a text; without reading test data of any size into memory."""
    if path.is_symlink():
        return text in os.fsencode(path.readlink())
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < len(text):  # nothing cannot be mapped
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(text) >= 0
