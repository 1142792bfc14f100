"""Lists benchmarks by a process that tries them, which is ended and started again where one of them hangs or crashes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .reporting import STEPS, limit_s

LISTING = "PERFDIFF_LISTING"
# What takes longer than this part of the time that is left is given up: however many hang, some time remains for those behind them.
_SHARE = 0.25
_START_S = 1.0  # that a process of pytest takes to start on a busy machine: with less time left, none is
_LOOK_S = 0.02  # between two looks at a process
_CANNOT_LIST = 70  # exit code where a process was ended before it tried anything: EX_SOFTWARE


def write_listing(words: Sequence[str]) -> int:
    """Write what there is of a kind of benchmarks; return 0, or the exit code of a process that could not begin."""
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(words, Path(folder) / "steps", time.monotonic() + limit_s())
        code = trials.make()
    if code == 0:
        Path(os.environ.get(LISTING, "/dev/stderr")).write_text(json.dumps(trials.listing(f"not tried within {limit_s():g} s")))
    return code


class Trials:
    """What processes that try benchmarks tell, and how they are watched."""

    def __init__(self, words: Sequence[str], steps: Path, deadline: float) -> None:
        self._command = [sys.executable, "-m", str(__package__), "try", *words]
        self._steps = steps
        self._deadline = deadline
        self._read_bytes = 0
        self._start_s = 0.0
        self._planned: dict[str, None] = {}
        self._begun: set[str] = set()
        self._benchmarks: dict[str, dict[str, Any]] = {}
        self._failures: dict[str, str] = {}
        self._current: str | None = None  # what the process is at, once it has told that
        self._is_told = False  # what came of it
        self._has_ended = False

    def make(self) -> int:
        """Have benchmarks tried until all are, or the time is over; return 0, or an exit code where none could be begun."""
        while not self._has_ended:
            self._current = None
            code, why = self._watch()
            if self._has_ended:
                break
            if self._current is None and (self._begun or self._failures):  # the time is over
                break
            if self._current is None:
                sys.stderr.write(f"nothing was tried: what lists {why}\n")
                return code if code > 0 else _CANNOT_LIST
            if self._deadline - time.monotonic() < _START_S:
                self._begun -= set() if self._is_told else {self._current}
                break
            if not self._is_told:
                self._failures.setdefault(self._current, why)
            with self._steps.open("a") as steps:
                steps.write(f"{json.dumps({'given_up': self._current})}\n")
        return 0

    def listing(self, untried: str) -> dict[str, object]:
        """Return the listing; what was planned and not begun fails for the reason `untried`."""
        late = [name for name in self._planned if name not in self._begun and name not in self._failures]
        self._failures.update(dict.fromkeys(late, untried))
        return {"benchmarks": list(self._benchmarks.values()), "failures": self._failures, "start_s": self._start_s, "untried": late}

    def _watch(self) -> tuple[int, str]:
        """Let a process try what is left to be tried; return its exit code, and how it ended."""
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            env={**os.environ, STEPS: str(self._steps)},
            start_new_session=True,
        )
        since = time.monotonic()
        until = since + (self._deadline - since) * _SHARE
        why = ""
        while process.poll() is None and not self._has_ended and not why:
            time.sleep(_LOOK_S)
            now = time.monotonic()
            if self._take_steps():
                since, until = now, now + (self._deadline - now) * _SHARE
            elif now >= until:
                why = f"is not done after {now - since:.0f} s"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # whatever it started, too
        code = process.wait()
        self._take_steps()
        return code, why or (f"ends its process by {signal.Signals(-code).name}" if code < 0 else f"ends its process with exit code {code}")

    def _take_steps(self) -> bool:
        """Take in what the process has told since the last time; return whether that is anything."""
        if not self._steps.exists():
            return False
        with self._steps.open("rb") as file:
            file.seek(self._read_bytes)
            lines = file.read().rpartition(b"\n")[0]
        if not lines:
            return False
        self._read_bytes += len(lines) + 1
        for line in lines.splitlines():
            self._take(json.loads(line))
        return True

    def _take(self, step: Mapping[str, Any]) -> None:
        ((kind, content),) = step.items()
        if kind == "start_s":
            self._start_s = self._start_s or content
        elif kind == "planned":
            self._planned.update(dict.fromkeys(content))
        elif kind in ("entered", "begun"):
            self._current, self._is_told = content, False
            self._begun |= {content} if kind == "begun" else set()
        elif kind == "point":
            self._is_told = True
            self._take_point(*content)
        elif kind == "failure":
            self._is_told = True
            self._failures.setdefault(*content)
        elif kind == "ended":
            self._has_ended = True

    def _take_point(self, benchmark: Mapping[str, Any], values: Sequence[object], seconds: float, again: bool) -> None:
        entry = self._benchmarks.setdefault(benchmark["name"], {**benchmark, "parameters": {}, "points": []})
        entry["points"].append([values, seconds, again])
        for name, value in zip(benchmark["parameters"], values, strict=True):
            column = entry["parameters"].setdefault(name, [])
            if value not in column:
                column.append(value)
