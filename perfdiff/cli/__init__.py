"""The command line. The first argument chooses the command; one that is no command's name is a revision to compare."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from types import TracebackType

from typer.main import get_command

from perfdiff.cli.exits import ExitCode

# Each module has a Typer application `app`; only the chosen one is imported.
COMMANDS = (
    "init",
    "doctor",
    "counters",
    "explain",
    "accept",
    "annotate",
    "check",
    "compare",
    "log",
    "profile",
    "bisect",
    "bisect-step",
    "cache",
    "completion",
)
COMPARISON = "comparison"

_COMPLETE = "_PERFDIFF_COMPLETE"  # set by a shell that asks what could follow
_STDERR = 2
_CLEARING_S = 5.0  # clearing away takes less, but for huge trees; whoever asks again later than this is not kept
_CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED, signal.SIGHUP: ExitCode.TERMINATED}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that `arguments` ask for and exit with its code."""
    if _COMPLETE in os.environ:
        import_module("perfdiff.cli.whole").complete()
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.excepthook = _crash
    leave = _Leave()
    for number in _CODES:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, leave)
    # What follows the first `--` belongs to the workload's program, options and all.
    end = given.index("--") if "--" in given else len(given)
    own, command = given[:end], given[end + 1 :]
    if own and own[0] in COMMANDS:
        name, own, program = own[0], own[1:], f"perfdiff {own[0]}"
    else:
        name, program = COMPARISON, "perfdiff"
    app = import_module(f"perfdiff.cli.{name.replace('-', '_')}").app
    get_command(app)(args=own, prog_name=program, obj=command)


class _Leave:
    """Leaves as from any other exit, so that folders and child processes are cleared away; impatient signals do not disturb that."""

    def __init__(self) -> None:
        self._since = -math.inf

    def __call__(self, number: int, _frame: object) -> None:
        """Exit with the signal's code."""
        if time.monotonic() - self._since < _CLEARING_S:
            return
        self._since = time.monotonic()
        code = _CODES[signal.Signals(number)]
        with contextlib.suppress(OSError):
            os.write(_STDERR, f"perfdiff: {code.name.lower()}\n".encode())  # not by the stream, which may be in use just now
        sys.exit(code)


def _crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show the traceback of a defect, and do not exit with Python's 1, which would read as a regression."""
    sys.__excepthook__(kind, error, trace)
    sys.exit(ExitCode.NOT_MEASURED)
