"""A process beside perfdiff that is told of all that it starts, and ends that where perfdiff is killed, so that it cannot itself."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

MARK = "PERFDIFF_SERVICE"  # the variable by which daemons are known that a command left
_OWN_MARK = "watchdog"  # by which it is taken for no daemon itself
_TRIES = 20  # processes may start others while they are ended
_STARTING = threading.Lock()
_started: dict[int, Popen[bytes]] = {}  # by the process that started it: children of a fork have one of their own


def watch(leader: int, mark: str) -> None:
    """Have a process's group, those below it, and daemons that bear its mark ended where this process ends before they are forgotten."""
    _tell(f"+{leader} {mark}\n")


def forget(leader: int) -> None:
    """Leave a process alone, as it has been ended."""
    _tell(f"-{leader}\n")


def begin() -> None:
    """Have it there."""
    _tell("")


def _tell(line: str) -> None:
    with _STARTING:
        if os.getpid() not in _started:
            _started.clear()
            _started[os.getpid()] = Popen(
                [sys.executable, "-I", "-S", __file__],
                cwd="/",
                env={MARK: _OWN_MARK},
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                start_new_session=True,
            )
        pipe = _started[os.getpid()].stdin
        assert pipe is not None, "it is told by a pipe"
        with contextlib.suppress(OSError):  # somebody has killed it
            os.write(pipe.fileno(), line.encode())


def _wait(lines: Iterable[bytes]) -> dict[int, str]:
    """Return the processes that are there, with their marks, once who tells of them has ended."""
    there: dict[int, str] = {}
    for line in lines:
        number, _, mark = line[1:].decode().strip().partition(" ")
        if line.startswith(b"+"):
            there[int(number)] = mark
        else:
            there.pop(int(number), None)
    return there


def _left(there: Mapping[int, str]) -> set[int]:
    """Return the processes that are of these, below them, in their groups or bear their marks."""
    marks = {f"{MARK}={mark}".encode() for mark in there.values() if mark}
    parents: dict[int, int] = {}
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        number = int(folder.name)
        with contextlib.suppress(OSError):
            state, parent, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            parents[number] = int(parent)
            is_marked = bool(marks) and not marks.isdisjoint((folder / "environ").read_bytes().split(b"\0"))
            if state not in "ZX" and (number in there or int(group) in there or is_marked):
                found.add(number)
    while below := {number for number, parent in parents.items() if parent in found} - found:
        found |= below
    return found - {os.getpid()}


def _main() -> None:
    there = _wait(sys.stdin.buffer)
    for _ in range(_TRIES):
        left = _left(there) if there else set()
        for number in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if not left:
            break


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.SIG_IGN)
    _main()
