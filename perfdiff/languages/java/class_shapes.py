"""What of a class file is seen without calling its methods, and each method's code; both with constants for their numbers in the pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from perfdiff.languages.java import class_bytes
from perfdiff.languages.java.class_bytes import Attribute, ClassParts, CodeParts, Constant, Cursor, DamagedClassError, Member

Meaning = Any  # nested tuples of bytes and numbers: equal where the class files say the same
_BOOTSTRAPS = b"BootstrapMethods"
_DEEPEST = 8  # constants that constants are made of
_LOAD, _WIDE, _TABLE_SWITCH, _LOOKUP_SWITCH, _INCREMENT = 0x12, 0xC4, 0xAA, 0xAB, 0x84
# Instructions by how many bytes of the number of a constant follow, and others by how many bytes do.
_OF_CONSTANTS = {
    _LOAD: 1,
    **dict.fromkeys((0x13, 0x14, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xBB, 0xBD, 0xC0, 0xC1, 0xC5), 2),
}
_BEHIND = {0xB9: 2, 0xBA: 2, 0xC5: 1}  # bytes behind the number
_PLAIN = {
    **dict.fromkeys((0x10, 0xBC, *range(0x15, 0x1A), *range(0x36, 0x3B), 0xA9), 1),
    **dict.fromkeys((0x11, _INCREMENT, *range(0x99, 0xA9), 0xC6, 0xC7), 2),
    **dict.fromkeys((0xC8, 0xC9), 4),
}
_LAST = 0xC9
_OBJECT, _UNINITIALIZED = 7, 8  # of verification types


@dataclass(frozen=True)
class ClassShape:
    """A class file whose parts are compared by what they mean."""

    parts: ClassParts
    _read: dict[int, Meaning] = field(default_factory=lambda: {0: None})  # constants by their number

    @cached_property
    def outside(self) -> Meaning:
        """Return all but the code of methods, and the constants that this alone names; raise DamagedClassError where that is not known."""
        parts = self.parts
        return (
            parts.version,
            parts.access,
            self._constant(parts.own),
            self._constant(parts.parent),
            tuple(map(self._constant, parts.interfaces)),
            tuple(map(self._member, parts.fields)),
            tuple(map(self._member, parts.methods)),
            tuple(self._attribute(one) for one in parts.attributes if self._text(one.name) != _BOOTSTRAPS),
        )

    @cached_property
    def codes(self) -> dict[str, CodeParts | None]:
        """Return the code of each method, called as the index does: by its class, name and type."""
        owner = self._constant(self.parts.own)[1]
        found: dict[str, CodeParts | None] = {}
        for one in self.parts.methods:
            words = (owner, self._text(one.name), self._text(one.descriptor))
            code = next((part for part in one.attributes if isinstance(part, CodeParts)), None)
            found[b" ".join(words).decode("utf-8", "surrogateescape")] = code
        return found

    def code(self, one: CodeParts | None) -> Meaning:
        """Return what a method's code is; raise DamagedClassError where that is not known."""
        if one is None:
            return None
        handlers = Cursor(one.handlers)
        caught = tuple((handlers.take(6), self._constant(handlers.short())) for _ in range(len(one.handlers) // 8))
        return (one.limits, self._instructions(one.instructions), caught, tuple(map(self._attribute, one.attributes)))

    def _text(self, number: int) -> bytes:
        return class_bytes.text(self.parts.constants, number)

    def _member(self, one: Member) -> Meaning:
        attributes = tuple(self._attribute(part) for part in one.attributes if isinstance(part, Attribute))
        return (one.access, self._text(one.name), self._text(one.descriptor), len(attributes) == len(one.attributes), attributes)

    def _constant(self, number: int, depth: int = 0) -> Meaning:
        if number in self._read:
            return self._read[number]
        one = self.parts.constants[number] if number < len(self.parts.constants) else None
        if one is None or depth > _DEEPEST:
            raise DamagedClassError
        meaning = self._read[number] = (one.kind, *self._made_of(one, Cursor(one.content), depth + 1))
        return meaning

    def _made_of(self, one: Constant, cursor: Cursor, depth: int) -> tuple[Meaning, ...]:
        if one.kind in (class_bytes.CLASS, class_bytes.STRING, class_bytes.METHOD_TYPE, class_bytes.MODULE, class_bytes.PACKAGE):
            return (self._text(cursor.short()),)
        if one.kind == class_bytes.NAME_AND_TYPE:
            return (self._text(cursor.short()), self._text(cursor.short()))
        if one.kind == class_bytes.HANDLE:
            return (cursor.byte(), self._constant(cursor.short(), depth))
        if one.kind in (class_bytes.DYNAMIC, class_bytes.INVOKE_DYNAMIC):
            return (self._bootstrap(cursor.short(), depth), self._constant(cursor.short(), depth))
        if one.kind in (class_bytes.FIELD, class_bytes.METHOD, class_bytes.INTERFACE_METHOD):
            return (self._constant(cursor.short(), depth), self._constant(cursor.short(), depth))
        return (one.content,)

    def _bootstrap(self, number: int, depth: int) -> Meaning:
        if number >= len(self._bootstraps):
            raise DamagedClassError
        method, arguments = self._bootstraps[number]
        return (self._constant(method, depth), *(self._constant(one, depth) for one in arguments))

    @cached_property
    def _bootstraps(self) -> list[tuple[int, tuple[int, ...]]]:
        for one in self.parts.attributes:
            if isinstance(one, Attribute) and self._text(one.name) == _BOOTSTRAPS:
                cursor = Cursor(one.content)
                return [(cursor.short(), cursor.shorts()) for _ in range(cursor.short())]
        return []

    def _instructions(self, content: bytes) -> Meaning:
        """Read instructions: the stretches between those that name constants as they are."""
        cursor, found, start = Cursor(content), list[Meaning](), 0
        while cursor.at < len(content):
            code = content[cursor.at]
            cursor.at += 1
            if code in _OF_CONSTANTS:
                found.append(content[start : cursor.at])
                found.append(self._constant(int.from_bytes(cursor.take(_OF_CONSTANTS[code]))))
                start = cursor.at
                cursor.take(_BEHIND.get(code, 0))
            elif code > _LAST:
                raise DamagedClassError
            else:
                cursor.take(_PLAIN.get(code, 0) or _following(code, cursor))
        return (*found, content[start:])

    def _attribute(self, one: Attribute | CodeParts) -> Meaning:
        name = self._text(one.name)
        if isinstance(one, CodeParts) or name not in _READERS:
            raise DamagedClassError  # one whose content is not known
        cursor = Cursor(one.content)
        meaning = _READERS[name](_Reading(self._constant, cursor))
        cursor.end()
        return (name, meaning)


def _following(code: int, cursor: Cursor) -> int:
    """Return how many bytes follow behind an instruction that names no constant."""
    if code == _WIDE:
        return 5 if cursor.content[cursor.at : cursor.at + 1] == bytes((_INCREMENT,)) else 3
    if code not in (_TABLE_SWITCH, _LOOKUP_SWITCH):
        return 0
    padding, words = -cursor.at % 4, Cursor(cursor.content)
    words.at = cursor.at + padding + 4
    first = words.long()
    size = 8 + 8 * first if code == _LOOKUP_SWITCH else 12 + 4 * (words.long() - first + 1)
    if size < 0:
        raise DamagedClassError
    return padding + size


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads the content of an attribute."""

    constant: Callable[[int], Meaning]
    cursor: Cursor

    def one(self) -> Meaning:
        return self.constant(self.cursor.short())

    def several(self) -> Meaning:
        return tuple(map(self.constant, self.cursor.shorts()))

    def nothing(self) -> Meaning:
        """Read what is empty: marks, and tables of lines, which were left out."""
        return ()

    def nested(self) -> Meaning:
        return tuple((self.one(), self.one(), self.one(), self.cursor.short()) for _ in range(self.cursor.short()))

    def parameters(self) -> Meaning:
        return tuple((self.one(), self.cursor.short()) for _ in range(self.cursor.byte()))

    def enclosing(self) -> Meaning:
        return (self.one(), self.one())

    def locals(self) -> Meaning:
        return tuple((self.cursor.take(4), self.one(), self.one(), self.cursor.short()) for _ in range(self.cursor.short()))

    def annotations(self) -> Meaning:
        return tuple(self._annotation() for _ in range(self.cursor.short()))

    def of_parameters(self) -> Meaning:
        return tuple(self.annotations() for _ in range(self.cursor.byte()))

    def _annotation(self) -> Meaning:
        return (self.one(), tuple((self.one(), self.value()) for _ in range(self.cursor.short())))

    def value(self, depth: int = 0) -> Meaning:
        tag = self.cursor.take(1)
        if depth > _DEEPEST:
            raise DamagedClassError
        if tag == b"e":
            return (tag, self.one(), self.one())
        if tag == b"@":
            return (tag, self._annotation())
        if tag == b"[":
            return (tag, tuple(self.value(depth + 1) for _ in range(self.cursor.short())))
        return (tag, self.one())

    def frames(self) -> Meaning:
        return tuple(self._frame() for _ in range(self.cursor.short()))

    def _frame(self) -> Meaning:
        kind = self.cursor.byte()
        if kind < 64:
            return (kind,)
        if kind < 128:
            return (kind, self._type())
        if kind < 247:
            raise DamagedClassError
        distance = self.cursor.short()
        if kind == 247:
            return (kind, distance, self._type())
        if kind < 252:
            return (kind, distance)
        if kind < 255:
            return (kind, distance, *(self._type() for _ in range(kind - 251)))
        return (kind, distance, *(tuple(self._type() for _ in range(self.cursor.short())) for _ in range(2)))

    def _type(self) -> Meaning:
        kind = self.cursor.byte()
        return (kind, self.one() if kind == _OBJECT else self.cursor.short() if kind == _UNINITIALIZED else None)


# Attributes that are not here, such as annotations of types, and parts of records, leave a class as a whole to be compared.
_READERS: dict[bytes, Callable[[_Reading], Meaning]] = {
    **dict.fromkeys((b"ConstantValue", b"Signature", b"SourceFile", b"NestHost"), _Reading.one),
    **dict.fromkeys((b"Exceptions", b"NestMembers", b"PermittedSubclasses"), _Reading.several),
    **dict.fromkeys((b"Synthetic", b"Deprecated", class_bytes.LINES, class_bytes.DEBUG_EXTENSION), _Reading.nothing),
    **dict.fromkeys((b"RuntimeVisibleAnnotations", b"RuntimeInvisibleAnnotations"), _Reading.annotations),
    **dict.fromkeys((b"RuntimeVisibleParameterAnnotations", b"RuntimeInvisibleParameterAnnotations"), _Reading.of_parameters),
    **dict.fromkeys((b"LocalVariableTable", b"LocalVariableTypeTable"), _Reading.locals),
    b"AnnotationDefault": _Reading.value,
    b"EnclosingMethod": _Reading.enclosing,
    b"InnerClasses": _Reading.nested,
    b"MethodParameters": _Reading.parameters,
    b"StackMapTable": _Reading.frames,
}
