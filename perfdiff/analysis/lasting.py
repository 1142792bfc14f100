"""What counted runs of both sides still have allocated at their ends, as values; `verdicts/lasting.py` judges it."""

from __future__ import annotations

from dataclasses import dataclass

from perfdiff.analysis.peaks import MemoryLine, MemoryStanding
from perfdiff.records.schema import Point


@dataclass(frozen=True, slots=True)
class LastingPoint:
    """The bytes that code of the project still has allocated at the end of a run at a point, on both sides: medians of the counted runs.

    Head has between `low` and `high` more, whichever runs are compared: one number where all runs of each side are alike.
    """

    point: Point
    base_bytes: int
    head_bytes: int
    low: int
    high: int
    standing: MemoryStanding


@dataclass(frozen=True, slots=True)
class Keeper:
    """A function whose memory is not freed by the end of a run, with bytes and blocks of both sides at one point.

    `line`, with its `text`, is the one that differs most, in head's files where head has more, else in base's; None where it is not known.
    """

    function: str
    file: str
    line: int | None
    text: str
    base_bytes: int
    head_bytes: int
    base_blocks: int
    head_blocks: int

    @property
    def extra_bytes(self) -> int:
        """Return how much more head has."""
        return self.head_bytes - self.base_bytes


@dataclass(frozen=True, slots=True)
class LastingFinding:
    """What stays allocated at the points where that is known, its growth over inputs, and who asked for what differs at `utmost`.

    It is not known at the points `unknown`, by their labels. The `keepers` have those that differ most first.
    """

    points: tuple[LastingPoint, ...]
    lines: tuple[MemoryLine, ...]
    keepers: tuple[Keeper, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def standing(self) -> MemoryStanding:
        """Return the standing over all points: *more* if one point has more, else *open* if one is open."""
        standings = {point.standing for point in self.points}
        order = (MemoryStanding.MORE, MemoryStanding.OPEN, MemoryStanding.LESS, MemoryStanding.NOT_MORE)
        return next(standing for standing in order if standing in standings)

    @property
    def utmost(self) -> LastingPoint | None:
        """Return the point at which head has most more, or most less where it is less in all; None where it is neither."""
        standing = self.standing
        deciding = [point for point in self.points if point.standing is standing]
        if standing not in (MemoryStanding.MORE, MemoryStanding.LESS):
            return None
        return max(deciding, key=lambda point: point.low if standing is MemoryStanding.MORE else -point.high)
