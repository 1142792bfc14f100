"""What the cache folder holds, and clearing away what has not been used for long."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build.cache import BuildCache
from perfdiff.errors import StoreError

_SAYS: Mapping[str, str] = {
    "trees": "builds",
    "experiments": "recordings of comparisons",
    "index": "parsed sources",
    "snapshots": "copies of working trees",
    "runtime": "runtime libraries",
    "logs": "build logs",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of the cache, in words, with its size."""

    says: str
    size_bytes: int


def contents(cache: Path) -> tuple[Part, ...]:
    """Return the parts of the cache, the largest first; none where there is no cache yet."""
    if not cache.is_dir():
        return ()
    sizes: dict[str, int] = {}
    for entry in cache.iterdir():
        says = _SAYS.get(entry.name, "other")
        sizes[says] = sizes.get(says, 0) + _size_bytes(entry)
    return tuple(sorted((Part(says, size) for says, size in sizes.items()), key=lambda part: -part.size_bytes))


def prune(cache: Path, *, max_age_s: float) -> int:
    """Remove builds, recordings and parsed sources not used for `max_age_s`; return the bytes freed. What is in use stays."""
    if not cache.is_dir():
        return 0
    with BuildCache(cache) as builds:
        freed = sum(entry.size_bytes for entry in builds.prune(max_age_s=max_age_s))
    oldest = time.time() - max_age_s
    try:
        return freed + sum(_remove(entry) for entry in _disused(cache, oldest))
    except OSError as error:
        raise StoreError(f"{cache} cannot be cleared: {error}", slug="cache-unwritable") from error


def _disused(cache: Path, oldest: float) -> Iterator[Path]:
    for folder in ("experiments", "index"):
        if (cache / folder).is_dir():
            yield from (entry for entry in (cache / folder).iterdir() if not entry.name.startswith(".") and entry.stat().st_mtime < oldest)


def _remove(entry: Path) -> int:
    size = _size_bytes(entry)
    if entry.is_dir():
        shutil.rmtree(entry)
    else:
        entry.unlink()
    return size


def _size_bytes(entry: Path) -> int:
    files = entry.rglob("*") if entry.is_dir() and not entry.is_symlink() else iter((entry,))
    return sum(file.lstat().st_size for file in files if not file.is_dir() or file.is_symlink())
