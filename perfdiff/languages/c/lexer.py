"""The tokens of C and C++ text, without comments and white space.

Our own lexer, for two reasons: digests must not depend on the front end's version, and `clang_tokenize` through Python costs more
than the whole parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_TOKEN = re.compile(
    rb"""
      (?P<blank> \s+ | \\\r?\n | //(?:\\\r?\n|[^\n])* | /\*.*?\*/ )
    | (?P<raw> (?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)" )
    | (?P<string> (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" )
    | (?P<character> (?:u8|[uUL])?'(?:\\.|[^'\\\n])*' )
    | (?P<number> \.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z]|[\w.])* )
    | (?P<word> [A-Za-z_$\x80-\xff][\w$\x80-\xff]* )
    | (?P<sign> ->\*|<=>|<<=|>>=|\.\.\.|::|->|\+\+|--|&&|\|\||\#\#|[-+*/%&|^<>=!]=|<<|>> | . )
    """,
    re.VERBOSE | re.DOTALL,
)
# Of these what matters to comments alone, which takes less than half the time.
_COMMENT = re.compile(
    rb"""
      (?P<comment> //(?:\\\r?\n|[^\n])* | /\*.*?\*/ )
    | (?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[A-Za-z_$\x80-\xff]")


def tokens(text: bytes) -> list[str]:
    """Return the tokens of `text` in order; string and character literals and raw strings are one token each."""
    return [match.group().decode("latin-1") for match in _TOKEN.finditer(text) if match.lastgroup != "blank"]


def comment_lines(text: bytes) -> list[int]:
    """Return which lines of `text`, from 0, hold a comment, or a part of one, and nothing else."""
    if b"//" not in text and b"/*" not in text:
        return []
    lines = zip(text.split(b"\n"), uncommented(text).split(b"\n"), strict=True)
    return [number for number, (written, left) in enumerate(lines) if written.strip() and not left.strip()]


def uncommented(text: bytes) -> bytes:
    """Return `text` without its comments, of which the ends of lines are left."""
    return _COMMENT.sub(lambda match: b"\n" * match["comment"].count(b"\n") if match["comment"] else match.group(), text)


def is_word(token: str) -> bool:
    """Return whether a token is an identifier or keyword."""
    return _WORD.match(token) is not None and token[-1] not in "\"'"


def without(text: bytes, start: int, end: int, holes: Sequence[tuple[int, int]]) -> bytes:
    """Return `text[start:end]` with each hole (start, end; sorted, not nested) replaced by `{}`."""
    pieces = []
    for hole_start, hole_end in holes:
        pieces.append(text[start:hole_start])
        start = hole_end
    pieces.append(text[start:end])
    return b"{}".join(pieces)


def scan(text: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield the tokens of `text` from offset `start` on, each with its offset."""
    return ((match.start(), match.group()) for match in _TOKEN.finditer(text, start) if match.lastgroup != "blank")
