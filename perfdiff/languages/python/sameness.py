"""Whether base and head are the same program: no function differs in what it does, and no other file that a workload may read."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from filecmp import cmp
from pathlib import Path

from perfdiff.languages.meanings import MeaningComparison
from perfdiff.languages.protocol import Counterpart, PlainBuild
from perfdiff.languages.python.sources import is_foreign

# Read by people, by version control, by type checkers and by packaging's records of what it did.
_UNREAD = re.compile(
    r".*\.(?:md|rst|pyc|pyo|pyi|swp|orig)|(?:README|CHANGELOG|CHANGES|HISTORY|NEWS|AUTHORS|CONTRIBUTORS|CONTRIBUTING|LICEN[CS]E|COPYING)(?:\..*)?"
    r"|\.git\w*|\.editorconfig|\.pre-commit-config\.yaml|\.readthedocs\.ya?ml|py\.typed|\.coveragerc"
)
_UNREAD_FOLDERS = frozenset((".git", ".github", ".circleci", "doc", "docs"))
# Of a build with compile commands these are compared as code, by the pack of their language.
_COMPILED = re.compile(r".*\.(?:c|cc|cpp|cxx|h|hh|hpp|hxx|inl|s|S|o|a|so|d)")


def same_code(base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart]) -> MeaningComparison:
    """Compare the trees of two plain builds whose functions are `pairs`."""
    suspects = any(pair.change.is_suspect for pair in pairs)
    return MeaningComparison(not suspects, tuple(_differing(base, head)))


def _differing(base: PlainBuild, head: PlainBuild) -> Iterator[str]:
    compiled = bool(base.commands or head.commands)
    files = [dict(_files(build.tree, compiled=compiled)) for build in (base, head)]
    for name in sorted(files[0].keys() | files[1].keys()):
        present = [side[name] for side in files if name in side]
        if len(present) == 2 and _is_same_file(*present):
            continue
        if not all(map(_is_indexed, present)):
            yield name


def _is_indexed(path: Path) -> bool:
    """Return whether a file's functions are compared one by one, and its module's level as one of them."""
    if path.suffix != ".py" or path.is_symlink():
        return False
    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _files(tree: Path, *, compiled: bool) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(tree):
        place = Path(folder)
        folders[:] = sorted(name for name in folders if name not in _UNREAD_FOLDERS and not is_foreign(place, name))
        for name in names:
            if not _UNREAD.fullmatch(name) and not (compiled and _COMPILED.fullmatch(name)):
                yield (place / name).relative_to(tree).as_posix(), place / name


def _is_same_file(first: Path, second: Path) -> bool:
    if first.is_symlink() or second.is_symlink():
        return first.is_symlink() and second.is_symlink() and first.readlink() == second.readlink()
    if not (first.is_file() and second.is_file()):
        return first.is_file() == second.is_file()
    return cmp(first, second, shallow=False)
