"""The Java files of a tree, and what each tells, kept by content."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from perfdiff.languages import syntax_trees
from perfdiff.languages.java import decisions, syntax
from perfdiff.languages.java.classes import FOREIGN_FOLDERS, OF_HARNESS
from perfdiff.languages.java.syntax import SourceText
from perfdiff.languages.kept import FactsCache
from perfdiff.languages.tree_files import own_files

_SUFFIX = ".java"


@dataclass(frozen=True)
class JavaFile:
    """One Java file; `file` is relative to the tree."""

    file: str
    data: bytes
    syntax: SourceText

    @property
    def top_types(self) -> dict[str, int]:
        """Return the indices of the types that are in no other one, by their internal names."""
        folder = f"{self.syntax.package.replace('.', '/')}/" if self.syntax.package else ""
        return {f"{folder}{type_.name}": index for index, type_ in enumerate(self.syntax.types) if type_.owner < 0 and type_.name}

    @cached_property
    def remarks(self) -> frozenset[int]:
        """Return the lines that hold comments alone."""
        return frozenset(line for first, last in self.syntax.remarks for line in range(first, last + 1))

    @cached_property
    def encoding(self) -> str:
        """Return the encoding of the file: UTF-8 if its bytes are valid UTF-8, else Latin-1."""
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
        self._kept = FactsCache(cache, SourceText, [Path(syntax.__file__), Path(decisions.__file__), Path(syntax_trees.__file__)])

    def read(self, tree: Path) -> tuple[JavaFile, ...]:
        """Return the Java files of a tree, in order of their paths."""
        files = own_files(tree, lambda folder: folder.name in FOREIGN_FOLDERS)
        contents = {file: (tree / file).read_bytes() for file in files if file.endswith(_SUFFIX) and not OF_HARNESS.fullmatch(file)}
        return tuple(JavaFile(file, data, self._kept.facts(data, partial(syntax.read, data))) for file, data in contents.items())
