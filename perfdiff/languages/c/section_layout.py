"""Where the symbols of an object file lie in a section, and what the linker fills in there."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from perfdiff.languages.c.elf import ElfSection, Relocation
from perfdiff.languages.c.instructions import NearReference

_WALK_BACK = 16  # symbols that overlap at one place: aliases, and labels in the middle of hand-written functions


@dataclass(frozen=True, slots=True, order=True)
class SymbolSpan:
    """The bytes of a symbol in its section."""

    start: int
    end: int
    name: str


@dataclass(slots=True)
class SectionLayout:
    """One section: the spans of its symbols, and its relocations by place."""

    section: ElfSection
    spans: list[SymbolSpan] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    near: list[NearReference] = field(default_factory=list)
    near_offsets: list[int] = field(default_factory=list)

    def at(self, place: int) -> SymbolSpan | None:
        """Return the symbol that a place lies in, the same one of several whatever their order in the file."""
        last = bisect_right(self.starts, place)
        around = [span for span in self.spans[max(last - _WALK_BACK, 0) : last] if span.start <= place < span.end]
        return min(around, key=lambda span: (span.start != place, place - span.start, span.name), default=None)

    def following(self, place: int) -> int:
        """Return where the next symbol behind a place starts, or the section ends."""
        index = bisect_right(self.starts, place)
        return self.starts[index] if index < len(self.starts) else self.section.size

    def relocations(self, start: int, end: int) -> Sequence[Relocation]:
        """Return the relocations from `start` up to `end`."""
        return self.section.relocations[bisect_left(self.offsets, start) : bisect_left(self.offsets, end)]

    def near_references(self, start: int, end: int) -> list[NearReference]:
        """Return the references by distance between `start` and `end` that leave this stretch."""
        within = self.near[bisect_left(self.near_offsets, start) : bisect_left(self.near_offsets, end)]
        return [reference for reference in within if not start <= reference.target < end and reference.offset + reference.width <= end]
