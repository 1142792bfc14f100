"""Requests of the load in words: how long each kind was waited for."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff import units
from perfdiff.analysis.findings import RequestFinding
from perfdiff.report import wording
from perfdiff.report.blocks import Cell, Column, Table


def request_table(rows: Sequence[RequestFinding]) -> Table | None:
    """Return the latencies of requests, a row a kind and point, None where none were sent."""
    if not rows:
        return None
    columns = (
        Column("request"),
        Column("whole run"),
        Column("a run", right=True),
        Column("failed", right=True),
        Column("base", right=True),
        Column("head", right=True),
        Column("ratio", right=True),
        Column("95 % within, base", right=True, minor=True),
        Column("head", right=True, minor=True),
    )
    return Table("Requests, without probes: median latency", columns, tuple(map(_row, rows)))


def _row(row: RequestFinding) -> tuple[Cell, ...]:
    return (
        Cell(row.name, code=True),
        Cell(row.point.label, code=True),
        Cell(f"{row.made:,}"),
        Cell(f"{row.failed:,}"),
        Cell(_time(row.base_ns)),
        Cell(_time(row.head_ns)),
        Cell(wording.interval(row.ratio)),
        Cell(_time(row.base_tail_ns)),
        Cell(_time(row.head_tail_ns)),
    )


def _time(latency_ns: float | None) -> str:
    return wording.ABSENT if latency_ns is None else units.duration(latency_ns)
