"""The counter that lies furthest from base's median, in robust standard deviations: no counter is seen beside another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.models.detectors.detector import Training
from perfdiff.models.noise import NORMAL_MAD
from perfdiff.records.arrays import Floats


@dataclass(frozen=True, slots=True)
class RobustZ:
    """Median (c,) and scale (c,) of each counter."""

    median: Floats
    scale: Floats

    @classmethod
    def learn(cls, training: Training) -> RobustZ:
        """Learn from base's calls; half of them may be equal, so that the slack is all that is left of the scale."""
        median = np.median(training.rows, axis=0)
        deviation = NORMAL_MAD * np.median(np.abs(training.rows - median), axis=0)
        return cls(median, np.hypot(deviation, training.slack))

    def errors(self, rows: Floats) -> Floats:
        """Return the largest part of each call (n,)."""
        return np.asarray(self.parts(rows).max(axis=1))

    def parts(self, rows: Floats) -> Floats:
        """Return the distance of each counter from its median (n, c)."""
        return np.asarray(np.abs(rows - self.median) / self.scale)
