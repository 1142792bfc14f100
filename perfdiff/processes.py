"""Commands of the user's, builds and workloads: started so that nothing of them outlives their use, whatever they start themselves."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37  # prctl(2)
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def running(
    command: str, folder: Path, environment: Mapping[str, str], *, stdout: int, stderr: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a shell command in `folder` with exactly this environment and no input, for the length of a `with` block.

    When the block is left, in any way, its process group is killed, and so is what left the group: daemons are known by having become
    this process's children when their parents ended. Pipes stay open, for what is still in them. Blocks may stand in one another: the inner
    one is left when all commands have ended.
    """
    process = None
    with _adopting_orphans():
        mine = _children()
        try:
            with signals_held():  # what came meanwhile is raised when this block is left, with the process known
                process = subprocess.Popen(
                    ["/bin/sh", "-c", command],
                    cwd=folder,
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            yield process
        finally:
            if process is not None:
                kill_group(process.pid)
                process.wait()
            while orphans := _children() - mine:
                for orphan in orphans:
                    _kill(orphan)


def kill_group(leader: int) -> None:
    """Kill the process group of a command that `running` started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def signal_name(number: int) -> str:
    """Return the name of a signal, or `signal 40` of one that has none, as most of those for real time."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _kill(child: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


def _children() -> frozenset[int]:
    """Return the processes whose parent is this one, as far as the kernel lists them."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found.update(map(int, thread.read_text().split()))
    return frozenset(found)


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Make this process the parent of every descendant whose own parent ends; within another such block, it stays that."""
    prctl, before = ctypes.CDLL(None, use_errno=True).prctl, ctypes.c_int()
    prctl(_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SET_CHILD_SUBREAPER, before, 0, 0, 0)


@contextmanager
def signals_held() -> Iterator[None]:
    """Put off what a signal's handler would raise until the block is left.

    For moments in which an exception gets lost, or loses something: while a process is started and not known yet, or in callbacks of C.
    """
    if threading.current_thread() is not threading.main_thread():  # handlers run in the main thread alone
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(signal.Signals(came[0]))
