"""The flame graph of the page: stacks of both sides as frames within frames, drawn by their widths, and what the script draws them anew by.

Widths are shares of the frame above, so that a frame and all within it is zoomed by two numbers. A frame is as wide as what is spent in it
on the side that spends more, stack by stack; two bars in it are as wide as base's and head's parts of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from perfdiff import units
from perfdiff.analysis.findings import Findings, FunctionFinding
from perfdiff.report.blocks import FunctionSection
from perfdiff.report.plotdata import short
from perfdiff.report.profiles.stacks import Detail, Quantity, StackFrame, Stacks, call_stacks
from perfdiff.report.tree import has_moved

# A thousandth of a page is one pixel. 250 frames, with one for the rest of each, take 175 kB.
DRAWN = Detail(least=0.001, most=250, deepest=30)
ROW = 26  # pixels
STRONGEST = 0.55  # of a colour, so that names can be read on it


class _Tone(TypedDict):
    kind: str
    shade: float


@dataclass(frozen=True, slots=True)
class FlameFrame:
    """A frame with those within it. `x`, `width` are shares of the frame above, and `base`, `head` of this one, in percent.

    `kind` is `more` or `less` where head's own cost differs by more than runs vary by, else `alike`, and `unknown` where it is no
    function's; `shade` is how strong the colour of that difference is, 1 at most. `says` tells name, place and figures.
    """

    name: str
    says: str
    kind: str
    shade: float
    x: float
    width: float
    base: float
    head: float
    frames: tuple[FlameFrame, ...]


@dataclass(frozen=True, slots=True)
class Flame:
    """The frames at the starts of threads, their height in pixels, what is drawn, and all that the script knows of it."""

    frames: tuple[FlameFrame, ...]
    height: int
    says: str
    data: dict[str, Any]


def flame(findings: Findings, sections: Iterable[FunctionSection]) -> Flame | None:
    """Return the flame graph, None where no function was probed. Frames lead to `sections` of the page. Texts must be printable."""
    stacks = call_stacks(findings, DRAWN)
    if all(frame.function is None for frame in stacks.frames):
        return None
    return _Drawing(findings, stacks).drawn({section.id: section.diff is not None for section in sections})


class _Drawing:
    """Lays out the first quantity that anything is spent of; all others are the script's."""

    def __init__(self, findings: Findings, stacks: Stacks) -> None:
        self._stacks = stacks
        self._shown = next((row for row in range(len(stacks.quantities)) if stacks.own[:, row].any()), 0)
        self._within: dict[int | None, list[int]] = {}
        for stack, above in enumerate(stacks.above):
            self._within.setdefault(above, []).append(stack)
        self._own = stacks.own[:, self._shown]
        self._sides = stacks.added_up(self._own)
        self._widths = stacks.added_up(self._own.max(axis=1))
        self._clear = {finding.info.id: [_is_clear(finding, quantity) for quantity in stacks.quantities] for finding in findings.functions}

    def drawn(self, diffs: Mapping[str, bool]) -> Flame:
        """Return the graph; `diffs` are the sections of the page, and whether each shows lines that changed."""
        says = self._stacks.quantities[self._shown].says
        rows = max(len(self._stacks.chain(stack)) for stack in range(len(self._stacks.frame)))
        return Flame(self._frames(None), rows * ROW, f"Flame graph: {says} in one run of each workload point", self._data(diffs))

    def _frames(self, above: int | None) -> tuple[FlameFrame, ...]:
        stacks = self._within.get(above, [])
        whole = float(self._widths[stacks].sum() if above is None else self._widths[above]) or 1.0
        shares = self._widths[stacks] / whole
        starts = np.cumsum(shares) - shares
        return tuple(map(self._frame, stacks, starts.tolist(), shares.tolist()))

    def _frame(self, stack: int, start: float, share: float) -> FlameFrame:
        frame = self._stacks.frames[self._stacks.frame[stack]]
        sides = self._sides[stack]
        base, head = (sides / (self._widths[stack] or 1.0)).tolist()
        unit = self._stacks.quantities[self._shown].unit
        costs = " → ".join(units.quantity(cost, unit) for cost in sides.tolist())
        return FlameFrame(
            name=frame.name,
            says=f"{', '.join(filter(None, (frame.name, frame.place)))}: {costs}",
            **self._tone(stack, frame),
            x=_percent(start),
            width=_percent(share),
            base=_percent(base),
            head=_percent(head),
            frames=self._frames(stack),
        )

    def _tone(self, stack: int, frame: StackFrame) -> _Tone:
        """Return a frame's kind, and its shade by the root of its part of all that is spent, so that small parts are seen."""
        base, head = self._own[stack].tolist()
        if frame.function is None or base == head or not self._clear[frame.function][self._shown]:
            return _Tone(kind="unknown" if frame.function is None else "alike", shade=0.0)
        part = abs(head - base) / self._own.sum(axis=0).max()
        return _Tone(kind="more" if head > base else "less", shade=round(STRONGEST * part**0.5, 2))

    def _data(self, diffs: Mapping[str, bool]) -> dict[str, Any]:
        """Return the frames as the script reads them: columns in the order of the page, own costs by quantity and side."""
        order = list(self._in_order())
        place = {stack: number for number, stack in enumerate(order)}
        frames = self._stacks.frames
        targets = ["" if frame.function is None else f"function-{frame.function}" for frame in frames]
        own = [[short(value) for value in cost.own[order].tolist()] for cost in self._stacks.costs]
        return {
            "quantities": [{"says": quantity.says, "unit": quantity.unit} for quantity in self._stacks.quantities],
            "shown": self._shown,
            "strongest": STRONGEST,
            "names": [frame.name for frame in frames],
            "places": [frame.place for frame in frames],
            "targets": [target if target in diffs else "" for target in targets],
            "lines": [int(diffs.get(target, False)) for target in targets],
            "clear": [None if frame.function is None else list(map(int, self._clear[frame.function])) for frame in frames],
            "frame": [self._stacks.frame[stack] for stack in order],
            "above": [None if (above := self._stacks.above[stack]) is None else place[above] for stack in order],
            "own": [own[row : row + 2] for row in range(0, len(own), 2)],
        }

    def _in_order(self) -> Iterator[int]:
        """Yield stacks as they stand in the page: each before those within it."""
        waiting = self._within[None][::-1]
        while waiting:
            stack = waiting.pop()
            yield stack
            waiting += self._within.get(stack, [])[::-1]


def _is_clear(finding: FunctionFinding, quantity: Quantity) -> bool:
    """Return whether what a function spends differs by more than runs vary by; what is counted as often in all runs differs at all."""
    if quantity.unit == "ns":
        return has_moved(finding, "self_ns")
    counts = finding.counts.get(quantity.name)
    return counts is None or counts.exact or counts.grew or counts.shrank


def _percent(share: float) -> float:
    return round(100 * share, 3)
