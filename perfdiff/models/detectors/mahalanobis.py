"""Distance from base's mean in units of base's covariance (Mahalanobis 1936), shrunk as Ledoit and Wolf (2004) do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.models.detectors.detector import Training
from perfdiff.records.arrays import Floats


@dataclass(frozen=True, slots=True)
class Mahalanobis:
    """The mean (c,) and the inverse covariance (c, c) of base's calls."""

    mean: Floats
    precision: Floats

    @classmethod
    def learn(cls, training: Training) -> Mahalanobis:
        """Learn from base's calls; what may always differ does so besides what base shows."""
        mean = np.asarray(training.rows.mean(axis=0), dtype=np.float64)
        covariance = shrunk_covariance(training.rows - mean) + training.slips().T @ training.slips()
        return cls(mean, np.asarray(np.linalg.inv(covariance), dtype=np.float64))

    def errors(self, rows: Floats) -> Floats:
        """Return the distances (n,)."""
        centred = rows - self.mean
        return np.asarray(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", centred, self.precision, centred), 0.0)))

    def parts(self, rows: Floats) -> Floats:
        """Return how far each counter lies from what all others of its call foretell, in standard deviations of that forecast.

        With P the inverse covariance and d the distance from the mean, that is |P·d| / √diag(P).
        """
        centred = rows - self.mean
        return np.asarray(np.abs(centred @ self.precision) / np.sqrt(np.diag(self.precision)))


def shrunk_covariance(centred: Floats) -> Floats:
    """Return the covariance (c, c) of centred rows (n, c), pulled towards a multiple of the identity (Ledoit and Wolf 2004, lemma 3.2).

    The share of the target is the variance of the covariance's entries over their distance from the target: few rows, much shrinkage.
    """
    n, c = centred.shape
    sample = centred.T @ centred / n
    target = np.trace(sample) / c * np.eye(c)
    distance = float(((sample - target) ** 2).sum())
    scatter = float(((centred**2).sum(axis=1) ** 2).sum()) / n - float((sample**2).sum())
    share = min(scatter / n / distance, 1.0) if distance > 0 else 0.0
    return np.asarray((1 - share) * sample + share * target)
