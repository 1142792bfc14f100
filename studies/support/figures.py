"""Figures as they stand in the documentation: a Markdown table, below it the machine, when it was measured, and how busy it was."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from perfdiff.collect.hosts import machine


@dataclass(slots=True)
class Table:
    """Rows of words under named columns, and remarks below."""

    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        """Add a row."""
        self.rows.append([str(cell) for cell in cells])

    def markdown(self) -> str:
        """Return the table as Markdown that reads well as plain text, too."""
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        lines = [self.columns, ["-" * width for width in widths], *self.rows]
        return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines)


@contextmanager
def printed(title: str, *columns: str) -> Iterator[Table]:
    """Yield a table to be filled, then print it with the machine and the load before and after."""
    table, before = Table(columns), os.getloadavg()[0]
    yield table
    found = machine.environment(dict(os.environ))
    load = f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after"
    print(f"\n### {title}\n\n{table.markdown()}\n")
    for remark in table.remarks:
        print(f"{remark}\n")
    print(f"*{found.cpu}, {found.cores} cores, {found.kernel}, {found.compiler}; {found.created}; {load}*\n", flush=True)


def cpu_s() -> float:
    """Return the CPU seconds of this process, and of its children that have ended."""
    return sum(os.times()[:4])


def against(value: float, bar: float) -> str:
    """Say whether a figure keeps its bar."""
    return "kept" if value <= bar else "**missed**"
