"""Whether base and head are the same program: no function differs in what it does, and no other file that a workload may read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from filecmp import cmp
from pathlib import Path

from perfdiff.languages.meanings import MeaningComparison
from perfdiff.languages.php.sources import FOREIGN_FOLDERS, source_files
from perfdiff.languages.php.syntax import as_ascii, parse
from perfdiff.languages.protocol import Counterpart, PlainBuild

# Read by people, by version control, by editors and by what checks code.
_UNREAD = re.compile(
    r".*\.(?:md|rst|swp|orig|neon|dist)|(?:README|CHANGELOG|CHANGES|HISTORY|NEWS|UPGRADE|UPGRADING|AUTHORS|CONTRIBUTORS|CONTRIBUTING|SECURITY"
    r"|CODE_OF_CONDUCT|LICEN[CS]E|COPYING)(?:[-.].*)?|\.git\w*|\.editorconfig|\.php[-_]cs(?:[-.].*)?|\.styleci\.yml|\.scrutinizer\.yml"
    r"|\.travis\.yml|psalm\.xml|phpunit\.xml|phpcs\.xml"
)
_UNREAD_FOLDERS = FOREIGN_FOLDERS | {".github", ".circleci", ".idea", ".vscode", "doc", "docs"}
# Of a build with compile commands these are compared as code, by the pack of their language.
_COMPILED = re.compile(r".*\.(?:c|cc|cpp|cxx|h|hh|hpp|hxx|inl|s|S|o|a|so|d)")
# What Composer writes of the packages, which are told by their versions.
_NOTED = re.compile(r"(?:.*/)?vendor/(?:autoload\.php|composer/.*\.(?:php|json))|composer\.(?:json|lock)")


def same_code(base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart]) -> MeaningComparison:
    """Compare the trees of two plain builds whose functions are `pairs`."""
    return MeaningComparison(not any(pair.change.is_suspect for pair in pairs), tuple(_differing(base, head)))


def _differing(base: PlainBuild, head: PlainBuild) -> Iterator[str]:
    compiled = bool(base.commands or head.commands)
    files = [dict(_files(build.tree, compiled=compiled)) for build in (base, head)]
    indexed = [{one.file: one.data for one in source_files(build.tree)} for build in (base, head)]
    for name in sorted(files[0].keys() | files[1].keys()):
        present = [(side[name], known.get(name)) for side, known in zip(files, indexed, strict=True) if name in side]
        if len(present) == 2 and _is_same_file(present[0][0], present[1][0]):
            continue
        if not all(data is not None and not parse(as_ascii(data)).has_error for _, data in present):
            yield name


def _files(tree: Path, *, compiled: bool) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(tree):
        place = Path(folder)
        folders[:] = sorted(name for name in folders if name not in _UNREAD_FOLDERS)
        for name in names:
            shown = (place / name).relative_to(tree).as_posix()
            if not _UNREAD.fullmatch(name) and not _NOTED.fullmatch(shown) and not (compiled and _COMPILED.fullmatch(name)):
                yield shown, place / name


def _is_same_file(first: Path, second: Path) -> bool:
    if first.is_symlink() or second.is_symlink():
        return first.is_symlink() and second.is_symlink() and first.readlink() == second.readlink()
    if not (first.is_file() and second.is_file()):
        return first.is_file() == second.is_file()
    return cmp(first, second, shallow=False)
