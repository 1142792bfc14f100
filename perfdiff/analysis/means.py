"""The mean of all calls, which is compared beside calls of like inputs, by its name among these."""

from __future__ import annotations

MEAN = "mean of all calls"


def is_mean(stratum: str) -> bool:
    """Return whether a stratum is the mean of all calls, at all points or at one."""
    return stratum.startswith(MEAN)
