"""Variables whose names say that they belong together: the two ends of a range, a text and its length."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from perfdiff.languages.identifiers import words

_FIRST = frozenset(("begin", "start", "first"))  # any of these with any of those: Freud §4.1
_LAST = frozenset(("end", "stop", "finish", "last"))
_NUMBERS = frozenset((("lo", "hi"), ("low", "high"), ("left", "right"), ("from", "to")))
# What programs call a place in memory of which another variable tells the end, or how much of it there is.
# fmt: off
_PLACE = frozenset((
    "base", "buf", "buffer", "bytes", "chars", "content", "contents", "cur", "current", "cursor", "data", "in", "input", "mem", "memory",
    "out", "output", "p", "pos", "ptr", "s", "src", "str", "string", "text", "value",
))
# fmt: on
_LENGTH = frozenset(("len", "length", "size"))
_OPENING = _FIRST | _PLACE | {first for first, _ in _NUMBERS}
_CLOSING = _LAST | {last for _, last in _NUMBERS}


class Range(NamedTuple):
    """Two variables that bound a range, by their indices; `numbers` and `pointers` say as which of the two they may be read."""

    first: int
    last: int
    numbers: bool
    pointers: bool


def ranges(names: Sequence[str]) -> Iterator[Range]:
    """Yield the pairs of names that differ only in the words for a range's two ends.

    `left` and `right`, `from` and `to` bound ranges as numbers only: pointers of these names are branches of a tree, or places. A place
    such as `ptr` bounds one as a pointer only, and with the next `end` behind it: numbers of these names may be anything.
    """
    opening: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for index, name in enumerate(names):
        for rest, word in _without_one(name, _OPENING):
            opening.setdefault(rest, []).append((word, index))
    for last, name in enumerate(names):
        for rest, word in _without_one(name, _CLOSING):
            nearest = max((index for _, index in opening.get(rest, ()) if index < last), default=None)
            for other, first in opening.get(rest, ()):
                both = other in _FIRST and word in _LAST
                place = other in _PLACE and word in _LAST and first == nearest
                if both or place or (other, word) in _NUMBERS:
                    yield Range(first, last, numbers=not place, pointers=both or place)


def measured(names: Sequence[str], texts: Collection[int], numbers: Collection[int]) -> set[int]:
    """Return the texts whose length is one of the numbers, by their names; `texts`, `numbers` and the result are indices of `names`.

    `key_len` tells that of `key`, and `size` that of the nearest `data` or the like, first before it, then behind.
    """
    places = {index: {_present(rest) for rest, _ in _without_one(names[index], _PLACE)} for index in texts}
    indices = set()
    for number in numbers:
        for rest in {_present(rest) for rest, _ in _without_one(names[number], _LENGTH)}:
            indices |= {index for index in texts if words(names[index]) == rest}
            if near := [(index > number, abs(index - number), index) for index in texts if rest in places[index]]:
                indices.add(min(near)[-1])
    return indices


def _without_one(name: str, vocabulary: frozenset[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the words of `name` with one of `vocabulary` blanked, and that word."""
    parts = words(name)
    for place, word in enumerate(parts):
        if word in vocabulary:
            yield (*parts[:place], "", *parts[place + 1 :]), word


def _present(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for part in parts if part)
