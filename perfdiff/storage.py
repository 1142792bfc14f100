"""The cache folder: who is at work with it, what it holds, and clearing away what has not been used for long."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build import builder
from perfdiff.build.cache import BuildCache, claim, size_bytes
from perfdiff.errors import RecordingError, StoreError, store_errors
from perfdiff.progress import Progress
from perfdiff.records import bounds, codec, placestore, store
from perfdiff.records.schema import Note, Revision

_SAYS: Mapping[str, str] = {
    "trees": "builds",
    "experiments": "recordings of comparisons",
    "findings": "findings of comparisons",
    "places": "counts of places",
    "units": "parsed sources",
    "modules": "parsed sources of Python",
    "classes": "parsed sources and classes of Java",
    "scripts": "parsed sources of PHP",
    "snapshots": "copies of working trees",
    "repositories": "repositories of others that are measured here",
    "runtime": "runtime libraries",
    "python": "Python packages",
    "logs": "build logs",
    "bisects": "states of bisects",
    "stations": "builds of recordings",
}
# What goes by its age, which is the time since it was used; builds have a time of their own.
_AGEING: Mapping[str, str] = {
    "experiments": "*",
    "findings": "*",
    "places": "*",
    "units": "*/*",
    "modules": "*/*",
    "classes": "*/*",
    "scripts": "*/*",
    "snapshots": "objects/*/*",
    "repositories": "*",
    "runtime": "*",
    "python": "*",
    "bisects": "*",
}
_LAST = "last-"
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


@dataclass(frozen=True, slots=True)
class Asked:
    """A comparison as it was asked for: `key` names its experiment, which other names of the same revisions share."""

    key: str
    base: Revision
    head: Revision
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of the cache, in words, with its size."""

    says: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Damage:
    """A folder of the cache that cannot be used as it is, and why."""

    path: Path
    says: str


def folder(environment: Mapping[str, str]) -> Path:
    """Return the cache where none is given: `$PERFDIFF_CACHE`, else `perfdiff` in the user's cache folder."""
    if own := environment.get("PERFDIFF_CACHE"):
        return Path(own).absolute()
    # The specification says that a relative path in XDG_CACHE_HOME is to be ignored.
    user = Path(environment.get("XDG_CACHE_HOME", ""))
    return (user if user.is_absolute() else Path.home() / ".cache") / "perfdiff"


@contextmanager
def in_use(cache: Path) -> Iterator[None]:
    """Keep `prune` away from what lies in the cache; failures of the file system are told as the cache's.

    A cache that cannot be written can still be read, and nobody can clear it either.
    """
    with store_errors(cache), contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(_lock_file(cache, "in-use"))
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
        else:
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def at_work(cache: Path, progress: Progress, *, waiting: bool = True) -> Iterator[Path]:
    """Be the only one that builds and runs with this cache, and yield an empty folder, which is removed afterwards.

    Another comparison is waited for, else StoreError is raised: its builds and runs would show in the times, and its workloads may write
    to the same trees.
    """
    with store_errors(cache), _lock_file(cache, "at-work") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if not waiting:
                text = f"another perfdiff is at work with {cache}; give each worker a PERFDIFF_CACHE of its own, or wait until it is done"
                raise StoreError(text, slug="cache-busy") from error
            progress.note(f"another perfdiff is at work with {cache}; waiting until it is done")
            fcntl.flock(lock, fcntl.LOCK_EX)
        room = cache / "room"
        try:
            for left in (room, *cache.glob("experiments/.writing-*"), *cache.glob("places/.writing-*")):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            room.mkdir()
            yield room
        finally:
            shutil.rmtree(room, ignore_errors=True)


@contextmanager
def station(cache: Path) -> Iterator[Path]:
    """Yield a folder like the cache, below it, that nobody else works with: recordings of programs in use keep theirs for days."""
    for number in itertools.count(1):
        folder = cache / "stations" / f"{number}"
        with store_errors(cache), _lock_file(folder, "station") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield folder
            return


