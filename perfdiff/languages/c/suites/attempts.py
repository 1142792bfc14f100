"""Attempts at what a listing names: one that hangs or fails is told, and all of them end in time."""

from __future__ import annotations

import shlex
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.listing import TriedCommand, limit_s, tried

LONGEST_S = 10.0  # that one benchmark may take: twenty runs of it, of which a comparison needs more, would take minutes
ENOUGH_S = 0.01  # of CPU time that timed calls take together: that of starting a process differs by a millisecond
_CLEAR_S = 0.1  # that they take together by the clock, where they wait: processes are kept waiting for tens of milliseconds by others
LATE = "was not tried: the time for the listing was over"
_MOST_FASTER = 100  # times as many calls as before: such as take no time that can be seen then take a second at most
_MOST_CALLS = 10**9
_STARTS = 3
_REASON = 200  # characters of what a program says


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """What a process of a program takes before and after its calls."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Attempts:
    """Runs commands until a time of `time.monotonic()`; none takes longer than `LONGEST_S` unless that is said."""

    ends_at: float

    @classmethod
    def within_limit(cls) -> Attempts:
        """Return attempts that leave a tenth of the listing's time for what comes after them."""
        return cls(time.monotonic() + 0.9 * limit_s())

    @property
    def left_s(self) -> float:
        """Return how many seconds are left."""
        return max(0.0, self.ends_at - time.monotonic())

    def run(self, words: Sequence[str], directory: Path | None = None, longest_s: float = LONGEST_S) -> TriedCommand:
        """Run a command; one for which no time is left has run for no time."""
        if not self.left_s:
            return TriedCommand(None, "", "", 0.0, 0.0)
        return tried(words, min(longest_s, self.left_s), directory)

    def start(self, words: Sequence[str]) -> ProcessStart:
        """Return what a process takes that has nothing to call."""
        runs = [self.run(words) for _ in range(_STARTS)]
        return ProcessStart(statistics.median(run.wall_s for run in runs), statistics.median(run.cpu_s for run in runs))

    def seconds_of_call(self, run: Callable[[int], TriedCommand], start: ProcessStart) -> float | str:
        """Return how long a call takes, by processes with more and more of them; or why it cannot be made."""
        calls = 1
        while True:
            attempt = run(calls)
            reason = why(attempt)
            if reason:
                return reason
            wall_s, seconds = attempt.wall_s - start.wall_s, max(attempt.cpu_s - start.cpu_s, 0.0)
            if wall_s >= _CLEAR_S or seconds >= ENOUGH_S or calls >= _MOST_CALLS or not self.left_s:
                return (wall_s if wall_s >= _CLEAR_S else seconds) / calls
            calls *= int(min(_MOST_FASTER, max(2.0, 2 * ENOUGH_S / seconds))) if seconds else _MOST_FASTER


def why(attempt: TriedCommand) -> str:
    """Return in one line why a command failed, "" where it did not."""
    if attempt.code is None:
        return f"takes longer than {attempt.wall_s:.0f} s" if attempt.wall_s else LATE
    if attempt.code == 0:
        return ""
    said = next((line.strip() for line in reversed((attempt.output + "\n" + attempt.errors).splitlines()) if line.strip()), "")
    ended = f"signal {-attempt.code}" if attempt.code < 0 else f"exit code {attempt.code}"
    return f"{ended}: {said[:_REASON]}" if said else ended


def quoted(text: str) -> str:
    """Return a word of a shell command, in which nothing is the place of a parameter."""
    return shlex.quote(text).replace("{", "{''")
