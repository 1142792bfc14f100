"""What a detector is: it learns what is normal from calls of base alone, and tells how far another call lies from that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from perfdiff.records.arrays import Floats, Ints

# γ = μ + 2σ (AutoPerf §4.3.2, equation 2).
DEVIATIONS = 2.0
# The share of errors that μ + 2σ is meant to leave below. AutoPerf's own errors of MySQL have a kurtosis of 348: it is far above there.
QUANTILE = 0.95


class DetectorKind(StrEnum):
    """A detector, by the name that a configuration gives it."""

    AUTOENCODER = "autoencoder"
    MAHALANOBIS = "mahalanobis"
    PCA = "pca"
    ISOLATION = "isolation-forest"
    ROBUST_Z = "robust-z"


@dataclass(frozen=True, slots=True)
class Training:
    """Calls of base to learn from: standardised residuals `rows` (n, c) of c counters, and the run (n,) of each.

    `slack` (c,) is half the smallest effect of interest in the units of `rows`: no counter is known better than that, however exactly
    it repeats itself. `volume` is the column of the work that the others are counted by.
    """

    rows: Floats
    runs: Ints
    slack: Floats
    volume: int
    seed: int

    def slips(self) -> Floats:
        """Return what may always differ (c + 1, c): each counter by its slack, and the work, by which all others are counted, by its."""
        work = np.where(np.arange(len(self.slack)) == self.volume, 1.0, -1.0) * self.slack
        return np.concatenate([np.diag(self.slack), [work]])

    def blurred(self) -> Floats:
        """Return the rows, each moved at random by what may always differ: for detectors that could not learn from counters that repeat."""
        rng = np.random.default_rng(self.seed)
        slips = self.slips()
        return np.asarray(self.rows + rng.standard_normal((len(self.rows), len(slips))) @ slips)

    def harmless(self) -> Floats:
        """Return calls (2c + 2, c) that a slip of twice the slack, the smallest effect of interest, moved away from what is usual."""
        return np.concatenate([2 * self.slips(), -2 * self.slips()])


class Detector(Protocol):
    """A model of base's calls. Errors are comparable within one detector only."""

    def errors(self, rows: Floats) -> Floats:
        """Return how far each call (n, c) lies from what is normal, (n,), at least 0."""

    def parts(self, rows: Floats) -> Floats:
        """Return each counter's part (n, c) in that, at least 0, comparable between the counters of a call."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The error above which a call is anomalous, `value`; `normal` is μ + 2σ of base's held-out errors, `quantile` their quantile."""

    value: float
    normal: float
    quantile: float


def threshold(errors: Floats, harmless: Floats) -> Threshold:
    """Return the threshold from errors of held-out calls of base (n,) and those of harmless calls.

    It is μ + 2σ, or the quantile where heavy tails put that lower, and never below what a harmless call shows: errors of exact
    counters may all be 0.
    """
    normal = float(errors.mean() + DEVIATIONS * errors.std())
    quantile = float(np.quantile(errors, QUANTILE))
    return Threshold(max(min(normal, quantile), float(harmless.max())), normal, quantile)
