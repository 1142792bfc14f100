"""What whole runs of both sides ask of the kernel, as values; `verdicts/kernel.py` judges it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from perfdiff.analysis.peaks import MemoryLine, MemoryStanding
from perfdiff.records.schema import Point


class KernelRequest(StrEnum):
    """What is counted, by the fields of `KernelUse` and `LeftOpen` of the records."""

    READS = "reads"
    WRITES = "writes"
    READ_BYTES = "read_bytes"
    WRITTEN_BYTES = "written_bytes"
    FAULTS = "faults"
    DESCRIPTORS = "descriptors"
    THREADS = "threads"


@dataclass(frozen=True, slots=True)
class KernelPoint:
    """How much of a request the runs of both sides make at a point: medians, and between `low` and `high` more of head in any two runs."""

    point: Point
    request: KernelRequest
    base: int
    head: int
    low: int
    high: int
    standing: MemoryStanding

    @property
    def extra_share(self) -> float:
        """Return what head certainly has more, as a share of base's."""
        return self.low / max(self.base, 1)


@dataclass(frozen=True, slots=True)
class KernelCaller:
    """A changed function that calls a function of a library more often in a run, or what closes less often, by the kind of the request."""

    function: str
    callee: str
    base: float
    head: float


@dataclass(frozen=True, slots=True)
class KernelFinding:
    """What runs ask of the kernel at all points, its growth over inputs by request, and who asks for most of what head has more."""

    points: tuple[KernelPoint, ...]
    lines: tuple[tuple[KernelRequest, MemoryLine], ...] = ()
    callers: tuple[KernelCaller, ...] = ()

    @property
    def worst(self) -> KernelPoint | None:
        """Return the point and request of which head makes most more, by its share, None where it makes no more of any.

        Page faults, which memory makes, come behind all others.
        """
        more = (point for point in self.points if point.standing is MemoryStanding.MORE)
        return max(more, key=lambda point: (point.request is not KernelRequest.FAULTS, point.extra_share), default=None)
