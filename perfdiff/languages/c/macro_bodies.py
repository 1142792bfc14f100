"""Where macros that make functions have the bodies of these, as their definitions are written.

libclang puts all of a macro's text where it is used, so that the text of the definition has to say what in it is a function.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from perfdiff.languages.c import lexer

_BETWEEN = frozenset((b"__attribute__", b"__attribute"))  # what may stand between a function's parameters and its body


@dataclass(frozen=True, slots=True)
class BodyTemplate:
    """A function's body in a macro's definition: the offset just behind its `{`, and words that the function's name must contain."""

    offset: int
    words: tuple[bytes, ...]


@functools.cache
def parts(definition: bytes) -> tuple[BodyTemplate | bytes, ...]:
    """Return the bodies in a definition (`NAME(parameters) replacement`), and the words outside of them, which may be macros themselves."""
    return tuple(_parts(definition))


def _parts(definition: bytes) -> Iterator[BodyTemplate | bytes]:
    tokens = list(lexer.scan(definition, 0))
    parameters = _parameters(tokens)
    braces = parentheses = 0
    pasted: list[bytes] = []  # the words that `##` makes one, and that stand last
    head: list[bytes] = []  # the same, ahead of the last parentheses
    before = b""
    for offset, token in tokens[1 + len(parameters) :]:
        if token == b"(":
            if not parentheses and not _BETWEEN.intersection(pasted):
                head = pasted
            parentheses += 1
        elif token == b")":
            parentheses -= 1
        elif token == b"{":
            if not braces and not parentheses and before == b")" and head:
                yield BodyTemplate(offset + 1, tuple(word for word in head if word not in parameters))
            braces += 1
        elif token == b"}":
            braces -= 1
        elif lexer.is_word(token.decode("latin-1")):
            pasted = [*pasted, token] if before == b"##" else [token]
            if not braces and not parentheses:
                yield token
        before = token


def _parameters(tokens: list[tuple[int, bytes]]) -> list[bytes]:
    """Return the tokens of a macro's parameters with their parentheses, which follow its name at once; none of a macro without any."""
    if len(tokens) < 2 or tokens[1] != (len(tokens[0][1]), b"("):
        return []
    behind_name = [token for _, token in tokens[1:]]
    return behind_name[: behind_name.index(b")") + 1]
