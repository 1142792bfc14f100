"""Which counted place of base is which of head: the same line of code, in the same function where several share it."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from perfdiff.records.arrays import Ints
from perfdiff.records.places import PlaceCounts
from perfdiff.revisions.lines import LineMap, line_map
from perfdiff.revisions.pins import PinnedPair


def heads(pins: PinnedPair, base: PlaceCounts, head: PlaceCounts) -> Ints:
    """Return the index in head of each place of base, -1 for those whose line was changed or removed; raise RevisionError."""
    texts = {file: (lines, head.sources[file]) for file, lines in base.sources.items() if head.sources.get(file, lines) != lines}
    return matched(base, head, line_map(pins.base, pins.head, texts))


def matched(base: PlaceCounts, head: PlaceCounts, lines: LineMap) -> Ints:
    """Return the same by a map of lines. Of several functions on one line, such as instances of a template, names decide."""
    at: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for number, place in enumerate(head.places):
        at[place.file, place.line][place.function] = number
    head_numbers = np.full(len(base.places), -1, dtype=np.int64)
    for number, place in enumerate(base.places):
        line = lines.line(place.file, place.line)
        there = at.get((lines.file(place.file), line), {}) if line is not None else {}
        alone = next(iter(there.values())) if len(there) == 1 else -1
        head_numbers[number] = there.get(place.function, alone)
    return head_numbers
