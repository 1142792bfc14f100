"""Locks of the kernel (`flock`) between processes that share a cache: who waits is told for whom, and does not wait without end."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from perfdiff.config import HOUR_S
from perfdiff.errors import BusyError

_LOOK_S = 0.1  # between two tries
_MOST_BYTES = 4096  # of what a holder says of itself
_PROGRAM = "perfdiff"
_SHOWN = 200  # characters of its command


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock alone: its process on a host, the command as it was typed, and since when (seconds since the epoch)."""

    process: int
    host: str
    command: str
    since: float

    def __str__(self) -> str:
        where = "" if self.host == platform.node() else f" on {self.host}"
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.process}{where}, since {since}: {self.command}"


def descriptor(file: Path) -> int:
    """Open the file of a lock, made where it is not there; who closes it lets go of the lock. Raise OSError."""
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


@contextmanager
def opened(file: Path) -> Iterator[int]:
    """Open the file of a lock for the length of a block; raise OSError."""
    lock = descriptor(file)
    try:
        yield lock
    finally:
        os.close(lock)


def is_held(file: Path) -> bool:
    """Return whether some process holds a lock, alone or with others; of a file that this user may not read it is not known to be held."""
    try:
        lock = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def take(lock: int, *, alone: bool, most_s: float = HOUR_S, waits: Callable[[str], None] | None = None) -> None:
    """Take an open lock, alone or with others; another kind of hold on it is let go at once.

    `waits` is told at once of who has to be waited for. After `most_s` seconds, BusyError (`cache-busy`) tells it.
    """
    deadline, is_told = time.monotonic() + most_s, False
    while True:
        try:
            fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise BusyError(
                    f"another perfdiff holds this cache: {holder(lock)}; wait until it is done or end it, wait longer with `wait_s` under "
                    "[measure], or use a cache of your own (--cache, PERFDIFF_CACHE)",
                    slug="cache-busy",
                ) from error
        else:
            with contextlib.suppress(OSError):  # a full disk keeps nobody from holding it
                os.ftruncate(lock, 0)  # who held it alone does so no more
                if alone:
                    _sign(lock)
            return
        if waits and not is_told:
            waits(holder(lock))
            is_told = True
        time.sleep(max(0.0, min(_LOOK_S, deadline - time.monotonic())))


def holder(lock: int) -> str:
    """Return who holds an open lock, in words."""
    try:
        return str(Holder(**json.loads(os.pread(lock, _MOST_BYTES, 0))))
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):  # by a time that is none, or lists within lists
        return "its process is not known"


def _sign(lock: int) -> None:
    """Leave in a lock's file, which is empty, who holds it; raise OSError."""
    words = Path("/proc/self/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    start = next((place for place, word in enumerate(words) if Path(word).name == _PROGRAM), 0)  # behind its interpreter
    command = " ".join([Path(words[start]).name, *words[start + 1 :]])[:_SHOWN]
    text = json.dumps(asdict(Holder(os.getpid(), platform.node(), command, time.time()))).encode()
    os.pwrite(lock, text, 0)
