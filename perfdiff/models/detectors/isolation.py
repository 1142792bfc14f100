"""How few random cuts set a call apart from base's (Liu, Ting and Zhou 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from perfdiff.models.detectors.detector import Training
from perfdiff.records.arrays import Floats


@dataclass(frozen=True, slots=True)
class Isolation:
    """A forest over base's calls, and the scale (c,) in which counters of a call are compared."""

    forest: Any
    scale: Floats

    @classmethod
    def learn(cls, training: Training) -> Isolation:
        """Learn from base's calls, blurred, since a counter that never varies would never be cut."""
        from sklearn.ensemble import IsolationForest

        rows = training.blurred()
        forest = IsolationForest(random_state=training.seed, n_jobs=1).fit(rows)
        return cls(forest, rows.std(axis=0))

    def errors(self, rows: Floats) -> Floats:
        """Return the forest's score of each call (n,), between 0 and 1."""
        return np.asarray(-self.forest.score_samples(rows))

    def parts(self, rows: Floats) -> Floats:
        """Return each counter's distance from normal (n, c): the score itself has no parts."""
        return np.asarray(np.abs(rows) / self.scale)
