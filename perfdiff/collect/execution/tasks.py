"""How many tasks of a run could work at the same time: threads and processes, looked at while it runs."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from perfdiff import processes
from perfdiff.languages.installed import installed
from perfdiff.records.behaviour import Concurrency

MOST_TASKS = 256  # of a run that are looked at: more would take a look milliseconds
_OF_RUNTIMES = tuple(name for traits in installed() for name in traits.running.own_threads)


@dataclass(slots=True)
class TaskCounter:
    """Looks at the processes below `leader` now and then: what runs, or waits for a CPU, could work on a CPU of its own.

    Threads that wait for something else are not counted, nor those by which a runtime compiles and collects garbage, and nothing hangs on
    how busy the machine is: a task that another program keeps from its CPU counts like one that has it. Each look stands for the time since
    the one before.
    """

    leader: int
    cpus: int
    _seconds: float = 0.0
    _several_s: float = 0.0
    _wanted_s: float = 0.0

    def look(self, seconds: float) -> None:
        """Count the tasks for some seconds; none before the leader, the shell above the program, stands still (`held_shell`)."""
        working = _working(self.leader) if processes.is_stopped(self.leader) else None
        if working is None:
            return
        self._seconds += seconds
        self._several_s += seconds * (working > 1)
        self._wanted_s += seconds * min(working, self.cpus)

    def concurrency(self, ran: float) -> Concurrency | None:
        """Return the concurrency of a run that used `ran` CPUs on average, None if it was never looked at."""
        if not self._seconds:
            return None
        return Concurrency(self._several_s / self._seconds, self._wanted_s / self._seconds, ran)


def _working(leader: int) -> int | None:
    """Return how many tasks of a process, and of those below it, run or wait for a CPU; None where it has ended."""
    working, looked_at, open_ = 0, 0, [leader]
    while open_ and looked_at < MOST_TASKS:
        process = open_.pop()
        try:
            tasks = [*islice(Path(f"/proc/{process}/task").iterdir(), MOST_TASKS - looked_at)]
        except OSError:
            if process == leader:
                return None
            continue
        for task in tasks:
            looked_at += 1
            with contextlib.suppress(OSError, IndexError):  # it has ended
                name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
                working += rest.split()[0] == "R" and not name.startswith(_OF_RUNTIMES)
                open_ += map(int, (task / "children").read_text().split())
    return working
