"""What stays allocated at the ends of runs, in words, as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfdiff import units
from perfdiff.analysis.lasting import Keeper, LastingFinding
from perfdiff.analysis.peaks import MemoryFinding, MemoryStanding
from perfdiff.report.blocks import Block, Cell, Column, Sentence, Table, Tone
from perfdiff.report.peak_memory import grows
from perfdiff.report.printable import printable

_COLUMNS = (Column("function"), Column("place"), Column("base", right=True), Column("head", right=True), Column("line"))
_SHOWN = 3  # functions and points that a sentence lists before it only counts
_ROWS = 12  # functions that the table lists


def answer(lasting: LastingFinding) -> str | None:
    """Return a sentence where more stays allocated in head, or less, else None."""
    utmost = lasting.utmost
    if utmost is None:
        return None
    growth = grows(lasting.lines, utmost.point.workload)
    keeping = units.listed([_keeps(keeper) for keeper in lasting.keepers], _SHOWN, joint=";")
    sizes = f"{units.size(utmost.base_bytes)} → {units.size(utmost.head_bytes)}"
    return f"Stays allocated at the end: {sizes} at {printable(utmost.point.label)}{growth}{f': {keeping}' if keeping else ''}."


def blocks(lasting: LastingFinding | None, memory: MemoryFinding | None) -> Iterator[Block]:
    """Yield the functions that keep more or less, with a sentence where the answer has none; also what is not known, where that matters.

    It matters where peak memory is asked after, or more.
    """
    says = answer(lasting) if lasting else None
    if lasting and says is not None:
        if lasting.standing is not MemoryStanding.MORE:
            yield Sentence(says, Tone.IMPROVEMENT)
        yield Table("Stays allocated at the end", _COLUMNS, tuple(map(_row, lasting.keepers[:_ROWS])))
    if memory and (memory.decides or memory.worst) and (lasting is None or lasting.unknown):
        points = f" at {units.listed([printable(label) for label in lasting.unknown], _SHOWN)}" if lasting else ""
        yield Sentence(
            f"What stays allocated at the end is not known{points}: counted runs of C and C++ tell it, those of interpreters "
            "with `[compare] memory`, where each process ends by exit.",
            Tone.MUTED,
        )


def json_document(lasting: LastingFinding) -> dict[str, Any]:
    """Return what stays allocated, in bytes, for programs."""
    return {
        "standing": lasting.standing.value,
        "unknown": list(lasting.unknown),
        "points": [
            {
                "point": point.point.label,
                "base_bytes": point.base_bytes,
                "head_bytes": point.head_bytes,
                "extra": {"low": point.low, "high": point.high},
                "standing": point.standing.value,
            }
            for point in lasting.points
        ],
        "lines": [
            {"workload": line.workload, "parameter": line.parameter, "base": list(line.base), "head": list(line.head)}
            for line in lasting.lines
        ],
        "functions": [
            {
                "name": keeper.function,
                "file": keeper.file,
                "line": keeper.line,
                "text": keeper.text,
                "base_bytes": keeper.base_bytes,
                "head_bytes": keeper.head_bytes,
                "base_blocks": keeper.base_blocks,
                "head_blocks": keeper.head_blocks,
            }
            for keeper in lasting.keepers
        ],
    }


def _row(keeper: Keeper) -> tuple[Cell, ...]:
    tone = Tone.REGRESSION if keeper.extra_bytes > 0 else Tone.IMPROVEMENT
    sizes = (_size(keeper.base_bytes, keeper.base_blocks), _size(keeper.head_bytes, keeper.head_blocks))
    return (Cell(printable(keeper.function)), Cell(_place(keeper)), Cell(sizes[0]), Cell(sizes[1], tone), Cell(printable(keeper.text)))


def _size(size: int, blocks: int) -> str:
    return f"{units.size(size)} in {units.count(blocks)}" if blocks else units.size(0)


def _place(keeper: Keeper) -> str:
    line = f":{keeper.line}" if keeper.line else ""
    return printable(f"{keeper.file}{line}")


def _keeps(keeper: Keeper) -> str:
    text = f": `{printable(keeper.text)}`" if keeper.text else ""
    line = f", line {keeper.line}{text}" if keeper.line else ""
    word = "more" if keeper.extra_bytes > 0 else "less"
    return f"`{printable(keeper.function)}` ({printable(keeper.file)}{line}) {units.size(abs(keeper.extra_bytes))} {word}"
