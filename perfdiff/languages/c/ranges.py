"""Pairs of variables whose names say that they bound a range: begin and end, first and last, lo and hi."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_FIRST = frozenset(("begin", "start", "first"))  # any of these with any of those: Freud §4.1
_LAST = frozenset(("end", "stop", "finish", "last"))
_NUMBERS = frozenset((("lo", "hi"), ("low", "high"), ("left", "right"), ("from", "to")))
_OPENING = _FIRST | {first for first, _ in _NUMBERS}
_CLOSING = _LAST | {last for _, last in _NUMBERS}


def words(name: str) -> tuple[str, ...]:
    """Return the words of an identifier in lower case: `m_fileName` gives m, file, name."""
    return tuple(word.lower() for word in _WORDS.findall(name))


def ranges(names: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield the indices of names that differ only in the words for a range's two ends: (first, last, whether they may be pointers).

    `left` and `right`, `from` and `to` bound ranges as numbers only: pointers of these names are branches of a tree, or places.
    """
    closing: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for index, name in enumerate(names):
        for rest, word in _without_one(name, _CLOSING):
            closing.setdefault(rest, []).append((word, index))
    for index, name in enumerate(names):
        for rest, word in _without_one(name, _OPENING):
            for other, last in closing.get(rest, ()):
                pointers = word in _FIRST and other in _LAST
                if pointers or (word, other) in _NUMBERS:
                    yield index, last, pointers


def _without_one(name: str, vocabulary: frozenset[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the words of `name` with one of `vocabulary` blanked, and that word."""
    parts = words(name)
    for place, word in enumerate(parts):
        if word in vocabulary:
            yield (*parts[:place], "", *parts[place + 1 :]), word
