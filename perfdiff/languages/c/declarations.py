"""What functions depend on besides their own text: types, macros, globals, and the fingerprint of each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from clang.cindex import CursorKind

from perfdiff.languages.c import lexer
from perfdiff.languages.c.bodies import walk
from perfdiff.languages.c.cursors import RECORD, Cursor, SourcePosition, SourcePositions, bound, children, is_null, native, spelling
from perfdiff.languages.c.macro_bodies import BodyTemplate, parts
from perfdiff.languages.c.references import ALIASES, ENUMERATOR, ReferenceResolver, qualified_name, stable_spelling
from perfdiff.languages.closure import closure
from perfdiff.languages.digest import digest
from perfdiff.languages.protocol import Declaration, MacroBody
from perfdiff.records.differences import Entity, EntityKind

_ENUM = CursorKind.ENUM_DECL.value
_FIELD = CursorKind.FIELD_DECL.value
_BASE = CursorKind.CXX_BASE_SPECIFIER.value
_REFERENCES = frozenset((CursorKind.TYPE_REF.value, CursorKind.TEMPLATE_REF.value, CursorKind.NAMESPACE_REF.value))
_SUMMARY = 40  # characters of a definition shown to people


@dataclass(frozen=True, slots=True)
class Dependency:
    """A declaration with what it depends on itself: keys of other declarations, and of functions that its initialiser names."""

    declaration: Declaration
    uses: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()


def _shown(text: bytes) -> str:
    """Return a definition on one line, or nothing where it is too long to be read in a sentence."""
    line = " ".join(text.decode("utf-8", "replace").replace("\\\n", " ").split())
    return line if len(line) <= _SUMMARY else ""


class Types:
    """Describes the types that `ReferenceResolver` has met."""

    def __init__(self, unit: Any, places: SourcePositions, references: ReferenceResolver) -> None:
        self._unit, self._places, self._references = unit, places, references

    def describe(self, key: str, cursor: Cursor) -> Dependency:
        """Return as a declaration: size, alignment and fields of a record, the type behind an enum or alias, an enumerator's value."""
        place = self._places.of(cursor) or SourcePosition("", 0, 0)
        uses: set[str] = set()
        size_bytes = None
        if cursor._kind_id in ALIASES:
            summary = stable_spelling(bound(cursor, self._unit).underlying_typedef_type.get_canonical().spelling)
            shape = [summary]
        elif cursor._kind_id == _ENUM:
            # Not its enumerators: code depends on those that it names, and one more changes nothing for the others.
            summary = _underlying_type(cursor)
            shape = [summary]
        elif cursor._kind_id == ENUMERATOR:
            summary = str(bound(cursor, self._unit).enum_value)
            shape = [summary, _underlying_type(bound(native.clang_getCursorSemanticParent(cursor), self._unit))]
        else:
            shape, size = self._layout(cursor, uses)
            size_bytes = size if size >= 0 else None
            summary = f"{size} bytes" if size >= 0 else "a template"
        uses.discard(key)
        declaration = Declaration(key, self._references.entity(cursor), digest(shape), summary, place.file, place.line, size_bytes)
        return Dependency(declaration, frozenset(uses))

    def _layout(self, record: Cursor, uses: set[str]) -> tuple[list[str], int]:
        kind = native.clang_getCursorType(record)
        kind._tu = self._unit
        size, alignment = kind.get_size(), kind.get_align()
        shape = [f"{size}/{alignment}"]
        for member in children(record):
            member_type = native.clang_getCursorType(member)
            member_type._tu = self._unit
            if member._kind_id == _BASE:
                shape.append(f"base {stable_spelling(member_type.get_canonical().spelling)}")
                uses.update(self._references.value_types(member_type))
            elif member._kind_id == _FIELD:
                shape.extend(self._field(member, member_type))
                uses.update(self._references.value_types(member_type))
            elif member._kind_id in RECORD and bound(member, self._unit).is_anonymous():
                shape.extend(self._layout(member, uses)[0])
        return shape, size

    def _field(self, member: Cursor, kind: Any) -> list[str]:
        bound(member, self._unit)
        bits = f":{member.get_bitfield_width()}" if member.is_bitfield() else ""
        shape = [f"{member.spelling} {stable_spelling(kind.get_canonical().spelling)}{bits}@{member.get_field_offsetof()}"]
        if any(child._kind_id not in _REFERENCES for child in children(member)):
            shape.extend(lexer.tokens(_text_from_name(member, self._places)))  # default initialiser
        return shape


