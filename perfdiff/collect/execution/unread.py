"""Runs whose output nobody reads: of many short runs that count, looking at output and at the machine takes longer than the runs do."""

from __future__ import annotations

import math
import os
import select
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from perfdiff import processes, units
from perfdiff.collect.execution import forking
from perfdiff.collect.execution.executor import Command, Execution, ProcessExecutor, Purpose, require_success, shell_text
from perfdiff.collect.execution.forking import ForkedRun, ForkServer, RunEnd
from perfdiff.collect.execution.guard import WATCH_S, Guard, Limits
from perfdiff.errors import StraysError
from perfdiff.records.behaviour import Behaviour, Shape

_GONE_S = 2.0  # behind the time of a run that was ended
_UNREAD = Shape(0, 0, "", "", "")


class BegunRun(Protocol):
    """A run that has begun: its process group has the number of its `leader`, and `descriptor` can be read once it has ended."""

    @property
    def leader(self) -> int: ...

    @property
    def descriptor(self) -> int: ...

    def end(self) -> RunEnd | None:
        """Return how it ended; None where nobody can tell."""
        ...


@dataclass(frozen=True, slots=True)
class _ShellRun:
    """A run below a shell of its own."""

    process: subprocess.Popen[bytes]
    descriptor: int

    @property
    def leader(self) -> int:
        return self.process.pid

    def end(self) -> RunEnd:
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return RunEnd(status, (usage.ru_utime + usage.ru_stime) * 1e9, math.nan)  # the shell's memory is no program's


@dataclass(slots=True)
class UnreadExecutor:
    """Runs commands whose output is thrown away; those of which something is wanted that they print are left to `thorough`.

    Programs whose runtime can be kept ready are forked by servers until `close`, but for those in directories that are `distrusted`.
    """

    thorough: ProcessExecutor = field(default_factory=ProcessExecutor)
    distrusted: set[Path] = field(default_factory=set)
    _are_whole: bool = False
    _servers: dict[tuple[Path, tuple[str, ...]], ForkServer] = field(default_factory=dict)

    def execute(self, command: Command) -> Execution:
        """Run `command` once; raise WorkloadError where it fails, hangs or crashes."""
        return self.execute_together([command], command.cpus or os.sched_getaffinity(0))[0]

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        """Run commands at the same time; raise WorkloadError where one of them does not succeed."""
        if any(command.features or command.kept_output or command.purpose is not Purpose.RUN for command in commands):
            return self.thorough.execute_together(commands, cpus)
        others = processes.children()
        with ExitStack() as stack:
            with processes.bound(cpus):
                runs = [stack.enter_context(self._begun(command)) for command in commands]
            guards = [Guard(Limits(command.directory, command.timeout_s), run.leader) for command, run in zip(commands, runs, strict=True)]
            walls_ns = _walls_ns(runs, guards)
            left = processes.end_what_is_left(runs[0].leader, others, "")
            ends = [run.end() for run in runs]
        if None in ends:  # what a server failed to do
            self.distrusted |= {command.directory for command, end in zip(commands, ends, strict=True) if end is None}
            return self.execute_together(commands, cpus)
        executions = []
        for command, guard, wall_ns, end in zip(commands, guards, walls_ns, filter(None, ends), strict=True):
            status = os.waitstatus_to_exitcode(end.status)
            require_success(command, status, guard, "")
            behaviour = Behaviour(status, _UNREAD, _UNREAD)
            executions.append(Execution(wall_ns, end.cpu_ns, end.max_rss_bytes, None, None, "", behaviour=behaviour))
        if left.names and len(commands) > 1:
            raise StraysError(units.listed(sorted(set(left.names)), len(left.names)))
        return executions

    @contextmanager
    def as_processes(self) -> Iterator[None]:
        """Let no server fork what is run before the block is left."""
        self._are_whole = True
        try:
            yield
        finally:
            self._are_whole = False

    def close(self) -> None:
        """End all servers."""
        while self._servers:
            self._servers.popitem()[1].close()

    @contextmanager
    def _begun(self, command: Command) -> Iterator[BegunRun]:
        if (run := self._forked(command)) is not None:
            yield run
            return
        with ExitStack() as stack:
            stdin = subprocess.DEVNULL if command.input is None else stack.enter_context(command.input.open("rb")).fileno()
            nowhere = subprocess.DEVNULL
            started = processes.running(
                shell_text(command), command.directory, command.environment, stdout=nowhere, stderr=nowhere, stdin=stdin
            )
            process = stack.enter_context(started)
            descriptor = os.pidfd_open(process.pid)
            stack.callback(os.close, descriptor)
            yield _ShellRun(process, descriptor)

    def _forked(self, command: Command) -> ForkedRun | None:
        """Return a run that a server has begun, None where there is none for it."""
        is_barred = self._are_whole or command.directory in self.distrusted or command.input is not None
        program = None if is_barred else forking.program_of(command)
        if program is None:
            return None
        server = self._servers.get((command.directory, program.server))
        if server is None:
            server = self._servers[command.directory, program.server] = ForkServer(program, command)
        run = server.fork(program, command)
        if run is None:
            self.distrusted.add(command.directory)
        return run


def _walls_ns(runs: Sequence[BegunRun], guards: Sequence[Guard]) -> list[float]:
    """Wait until all runs have ended, or were ended by their guards; return what each took by the clock."""
    began, ends, walls_ns = time.perf_counter_ns(), select.poll(), dict[int, float]()
    for run in runs:
        ends.register(run.descriptor, select.POLLIN)
    while len(walls_ns) < len(runs):
        elapsed_s = (time.perf_counter_ns() - began) / 1e9
        left_s = [guard.limits.timeout_s - elapsed_s for guard in guards if not guard.is_over]
        pause_s = max(0.0, min([WATCH_S, *left_s]))
        for descriptor, _ in ends.poll(math.ceil(1e3 * pause_s)):
            walls_ns[descriptor] = float(time.perf_counter_ns() - began)
            ends.unregister(descriptor)
        elapsed_s = (time.perf_counter_ns() - began) / 1e9
        for run, guard in zip(runs, guards, strict=True):
            if run.descriptor not in walls_ns and not guard.is_over:
                guard.ends(is_late=elapsed_s >= guard.limits.timeout_s)
            elif guard.is_over and elapsed_s > guard.limits.timeout_s + _GONE_S:
                walls_ns[run.descriptor] = 1e9 * elapsed_s  # of a server that tells no more
    return [walls_ns[run.descriptor] for run in runs]
