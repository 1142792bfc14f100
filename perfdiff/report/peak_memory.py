"""What the peak memory of whole runs shows, in words, as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from perfdiff import units
from perfdiff.analysis.peaks import Allocating, MemoryFinding, MemoryLine, MemoryStanding, PeakMemory
from perfdiff.report.blocks import Block, Cell, Column, Table, Tone
from perfdiff.report.printable import printable

_COLUMNS = (
    Column("point"), Column("of"), Column("base", right=True), Column("head", right=True), Column("ratio", right=True), Column("standing")
)  # fmt: skip
_SHOWN = 3  # points that a sentence lists before it only counts
_TONES = {
    MemoryStanding.MORE: Tone.REGRESSION,
    MemoryStanding.LESS: Tone.IMPROVEMENT,
    MemoryStanding.OPEN: Tone.INCONCLUSIVE,
    MemoryStanding.NOT_MORE: Tone.PLAIN,
}


def answer(memory: MemoryFinding) -> str | None:
    """Return a sentence where head takes more, or where that was asked and is open, else None."""
    worst = memory.worst
    if worst is not None:
        asking = units.listed([_asks(allocating) for allocating in memory.allocating], len(memory.allocating), joint=";")
        behind = f": {asking}" if asking else ""
        growth = grows(memory.lines, worst.point.workload)
        return f"Peak memory{_of(worst)} {_ratio(worst)} at {printable(worst.point.label)}, {_sizes(worst)}{growth}{behind}."
    if not memory.decides or memory.standing is not MemoryStanding.OPEN:
        return None
    if memory.unknown:
        points = units.listed([printable(label) for label in memory.unknown], _SHOWN)
        return f"Peak memory is open: it is not known at {points}, where runs are too few."
    widest = max((peak for peak in memory.peaks if peak.standing is MemoryStanding.OPEN), key=lambda peak: peak.high)
    return f"Peak memory{_of(widest)} is open: {_ratio(widest)} at {printable(widest.point.label)}, so that more runs would have to decide."


def blocks(memory: MemoryFinding) -> Iterator[Block]:
    """Yield the figures point by point, where the answer has a sentence of them."""
    if answer(memory) is not None and memory.peaks:
        yield Table("Peak memory", _COLUMNS, tuple(map(_row, memory.peaks)))


def json_document(memory: MemoryFinding) -> dict[str, Any]:
    """Return the peaks, in bytes, for programs."""
    return {
        "standing": memory.standing.value,
        "threshold": memory.threshold,
        "decides": memory.decides,
        "unknown": list(memory.unknown),
        "points": [
            {
                "point": peak.point.label,
                "together": peak.together,
                "base_bytes": peak.base_bytes,
                "head_bytes": peak.head_bytes,
                "ratio": {"value": peak.ratio, "low": peak.low, "high": peak.high},
                "pairs": peak.pairs,
                "standing": peak.standing.value,
            }
            for peak in memory.peaks
        ],
        "lines": [
            {"workload": line.workload, "parameter": line.parameter, "base": list(line.base), "head": list(line.head)}
            for line in memory.lines
        ],
        "functions": [
            {"name": asking.function, "base_bytes": asking.base_bytes, "head_bytes": asking.head_bytes} for asking in memory.allocating
        ],
    }


def _row(peak: PeakMemory) -> tuple[Cell, ...]:
    sizes = (Cell(units.size(peak.base_bytes)), Cell(units.size(peak.head_bytes)))
    return (
        Cell(printable(peak.point.label)),
        Cell("all processes" if peak.together else "one process"),
        *sizes,
        Cell(_ratio(peak)),
        Cell(peak.standing.value, _TONES[peak.standing]),
    )


def _of(peak: PeakMemory) -> str:
    return " of all processes" if peak.together else ""


def _ratio(peak: PeakMemory) -> str:
    return f"{units.ratio(peak.ratio)} [{peak.low:.2f}, {peak.high:.2f}]"


def _sizes(peak: PeakMemory) -> str:
    return f"{units.size(peak.base_bytes)} → {units.size(peak.head_bytes)}"


def grows(lines: Iterable[MemoryLine], workload: str) -> str:
    """Return what each unit of a parameter of a workload adds on both sides, "" where it is less than a byte on both."""
    for line in lines:
        slopes = [abs(slope) for _, slope in (line.base, line.head)]
        if line.workload == workload and max(slopes) >= 1:
            base, head = map(units.size, slopes)
            return f", {base} → {head} for each unit of {printable(line.parameter)}"
    return ""


def _asks(allocating: Allocating) -> str:
    more = units.size(allocating.head_bytes - allocating.base_bytes)
    return f"`{printable(allocating.function)}` asks for {more} more a run"
