"""What both sides did with one input, and how much more head did than base."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from perfdiff.fuzzing.families import InputFamily
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.places import Place
from perfdiff.records.schema import Side

# CPU time tells of work that no line shows, such as a library's, where head takes this much longer than base: more than runs of one program
# on one input differ by, and enough for the clock of a busy machine.
LEAST_SLOWDOWN = 1.5
LEAST_EXTRA_NS = 20e6


class MishapKind(StrEnum):
    """Why a run has no counts."""

    HANG = "hang"
    CRASH = "crash"


@dataclass(frozen=True, slots=True)
class PairedRun:
    """What each side did with an input: `counts` of its places, CPU time and exit code, or why there are none.

    A lone revision stands on both sides: base's figures are those of a quarter of the input, four times, so that head has more where growth
    is more than linear.
    """

    counts: Mapping[Side, Ints]
    cpu_ns: Mapping[Side, float]
    exit_codes: Mapping[Side, int]
    failures: Mapping[Side, MishapKind]

    @property
    def is_whole(self) -> bool:
        """Return whether both sides came to an end, in the same way: what one of them refuses is no comparison of work."""
        return not self.failures and len(set(self.exit_codes.values())) == 1

    @property
    def hangs(self) -> bool:
        """Return whether a side did not come to an end."""
        return MishapKind.HANG in self.failures.values()

    @property
    def seems_slower(self) -> bool:
        """Return whether head takes enough more CPU time to be worth further runs."""
        base, head = self.cpu_ns[Side.BASE], self.cpu_ns[Side.HEAD]
        return head - base > LEAST_EXTRA_NS and head > LEAST_SLOWDOWN * base


class Oracle(Protocol):
    """Runs both sides on inputs."""

    @property
    def comparison(self) -> PlaceComparison:
        """Return the comparison of the two sides' places, by which their work is told apart."""
        ...

    def trial(self, family: InputFamily, times: int, limit_s: float) -> PairedRun:
        """Run both sides on the input of a family, and return their counts and times; a run beyond `limit_s` counts as hanging."""
        ...


@dataclass(frozen=True, slots=True)
class PlaceComparison:
    """Which places of the two sides are the same, and which may be counted.

    `heads` (places of base,) are the indices of the same places in head, below 0 where there is none; `steady` (places,) by side those
    whose counts repeat; `places` are head's.
    """

    places: tuple[Place, ...]
    heads: Ints
    steady: Mapping[Side, npt.NDArray[np.bool_]]

    def extra(self, trial: PairedRun) -> Floats:
        """Return how much more often each place of head ran than the same one of base."""
        matched = self.heads >= 0
        more = np.where(self.steady[Side.HEAD], trial.counts[Side.HEAD], 0).astype(np.float64)
        before = np.where(self.steady[Side.BASE], trial.counts[Side.BASE], 0).astype(np.float64)
        np.subtract.at(more, self.heads[matched], before[matched])
        return more

    def work(self, trial: PairedRun, side: Side) -> float:
        """Return how many lines a side executed."""
        return float(trial.counts[side][self.steady[side]].sum())

    def ratio(self, trial: PairedRun) -> float:
        """Return head's work over base's."""
        return (self.work(trial, Side.HEAD) + 1) / (self.work(trial, Side.BASE) + 1)

    def changed_most(self, trial: PairedRun) -> Place | None:
        """Return the line that base has not which ran most often, None where none ran."""
        counts = np.array(trial.counts[Side.HEAD], dtype=np.int64)
        counts[self.heads[self.heads >= 0]] = 0
        return self.places[int(counts.argmax())] if counts.any() else None

    @property
    def functions(self) -> Ints:
        """Return the number of each place's function, (places,), one for all of its places."""
        numbers: dict[tuple[str, str], int] = {}
        return np.array([numbers.setdefault((place.file, place.function), len(numbers)) for place in self.places], dtype=np.int64)

    @property
    def changed(self) -> npt.NDArray[np.bool_]:
        """Return the places of head (places,) whose function has a line that base has not."""
        same = np.zeros(len(self.places), dtype=bool)
        same[self.heads[self.heads >= 0]] = True
        functions = self.functions
        return np.isin(functions, functions[~same])


@dataclass(frozen=True, slots=True)
class CorpusEntry:
    """An input that was tried: `ratio` is head's work over base's, `slowdown` its CPU time over base's, 1 where that does not seem more."""

    family: InputFamily
    times: int
    trial: PairedRun
    ratio: float
    slowdown: float = 1.0

    @property
    def factor(self) -> float:
        """Return how many times as much head does, by lines or by CPU time."""
        return max(self.ratio, self.slowdown)

    def is_told_by_lines(self, least: float) -> bool:
        """Return whether lines show a ratio of at least `least`, and by its logarithm at least half of the ratio of CPU times."""
        return self.ratio >= least and self.ratio**2 >= self.slowdown

    @property
    def value(self) -> float:
        """Return the logarithm of that."""
        return math.log(self.factor)

    @property
    def size(self) -> int:
        """Return the bytes of the input, or the value of its parameter."""
        return self.family.size(self.times)


@dataclass(frozen=True, slots=True)
class Mishap:
    """An input with which sides crashed or did not come to an end, in `file` where it was written to one."""

    family: InputFamily
    times: int
    failures: Mapping[Side, MishapKind]
    file: Path | None = None
