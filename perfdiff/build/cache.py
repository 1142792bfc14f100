"""A cache of folders by key, shared between processes."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from perfdiff import locks, temporary
from perfdiff.build import holdings
from perfdiff.errors import BusyError, StoreError, store_errors

_FINISHED, _TREES = "finished", "trees"
_OWN = stat.S_IRWXU


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A finished folder: its size, and when it was last obtained (seconds since the epoch)."""

    key: str
    size_bytes: int
    used: float


class Neighbours(Protocol):
    """Other machines, which may have a build that is missing here."""

    def obtain(self, key: str, folder: Path, make: Callable[[Path], None]) -> None:
        """Fill a new, empty folder with the build of a key: with that of another machine of the same kind, or else by `make`."""


class BuildCache:
    """Folders `<root>/trees/<key>`, each made once and then only read.

    A folder is finished when it holds the marker `finished`, which is written last. Every key has a lock file: its maker holds it
    alone, users share it, and `prune` leaves alone what is locked. Locks are the kernel's (`flock`), so they end with their process.
    `neighbours` are asked for a build before it is made. `apart` tells that builds have been seen which cannot be made at the same time,
    `reasons` are those for building variants anew that the user has read.
    """

    def __init__(self, root: Path, neighbours: Neighbours | None = None) -> None:
        self.root = root
        self.neighbours = neighbours
        self.apart = False
        self.reasons: set[str] = set()
        self._held: dict[str, int] = {}
        with store_errors(root):
            claim(root)
            for folder in (self._trees, self._locks, self.logs):
                folder.mkdir(parents=True, exist_ok=True)
            (root / ".gitignore").write_text("*\n")  # where the cache lies in a checkout, it is no part of it
        self._remove_unfinished()

    @property
    def logs(self) -> Path:
        """Return the folder of build logs, which outlive failed builds."""
        return self.root / "logs"

    @property
    def _trees(self) -> Path:
        return self.root / _TREES

    @property
    def _locks(self) -> Path:
        return self.root / "locks"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folders that were obtained."""
        while self._held:
            os.close(self._held.popitem()[1])

    def discard(self) -> None:
        """Remove the folders that were obtained, but for those that others use as well."""
        keys = tuple(self._held)
        self.close()
        for key in keys:
            self._remove_unlocked(key)

    def obtain(self, key: str, make: Callable[[Path], None], is_whole: Callable[[Path], bool] = Path.is_dir) -> Path:
        """Return the folder of `key` (32 hexadecimal digits), made by `make` if it is not there yet, or is not whole any more.

        `make` gets a new, empty folder. Where it fails or is interrupted, the folder is removed. Another process that makes the same
        folder is waited for. StoreError: `cache-busy`, `cache-unwritable`, `disk-full`.
        """
        folder = self._trees / key
        if key in self._held:
            return folder
        with store_errors(self.root):
            lock = locks.descriptor(self._locks / key)
        try:
            self._make_once(lock, folder, make, is_whole)
        except BaseException:
            os.close(lock)
            raise
        if self._held.setdefault(key, lock) != lock:  # another thread was here first
            os.close(lock)
        return folder

    def _make_once(self, lock: int, folder: Path, make: Callable[[Path], None], is_whole: Callable[[Path], bool]) -> None:
        locks.take(lock, alone=False)
        while not _is_finished(folder) or not is_whole(folder):
            # The kernel lets go of the shared lock before it waits, so the folder is looked at again.
            locks.take(lock, alone=True)
            if not _is_finished(folder) or not is_whole(folder):
                with self._room(folder):
                    make(folder)
            locks.take(lock, alone=False)
        with contextlib.suppress(OSError):  # only `prune` asks when a folder was last used
            os.utime(folder / _FINISHED)

    @contextmanager
    def making(self, key: str) -> Iterator[Path | None]:
        """Give a new, empty folder to make that of `key` in, which is kept if the block ends well; None where it is there already.

        For several that are made at the same time: who enters such blocks in the order of keys waits for nobody who waits for him.
        """
        folder = self._trees / key
        with store_errors(self.root), locks.opened(self._locks / key) as lock:
            locks.take(lock, alone=True)
            if _is_finished(folder):
                yield None
            else:
                with self._room(folder):
                    yield folder

    @contextmanager
    def _room(self, folder: Path) -> Iterator[None]:
        """Make a folder anew, and mark it as finished where the block ends well; else it is removed."""
        with _removed_on_failure(folder), store_errors(self.root):
            remove_folder(folder)
            folder.mkdir()
            yield
            (folder / _FINISHED).write_text(str(size_bytes(folder)))

    def has(self, key: str) -> bool:
        """Return whether the folder of `key` is finished."""
        return _is_finished(self._trees / key)

    def entries(self) -> tuple[CacheEntry, ...]:
        """Return the finished entries, the longest unused first."""
        finished = []
        for used, folder in self._by_use():
            with contextlib.suppress(OSError):
                finished.append(CacheEntry(folder.name, _noted_bytes(folder), used))
        return tuple(finished)

    def latest(self, most: int) -> tuple[Path, ...]:
        """Return at most `most` finished folders, the last used first."""
        return tuple(folder for _, folder in reversed(self._by_use()))[:most]

    def _by_use(self) -> list[tuple[float, Path]]:
        """Return when each finished folder was last used, the longest unused first."""
        finished: list[tuple[float, Path]] = []
        for folder in holdings.entries(self.root, _TREES):
            with contextlib.suppress(OSError):  # another process may prune at the same time; what cannot be read is left alone
                finished.append(((folder / _FINISHED).stat().st_mtime, folder))
        return sorted(finished)

    def remove(self, key: str) -> bool:
        """Remove a folder; return whether that could be done: nobody uses it, and it is this user's."""
        return self._remove_unlocked(key)

    def is_in_use(self, key: str) -> bool:
        """Return whether some process uses a build, or makes it: then its tree is not as it was built."""
        return locks.is_held(self._locks / key)

    def prune(self, *, max_age_s: float) -> tuple[CacheEntry, ...]:
        """Remove folders not used for `max_age_s`, and logs of failed builds of that age; return the folders that were removed.

        Folders in use by any process stay.
        """
        removed = []
        for entry in self.entries():
            if time.time() - entry.used > max_age_s and self._remove_unlocked(entry.key):
                (self.logs / f"{entry.key}.log").unlink(missing_ok=True)
                removed.append(entry)
        for log in holdings.entries(self.root, "logs"):
            with contextlib.suppress(OSError):
                if time.time() - log.stat().st_mtime > max_age_s and not (self._trees / log.stem).exists():
                    log.unlink(missing_ok=True)
        return tuple(removed)

    def _remove_unfinished(self) -> None:
        """Remove what processes that died left behind."""
        for folder in holdings.entries(self.root, _TREES):
            if not _is_finished(folder):
                self._remove_unlocked(folder.name)

    def _remove_unlocked(self, key: str) -> bool:
        with store_errors(self.root), contextlib.suppress(BusyError, PermissionError), locks.opened(self._locks / key) as lock:
            locks.take(lock, alone=True, most_s=0)
            # The marker goes first: a removal that is cut short leaves an unfinished folder, not a damaged one.
            with contextlib.suppress(PermissionError):
                (self._trees / key / _FINISHED).unlink(missing_ok=True)
            remove_folder(self._trees / key)
            return True
        return False


