"""What the kernel tells of files and folders that are watched (inotify(7))."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

OVERFLOW, IGNORED = 0x4000, 0x8000  # events were lost; a watch has ended
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, bytes of the name that follows
_READ_BYTES = 1 << 16


class Inotify:
    """Watches of the kernel's, and what they told since they were last asked."""

    def __init__(self) -> None:
        """Begin; raise OSError where the kernel gives none."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._events = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify")

    def add(self, path: Path, mask: int) -> int:
        """Watch one more file or folder for the events of `mask`; return the number of its watch, raise OSError."""
        return self._checked(self._libc.inotify_add_watch(self._events, os.fsencode(path), mask), str(path))

    def read(self) -> Iterator[tuple[int, int, str]]:
        """Yield the watch, the mask and the name of each event: of a folder's file its name, "" of what is watched itself."""
        while True:
            try:
                events = os.read(self._events, _READ_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(events):
                watch, mask, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                yield watch, mask, os.fsdecode(events[at - length : at].rstrip(b"\0"))

    def close(self) -> None:
        """End all watches."""
        os.close(self._events)

    @staticmethod
    def _checked(answer: int, what: str) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), what)
        return answer
