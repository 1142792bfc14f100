"""What a process that tries benchmarks tells the one that watches it: a line of JSON for each step.

A line holds one of these: `{"start_s": SECONDS}`, `{"planned": [NAMES]}`, `{"entered": NAME}` before code is imported, `{"begun": NAME}`
before a trial, `{"point": [BENCHMARK, VALUES, SECONDS, REPEATABLE]}`, `{"failure": [NAME, WHY]}`, `{"given_up": NAME}` (written by the
watching process, of what made a process hang or crash), and `{"ended": true}`.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .trials import TRIAL_S

STEPS = "PERFDIFF_LISTING_STEPS"  # the variable that names the file
LISTING_S = "PERFDIFF_LISTING_S"
LIKELY = "PERFDIFF_LISTING_LIKELY"  # the variable with words of what changed
LIMIT_S = 60.0  # of a listing, where the environment names none
_SHARE = 0.125  # of that time in which calls are timed for themselves: looking for how many fit takes three times as long at most


def limit_s() -> float:
    """Return in how many seconds a listing has to end."""
    return float(os.environ.get(LISTING_S, LIMIT_S))


def unlikely(file: str) -> int:
    """Return a number by which files are sorted so that those come first that more words of what changed are in the names of."""
    return -len({*re.findall(r"[a-z]{3,}", file.lower())} & {*os.environ.get(LIKELY, "").split()})


class Report:
    """Tells of trials, and knows what processes before this one have begun and given up."""

    def __init__(self, file: Path) -> None:
        self.trial_s = TRIAL_S  # in which calls of a benchmark are timed: less where there are many
        self._begun: set[str] = set()
        self._given_up: set[str] = set()
        for line in file.read_text().splitlines() if file.exists() else ():
            step = json.loads(line)
            self._begun |= {step["begun"]} if "begun" in step else set()
            self._given_up |= {step["given_up"]} if "given_up" in step else set()
        self._file = file.open("a")
        self._has_started = False

    @classmethod
    def of_environment(cls) -> Report:
        """Return the report to the file that the environment names."""
        return cls(Path(os.environ.get(STEPS, os.devnull)))

    def start(self) -> None:
        """Tell how much CPU time was used before the first call."""
        if not self._has_started:
            self._has_started = True
            self._write({"start_s": time.process_time()})

    def plan(self, names: Iterable[str]) -> None:
        """Write which benchmarks will be tried."""
        planned = list(names)
        self.trial_s = min(TRIAL_S, _SHARE * limit_s() / max(1, len(planned)))
        self._write({"planned": planned})

    def enter(self, name: str) -> bool:
        """Tell that code is about to be imported; return whether it is to be: no process hung or crashed in it before."""
        if name in self._given_up:
            return False
        self._write({"entered": name})
        return True

    def begin(self, name: str) -> bool:
        """Tell that a trial begins; return whether it is to be made: no process began it before."""
        if name in self._begun:
            return False
        self._begun.add(name)
        self._write({"begun": name})
        return True

    def point(self, benchmark: Mapping[str, object], values: Sequence[object], seconds: float, *, again: bool) -> None:
        """Write how long a call of a benchmark takes at values of its parameters, and whether it can be repeated."""
        self._write({"point": [benchmark, list(values), seconds, again]})

    def fail(self, name: str, why: str) -> None:
        """Tell why something cannot be measured."""
        self._write({"failure": [name, why]})

    def end(self) -> None:
        """Write that all benchmarks were tried."""
        self._write({"ended": True})

    def _write(self, step: Mapping[str, object]) -> None:
        self._file.write(f"{json.dumps(step)}\n")
        self._file.flush()
