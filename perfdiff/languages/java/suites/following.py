"""The process that runs what a suite has, and tells of it line by line; one that tells nothing any more is ended."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from perfdiff.languages.watching import DriverEnd, watch

LONGEST_S = 20.0  # who waits longer for one test wonders whether it hangs


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
        end = watch(process, lines, hearer.hear, silence_s=longest_s, until=time.monotonic() + limit_s)
        if end is not DriverEnd.BY_ITSELF:
            if end is DriverEnd.SILENT:
                hearer.stop(f"it takes longer than {longest_s:.0f} s")
            return
        errors.seek(0)
        hearer.stop(f"it ended the process, exit code {process.returncode}", complaint(errors.read().decode(errors="replace")))


def complaint(errors: str) -> str:
    """Return the last lines that a JVM printed, without stack traces."""
    lines = [line for line in errors.splitlines() if line.strip() and not re.match(r"\s+(?:at |\.\.\. )", line)]
    return lines[-1].strip() if lines else ""
