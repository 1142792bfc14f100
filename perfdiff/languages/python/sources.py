"""The Python files of a tree: which belong to the project, how they are imported, and where in them a piece of code stands."""

from __future__ import annotations

import ast
import re
import tokenize
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path, PurePosixPath

from perfdiff.languages.tree_files import own_files

# What tools put into a tree: environments of test runners, packages of other languages, copies that a build makes.
_FOREIGN = frozenset((".git", "__pycache__", "node_modules", ".tox", ".nox", ".eggs"))
_BUILT_COPY = re.compile(r"lib|lib\..*|bdist\..*|__editable__\..*")  # what setuptools makes below `build`
_ENVIRONMENT = "pyvenv.cfg"
_PACKAGE = "__init__.py"
ROOTS = frozenset(("src", "lib"))  # folders of sources, no part of a module's name
_LINE = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class PythonFile:
    """One Python file. `file` is relative to the tree, `module` the name that importing it takes, `is_package` tells an `__init__.py`."""

    file: str
    module: str
    data: bytes
    is_package: bool


def source_files(tree: Path) -> tuple[PythonFile, ...]:
    """Return the project's Python files in order of their paths."""
    names = [name for name in own_files(tree, is_foreign) if name.endswith(".py")]
    packages = {str(PurePosixPath(name).parent) for name in names if PurePosixPath(name).name == _PACKAGE}
    return tuple(PythonFile(name, module_name(name, packages), (tree / name).read_bytes(), name.endswith(_PACKAGE)) for name in names)


def is_foreign(folder: Path) -> bool:
    """Return whether a folder holds what tools made or fetched, and nothing of the project's own."""
    if folder.name in _FOREIGN or folder.name.endswith(".egg-info"):
        return True
    return (folder.parent.name == "build" and _BUILT_COPY.fullmatch(folder.name) is not None) or (folder / _ENVIRONMENT).exists()


def module_name(file: str, packages: set[str] | frozenset[str]) -> str:
    """Return the dotted name under which a file is imported; `packages` are the folders with an `__init__.py`.

    A package's name begins at the topmost folder that is one; that of another file at the tree's root, or behind one of `ROOTS`.
    """
    path = PurePosixPath(file)
    folder = path.parent
    parts = [] if path.name == _PACKAGE else [path.stem]
    if str(folder) in packages:
        while str(folder) in packages and folder.name:
            parts.insert(0, folder.name)
            folder = folder.parent
    else:
        parts = [*folder.parts[not ROOTS.isdisjoint(folder.parts[:1]) :], *parts]
    return ".".join(parts) or path.stem


@dataclass
class Positions:
    """Where the nodes of a parsed file stand, in bytes of the file; `ast` counts columns in bytes of UTF-8, whatever its encoding."""

    data: bytes
    encoding: str = field(init=False)

    def __post_init__(self) -> None:
        self.encoding = tokenize.detect_encoding(BytesIO(self.data).readline)[0]

    @cached_property
    def _starts(self) -> list[int]:
        mark = 3 if self.encoding == "utf-8-sig" else 0
        return [mark, *(match.end() for match in _LINE.finditer(self.data))]

    @property
    def lines(self) -> int:
        """Return how many lines there are."""
        return len(self._starts)

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line, counted from 1, and a column in bytes of UTF-8."""
        start = self._starts[line - 1]
        if self.encoding in ("utf-8", "utf-8-sig"):
            return start + column
        end = self._starts[line] if line < len(self._starts) else len(self.data)
        before = self.data[start:end].decode(self.encoding).encode()[:column].decode()
        return start + len(before.encode(self.encoding))

    def text(self, start: int, end: int) -> str:
        """Return the text between two offsets."""
        return self.data[start:end].decode(self.encoding, "replace")

    def start(self, node: ast.AST) -> int:
        """Return where a node begins, its decorators included."""
        first = first_node(node)
        line, column = first.lineno, first.col_offset  # type: ignore[attr-defined]
        if first is not node:  # the `@` stands before the decorator, which may be on a line of its own
            return self.data.rindex(b"@", 0, self.offset(line, column))
        return self.offset(line, column)

    def end(self, node: ast.AST) -> int:
        """Return where a node ends."""
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def first_node(node: ast.AST) -> ast.AST:
    """Return the first decorator of a function or class, or the node itself."""
    decorators = getattr(node, "decorator_list", ())
    return decorators[0] if decorators else node


def parse(source: PythonFile) -> ast.Module:
    """Return a file's syntax tree; raise `SyntaxError` or `ValueError` where this interpreter cannot parse it."""
    return ast.parse(source.data, source.file)
