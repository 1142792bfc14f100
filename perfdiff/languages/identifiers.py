"""What identifiers say by the words that they are made of."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_OF_FILES = frozenset(("path", "pathname", "file", "filename", "filepath", "fname", "dir", "dirname", "directory", "folder"))


def words(name: str) -> tuple[str, ...]:
    """Return the words of an identifier in lower case: `m_fileName` gives m, file, name."""
    return tuple(word.lower() for word in _WORD.findall(name))


def names_a_file(name: str, *others: str) -> bool:
    """Return whether an identifier has a word for files, or one of `others`: then the file's size is an input (HotCloud §2)."""
    return not _OF_FILES.union(others).isdisjoint(words(name))
