"""What a cursor refers to: keys and names of functions, types, fields and globals of the program.

Keys are USRs; where the USR does not tell two things apart (internal linkage, C types), the file that defines it is added. What lies
outside the tree has no key, except functions: a prototype in a system header may be defined by the program.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any, NamedTuple

from clang.cindex import CursorKind, TypeKind

from perfdiff.languages.c.cursors import (
    FUNCTION,
    INTERNAL_LINKAGE,
    RECORD,
    Cursor,
    SourcePositions,
    bound,
    is_null,
    native,
    spelling,
    template_of,
    unified_name,
    variants,
)
from perfdiff.languages.c.cython import stable_key
from perfdiff.records.differences import Entity, EntityKind

_VARIABLE = CursorKind.VAR_DECL.value
_FIELD = CursorKind.FIELD_DECL.value
_ENUM = CursorKind.ENUM_DECL.value
ALIAS_KEY = "type:alias:"
ENUMERATOR = CursorKind.ENUM_CONSTANT_DECL.value
ALIASES = frozenset(kind.value for kind in (CursorKind.TYPEDEF_DECL, CursorKind.TYPE_ALIAS_DECL, CursorKind.TYPE_ALIAS_TEMPLATE_DECL))
_OVERLOADS = CursorKind.OVERLOADED_DECL_REF.value
_NAMESPACE = CursorKind.NAMESPACE.value
_TEMPLATE_KINDS = frozenset((CursorKind.CLASS_TEMPLATE.value, CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION.value))
_FUNCTION_TEMPLATE = CursorKind.FUNCTION_TEMPLATE.value
_IN_VARIANTS = frozenset((CursorKind.CONSTRUCTOR.value, CursorKind.DESTRUCTOR.value))  # for whole objects, for parts of others, to delete
_SCOPES = RECORD | {_NAMESPACE, _ENUM}
_ARRAYS = frozenset((TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY, TypeKind.VARIABLEARRAY, TypeKind.DEPENDENTSIZEDARRAY))
_POINTERS = frozenset((TypeKind.POINTER, TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE))
_UNNAMED = re.compile(r"\((?:unnamed|anonymous|lambda)[^)]*\)")
_KEYWORD: dict[int, tuple[EntityKind, str]] = {
    CursorKind.STRUCT_DECL.value: (EntityKind.RECORD, "struct"),
    CursorKind.UNION_DECL.value: (EntityKind.RECORD, "union"),
    CursorKind.CLASS_DECL.value: (EntityKind.RECORD, "class"),
    CursorKind.ENUM_DECL.value: (EntityKind.TYPE, "enum"),
    CursorKind.ENUM_CONSTANT_DECL.value: (EntityKind.CASE, "enumerator"),
}


class ReferenceKind(IntEnum):
    """What a reference leads to."""

    NOTHING = 0
    FUNCTION = 1
    GLOBAL = 2
    FIELD = 3
    TYPE = 4
    CONSTANT = 5  # a global that nobody can write to


class ReferenceTarget(NamedTuple):
    """What a reference leads to: `keys` of functions, or of the types and globals it depends on; `name` of a field or global."""

    kind: ReferenceKind
    keys: tuple[str, ...] = ()
    name: str = ""


NOTHING = ReferenceTarget(ReferenceKind.NOTHING)


def stable_spelling(text: str) -> str:
    """Return a type's spelling without the path and line that clang writes into names of unnamed types."""
    return _UNNAMED.sub("(unnamed)", text)


def qualified_name(cursor: Cursor, unit: Any) -> str:
    """Return the name of a declaration as people write it, with its namespaces and classes."""
    parts = [spelling(cursor)]
    parent = native.clang_getCursorSemanticParent(cursor)
    while parent._kind_id in _SCOPES:
        name = spelling(parent)
        if parent._kind_id == _NAMESPACE and not name:
            name = "(anonymous namespace)"
        if _is_part_of_names(parent, name):
            parts.append(name)
        parent = native.clang_getCursorSemanticParent(parent)
    return "::".join(reversed(parts))


