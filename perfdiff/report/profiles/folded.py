"""Folded stacks: a line for each, its frames from the outermost on, and the time that is spent in it, in whole nanoseconds.

With two numbers, base's and head's, `flamegraph.pl` and inferno draw what differs; with one, all that read folded stacks draw a side. The
format has no place for words: `stacks.METHOD` holds for it as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.records.schema import Side
from perfdiff.report.document import Document
from perfdiff.report.profiles.stacks import EXPORTED, Stacks, call_stacks


def render(document: Document) -> str:
    """Return the stacks with the time of both sides."""
    return _lines(call_stacks(document.findings, EXPORTED), tuple(Side))


def render_base(document: Document) -> str:
    """Return the stacks with base's time."""
    return _lines(call_stacks(document.findings, EXPORTED), (Side.BASE,))


def render_head(document: Document) -> str:
    """Return the stacks with head's time."""
    return _lines(call_stacks(document.findings, EXPORTED), (Side.HEAD,))


def _lines(stacks: Stacks, sides: Sequence[Side]) -> str:
    costs = [cost for cost in stacks.costs if cost.quantity.name == "time" and cost.side in sides]
    names = [frame.name.replace(";", ":") for frame in stacks.frames]  # a semicolon ends a frame
    lines = []
    for stack in range(len(stacks.frame)):
        times = [round(float(cost.own[stack])) for cost in costs]
        if any(times):
            lines.append(f"{';'.join(names[place] for place in stacks.chain(stack))} {' '.join(map(str, times))}\n")
    return "".join(sorted(lines))
