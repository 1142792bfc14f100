"""The source of a function on both sides as a unified diff with line numbers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from perfdiff import units
from perfdiff.records.schema import FunctionInfo, Source
from perfdiff.report.blocks import Diff, DiffLine
from perfdiff.report.heat import shade

# As many unchanged lines around a change as fit a loop's head with its body; git shows 3.
CONTEXT_LINES = 4
# A function longer than this is read in an editor, not in a report.
MOST_LINES = 240
# Of all functions together: keeps a page of 50 under 2 MB.
ALL_LINES = 6_000
_LEAST_LINES = 40


def lines_each(functions: int) -> int:
    """Return how many source lines of each function a report shows if it has this many changed functions."""
    return min(MOST_LINES, max(ALL_LINES // max(functions, 1), _LEAST_LINES))


@dataclass(frozen=True, slots=True)
class LineRunCounts:
    """How often head's lines ran in one run of a workload `point`, by number."""

    point: str
    times: Mapping[int, float]


def source_diff(info: FunctionInfo, *, guilty: bool = False, most: int = MOST_LINES, counted: LineRunCounts | None = None) -> Diff | None:
    """Return what changed in a function's text, in at most `most` lines, or None where there is nothing to show. Texts must be printable.

    Where the function is `guilty`, the lines that head added are, or those that it dropped if it added none. Lines of head have how often
    they ran where they were `counted`.
    """
    base, head = _lines(info.base), _lines(info.head)
    if base == head:
        return None
    lines = _compared(base, head, info.base.line if info.base else 1, info.head.line if info.head else 1)
    if guilty:
        lines = _blamed(lines, info)
    if counted is not None:
        lines = [_with_count(line, counted) for line in lines]
    if len(lines) > most:
        left_out = len(lines) - most
        lines = [*lines[:most], DiffLine("@", None, None, f"{left_out:,} more lines of this diff are left out")]
    return Diff(_title(info), tuple(lines), counted.point if counted else "")


def _with_count(line: DiffLine, counted: LineRunCounts) -> DiffLine:
    times = None if line.head is None else counted.times.get(line.head)
    if times is None:
        return line
    return replace(line, times=units.times(times), shade=shade(times, max(counted.times.values())))


def _blamed(lines: list[DiffLine], info: FunctionInfo) -> list[DiffLine]:
    """Mark the lines of code that say something, which a brace alone does not."""
    base, head = (source.code if source else {} for source in (info.base, info.head))
    telling = [bool(re.search(r"\w", line.text)) and (line.head in head if line.mark == "+" else line.base in base) for line in lines]
    marks = {line.mark for line, tells in zip(lines, telling, strict=True) if tells}
    mark = "+" if "+" in marks else "-"
    return [replace(line, guilty=tells and line.mark == mark) for line, tells in zip(lines, telling, strict=True)]


def _lines(source: Source | None) -> list[str]:
    return source.text.rstrip("\n").split("\n") if source else []


def _title(info: FunctionInfo) -> str:
    if info.base is None or info.head is None:
        side, source = ("head", info.head) if info.head else ("base", info.base)
        return f"{source.file}, only in {side}" if source else info.file
    return info.head.file if info.base.file == info.head.file else f"{info.base.file} → {info.head.file}"


def _compared(base: list[str], head: list[str], base_start: int, head_start: int) -> list[DiffLine]:
    lines: list[DiffLine] = []
    for group in difflib.SequenceMatcher(None, base, head, autojunk=False).get_grouped_opcodes(CONTEXT_LINES):
        if lines:
            lines.append(DiffLine("@", None, None, "unchanged lines"))
        for tag, base_low, base_high, head_low, head_high in group:
            if tag == "equal":
                lines += [
                    DiffLine(" ", base_start + i, head_start + j, base[i])
                    for i, j in zip(range(base_low, base_high), range(head_low, head_high), strict=True)
                ]
                continue
            lines += [DiffLine("-", base_start + i, None, base[i]) for i in range(base_low, base_high)]
            lines += [DiffLine("+", None, head_start + j, head[j]) for j in range(head_low, head_high)]
    return lines
