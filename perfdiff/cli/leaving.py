"""What signals do: they end perfdiff, and a comparison with the answer so far."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
from types import FrameType
from typing import Any

from perfdiff.cli.exits import ExitCode
from perfdiff.deadline import Deadline, Ending

CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED, signal.SIGHUP: ExitCode.TERMINATED}
_ENDINGS = {ExitCode.INTERRUPTED: Ending.INTERRUPTED, ExitCode.TERMINATED: Ending.TERMINATED}
_STDERR = 2
_CLEARING_S = 5.0  # clearing away takes less, but for huge trees; whoever asks again later than this is not kept
_SAME_S = 0.5  # programs that start perfdiff pass on, within milliseconds, what a terminal sent to all of them


class Leave:
    """Leaves as from any other exit, so that folders and child processes are cleared away; impatient signals do not disturb that."""

    def __init__(self) -> None:
        self._since = -math.inf

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Exit with the signal's code."""
        if time.monotonic() - self._since < _CLEARING_S:
            return
        self._since = time.monotonic()
        code = CODES[signal.Signals(number)]
        _tell(code.name.lower())
        sys.exit(code)


class Answering:
    """For the length of a block, the first signal ends measuring at its `deadline` and not perfdiff; the second one leaves.

    `code` is that of the first signal, None where none came. Signals that are ignored, as under nohup, still are.
    """

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.code: ExitCode | None = None
        self._since = math.inf
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Answering:
        self._handlers = {number: handler for number in CODES if callable(handler := signal.getsignal(number))}
        for number in self._handlers:
            signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.code is not None:
            if time.monotonic() - self._since >= _SAME_S:
                self._handlers[signal.Signals(number)](number, frame)
            return
        self.code, self._since = CODES[signal.Signals(number)], time.monotonic()
        ending = _ENDINGS[self.code]
        if not self.deadline.is_answerable:
            self._handlers[signal.Signals(number)](number, frame)
        _tell(f"{self.code.name.lower()}: ending with what is known; once more ends at once")
        self.deadline.end(ending)


def _tell(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(_STDERR, f"perfdiff: {text}\n".encode())  # not by the stream, which may be in use just now
