"""Small PHP programs for tests of the index and of matching: written and indexed."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from perfdiff.languages.php.index import index
from perfdiff.languages.php.matching import match
from perfdiff.languages.protocol import Counterpart, FunctionDefinition, Program


def write(tree: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write a tree of files, texts without their common indent, behind `<?php` where they do not begin with a tag or a line of a script."""
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else _whole(text).encode())
    return tree


def _whole(text: str) -> str:
    plain = textwrap.dedent(text)
    return plain if plain.lstrip().startswith(("<", "#!")) else f"<?php\n{plain}"


def program(tree: Path, files: Mapping[str, str | bytes], *, depth: int = 3) -> Program:
    """Write a tree of files, and index it."""
    return index(write(tree, files), depth=depth)


def by_name(found: Program) -> dict[str, FunctionDefinition]:
    """Return functions by their names."""
    return {one.name: one for one in found.functions.values()}


def callees(found: Program, name: str) -> set[str]:
    """Return the names of the functions that one calls."""
    return {found.functions[key].name for key in by_name(found)[name].calls}


def used(found: Program, name: str) -> set[str]:
    """Return what a function depends on, in words, without what is declared for its file."""
    says = (str(found.declarations[key].entity) for key in by_name(found)[name].uses)
    return {each for each in says if not each.startswith("declare(")}


def compared(folder: Path, base: Mapping[str, str], head: Mapping[str, str]) -> tuple[Counterpart, ...]:
    """Index two trees, and match their functions."""
    return match(program(folder / "base", base), program(folder / "head", head))
