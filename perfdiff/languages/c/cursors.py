"""libclang's cursors at the speed of C: whole subtrees, places and references without a Python object per question.

`clang.cindex` builds several objects for each property it returns; a function body has thousands of cursors. Here the few calls an
index needs go to the library itself. Kinds are compared by number (`cursor._kind_id`).
"""

from __future__ import annotations

import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, byref, c_int, c_uint, c_void_p
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from clang import cindex
from clang.cindex import CursorKind, SourceLocation, SourceRange, Type

Cursor = Any  # clang.cindex.Cursor; the bindings are not typed


class _String(ctypes.Structure):
    """CXString, as the bindings have it, but that it is not disposed of with its Python object: its set does that."""

    _fields_: ClassVar = [("data", c_void_p), ("flags", c_uint)]


class _StringSet(ctypes.Structure):
    """CXStringSet: names that belong together."""

    _fields_: ClassVar = [("strings", POINTER(_String)), ("count", c_uint)]


_VISITOR = CFUNCTYPE(c_int, cindex.Cursor, cindex.Cursor, c_void_p)
_CONTINUE, _RECURSE = 1, 2
_POSITION = [POINTER(c_void_p), POINTER(c_uint), POINTER(c_uint), POINTER(c_uint)]
_PROTOTYPES: tuple[tuple[str, list[Any], Any], ...] = (
    ("clang_visitChildren", [cindex.Cursor, _VISITOR, c_void_p], c_uint),
    ("clang_getCursorLocation", [cindex.Cursor], SourceLocation),
    ("clang_getCursorExtent", [cindex.Cursor], SourceRange),
    ("clang_getRangeStart", [SourceRange], SourceLocation),
    ("clang_getRangeEnd", [SourceRange], SourceLocation),
    ("clang_getExpansionLocation", [SourceLocation, *_POSITION], None),
    ("clang_getCursorSpelling", [cindex.Cursor], _String),
    ("clang_getCursorUSR", [cindex.Cursor], _String),
    ("clang_disposeString", [_String], None),
    ("clang_getCursorReferenced", [cindex.Cursor], cindex.Cursor),
    ("clang_getCursorDefinition", [cindex.Cursor], cindex.Cursor),
    ("clang_getCursorSemanticParent", [cindex.Cursor], cindex.Cursor),
    ("clang_getSpecializedCursorTemplate", [cindex.Cursor], cindex.Cursor),
    ("clang_getOverloadedDecl", [cindex.Cursor, c_uint], cindex.Cursor),
    ("clang_getNumOverloadedDecls", [cindex.Cursor], c_uint),
    ("clang_getOverriddenCursors", [cindex.Cursor, POINTER(POINTER(cindex.Cursor)), POINTER(c_uint)], None),
    ("clang_disposeOverriddenCursors", [POINTER(cindex.Cursor)], None),
    ("clang_getCursorType", [cindex.Cursor], Type),
    ("clang_getCursorLinkage", [cindex.Cursor], c_int),
    ("clang_getTemplateCursorKind", [cindex.Cursor], c_int),
    ("clang_isCursorDefinition", [cindex.Cursor], c_uint),
    ("clang_CXXMethod_isConst", [cindex.Cursor], c_uint),
    ("clang_CXXMethod_isStatic", [cindex.Cursor], c_uint),
    ("clang_getCursorBinaryOperatorKind", [cindex.Cursor], c_int),
    ("clang_getCursorUnaryOperatorKind", [cindex.Cursor], c_int),
    ("clang_Cursor_getCXXManglings", [cindex.Cursor], POINTER(_StringSet)),
    ("clang_disposeStringSet", [POINTER(_StringSet)], None),
    ("clang_getCString", [_String], ctypes.c_char_p),
)


def _library() -> Any:
    # A second handle on the library that the bindings loaded: their own has result converters on every call.
    library = ctypes.CDLL(cindex.conf.lib._name)
    for name, arguments, result in _PROTOTYPES:
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library


native = _library()

ASSIGN = 22  # CXBinaryOperator_Assign
WRITING_UNARY = frozenset((1, 2, 3, 4, 5))  # CXUnaryOperator: ++ and -- behind and before, &
DEREFERENCE = 6
INTERNAL_LINKAGE = frozenset((1, 2, 3))  # CXLinkage: none (members of local classes), internal, unnamed namespace