def _is_finished(folder: Path) -> bool:
    """Return whether a folder bears the marker that is written last; one that cannot be read does not."""
    try:
        return (folder / _FINISHED).exists()
    except OSError:
        return False


def _noted_bytes(folder: Path) -> int:
    """Return the size of a finished folder as it was noted then: to add up its files takes as long as to read a tree."""
    text = (folder / _FINISHED).read_text()
    return int(text) if text.isdecimal() else size_bytes(folder)


def place(root: Path, key: str) -> Path:
    """Return where the folder of a key is in a cache, or would be."""
    return root / _TREES / key


def kept(root: Path) -> frozenset[str]:
    """Return the keys of the finished folders of a cache, none where there is no cache yet."""
    return frozenset(marker.parent.name for marker in (root / _TREES).glob(f"*/{_FINISHED}"))


def claim(root: Path) -> None:
    """Make the folder of a cache, or see that its user alone can write it, as what lies in it is executed; raise OSError.

    StoreError: `cache-open` where it belongs to somebody else (but root), or its group or others may write it.
    """
    root.mkdir(parents=True, exist_ok=True, mode=_OWN)
    status = root.stat()
    if status.st_uid not in (os.geteuid(), 0):
        raise StoreError(
            f"{root} belongs to user {status.st_uid}, who could change the builds that you run; use a cache of your own (--cache)",
            slug="cache-open",
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(
            f"{root} can be written by others, who could change the builds that you run; remove it, or run `chmod 700` on it if you trust "
            "what it holds",
            slug="cache-open",
        )


@contextmanager
def _removed_on_failure(folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        remove_folder(folder)
        raise


def remove_folder(folder: Path) -> None:
    """Remove a folder, if it is there, with the parts that were made read-only; a file or link in its place as well; raise OSError."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    temporary.clear(folder)
    if not folder.is_dir():
        return
    try:
        shutil.rmtree(folder)  # which says what is in the way
    except RecursionError as error:  # deeper than paths are long
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(folder)) from error


def size_bytes(entry: Path) -> int:
    """Return the size of a file, or of all files in a folder that can be read; raise FileNotFoundError where there is neither."""
    if entry.is_symlink() or not entry.is_dir():
        return entry.lstat().st_size
    size = 0
    for place, _, names in os.walk(entry):
        for name in names:
            with contextlib.suppress(OSError):  # a perfdiff at work removes files
                size += Path(place, name).lstat().st_size
    return size
