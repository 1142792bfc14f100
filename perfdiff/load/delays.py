"""How long a client, and the servers that it waits for, are ready to run and have no CPU: time that other work took."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_MOST = 32  # threads; looking at more of them before and after each request would take longer than many a request


@dataclass(slots=True)
class Delays:
    """The waits for a CPU of this thread and of the threads that `processes` have now, as far as the kernel tells (proc_pid_schedstat)."""

    processes: Sequence[int] = ()
    _seen: dict[int, int] = field(default_factory=dict)  # in ns, by file

    def __post_init__(self) -> None:
        tasks = [task for process in self.processes for task in Path(f"/proc/{process}/task").glob("*")]
        for task in (Path("/proc/thread-self"), *(tasks if len(tasks) <= _MOST else ())):
            with suppress(OSError):
                self._seen[os.open(task / "schedstat", os.O_RDONLY | os.O_CLOEXEC)] = 0

    @property
    def ns(self) -> int:
        """Return how long they waited since they were started; those that have ended wait no more."""
        for file in self._seen:
            with suppress(OSError, ValueError, IndexError):
                self._seen[file] = int(os.pread(file, 80, 0).split()[1])
        return sum(self._seen.values())
