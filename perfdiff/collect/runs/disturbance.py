"""Runs that other work on the machine disturbed: they are made again, as far as that is any use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perfdiff.records.schema import Note, Run

# Beyond what is usual at its point, some process waited for a CPU during this share of a run's time. Half of it is this run's own loss
# where it runs alone against one other: as much as the smallest effect of interest.
DISTURBED = 0.10
# Of all pairs of runs, so many are made again at most: on a machine that is always busy, the next try is no better.
REPEATED = 0.20


class Referee:
    """Tells which runs were disturbed, by the least that was seen at their points, and how many may be made again.

    Threads of one program wait for each other, too, in each of its runs: that is usual.
    """

    def __init__(self, planned: int) -> None:
        """Take the number of runs, of all sides, that are planned."""
        self.repeated = 0
        self._allowed = int(REPEATED * planned)
        self._least: dict[int, float] = {}

    def repeats(self, runs: Sequence[Run]) -> bool:
        """Return whether the runs of a pair are to be made again."""
        disturbed = any(self.is_disturbed(run) for run in runs)
        for run in runs:
            if run.waited is not None:
                self._least[run.point] = min(run.waited, self._least.get(run.point, run.waited))
        if not disturbed or self.repeated + len(runs) > self._allowed:
            return False
        self.repeated += len(runs)
        return True

    def is_disturbed(self, run: Run) -> bool:
        """Return whether other work disturbed a run; where nothing is known, it did not."""
        return run.waited is not None and run.waited > self._least.get(run.point, run.waited) + DISTURBED

    def notes(self, runs: Iterable[Run]) -> tuple[Note, ...]:
        """Say how many of the runs that were kept shared the machine, where they are not few."""
        runs = list(runs)
        disturbed = sum(self.is_disturbed(run) for run in runs)
        if disturbed <= DISTURBED * len(runs):
            return ()
        again = f", though {self.repeated} were made again" if self.repeated else ""
        text = (
            f"other work held CPUs that {disturbed} of {len(runs)} runs waited for{again}: small effects may be hidden; "
            "a quieter machine shows more"
        )
        return (Note("machine-busy", text),)
