"""The inputs that are kept: those on which head does the most more, and those that run a line that matters more often than any before.

That a line's count is a discovery of its own, as new coverage is to a fuzzer, is PerfFuzz's (Lemieux et al. 2018): what is slow at last is
reached by steps that are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from perfdiff.fuzzing.trials import CorpusEntry, PairedRun, PlaceComparison
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Side

_MORE = 1.25  # times as often as before: a step, and no matter of size alone


@dataclass(slots=True)
class Corpus:
    """What is kept of the inputs that were tried; `matters` (places of head,) are those of functions that changed, or did more once.

    `worst` are the inputs on which head does the most more, by the number of the function that does, -1 where none is counted.
    """

    comparison: PlaceComparison
    matters: npt.NDArray[np.bool_] = field(init=False)
    worst: dict[int, CorpusEntry] = field(default_factory=dict)
    _functions: Ints = field(init=False)
    _most: Floats = field(init=False)
    _champions: dict[int, CorpusEntry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.matters = self.comparison.changed
        self._functions = self.comparison.functions
        self._most = np.zeros(len(self.comparison.places))

    @property
    def leading(self) -> list[CorpusEntry]:
        """Return the worst input of each function, the worst of all first."""
        return sorted(self.worst.values(), key=lambda entry: -entry.value)

    @property
    def parents(self) -> list[CorpusEntry]:
        """Return the inputs that others are made from, each once, the worst first."""
        entries = [*self.leading, *self._champions.values()]
        return list({id(entry): entry for entry in entries}.values())

    @property
    def reached(self) -> float:
        """Return the share of the lines that matter which some input ran."""
        return float((self._most[self.matters] > 0).mean()) if self.matters.any() else 0.0

    def would_gain(self, trial: PairedRun) -> bool:
        """Return whether a run reaches a place that matters and no input did, or one that differs between the sides for the first time."""
        ran = trial.counts[Side.HEAD] > 0
        return bool((ran & self.matters & (self._most == 0)).any() or ((self.comparison.extra(trial) != 0) & ~self.matters).any())

    def add(self, entry: CorpusEntry) -> Ints:
        """Keep an input if it shows more than others did; return the places (indices) that matter and that it is the first to reach."""
        counts = entry.trial.counts[Side.HEAD].astype(np.float64)
        extra = self.comparison.extra(entry.trial)
        self.matters |= extra != 0
        better = self.matters & (counts > _MORE * self._most)
        new = np.flatnonzero(better & (self._most == 0))
        self._champions |= dict.fromkeys(np.flatnonzero(better).tolist(), entry)
        self._most = np.maximum(self._most, counts)
        culprit = self._culprit(extra)
        if culprit not in self.worst or entry.value > self.worst[culprit].value:
            self.worst[culprit] = entry
        return new

    def _culprit(self, extra: Floats) -> int:
        """Return the function that executes the most more, -1 where none does."""
        if not len(extra):
            return -1
        by_function = np.bincount(self._functions, weights=extra)
        return int(by_function.argmax()) if by_function.max() > 0 else -1
