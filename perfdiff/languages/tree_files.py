"""Files of two built trees that differ, but for those that no program reads."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path

from perfdiff.languages.protocol import PlainBuild

# Of a build with compile commands these are compared as code, by the pack of their language.
_COMPILED = re.compile(r".*\.(?:c|cc|cpp|cxx|h|hh|hpp|hxx|inl|s|S|o|a|so|d)")
_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class Unread:
    """What programs of a language do not read: files by `names`, what lies in `folders`, what tools have `noted`, by its path in the tree.

    `is_foreign` tells of further folders, by where they lie and their names.
    """

    names: re.Pattern[str]
    folders: Collection[str]
    noted: re.Pattern[str] = _NOTHING
    is_foreign: Callable[[Path, str], bool] = lambda _place, _name: False

    def others(self, build: PlainBuild, *, compiled: bool) -> Iterator[tuple[str, Path]]:
        """Yield all other files of a build, by their paths in its tree."""
        for folder, folders, names in os.walk(build.tree):
            place = Path(folder)
            folders[:] = sorted(name for name in folders if name not in self.folders and not self.is_foreign(place, name))
            for name in names:
                shown = (place / name).relative_to(build.tree).as_posix()
                if not (self.names.fullmatch(name) or self.noted.fullmatch(shown) or (compiled and _COMPILED.fullmatch(name))):
                    yield shown, place / name


def differing(base: PlainBuild, head: PlainBuild, unread: Unread) -> Iterator[tuple[str, Mapping[int, Path]]]:
    """Yield the files that are not the same on both sides, by name, with where each lies: 0 base's, 1 head's."""
    compiled = bool(base.commands or head.commands)
    yield from _unlike([dict(unread.others(build, compiled=compiled)) for build in (base, head)])


def all_differing(base: Path, head: Path) -> Iterator[tuple[str, Mapping[int, Path]]]:
    """Yield the files of two trees that are not the same, whatever they are for; links and empty folders are files, too."""
    yield from _unlike([dict(_files(tree)) for tree in (base, head)])


def _files(tree: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(tree):
        for path in (Path(folder) / name for name in (*names, *folders)):
            if path.is_symlink() or not path.is_dir() or not any(path.iterdir()):
                yield path.relative_to(tree).as_posix(), path


def _unlike(files: Sequence[Mapping[str, Path]]) -> Iterator[tuple[str, Mapping[int, Path]]]:
    for name in sorted(files[0].keys() | files[1].keys()):
        present = {side: found[name] for side, found in enumerate(files) if name in found}
        if len(present) < len(files) or not _is_same_file(present[0], present[1]):
            yield name, present


def _is_same_file(first: Path, second: Path) -> bool:
    if first.is_symlink() or second.is_symlink():
        return first.is_symlink() and second.is_symlink() and first.readlink() == second.readlink()
    if not (first.is_file() and second.is_file()):
        return first.is_file() == second.is_file()
    return first.stat().st_mode == second.stat().st_mode and cmp(first, second, shallow=False)
