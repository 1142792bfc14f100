"""What drivers in PHP tell of a suite while they try it.

A case may end the process that tries it: by `exit`, for want of memory, or by never coming to an end. Another process then tries what is
left, without that case. `drivers/telling.php` says what a driver writes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfdiff.languages import listing
from perfdiff.languages.php.homes import SUITES
from perfdiff.languages.watching import DriverEnd, watch

DRIVERS = Path(__file__).parent / "drivers"

_TOLD_TO = "PERFDIFF_TRIALS"
_LEFT_OUT = "PERFDIFF_LEFT_OUT"
_PHP = ("php", "-d", "display_errors=stderr", "-d", "log_errors=0")  # what ends PHP is said once, and not among outputs
_SHARE = 0.9  # of the time for a listing, in which cases are tried: the rest is for what comes before and after
_PARTS = 4  # of that time: a case that takes longer than one is ended, so that the others have their turn even where three never end
_FATAL = "Fatal error"
_READ = 4000  # bytes of what a driver printed last


@dataclass(frozen=True, slots=True)
class PassedCase:
    """A case that passed: what runs it, at values of its parameters, the seconds of a call, and whether that can be made again.

    It is one of the benchmark `name`; `words` are for the driver that runs it.
    """

    name: str
    file: str
    words: tuple[str, ...]
    parameters: Mapping[str, float | str]
    seconds: float
    again: bool


@dataclass(slots=True)
class TriedCases:
    """What became of the cases of a suite: those that passed, why others did not, and which a process began and did not end.

    They are not `whole` where the time was over before all had their turn.
    """

    cases: dict[str, PassedCase] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    start_s: float = 0.0
    begun: list[str] = field(default_factory=list)
    is_complete: bool = False
    is_stopped: bool = False
    whole: bool = True

    def take(self, event: Mapping[str, Any]) -> None:
        """Take down what a driver tells."""
        if "start_s" in event:
            self.start_s = float(event["start_s"])
        elif "begins" in event:
            self.begun.append(event["begins"])
        elif "ends" in event:
            self._end(event["ends"], event)
        else:
            self.is_complete, self.is_stopped = event["complete"], not event["complete"]

    def _end(self, name: str, event: Mapping[str, Any]) -> None:
        if name in self.begun:
            self.begun.remove(name)
        if "fails" in event:
            self.failures[name] = event["fails"]
        elif "name" in event:
            self.cases[name] = PassedCase(
                event["name"], event["file"], tuple(event["words"]), event["parameters"], event["seconds"], event["again"]
            )


@dataclass(frozen=True, slots=True)
class _Limits:
    """When trials have to end, by the monotonic clock, and how long a case may take."""

    until: float
    case_s: float


def tried(driver: str, words: Sequence[str], *, can_leave_out: bool = True) -> TriedCases:
    """Return what becomes of the cases of a suite that `driver` tries; end this process with a message where it tries none."""
    command = [*_PHP, str(DRIVERS / driver), "list", *words]
    trials, left_out, trials_s = TriedCases(), list[str](), _SHARE * listing.limit_s()
    limits = _Limits(time.monotonic() + trials_s, trials_s / _PARTS)
    while True:
        trials.begun.clear()
        trials.is_stopped = False
        why = _run(command, left_out, trials, limits)
        if trials.is_complete:
            return trials
        trials.whole = time.monotonic() <= limits.until
        if trials.whole and not trials.is_stopped and not trials.begun:
            sys.exit("\n".join((*(f"{name} {reason}" for name, reason in trials.failures.items()), why)))
        if trials.begun:
            trials.failures[trials.begun[-1]] = why.rpartition("\n")[2] if trials.whole else listing.UNTRIED
        once = (
            name for name, case in trials.cases.items() if trials.is_stopped and not case.again
        )  # some of them failed when called again
        new = [name for name in (*trials.failures, *once) if name not in left_out]
        left_out += new
        if not new or not can_leave_out or not trials.whole:
            return trials


def _run(command: Sequence[str], left_out: Sequence[str], trials: TriedCases, limits: _Limits) -> str:
    """Let a process of a driver try cases; return how it ended, where it did not go through all of them."""
    with tempfile.TemporaryDirectory() as room:
        events, printed = Path(room, "events"), Path(room, "printed")
        events.touch()
        environment = {**os.environ, _TOLD_TO: str(events), _LEFT_OUT: json.dumps(left_out)}
        with printed.open("wb") as output, events.open("rb") as written:
            try:
                process = subprocess.Popen(
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
                )
            except OSError as error:
                return f"php cannot be run: {error.strerror}"
            end = watch(process, written, lambda line: trials.take(json.loads(line)), silence_s=limits.case_s, until=limits.until)
        last = printed.read_bytes()[-_READ:].decode(errors="replace").strip().splitlines()
    if end is not DriverEnd.BY_ITSELF:
        return f"it did not end within {limits.case_s:.0f} s"
    if trials.begun:
        fatal = next((line[line.index(_FATAL) :] for line in reversed(last) if _FATAL in line), None)
        return fatal or f"it ends the process, with exit code {process.returncode}"
    return "\n".join(last) or f"{shlex.join(command)} ended with exit code {process.returncode}, and told nothing"


def command(driver: str, *words: str) -> str:
    """Return the shell command by which a driver runs something, with words as the shell reads them."""
    return " ".join([*_PHP, f'"${SUITES}/{driver}"', "run", *words])


def grouped(trials: TriedCases) -> dict[str, list[PassedCase]]:
    """Return the cases that passed, by the benchmark or test that they are of."""
    benchmarks: dict[str, list[PassedCase]] = {}
    for case in trials.cases.values():
        benchmarks.setdefault(case.name, []).append(case)
    return benchmarks


def places(cases: Sequence[PassedCase]) -> tuple[str, ...]:
    """Return the names of the parameters of a benchmark's cases, as they can stand in a command's places."""
    words = (re.sub(r"\W", "_", name, flags=re.ASCII) for name in cases[0].parameters)
    return tuple(word if word[:1].isalpha() else f"_{word}" for word in words)


def quoted(words: Sequence[str]) -> list[str]:
    """Return words as the shell has to read them."""
    return [shlex.quote(word) for word in words]
