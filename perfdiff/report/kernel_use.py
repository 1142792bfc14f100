"""What whole runs ask of the kernel, in words, as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfdiff import units
from perfdiff.analysis.kernel_use import KernelCaller, KernelFinding, KernelPoint, KernelRequest
from perfdiff.analysis.peaks import MemoryFinding, MemoryStanding
from perfdiff.report.blocks import Block, Cell, Column, Table, Tone
from perfdiff.report.printable import printable

_COLUMNS = (Column("point"), Column("of"), Column("base", right=True), Column("head", right=True))
_SHOWN = 3  # functions and requests that a sentence lists before it only counts
_ROWS = 12  # points that the table lists
_WORDS = {
    KernelRequest.READS: "calls that read",
    KernelRequest.WRITES: "calls that write",
    KernelRequest.READ_BYTES: "bytes read",
    KernelRequest.WRITTEN_BYTES: "bytes written",
    KernelRequest.FAULTS: "page faults",
    KernelRequest.DESCRIPTORS: "file descriptors open at the end",
    KernelRequest.THREADS: "threads at the end",
}
_IN_BYTES = {KernelRequest.READ_BYTES, KernelRequest.WRITTEN_BYTES}


def answer(kernel: KernelFinding, memory: MemoryFinding | None = None) -> str | None:
    """Return a sentence where head asks more of the kernel, else None; page faults alone are told where peak memory is no more."""
    worst = kernel.worst
    if worst is None or (worst.request is KernelRequest.FAULTS and memory and memory.worst):
        return None
    others = dict.fromkeys(point.request for point in _more(kernel) if point.request is not worst.request)
    also = f"; also more {units.listed([_WORDS[request] for request in others], len(others))}" if others else ""
    calling = units.listed([_calls(caller) for caller in kernel.callers], _SHOWN, joint=";")
    sizes = f"{_amount(worst.request, worst.base)} → {_amount(worst.request, worst.head)}"
    where = f"{sizes} at {printable(worst.point.label)}{_grows(kernel, worst)}"
    return f"Asks more of the kernel: {_WORDS[worst.request]}, {where}{f': {calling}' if calling else ''}{also}."


def blocks(kernel: KernelFinding | None) -> Iterator[Block]:
    """Yield where head asks more, where it does."""
    if kernel is not None and kernel.worst is not None:
        yield Table("Asked of the kernel", _COLUMNS, tuple(map(_row, _more(kernel)[:_ROWS])))


def json_document(kernel: KernelFinding) -> dict[str, Any]:
    """Return what runs ask of the kernel for programs."""
    return {
        "points": [
            {
                "point": point.point.label,
                "of": point.request.value,
                "base": point.base,
                "head": point.head,
                "extra": {"low": point.low, "high": point.high},
                "standing": point.standing.value,
            }
            for point in kernel.points
        ],
        "lines": [
            {"of": request.value, "workload": line.workload, "parameter": line.parameter, "base": list(line.base), "head": list(line.head)}
            for request, line in kernel.lines
        ],
        "functions": [
            {"name": caller.function, "calls": caller.callee, "base": caller.base, "head": caller.head} for caller in kernel.callers
        ],
    }


def _more(kernel: KernelFinding) -> list[KernelPoint]:
    return sorted((point for point in kernel.points if point.standing is MemoryStanding.MORE), key=lambda point: -point.extra_share)


def _row(point: KernelPoint) -> tuple[Cell, ...]:
    amounts = (Cell(_amount(point.request, point.base)), Cell(_amount(point.request, point.head), Tone.REGRESSION))
    return (Cell(printable(point.point.label)), Cell(_WORDS[point.request]), *amounts)


def _amount(request: KernelRequest, amount: float) -> str:
    return units.size(amount) if request in _IN_BYTES else units.count(amount)


def _grows(kernel: KernelFinding, worst: KernelPoint) -> str:
    """Return what each unit of a parameter adds, "" where that is no line, or no more than before."""
    for request, line in kernel.lines:
        if request is worst.request and line.workload == worst.point.workload and line.head[1] > max(line.base[1], 0.0):
            base, head = (_amount(request, slope) for _, slope in (line.base, line.head))
            return f", {base} → {head} for each unit of {printable(line.parameter)}"
    return ""


def _calls(caller: KernelCaller) -> str:
    difference = caller.head - caller.base
    word = "more" if difference > 0 else "less"
    return f"`{printable(caller.function)}` calls `{printable(caller.callee)}` {units.count(abs(difference))} times {word} a run"
