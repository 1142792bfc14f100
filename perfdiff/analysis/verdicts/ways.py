"""Ways in which pairs of whole runs are made: alone or at the same time on one CPU, of the builds as they are or linked again.

A program may see which it is, and do other work: one CPU is what a small machine has, and a file that was linked again is another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.policy import POLICY
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Run, Side
from perfdiff.statistics.sides import logs, pairs_of

Runs = tuple[Sequence[Run], Sequence[Run]]  # of base and head
ALONE, AS_BUILT = "alone", "as-built"
_WAYS: tuple[tuple[str, Callable[[Run], bool]], ...] = (
    (ALONE, lambda run: not run.together),
    (AS_BUILT, lambda run: run.layout == 0),
)


@dataclass(frozen=True, slots=True)
class WaysApart:
    """A point whose runs made in one `way` show another difference between base and head than its other runs."""

    way: str
    runs: Runs
    others: Runs

    def worst(self, cost: str) -> float:
        """Return how many times as much of a cost head takes in the way that is worse for it, in the median of pairs."""
        return max(median_ratio(runs, cost)[0] for runs in (self.runs, self.others))


def ways_apart(runs: Runs, cost: str, chance: float) -> WaysApart | None:
    """Return ways whose pairs differ by more than the place of code makes, beyond `chance`; None where none do."""
    for way, belongs in _WAYS:
        here, there = _split(runs, belongs)
        shifts, other_shifts = _Shifts.of(here, cost), _Shifts.of(there, cost)
        are_spread = min(len(shifts), len(other_shifts)) > 1
        if are_spread and shifts.are_apart(other_shifts, chance):
            return WaysApart(way, here, there)
    return None


def seem_apart(runs: Sequence[Run]) -> bool:
    """Return whether runs of one point that were made alone seem to show another difference than those made at the same time."""
    sides = tuple([run for run in runs if run.side is side] for side in Side)
    alone, together = (_Shifts.of(way, "cpu_ns") for way in _split((sides[0], sides[1]), lambda run: not run.together))
    return bool(len(alone) and len(together)) and not POLICY.may_be_layout(abs(alone.median - together.median))


def median_ratio(runs: Runs, cost: str) -> tuple[float, int]:
    """Return how many times as much of a cost head takes in the median of pairs, and how many these are."""
    shifts = _Shifts.of(runs, cost)
    return math.exp(shifts.median), len(shifts)


@dataclass(frozen=True, slots=True)
class _Shifts:
    """By how much the logarithms of a cost differ in each pair (n,), and the layouts of these (n,)."""

    values: Floats
    layouts: Ints

    @staticmethod
    def of(runs: Runs, cost: str) -> _Shifts:
        before, after = pairs_of(*runs)
        return _Shifts(logs(after, cost) - logs(before, cost), np.array([run.layout for run in after], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def median(self) -> float:
        return float(np.median(self.values))

    def are_apart(self, others: _Shifts, chance: float) -> bool:
        """Return whether two means differ by more than the place of code makes, whatever it makes of a layout that was not measured."""
        from scipy.special import stdtrit

        distance = abs(float(self.values.mean() - others.values.mean())) - math.log1p(POLICY.layout_shift)
        if distance <= 0:
            return False
        parts = [*self._errors(), *others._errors(self._count)]
        error = sum(variance for variance, _ in parts)
        if error == 0:
            return True
        freedom = error**2 / sum(variance**2 / freedom for variance, freedom in parts if variance)  # Welch 1947
        return distance > float(stdtrit(freedom, 1 - chance / 2)) * math.sqrt(error)

    @property
    def _count(self) -> int:
        return len(np.unique(self.layouts))

    def _errors(self, drawn: int | None = None) -> Iterator[tuple[float, int]]:
        """Yield the variance of the mean with its degrees of freedom, and with `drawn` that of the mean of so many other layouts."""
        means = np.array([self.values[self.layouts == layout].mean() for layout in np.unique(self.layouts)])
        yield float(self.values.var(ddof=1)) / len(self), len(self) - 1
        if drawn is not None and len(means) > 1:
            yield float(means.var(ddof=1)) / drawn, len(means) - 1


def _split(runs: Runs, belongs: Callable[[Run], bool]) -> tuple[Runs, Runs]:
    """Return the runs of both sides that were made in a way, and all others."""
    here, there = ([[run for run in side if belongs(run) is wanted] for side in runs] for wanted in (True, False))
    return (here[0], here[1]), (there[0], there[1])
