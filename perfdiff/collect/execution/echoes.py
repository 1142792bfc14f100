"""What a program repeats of its own command and parameters, which shows no work."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from perfdiff.collect.execution.masking import results

_STANDS_FOR_ONE = b"$"
_WRITTEN = re.compile(rb"0[xX][0-9a-fA-F]+|(?<![\w.])[0-9]+(?:[.,_'][0-9]+)*(?:[eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Echoes:
    """What runs of a point may repeat: numbers however they are written, and words."""

    numbers: frozenset[float] = frozenset()
    words: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, values: Iterable[float | str], command: str) -> Echoes:
        """Return those of a point's parameters, and of numbers that are words of its command or stand behind `=` there."""
        words = {str(value).encode(errors="surrogateescape") for value in values}
        paths = [PurePath(os.fsdecode(word)) for word in words if _value(word) is None]
        words |= {os.fsencode(text) for path in paths for text in (path.name, path.stem)}
        numbers = (_value(text) for text in (*words, *re.split(rb"[\s='\"]+", command.encode(errors="surrogateescape"))))
        named = (word for word in words if word and _value(word) is None)
        return cls(frozenset(number for number in numbers if number is not None), tuple(sorted(named, key=lambda word: (-len(word), word))))

    def taken_out(self, text: bytes) -> bytes | None:
        """Return a text without times and with each echo of an input replaced by one sign; None if it echoes nothing."""
        if not self.words and not self.numbers:
            return None
        taken_out, words, numbers = results(text), 0, 0
        if self.words:
            any_word = b"|".join(map(re.escape, self.words))
            taken_out, words = re.subn(rb"(?i)(?<!\w)(?:" + any_word + rb")(?!\w)", _STANDS_FOR_ONE, taken_out)

        def shown(written: re.Match[bytes]) -> bytes:
            nonlocal numbers
            is_echo = _value(written[0]) in self.numbers
            numbers += is_echo
            return _STANDS_FOR_ONE if is_echo else written[0]

        taken_out = _WRITTEN.sub(shown, taken_out)
        return taken_out if words or numbers else None


NO_ECHOES = Echoes()


def _value(written: bytes) -> float | None:
    """Return the number that a text is, None where it is none."""
    if not _WRITTEN.fullmatch(written):
        return None
    try:
        value = float(int(written, 16)) if written[:2].lower() == b"0x" else float(re.sub(rb"[,_']", b"", written))
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None