FUNCTION = frozenset(
    kind.value
    for kind in (
        CursorKind.FUNCTION_DECL,
        CursorKind.CXX_METHOD,
        CursorKind.CONSTRUCTOR,
        CursorKind.DESTRUCTOR,
        CursorKind.CONVERSION_FUNCTION,
        CursorKind.FUNCTION_TEMPLATE,
    )
)
LAMBDA = CursorKind.LAMBDA_EXPR.value
METHODS = FUNCTION - {CursorKind.FUNCTION_DECL.value}
STOP = frozenset((LAMBDA, *METHODS))  # functions inside functions have an index entry, features and conditions of their own
RECORD = frozenset(
    kind.value
    for kind in (
        CursorKind.STRUCT_DECL,
        CursorKind.UNION_DECL,
        CursorKind.CLASS_DECL,
        CursorKind.CLASS_TEMPLATE,
        CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
    )
)


_IN_MACROS = 1 << 31  # numbers of places from here on are in what macros expand to, and in no file
_BODIES = frozenset((CursorKind.COMPOUND_STMT.value, CursorKind.CXX_TRY_STMT.value))


class Body(NamedTuple):
    """The body of a function, a block or a `try`: its cursor, and what lies below as (cursor, parent)."""

    cursor: Cursor
    nodes: list[tuple[Cursor, Cursor]]


class SourcePosition(NamedTuple):
    """A position in a file of the tree; `line` is 1-based, `offset` in bytes."""

    file: str
    offset: int
    line: int


class TreeFiles:
    """The files of a tree by the names that compilers have for them, each looked up and read once for all translation units."""

    def __init__(self, tree: Path) -> None:
        self._tree = os.path.realpath(tree) + os.sep
        self._names: dict[str, str | None] = {}
        self._sources: dict[str, bytes] = {}

    def relative(self, name: str, directory: Path) -> str | None:
        """Return a file's path below the tree, links followed; None where it lies outside. `name` may be relative to `directory`."""
        whole = os.path.join(directory, name)  # noqa: PTH118 - some hundred thousand names a program
        if whole not in self._names:
            path = os.path.realpath(whole)
            self._names[whole] = path[len(self._tree) :] if path.startswith(self._tree) else None
        return self._names[whole]

    def source(self, file: str) -> bytes:
        """Return the bytes of a file of the tree."""
        if file not in self._sources:
            self._sources[file] = Path(self._tree, file).read_bytes()
        return self._sources[file]


class SourcePositions:
    """Where the cursors of one translation unit lie, relative to the tree; None outside of it. Macros count where they are expanded."""

    def __init__(self, files: TreeFiles, directory: Path) -> None:
        self._tree_files, self._directory = files, directory
        self._files: dict[int | None, str | None] = {None: None}
        self._file, self._line, self._column, self._offset = c_void_p(), c_uint(), c_uint(), c_uint()
        self._out = (byref(self._file), byref(self._line), byref(self._column), byref(self._offset))
        self._sizes: dict[int, int] = {}  # of files outside of the tree
        self._outside = range(0)

    def _at(self, location: Any) -> SourcePosition | None:
        # libclang numbers all bytes of all files that it reads, each file's in a row: most questions are of the file that the last one was.
        if location.int_data in self._outside:
            return None
        native.clang_getExpansionLocation(location, *self._out)
        handle = self._file.value
        if handle is not None and handle not in self._files:
            name = cindex.File(ctypes.cast(handle, cindex.c_object_p)).name
            self._files[handle] = self.relative(name)
            if self._files[handle] is None:
                self._sizes[handle] = _size(self._directory / name)
        file, offset = self._files[handle], self._offset.value
        if file is not None:
            return SourcePosition(file, offset, self._line.value)
        if handle is not None and location.int_data < _IN_MACROS:
            self._outside = range(location.int_data - offset, location.int_data - offset + self._sizes[handle] + 1)
        return None

    def relative(self, name: str) -> str | None:
        """Return the path below the tree of a file that the unit includes; None where it lies outside."""
        return self._tree_files.relative(name, self._directory)

    def of(self, cursor: Cursor) -> SourcePosition | None:
        """Return where `cursor` is named."""
        return self._at(native.clang_getCursorLocation(cursor))

    def span(self, cursor: Cursor) -> tuple[SourcePosition, int] | None:
        """Return the start of `cursor` and the offset of its end in the same file."""
        extent = native.clang_getCursorExtent(cursor)
        start, end = self._at(native.clang_getRangeStart(extent)), self._at(native.clang_getRangeEnd(extent))
        if start is None or end is None or start.file != end.file:
            return None
        return start, end.offset

    def source(self, file: str) -> bytes:
        """Return the bytes of a file of the tree."""
        return self._tree_files.source(file)


