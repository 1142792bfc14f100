"""Test frameworks that projects carry among their own files, most as one file that is compiled again in each variant of a build.

Where such a file is the same in all builds that are compared, its functions are no more the project's than those of libraries: they have no
probes, and what they do counts for the whole program and for whoever calls them. Names alone mislead (a `unity.c` may be a whole project in
one unit), so that the first lines have to say it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_HEAD_BYTES = 4000  # in which a file says what it is
_FRAMEWORKS = tuple(
    (re.compile(rf"(?:.*/)?(?:{file})"), re.compile(says))
    for file, says in (
        (r"catch\.hpp|catch_amalgamated\.[ch]pp", rb"Catch v\d"),
        (r"doctest\.h", rb"doctest\.h - the lightest"),
        (r"nanobench\.h", rb"Microbenchmark framework"),
        (r"unity\.c|unity(?:_internals)?\.h", rb"(?i)unity(?: project)? - a test framework"),
        # Its amalgamation includes the sources, whose names the functions go by.
        (r"g(?:test|mock)(?:-gtest)?-all\.cc|google(?:test|mock)/(?:src|include/g(?:test|mock))/.*", rb"Google"),
    )
)


def is_framework(file: str, content: bytes, others: Sequence[Path]) -> bool:
    """Return whether a file of a built tree is of a test framework, and the same in `others`, the trees that it is compared with."""
    head = content[:_HEAD_BYTES]
    if not any(name.fullmatch(file) and says.search(head) for name, says in _FRAMEWORKS):
        return False
    return all((tree / file).is_file() and (tree / file).read_bytes() == content for tree in others)
