"""Texts that strangers wrote (function names, paths, conditions, output of commands), made safe to show anywhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

from perfdiff.analysis.claims import Claim, claim
from perfdiff.records.schema import Source

T = TypeVar("T")

_NO_FIELDS: frozenset[str] = frozenset()
_FILES = frozenset(("file",))  # fields that lead to a file


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text: str) -> str:
    """Return `text` on one line: tabs and line ends become spaces, every other unprintable character its escape, such as `\\x1b`.

    Escaped are control characters, which steer terminals, unpaired surrogates, which cannot be encoded, and format characters such
    as U+202E, which reorder the text around them.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " if character in "\t\n\r" else _escaped(character) for character in text)


def printable_lines(text: str) -> tuple[str, ...]:
    """Return the lines of source text, tabs expanded to 8 columns, every other unprintable character escaped."""
    return tuple(printable(line.expandtabs(8)) for line in text.replace("\r\n", "\n").split("\n"))


def printable_values(value: T) -> T:
    """Return a copy of a value in which every text is printable, through dataclasses, tuples and mappings. Enums stay."""
    return _changed(value, printable, lambda text: "\n".join(printable_lines(text)))


def printable_but_files(value: T) -> T:
    """Return a copy of a value in which every text is printable but the names of files, for formats that lead programs to them."""
    return _changed(value, printable, lambda text: "\n".join(printable_lines(text)), _FILES)


def as_read(text: str) -> bytes:
    """Return the bytes of a text as it was read, also where these are no text."""
    return b"".join(letter.encode(errors="surrogateescape" if "\udc80" <= letter <= "\udcff" else "surrogatepass") for letter in text)


def with_texts(value: T, change: Callable[[str], str]) -> T:
    """Return a copy of a value in which every text, sources of functions included, is as `change` returns it. Enums stay."""
    return _changed(value, change, change)


def texts(value: object) -> tuple[str, ...]:
    """Return every text inside a value, sources of functions included, each once."""
    seen: dict[str, None] = {}

    def see(text: str) -> str:
        seen[text] = None
        return text

    with_texts(value, see)
    return tuple(seen)


def _changed(value: T, change: Callable[[str], str], of_source: Callable[[str], str], but: frozenset[str] = _NO_FIELDS) -> T:
    result: Any = value
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        result = change(value)
    elif isinstance(value, Claim):  # its kind, and what its facts are called, are ours
        result = claim(value.kind, **{name: _changed(fact, change, of_source, but) for name, fact in value.facts.items()})
    elif isinstance(value, Source):
        result = dataclasses.replace(value, file=value.file if "file" in but else change(value.file), text=of_source(value.text))
    elif isinstance(value, tuple):
        result = tuple(_changed(item, change, of_source, but) for item in value)
    elif isinstance(value, frozenset):
        result = frozenset(_changed(item, change, of_source, but) for item in value)
    elif isinstance(value, Mapping):
        result = {_changed(key, change, of_source, but): _changed(item, change, of_source, but) for key, item in value.items()}
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if field.init and field.name not in but]
        result = dataclasses.replace(value, **{name: _changed(getattr(value, name), change, of_source, but) for name in fields})
    return result  # type: ignore[no-any-return]


def shortened(text: str, limit: int) -> str:
    """Return `text` in at most `limit` characters, its middle left out: both ends tell names and paths apart."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def quoted_parts(text: str) -> tuple[tuple[bool, str], ...]:
    """Return a sentence as its parts in order, each with whether it stands in backticks, as sentences quote code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a name with a backtick of its own: nothing can be told apart
        return ((False, text),)
    return tuple((index % 2 == 1, part) for index, part in enumerate(parts) if part)
