"""Reconstruction by principal components: what base's calls vary in together is normal, the rest is error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.models.detectors.detector import Training
from perfdiff.records.arrays import Floats

# Components are kept until they hold this share of base's variance, and never more than half as many as there are counters: with all of
# them, everything is reconstructed.
EXPLAINED = 0.90


@dataclass(frozen=True, slots=True)
class Components:
    """The mean (c,) and the kept components (k, c) of base's calls. What moves along a kept component goes unseen, however far."""

    mean: Floats
    axes: Floats

    @classmethod
    def learn(cls, training: Training) -> Components:
        """Learn from base's calls."""
        rows = training.blurred()
        mean = rows.mean(axis=0)
        _, values, axes = np.linalg.svd(rows - mean, full_matrices=False)
        share = np.cumsum(values**2) / (values**2).sum()
        count = min(int(np.searchsorted(share, EXPLAINED)) + 1, rows.shape[1] // 2)
        return cls(mean, axes[:count])

    def errors(self, rows: Floats) -> Floats:
        """Return the length of what is not reconstructed (n,)."""
        return np.asarray(np.linalg.norm(self.parts(rows), axis=1))

    def parts(self, rows: Floats) -> Floats:
        """Return the part of each counter that is not reconstructed (n, c)."""
        centred = rows - self.mean
        return np.asarray(np.abs(centred - centred @ self.axes.T @ self.axes))
