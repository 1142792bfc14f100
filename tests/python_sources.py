"""Small Python programs for tests of the index and of matching."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from perfdiff.languages.protocol import FunctionDefinition, Program
from perfdiff.languages.python.index import index


def write(tree: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write a tree of files, texts without their common indent."""
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
    return tree


def program(tree: Path, files: Mapping[str, str | bytes], depth: int = 2) -> Program:
    """Write a tree and index it."""
    return index(write(tree, files), depth=depth)


def by_name(found: Program) -> dict[str, FunctionDefinition]:
    """Return the functions of a program by their names."""
    return {one.name: one for one in found.functions.values()}


def callees(found: Program, name: str) -> set[str]:
    """Return the names of the functions that a function may call."""
    return {found.functions[key].name for key in by_name(found)[name].calls}


def used(found: Program, name: str) -> set[str]:
    """Return what a function depends on, as reports name it."""
    return {str(found.declarations[key].entity) for key in by_name(found)[name].uses}
