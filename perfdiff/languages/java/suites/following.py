"""The process that runs what a suite has, and tells of it line by line; one that tells nothing any more is ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

LONGEST_S = 20.0  # who waits longer for one test wonders whether it hangs
_TICK_S = 0.05  # between two looks at what was told


class Hearer(Protocol):
    """Takes what is told, and why nothing more is."""

    def hear(self, line: str) -> None:
        """Take a line."""

    def stop(self, reason: str, errors: str = "") -> None:
        """Take the reason for which the process ended before it was done, and the last line of its errors."""


def follow(words: Sequence[str], directory: Path, report: Path, hearer: Hearer, limit_s: float) -> None:
    """Run a driver, and hear what it reports; end it where it hangs, or has not ended within `limit_s` seconds."""
    longest_s = min(LONGEST_S, limit_s / 2)
    report.touch()
    with tempfile.TemporaryFile() as errors, report.open("rb") as lines:
        process = subprocess.Popen(
            words, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
        started = heard = time.monotonic()
        while process.poll() is None:
            time.sleep(_TICK_S)
            now = time.monotonic()
            if _hear(lines, hearer):
                heard = now
            elif now - heard > longest_s or now - started > limit_s:
                _end(process)
                if now - heard > longest_s:
                    hearer.stop(f"it takes longer than {longest_s:.0f} s")
                return
        _hear(lines, hearer)
        errors.seek(0)
        hearer.stop(f"it ended the process, exit code {process.returncode}", complaint(errors.read().decode(errors="replace")))


def complaint(errors: str) -> str:
    """Return what a JVM says last, without the places that an exception came from."""
    lines = [line for line in errors.splitlines() if line.strip() and not re.match(r"\s+(?:at |\.\.\. )", line)]
    return lines[-1].strip() if lines else ""


def _hear(lines: BinaryIO, hearer: Hearer) -> bool:
    """Take the lines that are complete; return whether there was one."""
    news = False
    while True:
        place = lines.tell()
        line = lines.readline()
        if not line.endswith(b"\n"):
            lines.seek(place)
            return news
        hearer.hear(line.decode().rstrip("\n"))
        news = True


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
