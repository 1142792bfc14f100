"""Whether base and head are the same program: no function differs in what it does, and no other file that a workload may read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from perfdiff.languages.meanings import MeaningComparison
from perfdiff.languages.protocol import Counterpart, PlainBuild
from perfdiff.languages.python.sources import is_foreign
from perfdiff.languages.tree_files import Unread, differing

# Read by people, by version control, by type checkers and by packaging's records of what it did.
_NAMES = re.compile(
    r".*\.(?:md|rst|pyc|pyo|pyi|swp|orig)|(?:README|CHANGELOG|CHANGES|HISTORY|NEWS|AUTHORS|CONTRIBUTORS|CONTRIBUTING|LICEN[CS]E|COPYING)(?:\..*)?"
    r"|\.git\w*|\.editorconfig|\.pre-commit-config\.yaml|\.readthedocs\.ya?ml|py\.typed|\.coveragerc"
)
_UNREAD = Unread(_NAMES, (".git", ".github", ".circleci", "doc", "docs"), is_foreign=is_foreign)


def same_code(base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart]) -> MeaningComparison:
    """Compare the trees of two plain builds whose functions are `pairs`."""
    suspects = any(pair.change.is_suspect for pair in pairs)
    return MeaningComparison(not suspects, tuple(_differing(base, head)))


def _differing(base: PlainBuild, head: PlainBuild) -> Iterator[str]:
    for name, present in differing(base, head, _UNREAD):
        if not all(map(_is_indexed, present.values())):
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