@contextmanager
def _lock_file(cache: Path, name: str) -> Iterator[int]:
    claim(cache)
    (cache / "locks").mkdir(exist_ok=True)
    lock = os.open(cache / "locks" / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield lock
    finally:
        os.close(lock)


def experiment(cache: Path, asked: Asked) -> Path:
    """Return the folder of a comparison's experiment, and let it count as used now."""
    return _used(cache / "experiments" / asked.key)


def repository(cache: Path, name: str) -> Path:
    """Return the folder of a repository that a cluster's client sent, and let it count as used now."""
    return _used(cache / "repositories" / name)


def places(cache: Path, key: str) -> Path:
    """Return the folder of a revision's counts of places, and let it count as used now."""
    return _used(cache / "places" / key)


def _used(folder: Path) -> Path:
    with contextlib.suppress(OSError):  # only `prune` asks
        os.utime(folder)
    return folder


def remember(cache: Path, repository: str, asked: Asked) -> None:
    """Keep what was asked last of the repository of this name; raise OSError."""
    (cache / f"{_LAST}{repository}").write_text(json.dumps(codec.encode(asked)), encoding="utf-8")


def last(cache: Path, repository: str) -> Asked | None:
    """Return what was asked last of the repository of this name, None where that is not known."""
    try:
        return codec.decode(Asked, bounds.parsed((cache / f"{_LAST}{repository}").read_text(encoding="utf-8")))
    except (OSError, ValueError, RecordingError):
        return None


def contents(cache: Path) -> tuple[Part, ...]:
    """Return the parts of the cache, the largest first; none where there is no cache yet."""
    if not cache.is_dir():
        return ()
    sizes: dict[str, int] = {}
    for entry in cache.iterdir():
        says = _SAYS.get(entry.name, "other")
        sizes[says] = sizes.get(says, 0) + size_bytes(entry)
    return tuple(sorted((Part(says, size) for says, size in sizes.items()), key=lambda part: -part.size_bytes))


def verify(cache: Path) -> tuple[Damage, ...]:
    """Return what is damaged: recordings, and builds, that are not as they were written or built."""
    if not cache.is_dir():
        return ()
    with in_use(cache):
        return (*_damaged_recordings(cache), *_damaged_builds(cache))


def _damaged_recordings(cache: Path) -> Iterator[Damage]:
    for kind, check in (("experiments", store.verify), ("places", placestore.verify)):
        for folder in sorted((cache / kind).glob("[!.]*")):
            try:
                check(folder)
            except RecordingError as error:
                yield Damage(folder, str(error))


def _damaged_builds(cache: Path) -> Iterator[Damage]:
    with BuildCache(cache) as builds:
        for entry in builds.entries():
            try:
                builder.verify(cache / "trees" / entry.key)
            except StoreError as error:
                yield Damage(cache / "trees" / entry.key, str(error))


def clear(cache: Path, damaged: Sequence[Damage]) -> None:
    """Remove what is damaged and not in use, so that it is made anew where it is needed; another perfdiff at work is waited for."""
    with store_errors(cache), BuildCache(cache) as builds, _lock_file(cache, "in-use") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for each in damaged:
            if each.path.parent.name == "trees":
                builds.remove(each.path.name)
            else:
                shutil.rmtree(each.path, ignore_errors=True)


def prune(cache: Path, *, max_age_s: float) -> int:
    """Remove what was not used for `max_age_s`; return the bytes freed.

    While another perfdiff is at work, only builds go that it does not use.
    """
    if not cache.is_dir():
        return 0
    below = sum(prune(folder, max_age_s=max_age_s) for folder in sorted((cache / "stations").glob("*")))
    with store_errors(cache), BuildCache(cache) as builds, _lock_file(cache, "in-use") as lock:
        freed = below + sum(entry.size_bytes for entry in builds.prune(max_age_s=max_age_s))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return freed
        return freed + sum(_remove(entry) for entry in _disused(cache, time.time() - max_age_s))


def _disused(cache: Path, oldest: float) -> Iterator[Path]:
    for folder, pattern in _AGEING.items():
        entries = [entry for entry in (cache / folder).glob(pattern) if entry.lstat().st_mtime < oldest]
        yield from entries
        for above in {entry.parent for entry in entries} - {cache / folder}:
            with contextlib.suppress(OSError):  # not empty
                above.rmdir()


def _remove(entry: Path) -> int:
    size = size_bytes(entry)
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()
    return size
