"""The cache folder: who is at work with it, what it holds, and clearing away what has not been used for long."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from perfdiff import locks, temporary
from perfdiff.build import holdings
from perfdiff.build.cache import BuildCache, claim, place, remove_folder, size_bytes
from perfdiff.build.holdings import HOLDINGS, entries
from perfdiff.errors import BusyError, RecordingError, StoreError, store_errors
from perfdiff.progress import Progress, Silent
from perfdiff.records import bounds, codec, placestore, store
from perfdiff.records.schema import Experiment, Note, Revision

_LAST, _REMOVED = "last-", "removed"
_CLEARING_S = 60.0  # who clears the cache holds it for as long as renaming takes
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


@dataclass(frozen=True, slots=True)
class CachedComparison:
    """A comparison as it was asked for: `key` names its experiment, which other names of the same revisions share."""

    key: str
    base: Revision
    head: Revision
    notes: tuple[Note, ...]

    def names(self, experiment: Experiment) -> Experiment:
        """Return an experiment with its revisions named as the user asked for them."""
        return replace(experiment, base=self.base, head=self.head, notes=(*self.notes, *experiment.notes))


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """A folder of the cache, in words, with its size."""

    says: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Damage:
    """A folder of the cache that cannot be used as it is, and why."""

    path: Path
    says: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What of a cache is not as it was written or built, and how many builds processes use, whose trees are not as they were built."""

    damaged: tuple[Damage, ...] = ()
    builds_in_use: int = 0


@contextmanager
def in_use(cache: Path, progress: Progress) -> Iterator[None]:
    """Keep `prune` away from what lies in the cache; failures of the file system are told as the cache's.

    A cache that cannot be written can still be read, and nobody can clear it either. Who clears it is waited for: StoreError
    (`cache-busy`) where that takes longer than clearing may.
    """
    with store_errors(cache), contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(_lock_file(cache, "in-use"))
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
        else:
            locks.take(lock, alone=False, most_s=_CLEARING_S, waits=partial(_tell_waiting, cache, progress))
        yield


def _tell_waiting(cache: Path, progress: Progress, holder: str) -> None:
    progress.note(f"another perfdiff is at work with {cache} ({holder}); waiting until it is done, or Ctrl-C")


@contextmanager
def at_work(cache: Path, progress: Progress, *, wait_s: float) -> Iterator[Path]:
    """Be the only one that builds and runs with this cache, and yield an empty folder, which is removed afterwards.

    Another comparison is waited for so long, then StoreError (`cache-busy`) is raised: its builds and runs would show in the times, and its
    workloads may write to the same trees.
    """
    with store_errors(cache), _lock_file(cache, "at-work") as lock:
        locks.take(lock, alone=True, most_s=wait_s, waits=partial(_tell_waiting, cache, progress))
        room = cache / "room"
        try:
            for left in (room, *cache.glob("experiments/.writing-*"), *cache.glob("places/.writing-*")):  # by a process that was killed
                temporary.clear(left)
            room.mkdir()
            yield room
        finally:
            temporary.clear(room)


@contextmanager
def station(cache: Path) -> Iterator[Path]:
    """Yield a folder like the cache, below it, that nobody else works with: recordings of programs in use keep theirs for days."""
    for number in itertools.count(1):
        folder = cache / "stations" / f"{number}"
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            continue  # somebody else's
        with store_errors(cache), _lock_file(folder, "station") as lock:
            try:
                locks.take(lock, alone=True, most_s=0)
            except BusyError:
                continue
            yield folder
            return


@contextmanager
def _lock_file(cache: Path, name: str) -> Iterator[int]:
    claim(cache)
    (cache / "locks").mkdir(exist_ok=True)
    with locks.opened(cache / "locks" / name) as lock:
        yield lock


def experiment(cache: Path, comparison: CachedComparison) -> Path:
    """Return the folder of a comparison's experiment, and let it count as used now."""
    return _used(cache / "experiments" / comparison.key)


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


def remember(cache: Path, repository: str, comparison: CachedComparison) -> None:
    """Store the last comparison of the repository of this name; raise OSError."""
    (cache / f"{_LAST}{repository}").write_text(json.dumps(codec.encode(comparison)), encoding="utf-8")


def last(cache: Path, repository: str) -> CachedComparison | None:
    """Return the last comparison of the repository of this name, None if none is known."""
    try:
        return codec.decode(CachedComparison, bounds.parsed((cache / f"{_LAST}{repository}").read_text(encoding="utf-8")))
    except (OSError, ValueError, RecordingError):
        return None


def contents(cache: Path) -> tuple[CacheFolder, ...]:
    """Return the parts of the cache, the largest first; none where there is no cache yet."""
    if not cache.is_dir():
        return ()
    sizes: dict[str, int] = {}
    for entry in cache.iterdir():
        says = HOLDINGS[entry.name].says if entry.name in HOLDINGS else "other"
        sizes[says] = sizes.get(says, 0) + size_bytes(entry)
    return tuple(sorted((CacheFolder(says, size) for says, size in sizes.items()), key=lambda part: -part.size_bytes))