def linkage_names(cursor: Cursor, unit: Any) -> tuple[str, ...]:
    """Return the names of the symbols that a function may become; none of templates, of what stands in them, and of lambdas."""
    scope = cursor
    while scope._kind_id in _SCOPES | FUNCTION:
        if scope._kind_id in _TEMPLATE_KINDS or scope._kind_id == _FUNCTION_TEMPLATE:
            return ()
        scope = native.clang_getCursorSemanticParent(scope)
    if cursor._kind_id not in FUNCTION:
        return ()
    return variants(cursor) if cursor._kind_id in _IN_VARIANTS else (bound(cursor, unit).mangled_name,)


def _is_part_of_names(scope: Cursor, name: str) -> bool:
    if scope._kind_id == _ENUM:
        return bool(scope.is_scoped_enum())
    return scope._kind_id == _NAMESPACE or not _UNNAMED.search(name)


class ReferenceResolver:
    """Resolves the references of one translation unit, each declaration once. `types` collects the types met, by key."""

    def __init__(self, unit: Any, places: SourcePositions) -> None:
        self._unit = unit
        self._places = places
        self._targets: dict[int, ReferenceTarget] = {}
        self._values: dict[int, tuple[str, ...]] = {}
        self._steps: dict[int, tuple[str, ...]] = {}
        self._indirect: dict[int, bool] = {}
        self.types: dict[str, Cursor] = {}

    def target(self, cursor: Cursor) -> ReferenceTarget:
        """Return the target of an expression or reference cursor."""
        declaration = native.clang_getCursorReferenced(cursor)
        if declaration._kind_id == _OVERLOADS:
            return self.overloads(declaration)
        identity = declaration.data[0]
        target = self._targets.get(identity)
        if target is None:
            target = self._targets[identity] = self._resolve(declaration)
        return target

    def name_function(self, cursor: Cursor, key: str) -> None:
        """Let `cursor`, a function inside another function, be known under `key` in what follows."""
        self._targets[cursor.data[0]] = ReferenceTarget(ReferenceKind.FUNCTION, (key,))

    def overloads(self, cursor: Cursor) -> ReferenceTarget:
        """Return all functions that an unresolved name in a template may mean."""
        count = native.clang_getNumOverloadedDecls(cursor)
        targets = [self._resolve(native.clang_getOverloadedDecl(cursor, index)) for index in range(count)]
        return ReferenceTarget(
            ReferenceKind.FUNCTION, tuple(key for target in targets if target.kind is ReferenceKind.FUNCTION for key in target.keys)
        )

    def _resolve(self, declaration: Cursor) -> ReferenceTarget:
        kind = declaration._kind_id
        target = NOTHING
        if kind in FUNCTION:
            target = ReferenceTarget(ReferenceKind.FUNCTION, (self.function_key(declaration),))
        elif kind == _FIELD:
            target = self._field(declaration)
        elif kind == _VARIABLE:
            target = self._variable(declaration)
        elif kind == ENUMERATOR:
            target = ReferenceTarget(ReferenceKind.TYPE, self._enumerator_keys(declaration))
        elif kind in RECORD or kind == _ENUM:
            target = ReferenceTarget(ReferenceKind.TYPE, self._type_keys(declaration))
        elif kind in ALIASES:
            target = ReferenceTarget(
                ReferenceKind.TYPE, (*self._type_keys(declaration), *self.value_types(native.clang_getCursorType(declaration)))
            )
        return target

    def function_key(self, cursor: Cursor) -> str:
        """Return the key of a function: its USR, or its template's, and the file that defines it where it is not visible outside."""
        cursor = template_of(cursor)
        usr = stable_key(unified_name(cursor))
        return f"{usr}@{self._home(cursor)}" if native.clang_getCursorLinkage(cursor) in INTERNAL_LINKAGE else usr

    def _home(self, cursor: Cursor) -> str:
        definition = native.clang_getCursorDefinition(cursor)
        place = self._places.of(cursor if is_null(definition) else definition)
        return place.file if place is not None else ""

    def _field(self, field: Cursor) -> ReferenceTarget:
        record = template_of(native.clang_getCursorSemanticParent(field))
        while bound(record, self._unit).is_anonymous() and (outer := native.clang_getCursorSemanticParent(record))._kind_id in RECORD:
            record = template_of(outer)
        keys = self._type_keys(record)
        if not keys:
            return NOTHING
        return ReferenceTarget(ReferenceKind.FIELD, keys, f"{self.entity(record)}.{stable_spelling(spelling(field))}")

    def _variable(self, variable: Cursor) -> ReferenceTarget:
        variable = template_of(variable)
        parent = native.clang_getCursorSemanticParent(variable)._kind_id
        if parent not in _SCOPES and parent != CursorKind.TRANSLATION_UNIT.value:
            return NOTHING
        if self._places.of(variable) is None:
            return NOTHING
        declared = native.clang_getCursorType(variable)
        declared._tu = self._unit
        kind = ReferenceKind.CONSTANT if declared.get_canonical().is_const_qualified() else ReferenceKind.GLOBAL
        return ReferenceTarget(kind, (self.global_key(variable),), qualified_name(variable, self._unit))

    def global_key(self, variable: Cursor) -> str:
        """Return the key of a variable outside of functions."""
        usr = unified_name(variable)
        internal = native.clang_getCursorLinkage(variable) in INTERNAL_LINKAGE
        return f"global:{usr}@{self._home(variable)}" if internal else f"global:{usr}"

    def _type_keys(self, declaration: Cursor) -> tuple[str, ...]:
        declaration = template_of(declaration)
        definition = native.clang_getCursorDefinition(declaration)
        place = None if is_null(definition) else self._places.of(definition)
        if place is None:
            return ()
        parent = native.clang_getCursorSemanticParent(definition)._kind_id
        if parent in FUNCTION:
            return ()  # a local type is part of the function's own text
        prefix = ALIAS_KEY if declaration._kind_id in ALIASES else "type:"
        key = f"{prefix}{unified_name(definition)}@{place.file}"
        self.types.setdefault(key, bound(definition, self._unit))
        return (key,)

    def _enumerator_keys(self, enumerator: Cursor) -> tuple[str, ...]:
        keys = self._type_keys(native.clang_getCursorSemanticParent(enumerator))
        named = tuple(f"{key}:{spelling(enumerator)}" for key in keys)
        for key in named:
            self.types.setdefault(key, bound(enumerator, self._unit))
        return named

    def entity(self, record: Cursor) -> Entity:
        """Return a type or enumerator as what functions depend on: `struct list`, `class db::Table`."""
        kind = native.clang_getTemplateCursorKind(record) if record._kind_id in _TEMPLATE_KINDS else record._kind_id
        what = (EntityKind.ALIAS, "type") if kind in ALIASES else _KEYWORD.get(kind, (EntityKind.RECORD, "class"))
        return Entity(*what, stable_spelling(qualified_name(record, self._unit)))

    def record_names(self, kind: Any) -> tuple[str, ...]:
        """Return what the records among `value_types` are called: an enumeration has no parts to share."""
        types = (self.types[key] for key in self.value_types(kind))
        return tuple(str(self.entity(record)) for record in types if record._kind_id != _ENUM)

    def value_types(self, kind: Any) -> tuple[str, ...]:
        """Return the keys of the types whose layout a value of this type has: none for pointers, the elements' for arrays."""
        identity = kind.data[0]
        if identity not in self._values:
            self._values[identity] = self._declared(self._plain(kind))
        return self._values[identity]

    def step_types(self, kind: Any) -> tuple[str, ...]:
        """Return the keys of the types whose size pointer arithmetic on this type uses."""
        identity = kind.data[0]
        if identity not in self._steps:
            plain = self._plain(kind)
            self._steps[identity] = self._declared(self._plain(plain.get_pointee())) if plain.kind is TypeKind.POINTER else ()
        return self._steps[identity]

    def is_indirect(self, kind: Any) -> bool:
        """Return whether values of this type are pointers, references or functions, or arrays of these."""
        identity = kind.data[0]
        if identity not in self._indirect:
            plain = self._plain(kind)
            if plain.kind is TypeKind.FUNCTIONPROTO or plain.kind is TypeKind.FUNCTIONNOPROTO:
                plain = self._plain(plain.get_result())
            self._indirect[identity] = plain.kind in _POINTERS
        return self._indirect[identity]

    def _plain(self, kind: Any) -> Any:
        kind._tu = self._unit
        plain = kind.get_canonical()
        while plain.kind in _ARRAYS:
            plain = plain.element_type.get_canonical()
        return plain

    def _declared(self, plain: Any) -> tuple[str, ...]:
        if plain.kind not in (TypeKind.RECORD, TypeKind.ENUM, TypeKind.UNEXPOSED):
            return ()
        declaration = plain.get_declaration()
        if is_null(declaration):
            return ()
        return self._type_keys(declaration)
