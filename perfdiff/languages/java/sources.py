"""The Java files of a tree, and what each tells, kept by content."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from perfdiff.languages.java import decisions, syntax
from perfdiff.languages.java.classes import UNREAD_FOLDERS
from perfdiff.languages.java.decisions import Decision
from perfdiff.languages.java.syntax import MemberText, Role, SourceText, TypeText
from perfdiff.languages.kept import TextCache
from perfdiff.languages.stored import plain

_SUFFIX = ".java"


@dataclass(frozen=True)
class SourceFile:
    """One Java file; `file` is relative to the tree."""

    file: str
    data: bytes
    told: SourceText

    @property
    def top_types(self) -> dict[str, int]:
        """Return the indices of the types that are in no other one, by their internal names."""
        folder = f"{self.told.package.replace('.', '/')}/" if self.told.package else ""
        return {f"{folder}{one.name}": index for index, one in enumerate(self.told.types) if one.owner < 0 and one.name}

    @cached_property
    def remarks(self) -> frozenset[int]:
        """Return the lines that hold comments alone."""
        return frozenset(line for first, last in self.told.remarks for line in range(first, last + 1))

    @cached_property
    def encoding(self) -> str:
        """Return what its text is read with: UTF-8 where it is that."""
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError:
            return "latin-1"
        return "utf-8"

    def text(self, start: int, end: int) -> str:
        """Return the text between two places."""
        return self.data[start:end].decode(self.encoding, "replace")


class SourceReader:
    """Reads the Java files of trees; `cache` is the folder that keeps what they told."""

    def __init__(self, cache: Path | None) -> None:
        self._kept = TextCache(cache, [Path(syntax.__file__), Path(decisions.__file__)])

    def read(self, tree: Path) -> tuple[SourceFile, ...]:
        """Return the Java files of a tree, in order of their paths. Links are left out: what they lead to has a path of its own."""
        return tuple(self._file(tree, file) for file in _java_files(tree))

    def _file(self, tree: Path, file: str) -> SourceFile:
        data = (tree / file).read_bytes()
        told = _told(self._kept.text(data))
        if told is None:
            told = syntax.read(data)
            self._kept.keep(data, json.dumps(plain(told), separators=(",", ":")))
        return SourceFile(file, data, told)


def _java_files(tree: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(tree):
        place = Path(folder)
        folders[:] = sorted(name for name in folders if name not in UNREAD_FOLDERS)
        for name in sorted(names):
            if name.endswith(_SUFFIX) and not (place / name).is_symlink() and (place / name).is_file():
                yield (place / name).relative_to(tree).as_posix()


def _told(text: str | None) -> SourceText | None:
    if text is None:
        return None
    try:
        package, imports, types, members, remarks, problem = json.loads(text)
        return SourceText(
            package,
            tuple(imports),
            tuple(TypeText(*values) for values in types),
            tuple(map(_member, members)),
            tuple((first, last) for first, last in remarks),
            problem,
        )
    except (ValueError, TypeError):
        return None


def _member(values: list[Any]) -> MemberText:
    named = dict(zip((field.name for field in fields(MemberText)), values, strict=True))
    named["role"], named["variables"] = Role(named["role"]), tuple(named["variables"])
    named["parameters"] = tuple((name, kind) for name, kind in named["parameters"])
    named["decides"] = tuple(Decision(*one) for one in named["decides"])
    return MemberText(**named)
