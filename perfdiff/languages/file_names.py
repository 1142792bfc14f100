"""Which parameters hold names of files, by their own names: then the file's size is an input of the call (HotCloud §2)."""

from __future__ import annotations

import re

_FILE_WORDS = frozenset(("path", "pathname", "file", "filename", "filepath", "fname", "dir", "dirname", "directory", "folder"))
_WORD = re.compile(r"[A-Za-z][a-z]*|[A-Z]+")


def names_a_file(name: str, *others: str) -> bool:
    """Return whether a word of a name, whether written as `inputPath` or `input_path`, is one for files, or one of `others`."""
    return not _FILE_WORDS.union(others).isdisjoint(word.lower() for word in _WORD.findall(name))
