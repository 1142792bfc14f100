"""What of a text is a number, and what is a time, which says how fast a program was and not what it did."""

from __future__ import annotations

import re
from collections.abc import Iterator

NUMBER = re.compile(
    rb"0[xX][0-9a-fA-F]+"  # addresses
    rb"|\b(?=[a-fA-F]*[0-9])[0-9a-fA-F]{6,}\b"  # digests and numbers of objects
    rb"|[0-9]+(?:[.,:][0-9]+)*(?:[eE][-+]?[0-9]+)?"
)
_UNITS = rb"(?:[num]s|\xc2\xb5s|\xce\xbcs|s|secs?|seconds?|mins?|minutes?|hours?)\b"
# Digits of one number are so many at most: text without an end must not be looked at from each of its digits on.
TIME = re.compile(
    rb"\b(?:[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]{5,18}Z?)?"
    rb"|[0-9]{1,3}:[0-9]{2}(?::[0-9]{2})?(?:[.,][0-9]{1,9})?"
    rb"|[0-9][0-9.,]{0,24}(?:[eE][-+]?[0-9]{1,3})?[ \t]?" + _UNITS + rb")"
)
_UNIT = re.compile(rb"\b0[ \t]?" + _UNITS)  # fits the size of a number
# Numbers of a line that speaks of time are measurements: they say how fast a program was, not what it did.
_OF_TIME = (
    b"time",
    b"pid",
    b"timing",
    b"elapsed",
    b"took",
    b"duration",
    b"second",
    b"wall",
    b"cpu",
    b"speed",
    b"throughput",
    b"latency",
    b"/s",
)
_WORD_OF_TIME = re.compile(rb"/s\b|" + rb"|".join(rb"\b%b" % word for word in _OF_TIME[:-1]))
# On a line that speaks of time these words lead from one time to the next: "wall: mean 3, most 5".
_STATISTICS = frozenset(
    (
        b"user",
        b"system",
        b"sys",
        b"real",
        b"total",
        b"average",
        b"avg",
        b"mean",
        b"median",
        b"min",
        b"max",
        b"least",
        b"most",
        b"per",
        b"op",
    )
)
_TOKEN = re.compile(rb"(?P<number>" + NUMBER.pattern + rb")|[^\W0-9_]+")
_UNIT_WORD = re.compile(_UNITS)
# A measurement with so many digits repeats itself in no two of ten runs: what does is a result, however near to a time it stands.
_EXACT_DIGITS = 4
BLANKS = re.compile(rb"[ \t\r]+")  # align numbers, which makes more of them beside shorter ones


def may_speak_of_time(lowered: bytes) -> bool:
    """Return whether a text in small letters may have a line that speaks of time, at the cost of a few searches."""
    return any(word in lowered for word in _OF_TIME)


def speaks_of_time(lowered: bytes) -> bool:
    """Return whether a line in small letters speaks of time."""
    return _WORD_OF_TIME.search(lowered) is not None


def timeless(text: bytes) -> bytes:
    """Return a text whose lines with times have one digit for these, and one blank for many, as blanks align what varies in length."""
    without = TIME.sub(b"0s", text)
    lowered = without.lower()
    if without == text and not may_speak_of_time(lowered):
        return text
    lines = zip(text.split(b"\n"), without.split(b"\n"), lowered.split(b"\n"), strict=True)
    return b"\n".join(_timeless_line(*line) for line in lines)


def _timeless_line(written: bytes, without: bytes, lowered: bytes) -> bytes:
    """Return a line as it is written, where it has times `without` them, and where it speaks of time without any numbers."""
    if speaks_of_time(lowered):
        return without_numbers(without).strip()
    return written if written == without else BLANKS.sub(b" ", without).strip()


def without_numbers(text: bytes) -> bytes:
    """Return a text with one digit for each number, whatever unit of time it has, and one blank for many."""
    return BLANKS.sub(b" ", _UNIT.sub(b"0s", NUMBER.sub(b"0", text)))


def numbers_by_line(text: bytes) -> Iterator[list[bytes]]:
    """Yield the numbers of each line, b"" for those that may be times."""
    without = TIME.sub(b"0s", text)
    lowered = without.lower()
    if not may_speak_of_time(lowered):
        yield from map(NUMBER.findall, without.split(b"\n"))
        return
    for line, in_small in zip(without.split(b"\n"), lowered.split(b"\n"), strict=True):
        yield _beside_times(in_small) if speaks_of_time(in_small) else NUMBER.findall(line)


def results(text: bytes) -> bytes:
    """Return a text without times, and without the numbers that may be."""
    lines = zip(TIME.sub(b"", text).split(b"\n"), TIME.sub(b"0s", text).lower().split(b"\n"), strict=True)
    return b"\n".join(_results_beside_times(lowered) if speaks_of_time(lowered) else line for line, lowered in lines)


def _results_beside_times(lowered: bytes) -> bytes:
    numbers = iter(_beside_times(lowered))
    return NUMBER.sub(lambda _: next(numbers), lowered)


def _beside_times(lowered: bytes) -> list[bytes]:
    """Return the numbers of a line that speaks of time, b"" for what its words of time stand beside, and for other rough fractions.

    Where they stand beside none, each number may be the time.
    """
    numbers: list[bytes] = []
    is_time, are_times_found, words = False, False, 0
    for token in _TOKEN.finditer(lowered):
        word = token[0]
        if token["number"] is not None:
            are_times_found |= is_time
            numbers.append(b"" if is_time or (b"." in word and len(word.replace(b".", b"").lstrip(b"0")) < _EXACT_DIGITS) else word)
            words = 0
        elif _UNIT_WORD.fullmatch(word):
            if numbers and words <= 1:  # "3 s", "12 items/s"
                numbers[-1], are_times_found, is_time = b"", True, False
            words += 1
        else:
            is_time = speaks_of_time(word) or (is_time and word in _STATISTICS)
            words += 1
    return numbers if are_times_found else [b""] * len(numbers)
