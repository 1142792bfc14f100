"""What measures the work of a call: basic blocks of machine code or of bytecode, else the lines that an interpreter begins."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkCounter:
    """A metric of work, `plain` as sentences name its events; `beside` are the counters that are made wherever it is.

    `is_bounded`: each event takes a bounded time, so that equal counts leave no more work unseen than libraries do. A line may search
    a list, or join strings, of any length: equal counts of lines do not prove equal work. Nor do those of bytecode, which leaves such work
    to the methods of its virtual machine's own library: the same call means a little or a lot there, by what it is given.
    """

    metric: str
    plain: str
    beside: tuple[str, ...]
    is_bounded: bool


# The finest first.
WORK_COUNTERS = (
    WorkCounter("blocks", "basic blocks", ("loads", "stores"), is_bounded=True),
    WorkCounter("bytecode_blocks", "basic blocks of bytecode", (), is_bounded=False),
    WorkCounter("opcodes", "instructions", (), is_bounded=False),
    WorkCounter("lines", "lines", (), is_bounded=False),
)
WORK_METRICS = tuple(counter.metric for counter in WORK_COUNTERS)


def work_counters(counted: Container[str]) -> tuple[WorkCounter, ...]:
    """Return those counters of a function or program that measure work."""
    return tuple(counter for counter in WORK_COUNTERS if counter.metric in counted)


def plain(metric: str) -> str:
    """Return what a metric of work counts, as sentences name it."""
    return next(counter.plain for counter in WORK_COUNTERS if counter.metric == metric)


def is_bounded(counted: Container[str]) -> bool:
    """Return whether work is counted, by bounded events alone: what is equal then is the same work."""
    counters = work_counters(counted)
    return bool(counters) and all(counter.is_bounded for counter in counters)
