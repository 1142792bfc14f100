"""The PHP files of a tree: which belong to the project, and which to packages that Composer laid into it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfdiff.languages.tree_files import own_files

FOREIGN_FOLDERS = frozenset((".git", ".svn", ".hg", "node_modules", ".phpunit.cache", "__pycache__"))
_SUFFIXES = frozenset((".php", ".phtml", ".inc", ".php5", ".php7", ".php8"))
_SCRIPT = re.compile(rb"#![^\n]*\bphp|\A<\?php\b")  # of a file without a suffix, such as `bin/console`
_MARK = b"<?"
_TRAIT = re.compile(rb"\btrait\b", re.IGNORECASE)
_ALIAS = re.compile(rb"\bas\s+(?:(?:public|protected|private|final)\s+)*([A-Za-z_\x80-\xff][\w\x80-\xff]*)\s*;", re.IGNORECASE)
_AUTOLOADER, _COMPOSER = "autoload.php", "composer"


@dataclass(frozen=True, slots=True)
class PhpFile:
    """One PHP file; `file` is relative to the tree."""

    file: str
    data: bytes


def source_files(tree: Path, packages: Collection[str] = ()) -> tuple[PhpFile, ...]:
    """Return the project's PHP files in order of their paths, and those of some `packages` (`vendor/name`) that Composer laid there."""
    sources = (PhpFile(file, (tree / file).read_bytes()) for file in _files(tree, packages))
    return tuple(source for source in sources if _is_php(source.file, source.data))


def aliases_in(tree: Path, probed: Iterable[str]) -> frozenset[str]:
    """Return the names that the project's classes may give to methods of traits, none where no `probed` file has a trait.

    Names that imports give are among them: they are more than enough.
    """
    if not any(_TRAIT.search((tree / file).read_bytes()) for file in probed):
        return frozenset()
    return frozenset(os.fsdecode(name) for source in source_files(tree) for name in _ALIAS.findall(source.data))


def _files(tree: Path, packages: Collection[str]) -> Iterator[str]:
    for file in own_files(tree, lambda folder: folder.name in FOREIGN_FOLDERS or _is_others(tree, folder, packages)):
        if may_be_php(file) and not is_vendor((tree / file).parent):  # there lies what Composer wrote itself
            yield file


def may_be_php(name: str) -> bool:
    """Return whether a file is PHP by its name, or may be without one that says what it is."""
    return PurePosixPath(name).suffix in (*_SUFFIXES, "")


def is_vendor(folder: Path) -> bool:
    """Return whether a folder is the one that Composer lays packages into."""
    return (folder / _AUTOLOADER).is_file() and (folder / _COMPOSER).is_dir()


def _is_others(tree: Path, folder: Path, packages: Collection[str]) -> bool:
    """Return whether a folder holds nothing of the project or of the packages that count as its own."""
    for vendor in folder.parents:
        if vendor == tree or tree not in vendor.parents:
            break
        if is_vendor(vendor):
            path = folder.relative_to(vendor).as_posix()
            return not any(path == package or package.startswith(f"{path}/") or path.startswith(f"{package}/") for package in packages)
    return False


def _is_php(file: str, data: bytes) -> bool:
    if PurePosixPath(file).suffix:
        return _MARK in data
    return _SCRIPT.match(data) is not None
