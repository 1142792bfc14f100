"""The shell above a run: it stands still while the program runs, as the kernel forgets what that waited for once its parent knows."""

from __future__ import annotations

import os
import select
from contextlib import ExitStack
from pathlib import Path

_HOLDING = "kill -STOP $$"  # of the shell above, by that below it


def held(command: str) -> str:
    """Return a command for `processes.running` that stops the shell above it before it begins; SIGCONT lets that go on."""
    return f"{_HOLDING}; {command}"


def ended_below(shell: int) -> int | None:
    """Wait until the program has ended that a shell started before it stopped itself, and return its number.

    None where the shell has ended, or where the kernel does not tell of children or ends (before Linux 5.3).
    """
    os.waitid(os.P_PID, shell, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    with ExitStack() as stack:
        ends = select.poll()
        try:
            program = int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])
            for process in (program, shell):
                descriptor = os.pidfd_open(process)
                stack.callback(os.close, descriptor)
                ends.register(descriptor, select.POLLIN)
        except (OSError, IndexError):
            return None
        ends.poll()
    return program
