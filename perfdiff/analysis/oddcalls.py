"""Calls of a function that are unlike base's: single ones, and the errors of all calls of a run, as a detector of anomalies sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfdiff.records.schema import Side


@dataclass(frozen=True, slots=True)
class OddCall:
    """An anomalous call of head: which it is, its inputs by the features' names, its error and the counter that differs most."""

    run: int
    point: int
    thread: int
    call: int
    inputs: Mapping[str, float]
    error: float
    counter: str


@dataclass(frozen=True, slots=True)
class RunErrors:
    """The reconstruction errors of one run's calls: median, 95 % quantile, and the share above the threshold."""

    run: int
    point: int
    side: Side
    median: float
    high: float
    share: float
