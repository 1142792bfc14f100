"""Temporary folders, which nothing is left of: not where perfdiff is killed either, as its watchdog clears them."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfdiff import watchdog

_MEMORY = Path("/dev/shm")
_MEMORY_BYTES = 1 << 28  # free there, so that what many short runs leave has room
_RANDOM_BYTES = 4  # of a name, written as 8 digits


@contextmanager
def folder(prefix: str = "perfdiff-", *, within: Path | None = None) -> Iterator[Path]:
    """Yield a new, empty folder, among the system's temporary ones or within another, for the length of a block; raise OSError."""
    path = make(prefix, within=within)
    try:
        yield path
    finally:
        remove(path)


def memory() -> Path | None:
    """Return where files lie in memory, which are made and removed in microseconds, None where there is too little room for them."""
    try:
        has_room = shutil.disk_usage(_MEMORY).free >= _MEMORY_BYTES and os.access(_MEMORY, os.W_OK)
    except OSError:
        return None
    return _MEMORY if has_room else None


def make(prefix: str = "perfdiff-", *, within: Path | None = None) -> Path:
    """Return a new, empty folder that lasts until it is removed, and no longer than this process; raise OSError."""
    path = Path(within or tempfile.gettempdir()).absolute() / f"{prefix}{secrets.token_hex(_RANDOM_BYTES)}"
    watchdog.clear(path)  # ahead of it, so that there is no moment at which nobody would clear it
    try:
        path.mkdir(mode=0o700)
    except OSError:
        watchdog.keep(path)
        raise
    return path


def remove(path: Path) -> None:
    """Remove a folder that `make` made; files that cannot be removed stay."""
    clear(path)
    watchdog.keep(path)


def clear(path: Path) -> None:
    """Remove any folder as far as that can be done, with the parts that were made read-only, and however deep it is."""
    watchdog.remove(path)