def verify(cache: Path, progress: Progress) -> Verification:
    """Read all recordings, and the records of all builds that nobody uses."""
    if not cache.is_dir():
        return Verification()
    with in_use(cache, progress):
        recordings = tuple(_damaged_recordings(cache))
        with BuildCache(cache) as builds:
            keys = [entry.key for entry in builds.entries()]
            unused = [key for key in keys if not builds.is_in_use(key)]
        return Verification((*recordings, *_damaged_builds(cache, unused)), len(keys) - len(unused))


def _damaged_recordings(cache: Path) -> Iterator[Damage]:
    for kind, check in (("experiments", store.verify), ("places", placestore.verify)):
        for folder in entries(cache, kind):
            try:
                if not folder.name.startswith("."):
                    check(folder)
            except RecordingError as error:
                yield Damage(folder, str(error))


def _damaged_builds(cache: Path, keys: Iterable[str]) -> Iterator[Damage]:
    from perfdiff.build import builder  # with what reads recordings: `perfdiff explain` asks for none of it

    for folder in (place(cache, key) for key in keys):
        try:
            builder.verify(folder)
        except StoreError as error:
            yield Damage(folder, str(error))


def strangers(cache: Path) -> tuple[Path, ...]:
    """Return what lies in the cache, and in recordings' caches below it, that perfdiff has not laid there or cannot read."""
    own = (cache, *entries(cache, "stations"))
    return tuple(path for folder in own for path in holdings.strangers(folder))


def clear(cache: Path, damaged: Sequence[Damage]) -> None:
    """Remove what is damaged and not in use, so that it is made anew where it is needed: of recordings, where no perfdiff is at work."""
    with store_errors(cache), BuildCache(cache) as builds:
        recordings = [damage.path for damage in damaged if damage.path.parent.name != "trees"]
        for damage in damaged:
            if damage.path not in recordings:
                builds.remove(damage.path.name)
        if recordings:
            _remove_alone(cache, recordings)


def prune(cache: Path, *, max_age_s: float) -> int:
    """Remove what was not used for `max_age_s`; return the bytes freed. What is not perfdiff's, or cannot be removed, is left.

    While another perfdiff is at work, only builds go that it does not use.
    """
    if not cache.is_dir():
        return 0
    below = sum(prune(folder, max_age_s=max_age_s) for folder in entries(cache, "stations"))
    with contextlib.suppress(BusyError), at_work(cache, Silent(), wait_s=0):
        pass  # what a process that was killed left is cleared
    with store_errors(cache), BuildCache(cache) as builds:
        freed = below + sum(entry.size_bytes for entry in builds.prune(max_age_s=max_age_s))
        return freed + _remove_alone(cache, list(_disused(cache, time.time() - max_age_s)))


def limit(cache: Path, most_bytes: float) -> None:
    """Remove entries of the cache, the least recently used first, until it has at most `most_bytes`; entries in use stay."""
    with contextlib.suppress(StoreError), BuildCache(cache) as builds:
        entries_by_use: list[tuple[float, int, str | Path]] = [(build.used, build.size_bytes, build.key) for build in builds.entries()]
        entries_by_use += [(path.lstat().st_mtime, size_bytes(path), path) for path in _disused(cache, math.inf)]
        excess = sum(size for _, size, _ in entries_by_use) - most_bytes
        old: list[Path] = []
        for _, size, entry in sorted(entries_by_use, key=lambda entry: entry[0]):
            if excess <= 0:
                break
            if isinstance(entry, Path):
                old.append(entry)
                excess -= size
            elif builds.remove(entry):
                excess -= size
        if old:
            _remove_alone(cache, old)


def _disused(cache: Path, oldest: float) -> Iterator[Path]:
    for folder, holding in HOLDINGS.items():
        for entry in entries(cache, folder) if holding.ageing else ():
            with contextlib.suppress(OSError):  # gone meanwhile
                if entry.lstat().st_mtime < oldest:
                    yield entry


def _remove_alone(cache: Path, paths: Sequence[Path]) -> int:
    """Remove parts of the cache while nobody reads it, and return the bytes freed: 0 where somebody does.

    They are moved away together and removed afterwards: whoever comes meanwhile waits for milliseconds.
    """
    freed, removed = 0, cache / _REMOVED
    with _lock_file(cache, "in-use") as lock:
        try:
            locks.take(lock, alone=True, most_s=0)
        except BusyError:
            return 0
        removed.mkdir(exist_ok=True)
        for number, path in enumerate(paths):
            with contextlib.suppress(OSError):  # another user's
                size = size_bytes(path)
                path.rename(removed / f"{os.getpid()}-{number}")
                freed += size
            with contextlib.suppress(OSError):  # not empty
                path.parent.rmdir()
    with contextlib.suppress(OSError):
        remove_folder(removed)
    return freed
