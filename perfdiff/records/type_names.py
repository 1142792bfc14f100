"""Readable names of C++ types, from what `type_info::name()` holds."""

from __future__ import annotations

import re

_SOURCE_NAME = re.compile(r"([1-9][0-9]{0,3})")
_ANONYMOUS = "_GLOBAL__N_"


def readable(mangled: str) -> str:
    """Return `shapes::Circle` for `N6shapes6CircleE`; a name beyond plain and nested ones (templates) is returned as it is.

    The grammar is that of the Itanium C++ ABI, §5.1.2: nested-name and source-name.
    """
    text = mangled.removeprefix("*")  # a type of internal linkage
    nested = text.startswith("N") and text.endswith("E")
    parts = _source_names(text[1:-1] if nested else text)
    if not parts or (len(parts) > 1 and not nested):
        return mangled
    return "::".join("(anonymous)" if part.startswith(_ANONYMOUS) else part for part in parts)


def _source_names(text: str) -> list[str]:
    names = []
    while text:
        length = _SOURCE_NAME.match(text)
        if length is None or length.end() + int(length[1]) > len(text):
            return []
        names.append(text[length.end() : length.end() + int(length[1])])
        text = text[length.end() + int(length[1]) :]
    return names
