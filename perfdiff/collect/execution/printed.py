"""Numbers that a run itself prints, found in its output while that passes by."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

LINE_BYTES = 1 << 16  # of a line that are looked at: where a program never ends its line, this is all that is kept of its output

Patterns = Mapping[str, re.Pattern[bytes]]


def patterns(features: Mapping[str, str]) -> Patterns:
    """Return what finds features: expressions with one group, over bytes, as output may be in no encoding at all."""
    return {name: re.compile(text.encode()) for name, text in features.items()}


class PrintedNumbers:
    """Reads output line by line; the last match counts, as programs print totals at their end.

    The group of a match must be a number as Python's `float` reads it, and finite: `12`, `-0.5`, `1.5e9`; all else counts as no match.
    Lines end with a line feed; of one longer than `LINE_BYTES` only the beginning is looked at.
    """

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._unfinished = b""  # line
        self._numbers: dict[str, float] = {}

    def read(self, chunk: bytes) -> None:
        """Look at more output, which may begin and end within lines."""
        first, *others = chunk.split(b"\n")
        *lines, self._unfinished = (self._unfinished + first)[:LINE_BYTES], *others
        for line in lines:
            self._look(line[:LINE_BYTES])

    def close(self) -> Mapping[str, float]:
        """Return the numbers by the features' names once all output was read; what was not printed is not there."""
        self._look(self._unfinished[:LINE_BYTES])
        self._unfinished = b""
        return self._numbers

    def _look(self, line: bytes) -> None:
        for name, pattern in self._patterns.items():
            for match in pattern.finditer(line):
                number = _number(match[1])
                if number is not None:
                    self._numbers[name] = number


def _number(text: bytes | None) -> float | None:
    try:
        number = float(text or b"")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
