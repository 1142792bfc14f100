"""Drivers that try what is in a suite, and tell of it line by line in a file: one that hangs is ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from enum import Enum
from typing import BinaryIO

_LOOKS_S = 0.05  # between two looks at what was told


class DriverEnd(Enum):
    """How a driver ended: by itself, or by us as it told nothing for too long, or as the time was over."""

    BY_ITSELF = "by itself"
    SILENT = "silent"
    OUT_OF_TIME = "out of time"


def watch(process: subprocess.Popen[bytes], lines: BinaryIO, hear: Callable[[str], None], *, silence_s: float, until: float) -> DriverEnd:
    """Hear each complete line that a process writes until it ends; end it, with all that it started, where it hangs.

    It may tell nothing for `silence_s` seconds, and last `until` a time of `time.monotonic()`.
    """
    heard = time.monotonic()
    while process.poll() is None:
        time.sleep(_LOOKS_S)
        now = time.monotonic()
        if _hear(lines, hear):
            heard = now
        if now - heard > silence_s or now > until:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return DriverEnd.SILENT if now - heard > silence_s else DriverEnd.OUT_OF_TIME
    _hear(lines, hear)
    return DriverEnd.BY_ITSELF


def _hear(lines: BinaryIO, hear: Callable[[str], None]) -> bool:
    """Take the lines that are complete; return whether there was one."""
    news = False
    while True:
        place = lines.tell()
        line = lines.readline()
        if not line.endswith(b"\n"):
            lines.seek(place)
            return news
        hear(line.decode().rstrip("\n"))
        news = True
