"""Macros and constants that tell which version a program is: each commit may have another one, and no work hangs on it."""

from __future__ import annotations

import re

from perfdiff.languages.protocol import Declaration
from perfdiff.records.differences import EntityKind

_KINDS = frozenset((EntityKind.MACRO, EntityKind.CONSTANT))
_NAME = re.compile(
    r"(?:^|_)(?:VERSION|VER|REVISION|REV|BUILD|COMMIT|RELEASE)"
    r"(?:_(?:MAJOR|MINOR|MICRO|PATCH|PATCHLEVEL|TWEAK|NUMBER|NUM|STRING|STR|DATE|ID|SHORT|FULL|LONG))*$",
    re.IGNORECASE,
)
_LITERAL = re.compile(r"\d[\w.]*|\"[^\"]*\"|'[^']*'")
_NUMBER = re.compile(r"\b(?:\w*\d\w*|[0-9a-f]{7,40})\b")  # or the name of a commit


def tells_a_version(base: Declaration, head: Declaration) -> bool:
    """Return whether two declarations of one name are versions: it says so, and they are texts or numbers that differ in numbers alone."""
    if base.entity.kind not in _KINDS or not _NAME.search(base.entity.name):
        return False
    values = [declaration.summary.strip("() ") for declaration in (base, head)]
    return all(map(_LITERAL.fullmatch, values)) and _NUMBER.sub("#", values[0]) == _NUMBER.sub("#", values[1])
