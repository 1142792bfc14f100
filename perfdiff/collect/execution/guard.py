"""Looks after a running command: ends it when its time is over or the disk is nearly full, and looks at its tasks and memory."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff import processes
from perfdiff.collect.execution.holding import HoldingCounter
from perfdiff.collect.execution.tasks import TaskCounter

# Between two looks at the free space and at tasks: a fast disk takes some 200 MB in this time. The first looks are sooner, as runs may be
# short; each takes 0.1 ms of another CPU.
FIRST_LOOK_S, WATCH_S = 0.004, 0.1
RESERVE_BYTES = 1e9  # a workload is stopped before it leaves less of the disk to everybody else …
RESERVE_SHARE = 0.05  # … or less than this part of a small disk; filesystems keep as much for root


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a command that runs in a folder: its time, the space on the disk, and a condition (`needs`) that must hold."""

    folder: Path
    timeout_s: float
    needs: Callable[[], bool] | None = None


@dataclass(slots=True)
class Guard:
    """Looks after a running command in a thread, for the length of a `with` block."""

    limits: Limits
    group: int
    tasks: TaskCounter | None = None
    holding: HoldingCounter | None = None
    expired: bool = False
    filled: bool = False
    forsaken: bool = False
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> Guard:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def saw_the_end(self) -> None:
        """Look at no more tasks and memory, as the command's first process has ended."""
        self.tasks = self.holding = None

    def _look(self) -> None:
        before = time.monotonic()
        deadline, pause_s = before + self.limits.timeout_s, FIRST_LOOK_S
        while not self._ended.wait(min(pause_s, max(0.0, deadline - time.monotonic()))):
            now, tasks, holding = time.monotonic(), self.tasks, self.holding
            if tasks is not None:
                tasks.look(now - before)
            if holding is not None:
                holding.look()
            before, pause_s = now, min(2 * pause_s, WATCH_S)
            if self.ends(is_late=now >= deadline):
                return

    def ends(self, *, is_late: bool) -> bool:
        """End the command if it exceeds a limit; return whether it did."""
        self.expired = is_late
        self.filled = bool(missing_bytes(self.limits.folder))
        self.forsaken = self.limits.needs is not None and not self.limits.needs()
        if self.is_over:
            processes.kill_group(self.group)
        return self.is_over

    @property
    def is_over(self) -> bool:
        """Return whether there was a reason to end it."""
        return self.expired or self.filled or self.forsaken


def missing_bytes(folder: Path) -> int:
    """Return by how much the free space around `folder` falls short of what is left alone, 0 where it does not or nobody can tell."""
    try:
        disk = shutil.disk_usage(folder)
    except OSError:  # a workload may remove the folder it runs in
        return 0
    return max(0, int(min(RESERVE_BYTES, disk.total * RESERVE_SHARE)) - disk.free)
