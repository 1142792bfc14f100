"""Runs whose system calls are reported: what each of their processes opens, lists and asks after."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from perfdiff.collect.execution.executor import Command, Execution, Executor, Purpose
from perfdiff.collect.trees.accesses import Accesses, Supervisor


class Watched:
    """Runs commands, and keeps the file accesses of the last one, and those of commands that set services up."""

    def __init__(self, executor: Executor) -> None:
        """Have `executor` run them."""
        self._executor = executor
        self.accesses: Accesses | None = None  # None where that is not known
        self.of_services: list[Accesses] = []

    def execute(self, command: Command) -> Execution:
        """Run `command` to its end; raise WorkloadError where it fails, hangs or crashes."""
        self.accesses = None
        supervisor = Supervisor()
        supervisor.begin()
        try:
            return self._executor.execute(replace(command, text=supervisor.command(command.text)))
        finally:
            self.accesses = supervisor.end()
            if self.accesses is not None and command.purpose is Purpose.SERVICE:
                self.of_services.append(self.accesses)

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        """Run commands at the same time, which tells nothing of what each of them meets."""
        self.accesses = None
        return self._executor.execute_together(commands, cpus)
