"""What can be executed in a folder that is kept, as it was when the folder was made. The folder is held against its seal before it is used.

This finds what a workload, a script or a broken disk changed. It is no signature: who may write the folder may write the seal as well,
so the cache belongs to one user (`build/cache.py`), and no job of another merge request may fill it (`docs/ci.md`).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

NAME = "seal.json"  # of the file
_ANY_EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_BLOCK = 2**20  # bytes hashed at once

_Entry = list[int | str]


def close(folder: Path, *, without: str = "") -> None:
    """Write down what can be executed in a folder: size, times, inode and digest of programs, scripts and shared objects; raise OSError.

    What lies in the folder `without` in it is not: links that may come to lead elsewhere.
    """
    entries = {name: _entry(folder / name) for name in _executables(folder) if name.split("/")[0] != without}
    (folder / NAME).write_text(json.dumps(entries), encoding="ascii")


def broken(folder: Path) -> str | None:
    """Return what in a folder is not as it was when the seal was written, in words; None where all is.

    A file's content is read only where its size, times or inode differ, as they do in a folder that was copied.
    """
    try:
        name = _first_differing(folder, {})
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return "its seal cannot be read"
    return None if name is None else f"{name} is not as it was built"


def is_broken_copy(folder: Path, tree: str, copy: str) -> bool:
    """Return whether a copy of a tree beside it has other programs than the tree of a sealed folder had."""
    if not (folder / NAME).exists():
        return False
    try:
        return _first_differing(folder, {tree: copy}) is not None
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return True


def _first_differing(folder: Path, copies: Mapping[str, str]) -> str | None:
    """Return what is not as it was sealed; of trees that have copies, what is not in these. Raise errors of a seal that is none."""
    sealed: dict[str, _Entry] = json.loads((folder / NAME).read_text(encoding="ascii"))
    for name, entry in sealed.items():
        tree, _, rest = name.partition("/")
        if (not copies or tree in copies) and not _is_as_sealed(folder / copies.get(tree, tree) / rest, entry):
            return name
    return None


def _is_as_sealed(path: Path, entry: _Entry) -> bool:
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return [str(path.readlink())] == entry
        return [*_marks(status)] == entry[:-1] or (status.st_size == entry[0] and [_digest(path)] == entry[-1:])
    except OSError:  # gone, or not to be read
        return False


def _entry(path: Path) -> _Entry:
    if path.is_symlink():
        return [str(path.readlink())]
    return [*_marks(path.lstat()), _digest(path)]


def _marks(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _executables(folder: Path) -> Iterator[str]:
    """Yield the names of programs, scripts, shared objects and links of a folder; not of git's own files, where nothing is run."""
    for place, folders, names in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        links = [name for name in folders if Path(place, name).is_symlink()]
        for name in (*names, *links):
            path = Path(place, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode) or (stat.S_ISREG(mode) and (mode & _ANY_EXECUTE or ".so" in name)):
                yield str(path.relative_to(folder))
