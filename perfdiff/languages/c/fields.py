"""Which fields lie at given bytes of a variable, or of what a line of code allocates."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clang.cindex import CursorKind, TranslationUnitLoadError, TypeKind

from perfdiff.languages.c import front
from perfdiff.languages.protocol import CompileCommand

_KEPT = 8  # units whose variables are remembered; a program's hot lines lie in few
_SUFFIX = re.compile(r"\.\d+$")  # of static variables in functions, by gcc
# Whose type is a pointer to what a line allocates: `new` itself, else what its result is given to.
_MAKERS = (CursorKind.CXX_NEW_EXPR,)
_TAKERS = (CursorKind.VAR_DECL, CursorKind.BINARY_OPERATOR)


def of_variable(commands: Sequence[CompileCommand], symbol: str, offsets: Sequence[int]) -> tuple[str, ...]:
    """Return the parts of a variable at byte offsets, such as `[3].hits`, each once; none where its type is not found or has no parts.

    `symbol` is its demangled name in an object file.
    """
    name = _SUFFIX.sub("", symbol).rpartition("::")[2]
    word = re.compile(rb"\b%s\b" % re.escape(name).encode())
    for command in commands:
        if command.file.is_file() and word.search(command.file.read_bytes()):
            kind = _variables(command).get(name)
            if kind is not None:
                return _parts(kind, offsets)
    return ()


def of_allocation(commands: Sequence[CompileCommand], file: Path, line: int, offsets: Sequence[int]) -> tuple[str, ...]:
    """Return the fields at byte offsets of what a line allocates, each once; none where the line does not tell one type.

    The memory may be an array: `offsets` count from its start.
    """
    for command in commands:
        if command.file == file:
            kind = _allocated(command, line)
            return () if kind is None else _parts(kind, [offset % kind.get_size() for offset in offsets])
    return ()


@functools.lru_cache(maxsize=_KEPT)
def _cursors(command: CompileCommand) -> tuple[Any, ...]:
    """Return the cursors of a unit that may matter, without what system headers declare, which is most of it."""
    try:
        unit = front.parse(front.unit(command))
    except TranslationUnitLoadError:
        return ()
    kinds = frozenset((*_MAKERS, *_TAKERS))
    own = (child for child in unit.cursor.get_children() if not child.location.is_in_system_header)
    return tuple(cursor for child in own for cursor in child.walk_preorder() if cursor.kind in kinds)


@functools.lru_cache(maxsize=_KEPT)
def _variables(command: CompileCommand) -> Mapping[str, Any]:
    """Return the types of a unit's variables by name."""
    declarations = (cursor for cursor in _cursors(command) if cursor.kind is CursorKind.VAR_DECL)
    return {cursor.spelling: cursor.type for cursor in declarations if cursor.type.get_size() > 0}


def _allocated(command: CompileCommand, line: int) -> Any:
    """Return the type that a line of a unit's own file allocates, None where it tells none, or several."""
    for kinds in (_MAKERS, _TAKERS):
        pointees = {kind.spelling: kind for cursor in _at(command, line) if cursor.kind in kinds for kind in _pointees(cursor)}
        if pointees:
            return next(iter(pointees.values())) if len(pointees) == 1 else None
    return None


def _at(command: CompileCommand, line: int) -> Iterator[Any]:
    for cursor in _cursors(command):
        file = cursor.location.file
        if cursor.extent.start.line <= line <= cursor.extent.end.line and file is not None and Path(file.name).resolve() == command.file:
            yield cursor


def _pointees(cursor: Any) -> Iterator[Any]:
    kind = cursor.type.get_canonical()
    if kind.kind is TypeKind.POINTER and kind.get_pointee().kind is not TypeKind.VOID and kind.get_pointee().get_size() > 0:
        yield kind.get_pointee().get_canonical()


def _parts(kind: Any, offsets: Sequence[int]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for offset in sorted(offsets) if (part := _part(kind.get_canonical(), offset))))


def _part(kind: Any, offset: int) -> str:
    """Return what lies at a byte of a canonical type, from its outside; nothing where it has no parts, or padding lies there."""
    if kind.kind is TypeKind.CONSTANTARRAY and kind.element_type.get_size() > 0:
        index, inside = divmod(offset, kind.element_type.get_size())
        rest = _part(kind.element_type.get_canonical(), inside)
        return f"[{index}]{rest}" if index < kind.element_count else ""
    if kind.kind is not TypeKind.RECORD:
        return ""
    for child in kind.get_fields():
        start, size = child.get_field_offsetof() // 8, child.type.get_size()
        if start <= offset < start + max(size, 1):
            return f".{child.spelling}{_part(child.type.get_canonical(), offset - start)}"
    return ""
