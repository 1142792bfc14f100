"""Families that a seed suggests: what makes programs slow is mostly one part of an ordinary input, many times over.

Parts are lines, tokens, stretches of tokens and brackets of the seed, and words of the program's own sources. They are repeated where they
stand, nested, numbered so that no two are alike, and dealt in pairs, which come in turns or one after all of the other.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from perfdiff.fuzzing.families import InputFamily, Segment

TOKEN = re.compile(rb"[A-Za-z_\x80-\xff]+|[0-9]+|[ \t]+|.", re.DOTALL)
BRACKETS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"<", b">"), (b"<a>", b"</a>"), (b'"', b'"'), (b"'", b"'"))

_ACCENTS = {letter.encode(): accented.encode() for letter, accented in zip("aeiou", "áéíóú", strict=True)}
_LONGEST_STRETCH = 8  # tokens
_MOST_LINES = 12  # of a seed that are dealt in pairs
_LITERAL = re.compile(r"""(?P<quote>["'])(?P<text>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote)""")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_LONGEST_WORD = 32
_MOST_SWAPPED = 40
_WORD = re.compile(rb"[A-Za-z_0-9\x80-\xff]+")


def tokens(text: bytes) -> list[bytes]:
    """Return a text in pieces: words, numbers, blanks between them, and single characters."""
    return TOKEN.findall(text)


def words_of(lines: Iterable[str]) -> tuple[bytes, ...]:
    """Return the texts in quotes that lines of code hold, each once: what a program looks for in its inputs."""
    return tuple(dict.fromkeys(text.encode() for text in _quoted(lines) if 0 < len(text) <= _LONGEST_WORD))


def marks_of(lines: Iterable[str]) -> tuple[bytes, ...]:
    """Return the characters that are neither letters, digits nor blanks, and pairs of them, in texts in quotes, as those of patterns."""
    runs = [run for text in _quoted(lines) for run in re.findall(r"[^\w\s]+", text)]
    pairs = (run[place : place + 2] for run in runs for place in range(len(run) - 1))
    return tuple(dict.fromkeys(mark.encode() for mark in (*"".join(runs), *pairs)))


def _quoted(lines: Iterable[str]) -> Iterator[str]:
    literals = (match["text"] for line in lines for match in _LITERAL.finditer(line))
    yield from (re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text) for text in literals)


def proposals(seed: InputFamily, words: Sequence[bytes]) -> Iterator[InputFamily]:
    """Yield the families that a single input suggests, kinds in turns, so that each has had its first ones early.

    A numeric parameter suggests the powers of two and ten up to its largest value, and what lies beside them.
    """
    if seed.dial:
        powers = {base**exponent for base in (2, 10) for exponent in range(seed.most.bit_length())}
        values = {power + beside for power in powers for beside in (-1, 0, 1)}
        yield from (replace(seed, most=value) for value in sorted(values, reverse=True) if 1 <= value < seed.most)
        return
    text = seed.segments[0].text if seed.segments else b""
    pieces = tokens(text)
    kinds = (
        _nested(pieces),
        _lines(text),
        _swapped(text, words),
        _of_words(pieces, words),
        _single(pieces),
        _numbered(pieces),
        _accented(pieces),
        *(_stretches(pieces, length) for length in range(2, _LONGEST_STRETCH + 1)),
        _whole(text),
    )
    for segments in _in_turns(kinds):
        yield replace(seed, segments=tuple(segment for segment in segments if segment.text))


def _in_turns(kinds: Iterable[Iterator[tuple[Segment, ...]]]) -> Iterator[tuple[Segment, ...]]:
    for round_ in itertools.zip_longest(*kinds):
        yield from (segments for segments in round_ if segments is not None)


def _whole(text: bytes) -> Iterator[tuple[Segment, ...]]:
    yield (Segment(text, repeats=True),)
    yield (Segment(text + b"\n", repeats=True),)