def _underlying_type(enum: Cursor) -> str:
    return stable_spelling(enum.enum_type.get_canonical().spelling)


def _text_from_name(cursor: Cursor, places: SourcePositions) -> bytes:
    name, span = places.of(cursor), places.span(cursor)
    if name is None or span is None or span[0].file != name.file:
        return b""
    return places.source(name.file)[name.offset : span[1]]


def describe_global(cursor: Cursor, unit: Any, places: SourcePositions, references: ReferenceResolver) -> Dependency | None:
    """Return a variable's type and initialiser as a declaration; None for a mere `extern` declaration."""
    place = places.of(cursor)
    if place is None or not native.clang_isCursorDefinition(cursor):
        return None
    kind = native.clang_getCursorType(cursor)
    text = _text_from_name(cursor, places)
    tokens = lexer.tokens(text)
    uses, calls = set(references.value_types(kind)), frozenset[str]()
    if any(map(lexer.is_word, tokens[1:])):  # a table of plain numbers refers to nothing, and may be large
        initialiser = walk(cursor, references)
        uses |= initialiser.uses
        calls = frozenset(initialiser.calls)
    key = references.global_key(cursor)
    kind._tu = unit
    spelling = stable_spelling(kind.get_canonical().spelling)
    entity = Entity(EntityKind.VARIABLE, "global", qualified_name(cursor, unit))
    declaration = Declaration(key, entity, digest([spelling, *tokens]), _shown(text.partition(b"=")[2]), place.file, place.line)
    return Dependency(declaration, frozenset(uses - {key}), calls)


@dataclass(frozen=True, slots=True)
class Macro:
    """A `#define` as it stands in a file of the tree."""

    key: str
    name: str
    file: str
    line: int
    start: int
    text: bytes
    tokens: tuple[str, ...]

    @property
    def shown(self) -> str:
        return _shown(self.text[len(self.name) :])


