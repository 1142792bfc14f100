"""The shell above a run: it stands still while the program runs, as the kernel forgets what that waited for once its parent knows.

It never goes on: who looks after the run waits for the program in its place. What the kernel tells of the shell's own memory is that of
the process that started it (`vfork`), and the larger one of both is all that who waits for the shell gets to know.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from resource import struct_rusage

from perfdiff import processes
from perfdiff.collect.execution import kernel

_HOLDING = "kill -STOP $$"  # of the shell above, by that below it
_BY_A_SIGNAL = 128  # what shells add to its number


def held(command: str) -> str:
    """Return a command for `processes.running` that stops the shell above it before it begins."""
    return f"{_HOLDING}; {command}"


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """A program that has ended, by its number, and when it did so by the clock of `time.perf_counter_ns`."""

    program: int
    at_ns: float


def ended_below(shell: int) -> ProgramEnd | None:
    """Wait until the program has ended that a shell started before it stopped itself, and return which one did when.

    Who waits is told of an end once it has a CPU, which is later where others, such as a run beside this one, hold them all: that is no
    time of the program's. None where the shell has ended or goes on, or where the kernel tells of no children or ends (before Linux 5.3).
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
        late_ns = -kernel.delay_ns("thread-self")
        ends.poll()
        ended_ns, is_held = time.perf_counter_ns(), processes.is_held(shell)
        late_ns += kernel.delay_ns("thread-self")
    return ProgramEnd(program, ended_ns - late_ns) if is_held else None


def taken_over(shell: int, program: int) -> tuple[int, struct_rusage]:
    """Wait for a program that has ended, in the place of the shell above it, or for that shell; return its exit code as the shell would.

    The other is what it and those used that it waited for. Raise ChildProcessError where somebody else waited.
    """
    with processes.adopting():
        if program != shell:
            os.kill(shell, signal.SIGKILL)
            os.wait4(shell, 0)
        _, status, usage = os.wait4(program, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _BY_A_SIGNAL - code, usage
