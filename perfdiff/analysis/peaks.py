"""What whole runs of both sides show of their peak memory, as values; `verdicts/memory.py` judges it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from perfdiff.records.schema import Point


class MemoryStanding(StrEnum):
    """What the peak memory of runs says of a point, or of all."""

    MORE = "more"
    NOT_MORE = "not more"  # more than what is of interest is excluded
    LESS = "less"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """The most memory, in bytes, that one process of a run holds at a point, or all of them `together`: geometric means of both sides.

    The bounds `low` and `high` of their `ratio` hold at all points together, over so many `pairs` of runs.
    """

    point: Point
    base_bytes: float
    head_bytes: float
    ratio: float
    low: float
    high: float
    pairs: int
    standing: MemoryStanding
    together: bool = False

    @property
    def extra_bytes(self) -> float:
        """Return how much more head takes."""
        return self.head_bytes - self.base_bytes


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """The peak memory over the one parameter of a workload that varies, on both sides: bytes at 0, and bytes that each unit of it adds."""

    workload: str
    parameter: str
    base: tuple[float, float]
    head: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Allocating:
    """A changed function whose calls, with what they call, ask for more bytes in a run of head, at the `point` where most is added."""

    function: str
    point: Point
    base_bytes: float
    head_bytes: float


@dataclass(frozen=True, slots=True)
class MemoryFinding:
    """Peak memory at all points, its growth over inputs, and who asks for more of it; more by the share `threshold` is of interest.

    `decides`: the user asked for that, so that more memory is a regression. At the points `unknown`, by their labels, runs are too few, or
    nobody knows their peaks.
    """

    peaks: tuple[PeakMemory, ...]
    lines: tuple[MemoryLine, ...]
    allocating: tuple[Allocating, ...]
    threshold: float
    decides: bool
    unknown: tuple[str, ...] = ()

    @property
    def worst(self) -> PeakMemory | None:
        """Return the point at which head takes most more, None where it does not at any."""
        return max((peak for peak in self.peaks if peak.standing is MemoryStanding.MORE), key=lambda peak: peak.low, default=None)

    @property
    def standing(self) -> MemoryStanding:
        """Return the standing over all points: *more* if one point has more, else *open* if one is open or not known."""
        standings = {*(peak.standing for peak in self.peaks), *([MemoryStanding.OPEN] if self.unknown else [])}
        order = (MemoryStanding.MORE, MemoryStanding.OPEN, MemoryStanding.LESS, MemoryStanding.NOT_MORE)
        return next((standing for standing in order if standing in standings), MemoryStanding.OPEN)