@dataclass(slots=True)
class Macros:
    """The macros that the tree's files define and where they are expanded. Several definitions of a name in one file count as one.

    `written` are the definitions that other units met, by file and offset.
    """

    unit: Any
    places: SourcePositions
    written: dict[tuple[str, int], Macro]
    _definitions: dict[str, list[Macro]] = field(default_factory=dict)
    _expansions: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    _by_key: dict[str, list[Macro]] = field(default_factory=dict)
    _inner_by_key: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _words_by_key: dict[str, frozenset[str]] = field(default_factory=dict)

    def define(self, cursor: Cursor, place: SourcePosition) -> None:
        """Take note of a `#define`."""
        macro = self.written.get((place.file, place.offset)) or self._read(cursor, place)
        if macro is not None:
            self.written[place.file, place.offset] = macro
            self._definitions.setdefault(macro.name, []).append(macro)
            self._by_key.setdefault(macro.key, []).append(macro)

    def _read(self, cursor: Cursor, place: SourcePosition) -> Macro | None:
        span = self.places.span(cursor)
        if span is None:
            return None
        name = spelling(cursor)
        text = self.places.source(place.file)[span[0].offset : span[1]]
        return Macro(f"macro:{name}@{place.file}", name, place.file, place.line, span[0].offset, text, tuple(lexer.tokens(text)))

    def expand(self, cursor: Cursor, place: SourcePosition) -> None:
        """Take note of an expansion, or of a test such as `#ifdef`."""
        name = spelling(cursor)
        if name in self._definitions:
            self._expansions.setdefault(place.file, []).append((place.offset, self._meant(cursor, name)))

    def _meant(self, cursor: Cursor, name: str) -> str:
        keys = [macro.key for macro in self._definitions[name]]
        if len(set(keys)) > 1:
            definition = native.clang_getCursorReferenced(cursor)
            place = None if is_null(definition) else self.places.of(definition)
            if place is not None and (key := f"macro:{name}@{place.file}") in keys:
                return key
        return keys[0]

    def within(self, file: str, start: int, end: int, holes: Iterable[tuple[int, int]] = ()) -> set[str]:
        """Return the keys of the macros expanded between two offsets, outside of `holes`."""
        expansions = self._expansions.get(file, [])
        first = bisect_left(expansions, (start, ""))
        keys = set()
        for offset, key in expansions[first:]:
            if offset >= end:
                break
            if not any(hole_start <= offset < hole_end for hole_start, hole_end in holes):
                keys.add(key)
        return keys

    def sort(self) -> None:
        """Order the expansions by offset, once all of them are known; headers may be met several times."""
        for file, expansions in self._expansions.items():
            self._expansions[file] = sorted(set(expansions))

    def words(self, keys: Iterable[str]) -> set[str]:
        """Return all tokens that macros and the macros inside them expand to; all definitions must have been met."""
        return set[str]().union(*map(self._words, keys))

    def _words(self, key: str) -> frozenset[str]:
        if key not in self._words_by_key:
            reached = closure((key,), self._inner)
            self._words_by_key[key] = frozenset(word for inner in reached for macro in self._by_key[inner] for word in macro.tokens)
        return self._words_by_key[key]

    def _inner(self, key: str) -> tuple[str, ...]:
        """Return the keys of the macros that the definitions of one name."""
        if key not in self._inner_by_key:
            words = (word for macro in self._by_key[key] for word in macro.tokens[1:] if word in self._definitions)
            self._inner_by_key[key] = tuple(dict.fromkeys(inner.key for word in words for inner in self._definitions[word]))
        return self._inner_by_key[key]

    def body(self, file: str, use: int, name: str) -> MacroBody | None:
        """Return where the body stands of a function that the macro used at an offset makes; None where that is not sure."""
        expansions = self._expansions.get(file, [])
        used = [key for offset, key in expansions[bisect_left(expansions, (use, "")) :] if offset == use]
        first = next(lexer.scan(self.places.source(file), use), (use, b""))[1].decode("latin-1")
        keys = [key for key in used if self._by_key[key][0].name == first]
        bodies = [body for key in keys for body in self._bodies(key, ())]
        fitting = [(macro, body) for macro, body in bodies if all(word.decode("latin-1") in name for word in body.words)]
        lengths = [sum(map(len, body.words)) for _, body in fitting]
        if not fitting or lengths.count(max(lengths)) > 1:
            return None
        macro, body = fitting[lengths.index(max(lengths))]
        return MacroBody(macro.file, macro.start + body.offset)

    def _bodies(self, key: str, path: tuple[str, ...]) -> Iterator[tuple[Macro, BodyTemplate]]:
        """Yield the bodies of functions in a macro, and in those that it uses outside of them; none of one that has two definitions."""
        macro, *others = self._by_key[key]
        if others or key in path:
            return
        for part in parts(macro.text):
            if isinstance(part, BodyTemplate):
                yield macro, part
            elif len(inner := sorted({used.key for used in self._definitions.get(part.decode("latin-1"), ())})) == 1:
                yield from self._bodies(inner[0], (*path, key))

    def describe(self, key: str) -> Dependency:
        """Return a macro as a declaration."""
        macros = self._by_key[key]
        first = macros[0]
        fingerprint = digest(token for macro in macros for token in (*macro.tokens[1:], "\n"))
        inner = frozenset(self._inner(key)) - {key}
        declaration = Declaration(
            key, Entity(EntityKind.MACRO, "macro", first.name), fingerprint, first.shown if len(macros) == 1 else "", first.file, first.line
        )
        return Dependency(declaration, inner)