def _nested(pieces: Sequence[bytes]) -> Iterator[tuple[Segment, ...]]:
    """Yield brackets that open and close many times around the input, and within it, and those that open only, or close only."""
    whole = Segment(b"".join(pieces))
    for opening, closing in BRACKETS:
        yield (Segment(opening, repeats=True), Segment(b"x"), Segment(closing, repeats=True))
    for opening, closing in BRACKETS:
        yield (whole, Segment(opening, repeats=True))
        yield (Segment(opening, repeats=True), whole, Segment(closing, repeats=True))
    for place, (opening, closing) in itertools.product((len(pieces), len(pieces) // 2), BRACKETS):
        before, behind = Segment(b"".join(pieces[:place])), Segment(b"".join(pieces[place:]))
        yield (before, Segment(opening, repeats=True), Segment(closing, repeats=True), behind)
        yield (before, Segment(opening + closing, repeats=True), behind)
        yield (before, Segment(closing, repeats=True), behind)


def _lines(text: bytes) -> Iterator[tuple[Segment, ...]]:
    lines = list(dict.fromkeys(text.splitlines(keepends=True)))
    ended = [line if line.endswith(b"\n") else line + b"\n" for line in lines]
    for line in ended:
        yield (Segment(line, repeats=True),)
        yield (Segment(line, repeats=True, number_at=_behind_word(line)),)
    for first, second in itertools.permutations(ended[:_MOST_LINES], 2):
        yield (Segment(first + second, repeats=True),)
        yield (Segment(first, repeats=True), Segment(second, repeats=True))
    for first, second in itertools.permutations(ended[:_MOST_LINES], 2):
        numbered = Segment(first, repeats=True, number_at=_behind_word(first))
        yield (numbered, Segment(second, repeats=True))
        yield (numbered, Segment(second, repeats=True, number_at=_behind_word(second)))


def _behind_word(text: bytes) -> int:
    """Return where a number makes a text another one: behind its first word, or at its end."""
    word = re.search(rb"[A-Za-z_]+", text)
    return word.end() if word else len(text.rstrip(b"\n"))


def _accented(pieces: Sequence[bytes]) -> Iterator[tuple[Segment, ...]]:
    """Yield the input, and each of its words, with letters that are not ASCII."""
    yield (Segment(_with_accents(b"".join(pieces)), repeats=True),)
    for place, piece in _first_places(pieces, 1):
        if (accented := _with_accents(piece)) != piece:
            before, behind = Segment(b"".join(pieces[:place])), Segment(b"".join(pieces[place + 1 :]))
            yield (before, Segment(accented + b" ", repeats=True), behind)


def _with_accents(text: bytes) -> bytes:
    return re.sub(rb"[aeiou]", lambda match: _ACCENTS[match[0]], text)


def _single(pieces: Sequence[bytes]) -> Iterator[tuple[Segment, ...]]:
    """Yield each token many times where it first stands, alone, and with what ends the input."""
    for place, piece in _first_places(pieces, 1):
        before, behind = b"".join(pieces[:place]), b"".join(pieces[place + 1 :])
        yield (Segment(before), Segment(piece, repeats=True), Segment(behind))
        if len(piece) > 1:
            yield (Segment(before + piece), Segment(piece[-1:], repeats=True), Segment(behind))
        yield (Segment(piece, repeats=True), Segment(b"!"))


def _numbered(pieces: Sequence[bytes]) -> Iterator[tuple[Segment, ...]]:
    """Yield words with numbers, and numbers in order, with what stands between them and the next."""
    for place, piece in _first_places(pieces, 1):
        if not (piece.isdigit() or piece[:1].isalpha()):
            continue
        end = _next_like(pieces, place)
        between = b"".join(pieces[place + 1 : end]) or b" "
        before, behind = Segment(b"".join(pieces[:place])), Segment(b"".join(pieces[end:]))
        stem = b"" if piece.isdigit() else piece
        for falling in (False, True) if piece.isdigit() else (False,):
            yield (before, Segment(stem + between, repeats=True, number_at=len(stem), falling=falling), behind)
            yield (Segment(stem + between, repeats=True, number_at=len(stem), falling=falling),)


def _next_like(pieces: Sequence[bytes], place: int) -> int:
    """Return the place of the next token of the same kind as that at `place`, within a stretch, or behind the blanks that follow it."""
    is_number = pieces[place].isdigit()
    for behind in range(place + 1, min(len(pieces), place + _LONGEST_STRETCH)):
        if pieces[behind].isdigit() if is_number else pieces[behind][:1].isalpha():
            return behind
    return min(len(pieces), place + 2)


def _stretches(pieces: Sequence[bytes], length: int) -> Iterator[tuple[Segment, ...]]:
    """Yield each stretch of so many tokens many times where it first stands, alike and with numbers."""
    for place, stretch in _first_places(pieces, length):
        before, behind = Segment(b"".join(pieces[:place])), Segment(b"".join(pieces[place + length :]))
        yield (before, Segment(stretch, repeats=True), behind)
        if words := list(_WORD.finditer(stretch)):
            yield (before, Segment(stretch, repeats=True, number_at=words[-1].end()), behind)


def _first_places(pieces: Sequence[bytes], length: int) -> Iterator[tuple[int, bytes]]:
    """Yield where each stretch of so many tokens stands first."""
    seen: set[bytes] = set()
    for place in range(len(pieces) - length + 1):
        stretch = b"".join(pieces[place : place + length])
        if stretch not in seen:
            seen.add(stretch)
            yield place, stretch


def _swapped(text: bytes, words: Sequence[bytes]) -> Iterator[tuple[Segment, ...]]:
    """Yield each line again and again, a word of it replaced by each of the program's words: some may mean something there."""
    lines = text.splitlines(keepends=True)
    for place, line in enumerate(lines):
        for word in _WORD.finditer(line):
            others = b"".join(line[: word.start()] + other + line[word.end() :] for other in words[:_MOST_SWAPPED])
            yield (Segment(b"".join(lines[:place]) + others + b"".join(lines[place:])),)


def _of_words(pieces: Sequence[bytes], words: Sequence[bytes]) -> Iterator[tuple[Segment, ...]]:
    """Yield words of the program many times: alone, ahead of the input, behind it, and with numbers."""
    text = b"".join(pieces)
    for word in words:
        yield (Segment(text), Segment(word, repeats=True))
        yield (Segment(word, repeats=True), Segment(text))
        yield (Segment(word + b" ", repeats=True), Segment(b"\n"))
        yield (Segment(word + b"\n", repeats=True, number_at=len(word)),)
        yield (Segment(word), Segment(text, repeats=True))