def _size(path: Path) -> int:
    """Return how many bytes a file has; 0 of a name that libclang gives to what it makes up."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def subtree(root: Cursor, stop: frozenset[int] = frozenset()) -> list[tuple[Cursor, Cursor]]:
    """Return everything below `root` as (cursor, parent) in source order; what lies below kinds of `stop` is left out."""
    pairs: list[tuple[Cursor, Cursor]] = []

    def visit(cursor: Cursor, parent: Cursor, _: object) -> int:
        pairs.append((cursor, parent))
        return _CONTINUE if cursor._kind_id in stop else _RECURSE

    native.clang_visitChildren(root, _VISITOR(visit), None)
    return pairs


def body_among(nodes: list[tuple[Cursor, Cursor]], function: Cursor) -> Body | None:
    """Return the body of a function or lambda, the last of its children; `nodes` are its subtree. None where it has no body of its own."""
    place = 1 if function._kind_id == LAMBDA else 0  # of what identifies an expression, or a declaration
    for index, (node, parent) in enumerate(nodes):
        is_child = node._kind_id in _BODIES and parent._kind_id == function._kind_id and parent.data[place] == function.data[place]
        if is_child:
            return Body(node, nodes[index + 1 :])
    return None


def children(root: Cursor) -> list[Cursor]:
    """Return the direct children of `root`."""
    cursors: list[Cursor] = []

    def visit(cursor: Cursor, _parent: Cursor, _: object) -> int:
        cursors.append(cursor)
        return _CONTINUE

    native.clang_visitChildren(root, _VISITOR(visit), None)
    return cursors


def spelling(cursor: Cursor) -> str:
    """Return the spelling of a cursor's name."""
    return _text(native.clang_getCursorSpelling(cursor))


def unified_name(cursor: Cursor) -> str:
    """Return libclang's name of a declaration that is the same in all units (USR)."""
    return _text(native.clang_getCursorUSR(cursor))


def _text(string: _String) -> str:
    text: bytes = native.clang_getCString(string)
    native.clang_disposeString(string)
    return text.decode()


def bound(cursor: Cursor, unit: Any) -> Cursor:
    """Return `cursor` fit for the methods of `clang.cindex`, which need to know the translation unit."""
    cursor._tu = unit
    return cursor


def is_null(cursor: Cursor) -> bool:
    """Return whether `cursor` points nowhere (kinds 70 to 73 are libclang's invalid ones)."""
    kind: int = cursor._kind_id
    return 70 <= kind <= 73


def overridden(cursor: Cursor) -> list[Cursor]:
    """Return the methods that a method overrides directly."""
    array, size = POINTER(cindex.Cursor)(), c_uint()
    native.clang_getOverriddenCursors(cursor, byref(array), byref(size))
    methods = [cindex.Cursor.from_buffer_copy(array[index]) for index in range(size.value)]
    if array:
        native.clang_disposeOverriddenCursors(array)
    return methods


def template_of(cursor: Cursor) -> Cursor:
    """Return the template a function, class or member was instantiated from, or `cursor` itself."""
    while not is_null(template := native.clang_getSpecializedCursorTemplate(cursor)):
        cursor = template
    return cursor


def variants(cursor: Cursor) -> tuple[str, ...]:
    """Return the linkage names of a constructor's or destructor's variants."""
    names = native.clang_Cursor_getCXXManglings(cursor)
    if not names:
        return ()
    try:
        return tuple(native.clang_getCString(names.contents.strings[index]).decode() for index in range(names.contents.count))
    finally:
        native.clang_disposeStringSet(names)
