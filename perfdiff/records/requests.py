"""Requests of a run, as the load that sent them tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """The requests of one kind in a run of perfdiff's own load: how many were made, and how many failed by the reason.

    Those that did not fail took `median_ns`, 95 % of them at most `tail_ns`, from when they were due to the end of the answer; None where
    all failed. `example` is one that failed, as `GET /x`.
    """

    name: str
    made: int
    failed: Mapping[str, int]
    median_ns: float | None
    tail_ns: float | None
    example: str = ""
