"""Whether base and head are the same program: no function differs in what it does, and no other file that a workload may read."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from filecmp import cmp
from pathlib import Path, PurePosixPath

from perfdiff.languages.meanings import MeaningComparison
from perfdiff.languages.protocol import Counterpart, PlainBuild
from perfdiff.languages.python.sources import is_foreign
from perfdiff.languages.tree_files import Unread, differing

# Read by people, by version control, by type checkers and by packaging's records of what it did.
_NAMES = re.compile(
    r".*\.(?:md|rst|pyc|pyo|pyi|swp|orig)|(?:README|CHANGELOG|CHANGES|HISTORY|NEWS|AUTHORS|CONTRIBUTORS|CONTRIBUTING|LICEN[CS]E|COPYING)(?:\..*)?"
    r"|\.git\w*|\.editorconfig|\.pre-commit-config\.yaml|\.readthedocs\.ya?ml|py\.typed|\.coveragerc"
)
_BYTE_CODE = "__pycache__"
_UNREAD = Unread(_NAMES, (".git", ".github", ".circleci", "doc", "docs"), is_foreign=is_foreign)


def same_code(base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart]) -> MeaningComparison:
    """Compare the trees of two plain builds whose functions are `pairs`.

    What is imported is byte code, which a run opens in its source's place: a module whose source a run opens is one that it reads.
    """
    indexed, others = set(), []
    for name, present in differing(base, head, _UNREAD):
        if all(map(_is_indexed, present.values())):
            indexed.add(name)
        else:
            others.append(name)
    kept: dict[str, set[str]] = {}  # the byte code of both sides by its source
    for build in (base, head):
        for name, source in _compiled(build.tree):
            kept.setdefault(source, set()).add(name)
    return MeaningComparison(
        not any(pair.change.is_suspect for pair in pairs),
        tuple(others),
        in_tree=True,
        by_function=frozenset(name for source in indexed for name in kept.get(source, ())),
        alike=frozenset(name for source, names in kept.items() if _is_same(source, base, head) for name in names),
        may_be_copied=True,
    )


def _compiled(tree: Path) -> Iterator[tuple[str, str]]:
    """Yield the files of byte code in a tree's folders for it, each with its source."""
    for folder, _, names in os.walk(tree):
        place = PurePosixPath(Path(folder).relative_to(tree).as_posix())
        if place.name == _BYTE_CODE:
            for name in names:
                yield (place / name).as_posix(), (place.parent / f"{name.partition('.')[0]}.py").as_posix()


def _is_same(source: str, base: PlainBuild, head: PlainBuild) -> bool:
    """Return whether both sides have a source, and the same: its byte code differs in when and where that was compiled alone."""
    first, second = base.tree / source, head.tree / source
    return first.is_file() and second.is_file() and cmp(first, second, shallow=False)


def _is_indexed(path: Path) -> bool:
    """Return whether a file's functions are compared one by one, and its module's level as one of them."""
    if path.suffix != ".py" or path.is_symlink():
        return False
    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
