"""Attempts at what a listing names: one that hangs or fails is told, and all of them end in time."""

from __future__ import annotations

import math
import shlex
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.listing import CALLS, UNTRIED, TriedCommand, limit_s, longest_s, tried

_LONGEST_S = 10.0  # that one benchmark may take as a rule: twenty runs of it, of which a comparison needs more, would take minutes
ENOUGH_S = 0.01  # of CPU time that timed calls take together: that of starting a process differs by a millisecond
_CLEAR_S = 0.1  # that they take together by the clock, where they wait: processes are kept waiting for tens of milliseconds by others
_BUSY = 0.1  # share of the clock's time below which they seem to wait: on a busy machine, what does not wait has a fraction of a CPU
_MOST_FASTER = 100  # times as many calls as before: such as take no time that can be seen then take a second at most
_MOST_CALLS = 10**9
_STARTS = 3  # of a process, by others of which one may be kept waiting
_SIGNALS = 64
_REASON = 200  # characters of what a program says


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """What a process of a program takes before and after its calls."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Attempts:
    """Runs commands until a time of `time.monotonic()`; none takes longer than `longest_s` unless that is said."""

    ends_at: float
    longest_s: float = _LONGEST_S

    @classmethod
    def within_limit(cls) -> Attempts:
        """Return attempts that leave a tenth of the listing's time for what comes after them."""
        return cls(time.monotonic() + 0.9 * limit_s(), longest_s(_LONGEST_S))

    @property
    def left_s(self) -> float:
        """Return how many seconds are left."""
        return max(0.0, self.ends_at - time.monotonic())

    def run(self, words: Sequence[str], directory: Path | None = None, longest_s: float | None = None) -> TriedCommand:
        """Run a command; one for which no time is left has run for no time."""
        if not self.left_s:
            return TriedCommand(None, "", "", 0.0, 0.0)
        return tried(words, min(self.longest_s if longest_s is None else longest_s, self.left_s), directory)

    def shell(self, text: str, longest_s: float | None = None) -> TriedCommand:
        """Run a shell command, as runs of the workload do."""
        return self.run(["/bin/sh", "-c", text], longest_s=longest_s)

    def start(self, text: str) -> ProcessStart:
        """Return what the process of a shell command takes that has nothing to call."""
        runs = [self.shell(text) for _ in range(_STARTS)]
        return ProcessStart(statistics.median(run.wall_s for run in runs), statistics.median(run.cpu_s for run in runs))

    def seconds_of_call(self, text: str, start: ProcessStart) -> float | str:
        """Return how long a call of a shell command takes, by processes with more and more of them; or why it cannot be made."""
        calls = 1
        while True:
            attempt = self.shell(text.replace(CALLS, str(calls)))
            reason = why(attempt)
            if reason:
                return reason
            cpu_s, wall_s = max(attempt.cpu_s - start.cpu_s, 0.0), attempt.wall_s - start.wall_s
            if wall_s >= _CLEAR_S and cpu_s < _BUSY * wall_s:
                wall_s = min(wall_s, *(self._waited_s(text.replace(CALLS, str(calls))) - start.wall_s for _ in range(_STARTS - 1)))
                if wall_s >= _CLEAR_S:
                    return wall_s / calls
            if cpu_s >= ENOUGH_S or calls >= _MOST_CALLS or not self.left_s:
                return cpu_s / calls
            calls *= int(min(_MOST_FASTER, max(2.0, 2 * ENOUGH_S / cpu_s))) if cpu_s else _MOST_FASTER

    def _waited_s(self, text: str) -> float:
        attempt = self.shell(text)
        return attempt.wall_s if attempt.code == 0 else math.inf


def why(attempt: TriedCommand) -> str:
    """Return in one line why a command failed, "" where it did not."""
    if attempt.code is None:
        return f"takes longer than {attempt.wall_s:.0f} s" if attempt.wall_s else UNTRIED
    if attempt.code == 0:
        return ""
    said = next((line.strip() for line in reversed((attempt.output + "\n" + attempt.errors).splitlines()) if line.strip()), "")
    number = -attempt.code if attempt.code < 0 else attempt.code - 128  # the shell reports a child's signal as 128 + number
    ended = f"signal {number}" if 0 < number <= _SIGNALS else f"exit code {attempt.code}"
    return f"{ended}: {said[:_REASON]}" if said else ended


def quoted(text: str) -> str:
    """Return a word of a shell command, in which nothing is the place of a parameter."""
    return shlex.quote(text).replace("{", "{''")
