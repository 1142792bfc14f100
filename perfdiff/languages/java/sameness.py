"""Whether base and head are the same program: no method differs in what it does, and no other file that a workload may read."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from perfdiff.languages.java.classes import FOREIGN_FOLDERS, DeclaredClasses
from perfdiff.languages.java.sources import SourceFile, SourceReader
from perfdiff.languages.meanings import MeaningComparison
from perfdiff.languages.protocol import Counterpart, PlainBuild
from perfdiff.languages.tree_files import Unread, differing

# Read by people, by version control and by editors.
_NAMES = re.compile(
    r".*\.(?:md|rst|adoc|swp|orig|iml)|(?:README|CHANGELOG|CHANGES|HISTORY|NEWS|RELEASE-NOTES|AUTHORS|CONTRIBUTORS|CONTRIBUTING|SECURITY"
    r"|CODE_OF_CONDUCT|LICEN[CS]E|NOTICE|COPYING)(?:\..*)?|\.git\w*|\.editorconfig|\.classpath|\.project|package-info\.java"
)
_FOLDERS = FOREIGN_FOLDERS | {".github", ".circleci", ".settings", ".vscode", "doc", "docs", "site", "apidocs", "javadoc"}
# What build tools note for themselves: which files they compiled, what tests said, how long it took.
_NOTED = re.compile(
    r"(?:.*/)?(?:target/(?:maven-status|maven-archiver|surefire-reports|failsafe-reports|antrun|site|apidocs)"
    r"|build/(?:tmp|reports|test-results|docs|kotlin|generated/sources/headers))/.*"
)
_UNREAD = Unread(_NAMES, _FOLDERS, _NOTED)
# What in an archive tells how and when it was made, and nothing to its programs.
_STAMPED = re.compile(r"META-INF/(?:MANIFEST\.MF|INDEX\.LIST|maven/.*/pom\.(?:properties|xml)|.*\.(?:SF|RSA|DSA|EC))")
_ARCHIVES = (".jar", ".war")
_BROKEN = (OSError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)


def same_code(base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart], cache: Path | None) -> MeaningComparison:
    """Compare the trees of two plain builds whose methods are `pairs`; `cache` is the folder that keeps what files told."""
    sides = [_Side(build, SourceReader(cache).read(build.tree)) for build in (base, head)]
    told: list[str] = []
    by_function: list[str] = []
    for name, places in differing(base, head, _UNREAD):
        present = [(sides[side], path) for side, path in places.items()]
        if name.endswith(_ARCHIVES):
            others = list(_differing_entries(name, present))
        else:
            others = [] if all(side.is_indexed(name) for side, _ in present) else [name]
        told += others
        by_function += [] if others else [name]
    return MeaningComparison(
        not any(pair.change.is_suspect for pair in pairs), tuple(told), in_tree=True, by_function=frozenset(by_function)
    )


class _Side:
    """One build: which of its files the index tells of, method by method."""

    def __init__(self, build: PlainBuild, sources: Sequence[SourceFile]) -> None:
        declared = {name for source in sources for name in source.top_types}
        self._wanted = DeclaredClasses(declared)
        self._compiled: set[str] = set()
        for folder, _, names in os.walk(build.tree):
            for name in names:
                place = (Path(folder) / name).relative_to(build.tree).as_posix()
                if name.endswith(".class"):
                    self._compiled |= self._wanted.tops(place)
                elif name.endswith(_ARCHIVES):
                    for entry in _entries(Path(folder) / name):
                        self._compiled |= self._wanted.tops(entry)
        self._sources = {source.file: source for source in sources}

    def is_indexed(self, name: str) -> bool:
        """Return whether all that a file does is told by methods: a class of the project, or a source that such classes come from."""
        if name.endswith(".class"):
            return bool(self._wanted.tops(name))
        source = self._sources.get(name)
        return source is not None and any(top in self._compiled for top in source.top_types)


def _differing_entries(name: str, present: Sequence[tuple[_Side, Path]]) -> Iterator[str]:
    """Yield what of an archive differs: its entries, but for classes that are compared method by method; else the archive."""
    if len(present) < 2:
        [(side, path)] = present
        others = [entry for entry in _entries(path) if not side.is_indexed(entry) and not _STAMPED.fullmatch(entry)]
        if others or not _entries(path):
            yield name
        return
    (before, base), (after, head) = present
    first, second = _entries(base), _entries(head)
    if not (first and second):
        yield name
        return
    for entry in sorted(first.keys() | second.keys()):
        if first.get(entry) != second.get(entry) and not _STAMPED.fullmatch(entry):
            sides = [side for side, entries in ((before, first), (after, second)) if entry in entries]
            if not all(side.is_indexed(entry) for side in sides):
                yield f"{name}!/{entry}"


def _entries(path: Path) -> dict[str, tuple[int, int]]:
    """Return the sizes and checksums of an archive's files by name; none of one that cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            files = [one for one in archive.infolist() if not one.is_dir()]
            return {one.filename: (one.file_size, one.CRC) for one in files if not _NAMES.fullmatch(one.filename.rpartition("/")[2])}
    except _BROKEN:
        return {}
