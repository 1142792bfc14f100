"""A sketch of a text: some of its lines, drawn as they pass by and dealt to parts, each of which has a digest."""

from __future__ import annotations

import base64
import hashlib
import random
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from perfdiff.collect.execution.masking import numbers_by_line
from perfdiff.records.behaviour import COLUMNS, Sketch

# Looking closely at this much text takes 0.2 s at most (measured on 2 shared CPUs of a virtual machine), once the run is over.
CLOSE_BYTES = 1 << 18
PARTS = 256  # so many that a line that varies, as one with the time of day, takes few others with it
_PART_BYTES = 3  # two parts of other contents look the same once in 17 million
_PERIOD = 4099  # lines; a prime number, so that texts of records with few lines each have all of these drawn
_LEVELS = 12  # at the last one line of a period is left
_DRAWN_IN_TURN = (0, *random.Random(0).sample(range(1, _PERIOD), _PERIOD - 1))  # the only line of a text is drawn always
_LINE_BYTES = CLOSE_BYTES - 1  # of a line


class DrawnLines:
    """Keeps no more than `CLOSE_BYTES` of a text that passes by: all of a short one, of others lines that are drawn by their number."""

    def __init__(self) -> None:
        self.level = 0
        self._beginning = bytearray()
        self._open = b""  # the last line, which may go on
        self._number = 0  # of that
        self._kept: dict[int, bytes] = {}
        self._bytes = 0
        self._residues: Sequence[int] = ()

    def read(self, chunk: bytes) -> None:
        """Take the next chunk."""
        if self.level == 0:
            self._beginning += chunk
            if len(self._beginning) <= CLOSE_BYTES:
                return
            chunk = bytes(self._beginning)
            self._beginning.clear()
            self._leave_out_half()
        lines = (self._open + chunk).split(b"\n")
        self._open = lines.pop()[:_LINE_BYTES]
        self._keep(lines)

    def text(self) -> bytes:
        """End the text, and return the lines that were kept of it."""
        if self.level == 0:
            return bytes(self._beginning)
        if self._open:
            self._keep([self._open])
            self._open = b""
        return b"\n".join(self._kept.values())

    def _keep(self, lines: Sequence[bytes]) -> None:
        first = self._number
        self._number += len(lines)
        for number in self._drawn(first, self._number):
            line = lines[number - first][:_LINE_BYTES]
            if self.level < _LEVELS or self._bytes + len(line) < CLOSE_BYTES:
                self._kept[number] = line
                self._bytes += len(line) + 1
        while self._bytes > CLOSE_BYTES and self.level < _LEVELS:
            self._leave_out_half()

    def _drawn(self, first: int, end: int) -> Iterator[int]:
        for start in range(first - first % _PERIOD, end, _PERIOD):
            begins, ends = (bisect_left(self._residues, number - start) for number in (first, end))
            yield from (start + residue for residue in self._residues[begins:ends])

    def _leave_out_half(self) -> None:
        self.level += 1
        self._residues = sorted(_DRAWN_IN_TURN[: _PERIOD >> self.level])
        stays = frozenset(self._residues)
        self._kept = {number: line for number, line in self._kept.items() if number % _PERIOD in stays}
        self._bytes = sum(len(line) + 1 for line in self._kept.values())


def sketch(text: bytes, masked: bytes, level: int) -> Sketch:
    """Return the sketch of a text, of which `masked` is the same without numbers."""
    lines = [line.strip() for line in masked.split(b"\n")]
    parts: list[list[bytes]] = [[] for _ in range(PARTS)]
    rows = PARTS // COLUMNS
    for row, numbers in enumerate(numbers_by_line(text)):
        for place, number in enumerate(numbers):  # a line of many numbers goes on in the next rows
            parts[(row + place // COLUMNS) % rows * COLUMNS + place % COLUMNS].append(number)
    return Sketch(level, _digests([lines[part::PARTS] for part in range(PARTS)]), _digests(parts))


def joined(sketches: Sequence[Sketch | None]) -> Sketch | None:
    """Return the sketch of several texts together, in any order; None where that of one is unknown, or they are not of one level."""
    drawings = [drawn for drawn in sketches if drawn is not None]
    levels = {drawn.level for drawn in drawings}
    if len(drawings) < len(sketches) or len(levels) != 1:
        return None
    texts, numbers = (
        _digests(
            [
                sorted(digest.encode() for digest in part if digest)
                for part in zip_longest(*(getattr(drawn, form).split(" ") for drawn in drawings), fillvalue="")
            ]
        )
        for form in ("texts", "numbers")
    )
    return Sketch(levels.pop(), texts, numbers)


def _digests(parts: Sequence[Sequence[bytes]]) -> str:
    return " ".join(_digest(b"\n".join(part)) for part in parts).rstrip(" ")


def _digest(part: bytes) -> str:
    return base64.b64encode(hashlib.blake2b(part, digest_size=_PART_BYTES).digest()).decode() if part else ""
