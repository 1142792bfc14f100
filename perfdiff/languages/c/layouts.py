"""What can be read of a value: its shape by type, and where the fields of records lie in memory.

Fields are read by offset, so that neither `private` nor a macro that renames a field can break the build of a probe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clang.cindex import CursorKind, TypeKind, conf

from perfdiff.languages.c.cursors import Cursor, bound, children, template_of
from perfdiff.languages.c.ranges import measured, ranges
from perfdiff.languages.protocol import Load

_SIGNED = frozenset((TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.WCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG, TypeKind.LONGLONG))
_UNSIGNED = frozenset(
    (
        TypeKind.BOOL, TypeKind.CHAR_U, TypeKind.UCHAR, TypeKind.CHAR16, TypeKind.CHAR32, TypeKind.USHORT, TypeKind.UINT, TypeKind.ULONG,
        TypeKind.ULONGLONG,
    )
)  # fmt: skip
_FLOATING = frozenset((TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.LONGDOUBLE))
_CHARACTERS = frozenset((TypeKind.CHAR_S, TypeKind.CHAR_U))
_REFERENCES = frozenset((TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE))
_FUNCTIONS = frozenset((TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO))
_BASE = CursorKind.CXX_BASE_SPECIFIER
_BOOLEAN: Mapping[int, str] = {0: "false", 1: "true"}
CELL_BYTES = 8  # the widest number a cell takes; also a pointer, a vtable pointer and `size_t`

_LIBRARY = frozenset(("std", "__gnu_cxx"))
_HIDDEN = re.compile(r"__|_[A-Z]")  # reserved names: the implementation's own state, such as `struct _IO_FILE`
_TREES = ("map", "multimap", "set", "multiset")
_TABLES = ("unordered_map", "unordered_multimap", "unordered_set", "unordered_multiset")
_SEQUENCES = (
    "vector", "basic_string", "basic_string_view", "list", "deque", "queue", "stack", "priority_queue", "span", "initializer_list",
)  # fmt: skip
SIZED = frozenset((*_TREES, *_TABLES, *_SEQUENCES))

# Where a container keeps its number of elements, by its name and bytes: libstdc++ since GCC 5 and libc++ (ABI 1), whose layouts are
# frozen on LP64. Containers of other sizes (stateful comparators, `vector<bool>`) are not read.
_COUNT_AT: Mapping[tuple[str, int], int] = {
    ("basic_string", 32): 8,
    ("list", 24): 16,
    **{(name, 48): 40 for name in _TREES},
    **{(name, 24): 16 for name in _TREES},
    **{(name, size): 24 for name in _TABLES for size in (56, 40)},
}
_VECTOR_BYTES = 24  # begin, end, end of storage, in both libraries
_OWNERS: Mapping[str, int] = {"unique_ptr": 8, "shared_ptr": 16}  # the pointer comes first in both libraries


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of `size` bytes; `labels` make it a category."""

    load: Load
    size: int
    labels: Mapping[int, str] | None = None

    @property
    def kind(self) -> str:
        """Return how `pd_field` reads it."""
        if self.labels is _BOOLEAN:
            return "PD_BOOL"
        letter = {Load.SIGNED: "I", Load.UNSIGNED: "U", Load.FLOATING: "F"}[self.load]
        return f"PD_{letter}{8 * self.size}"


@dataclass(frozen=True, slots=True)
class Text:
    """A pointer to characters, or (`inline`) an array of them."""

    inline: bool = False


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer, reference or owner of something; `separator` stands between its name and a field's."""

    pointee: Any
    separator: str = "->"


@dataclass(frozen=True, slots=True)
class Count:
    """A standard container: its number of elements lies at `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class VectorLayout:
    """A vector: pointers to its first element and behind its last one, at the start of it; `element` is the bytes of one."""

    element: int


Shape = Scalar | Text | Pointer | Count | VectorLayout


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """A readable field: its name from the record's outside (`pos.line`), byte offset, and the identity of its declaration."""

    name: str
    offset: int
    shape: Shape
    identity: int


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """A struct or class whose layout is known. `identity` tells it from all others of its translation unit."""

    identity: int
    members: tuple[FieldLayout, ...]
    polymorphic: bool


