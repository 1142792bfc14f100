"""How much memory all processes of a run hold together: looked at while it runs, as the kernel keeps no peak of several processes.

A cgroup has one, and counts in it what the kernel keeps of files that a run wrote or read; nor may every user make a group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from perfdiff import processes
from perfdiff.collect.execution import kernel

_LEAST_LOOKS = 5  # of a run: the fifth is made after an eighth of a second
# Shares of pages take the kernel 14 µs for each MB, and keep a process from asking for more meanwhile: they are read where processes
# together have grown by this share, without regard to pages that they share, since shares were read.
_GROWN = 1.05


@dataclass(slots=True)
class HoldingCounter:
    """Looks at the processes below `leader` now and then, and remembers the most memory that several of them held together."""

    leader: int
    _looks: int = 0
    _resident_bytes: float = 0.0  # as shares were read last
    _most_bytes: float = 0.0

    def look(self) -> None:
        """Look at the processes; none before the leader, the shell above the program, stands still (`held_shell`)."""
        if not processes.is_stopped(self.leader):
            return
        self._looks += 1
        below = processes.descendants(self.leader)
        resident_bytes = sum(map(kernel.resident_bytes, below)) if len(below) > 1 else 0.0
        if resident_bytes > _GROWN * self._resident_bytes:
            self._resident_bytes = resident_bytes
            self._most_bytes = max(self._most_bytes, sum(map(kernel.shared_bytes, below)))

    def most_bytes(self, of_one: float) -> float | None:
        """Return the most memory that a run held, the largest of whose processes held `of_one`; None where looks were too few."""
        return max(of_one, self._most_bytes) if self._looks >= _LEAST_LOOKS and math.isfinite(of_one) else None
