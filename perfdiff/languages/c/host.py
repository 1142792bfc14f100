"""What C and C++ programs need of this machine, beside a compiler: the library that parses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from perfdiff.languages.check import Check


def examine(settings: object, project: Path, cache: Path, variables: Mapping[str, str]) -> Iterator[Check]:
    """Yield whether sources can be parsed, which every comparison needs."""
    import clang.cindex

    try:
        clang.cindex.Index.create()
    except clang.cindex.LibclangError as error:
        remedy = "reinstall the Python package libclang: pip install --force-reinstall 'libclang>=18.1.1,<19'"
        yield Check("libclang", needed=True, found=False, says=f"cannot be loaded: {error}", remedy=remedy)
    else:
        yield Check("libclang", needed=True, found=True, says="loads")