@dataclass(frozen=True, slots=True)
class Bounds:
    """Two members that bound a range; `element` is the bytes of one element, 1 for a range of numbers."""

    first: FieldLayout
    last: FieldLayout
    element: int


class TypeLayouts:
    """The shapes and records of one translation unit, each worked out once."""

    def __init__(self) -> None:
        self._shapes: dict[int, Shape | None] = {}
        self._records: dict[int, RecordLayout | None] = {}
        self._bounds: dict[int, tuple[Bounds, ...]] = {}
        self._measured: dict[int, frozenset[str]] = {}
        self._polymorphic: dict[int, bool] = {}

    def shape(self, kind: Any) -> Shape | None:
        """Return what can be read of a value of type `kind`; None for unions, incomplete and dependent types, functions and the like."""
        identity = kind.data[0]
        if identity not in self._shapes:
            self._shapes[identity] = _shape(kind.get_canonical())
        return self._shapes[identity]

    def record(self, kind: Any) -> RecordLayout | None:
        """Return the layout of a struct or class; None for anything else, and for what is the implementation's own."""
        kind = kind.get_canonical()
        if kind.kind is not TypeKind.RECORD:
            return None
        declaration = kind.get_declaration()
        identity = declaration.canonical.data[0]
        if identity not in self._records:
            own = kind.get_size() > 0 and not _HIDDEN.match(declaration.spelling) and standard_name(kind) is None
            struct = own and declaration.kind is not CursorKind.UNION_DECL
            self._records[identity] = (
                RecordLayout(identity, tuple(self._members(kind, declaration)), self._is_polymorphic(declaration)) if struct else None
            )
        return self._records[identity]

    def pointed_to(self, pointer: Pointer) -> RecordLayout | None:
        """Return the record behind a pointer; None where it is volatile, as device registers are."""
        return None if pointer.pointee.is_volatile_qualified() else self.record(pointer.pointee)

    def element_size(self, shape: Shape | None, other: Shape | None) -> int | None:
        """Return the bytes of an element between two pointers; None where they cannot bound one range.

        Pointers to linked nodes, such as a list's `first` and `last`, bound no range of memory.
        """
        if isinstance(shape, Text) and isinstance(other, Text):
            return None if shape.inline or other.inline else 1
        if not isinstance(shape, Pointer) or not isinstance(other, Pointer) or shape.separator != "->" or other.separator != "->":
            return None
        if _unqualified(shape.pointee) != _unqualified(other.pointee) or shape.pointee.kind in _FUNCTIONS:
            return None
        if shape.pointee.kind is TypeKind.VOID:
            return 1
        record, size = self.record(shape.pointee), shape.pointee.get_size()
        linked = record is not None and any(
            isinstance(member.shape, Pointer) and _unqualified(member.shape.pointee) == _unqualified(shape.pointee)
            for member in record.members
        )
        return size if size > 0 and not linked else None

    def bounds(self, record: RecordLayout) -> tuple[Bounds, ...]:
        """Return the pairs of a record's members that bound ranges (Freud §3.1: derived features)."""
        if record.identity not in self._bounds:
            self._bounds[record.identity] = tuple(self._find_bounds(record.members))
        return self._bounds[record.identity]

    def measured(self, record: RecordLayout) -> frozenset[str]:
        """Return the names of a record's texts of which other members tell the end or the length."""
        if record.identity not in self._measured:
            self._measured[record.identity] = measured_texts([(member.name, member.shape) for member in record.members])
        return self._measured[record.identity]

    def _find_bounds(self, members: Sequence[FieldLayout]) -> Iterator[Bounds]:
        for low, high, numbers, pointers in ranges([member.name for member in members]):
            first, last = members[low], members[high]
            if numbers and _is_long(first.shape) and _is_long(last.shape):
                yield Bounds(first, last, 1)
            elif pointers and (element := self.element_size(first.shape, last.shape)) is not None:
                yield Bounds(first, last, element)

    def _members(self, kind: Any, declaration: Cursor) -> Iterator[FieldLayout]:
        for base, offset in self._bases(declaration):
            if (record := self.record(base)) is not None:
                yield from (replace(member, offset=offset + member.offset) for member in record.members)
        for child in kind.get_fields():
            bits = child.get_field_offsetof()
            if child.is_bitfield() or bits < 0 or child.spelling.startswith("__") or child.type.is_volatile_qualified():
                continue
            if (shape := self.shape(child.type)) is not None:
                yield FieldLayout(child.spelling, bits // 8, shape, child.data[0])
            elif (record := self.record(child.type)) is not None:
                prefix = f"{child.spelling}." if child.spelling.isidentifier() else ""  # libclang says where an unnamed one stands
                for member in record.members:
                    yield replace(member, name=prefix + member.name, offset=bits // 8 + member.offset)

    def _is_polymorphic(self, declaration: Cursor) -> bool:
        """Return whether objects begin with a vtable pointer, their own or their primary base's."""
        identity = declaration.canonical.data[0]
        if identity not in self._polymorphic:
            self._polymorphic[identity] = any(
                self._is_polymorphic(child.type.get_canonical().get_declaration()) if child.kind is _BASE else child.is_virtual_method()
                for child in _definition_children(declaration)
            )
        return self._polymorphic[identity]

    def _bases(self, declaration: Cursor) -> Iterator[tuple[Any, int]]:
        """Yield the base classes and their offsets.

        libclang 18 does not tell them, so they are laid out as the Itanium C++ ABI (§2.4, II) does: the primary base first, or a vtable
        pointer, then the others in order. A base's tail padding may be used by the next one; where that makes an offset uncertain,
        nothing more is yielded. Virtual bases have no fixed offset: nothing is.
        """
        kinds = [child.type.get_canonical() for child in _definition_children(declaration) if child.kind is _BASE]
        if not kinds or _has_virtual_base(declaration) or any(kind.get_size() <= 0 for kind in kinds):
            return
        primary = [kind for kind in kinds if self._is_polymorphic(kind.get_declaration())][:1]
        least = most = 0 if primary or not self._is_polymorphic(declaration) else CELL_BYTES
        for kind in [*primary, *(kind for kind in kinds if kind not in primary)]:
            align = kind.get_align()
            if _is_empty(kind):
                continue
            offset = -(-most // align) * align
            if -(-least // align) * align != offset:
                return
            yield kind, offset
            least, most = (offset + end for end in _data_end(kind))


def measured_texts(variables: Sequence[tuple[str, Shape | None]]) -> frozenset[str]:
    """Return the names of the texts among `variables` of which others tell the end or the length.

    They need no zero at their end, and may be long: a parser's place in its input, a buffer. The others are the features.
    """
    names = [name for name, _ in variables]
    texts = [index for index, (_, shape) in enumerate(variables) if isinstance(shape, Text)]
    numbers = [index for index, (_, shape) in enumerate(variables) if is_integer(shape)]
    bounded = {index for first, last, _, pointers in ranges(names) if pointers and {first, last} <= {*texts} for index in (first, last)}
    return frozenset(names[index] for index in bounded | measured(names, texts, numbers))


def is_integer(shape: Shape | None) -> bool:
    """Return whether values of a shape are whole numbers that count something."""
    return isinstance(shape, Scalar) and shape.labels is None and shape.load is not Load.FLOATING


def _is_long(shape: Shape) -> bool:
    return isinstance(shape, Scalar) and shape.load is not Load.FLOATING and shape.size == CELL_BYTES


def _unqualified(kind: Any) -> str:
    spelling: str = kind.spelling
    return spelling.removeprefix("const ")


def _shape(kind: Any) -> Shape | None:
    """Return the shape of a canonical type."""
    if kind.kind is TypeKind.POINTER:
        pointee = kind.get_pointee().get_canonical()
        return Text() if pointee.kind in _CHARACTERS else Pointer(pointee)
    if kind.kind in _REFERENCES:
        return Pointer(kind.get_pointee().get_canonical(), ".")
    if kind.kind is TypeKind.CONSTANTARRAY:
        return Text(inline=True) if kind.element_type.get_canonical().kind in _CHARACTERS else None
    if kind.kind is TypeKind.RECORD:
        return _standard_shape(kind)
    return _scalar(kind)


def _scalar(kind: Any) -> Scalar | None:
    size = kind.get_size()
    if kind.kind is TypeKind.ENUM:
        declaration = kind.get_declaration().get_definition()
        if declaration is None or size < 0:
            return None
        load = Load.SIGNED if declaration.enum_type.get_canonical().kind in _SIGNED else Load.UNSIGNED
        labels: dict[int, str] = {}
        for constant in declaration.get_children():
            if constant.kind is CursorKind.ENUM_CONSTANT_DECL:
                labels.setdefault(constant.enum_value, constant.spelling)
        return Scalar(load, size, labels)
    if kind.kind in _FLOATING:
        return Scalar(Load.FLOATING, size)
    if kind.kind in _SIGNED:
        return Scalar(Load.SIGNED, size)
    if kind.kind in _UNSIGNED:
        return Scalar(Load.UNSIGNED, size, _BOOLEAN if kind.kind is TypeKind.BOOL else None)
    return None


def _standard_shape(kind: Any) -> Shape | None:
    name, size = standard_name(kind), kind.get_size()
    if name is None or size <= 0:
        return None
    element = kind.get_template_argument_type(0).get_canonical()
    if name == "atomic" and element.get_size() == size:
        return _scalar(element)
    if _OWNERS.get(name) == size and element.kind is not TypeKind.INCOMPLETEARRAY:
        return Pointer(element)
    if name == "vector" and size == _VECTOR_BYTES and element.get_size() > 0:
        return VectorLayout(element.get_size())
    offset = _COUNT_AT.get((name, size))
    return None if offset is None else Count(offset)


def standard_name(kind: Any) -> str | None:
    """Return the name of a type of the C++ library (`vector`), None for other types. Works for dependent types too."""
    kind = kind.get_canonical()
    if kind.kind not in (TypeKind.RECORD, TypeKind.UNEXPOSED):
        return None
    declaration = kind.get_declaration()
    scope, outermost = declaration.semantic_parent, ""
    while scope is not None and scope.kind is not CursorKind.TRANSLATION_UNIT:
        scope, outermost = scope.semantic_parent, scope.spelling
    return declaration.spelling if outermost in _LIBRARY else None


def _definition_children(declaration: Cursor) -> list[Cursor]:
    """Return the children of a class, an instantiation's from its template: libclang shows none of its own."""
    unit = declaration._tu
    definition = bound(template_of(declaration), unit).get_definition() or declaration
    return [bound(child, unit) for child in children(definition)]


def _has_virtual_base(declaration: Cursor) -> bool:
    return any(
        conf.lib.clang_isVirtualBase(child) or _has_virtual_base(child.type.get_canonical().get_declaration())
        for child in _definition_children(declaration)
        if child.kind is _BASE
    )


def _data_end(kind: Any) -> tuple[int, int]:
    """Return the least and the most bytes of a base class that the next one cannot use: all of it, or all but its tail padding."""
    size = kind.get_size()
    if kind.is_pod():
        return size, size
    last = list(kind.get_fields())[-1:]
    if not last or last[0].is_bitfield() or last[0].type.get_canonical().kind in _REFERENCES:
        return size - kind.get_align() + 1, size
    end = last[0].get_field_offsetof() // 8 + last[0].type.get_size()
    return end, end


def _is_empty(kind: Any) -> bool:
    """Return whether a class without virtual bases takes no room as a base."""
    if kind.get_size() != 1 or any(True for _ in kind.get_fields()):
        return False
    bases = (child.type.get_canonical() for child in _definition_children(kind.get_declaration()) if child.kind is _BASE)
    return all(_is_empty(base) for base in bases)
