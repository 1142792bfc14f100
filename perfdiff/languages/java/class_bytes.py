"""A class file by its parts, each as its bytes are: read strictly, so that what is damaged is no class file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

LINES, DEBUG_EXTENSION, CODE = b"LineNumberTable", b"SourceDebugExtension", b"Code"
UTF8, INTEGER, FLOAT, LONG, DOUBLE, CLASS, STRING = 1, 3, 4, 5, 6, 7, 8
FIELD, METHOD, INTERFACE_METHOD, NAME_AND_TYPE = 9, 10, 11, 12
HANDLE, METHOD_TYPE, DYNAMIC, INVOKE_DYNAMIC, MODULE, PACKAGE = 15, 16, 17, 18, 19, 20
_MAGIC = b"\xca\xfe\xba\xbe"
_BYTE, _SHORT, _LONG = struct.Struct(">B"), struct.Struct(">H"), struct.Struct(">I")
_WIDE = (LONG, DOUBLE)  # take two numbers of the pool
_SIZES = {
    **dict.fromkeys((INTEGER, FLOAT, FIELD, METHOD, INTERFACE_METHOD, NAME_AND_TYPE, DYNAMIC, INVOKE_DYNAMIC), 4),
    **dict.fromkeys(_WIDE, 8),
    **dict.fromkeys((CLASS, STRING, METHOD_TYPE, MODULE, PACKAGE), 2),
    HANDLE: 3,
}


class DamagedClassError(Exception):
    """A file is no class file."""


class Constant(NamedTuple):
    """An entry of the constant pool: its kind and its bytes, for a text without its length."""

    kind: int
    content: bytes


class Attribute(NamedTuple):
    """An attribute; `name` is its name's number in the constant pool."""

    name: int
    content: bytes


class CodeParts(NamedTuple):
    """What a method's `Code` attribute holds; `name` is its name's number in the constant pool."""

    name: int
    limits: bytes  # of its stack and its locals
    instructions: bytes
    handlers: bytes
    attributes: tuple[Attribute, ...]


class Member(NamedTuple):
    """A field or method; its access, name and type are numbers."""

    access: int
    name: int
    descriptor: int
    attributes: tuple[Attribute | CodeParts, ...]


@dataclass(frozen=True, slots=True)
class ClassParts:
    """A class file; `constants` begin with number 0, which is none. Tables of lines are empty."""

    version: bytes
    constants: tuple[Constant | None, ...]
    access: int
    own: int
    parent: int
    interfaces: tuple[int, ...]
    fields: tuple[Member, ...]
    methods: tuple[Member, ...]
    attributes: tuple[Attribute | CodeParts, ...]


class Cursor:
    """Takes bytes one after the other; raises DamagedClassError behind the last one."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        at = self.at
        self.at = at + size
        if self.at > len(self.content):
            raise DamagedClassError
        return self.content[at : at + size]

    def byte(self) -> int:
        """Return the next byte as a number."""
        return self._number(_BYTE)

    def short(self) -> int:
        """Return the next two bytes as a number."""
        return self._number(_SHORT)

    def long(self) -> int:
        """Return the next four bytes as a number."""
        return self._number(_LONG)

    def shorts(self) -> tuple[int, ...]:
        """Return as many numbers of two bytes as the next one says."""
        count = self.short()
        return struct.unpack(f">{count}H", self.take(2 * count))

    def _number(self, form: struct.Struct) -> int:
        at = self.at
        self.at = at + form.size
        if self.at > len(self.content):
            raise DamagedClassError
        number: int = form.unpack_from(self.content, at)[0]
        return number

    def end(self) -> None:
        """Raise DamagedClassError where bytes are left."""
        if self.at != len(self.content):
            raise DamagedClassError


def read(content: bytes) -> ClassParts:
    """Return the parts of a class file; raise DamagedClassError."""
    cursor = Cursor(content)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise DamagedClassError
    version, constants = cursor.take(4), _constants(cursor)
    access, own, parent, interfaces = cursor.short(), cursor.short(), cursor.short(), cursor.shorts()
    fields, methods = _members(cursor, constants), _members(cursor, constants)
    attributes = _attributes(cursor, constants)
    cursor.end()
    return ClassParts(version, constants, access, own, parent, interfaces, fields, methods, attributes)


def name_of(content: bytes) -> str:
    """Return the internal name of a class, `com/acme/Box`; raise DamagedClassError."""
    parts = read(content)
    own = parts.constants[parts.own] if parts.own < len(parts.constants) else None
    if own is None or own.kind != CLASS:
        raise DamagedClassError
    return text(parts.constants, _SHORT.unpack(own.content)[0]).decode(errors="surrogateescape")


def text(constants: tuple[Constant | None, ...], number: int) -> bytes:
    """Return the text that an entry of a constant pool is; raise DamagedClassError."""
    constant = constants[number] if number < len(constants) else None
    if constant is None or constant.kind != UTF8:
        raise DamagedClassError
    return constant.content


def _constants(cursor: Cursor) -> tuple[Constant | None, ...]:
    count = cursor.short()
    constants: list[Constant | None] = [None]
    while len(constants) < count:
        kind = cursor.byte()
        if kind not in _SIZES and kind != UTF8:
            raise DamagedClassError
        constants.append(Constant(kind, cursor.take(cursor.short() if kind == UTF8 else _SIZES[kind])))
        constants += [None] if kind in _WIDE else []
    return tuple(constants)


def _members(cursor: Cursor, constants: tuple[Constant | None, ...]) -> tuple[Member, ...]:
    return tuple(Member(cursor.short(), cursor.short(), cursor.short(), _attributes(cursor, constants)) for _ in range(cursor.short()))


def _attributes(cursor: Cursor, constants: tuple[Constant | None, ...]) -> tuple[Attribute | CodeParts, ...]:
    attributes: list[Attribute | CodeParts] = []
    for attribute in _plain_attributes(cursor, constants):
        attributes.append(_code(attribute, constants) if text(constants, attribute.name) == CODE else attribute)
    return tuple(attributes)


def _plain_attributes(cursor: Cursor, constants: tuple[Constant | None, ...]) -> tuple[Attribute, ...]:
    attributes = []
    for _ in range(cursor.short()):
        name, content = cursor.short(), cursor.take(cursor.long())
        attributes.append(Attribute(name, b"" if text(constants, name) in (LINES, DEBUG_EXTENSION) else content))
    return tuple(attributes)


def _code(attribute: Attribute, constants: tuple[Constant | None, ...]) -> CodeParts:
    cursor = Cursor(attribute.content)
    limits, instructions, handlers = cursor.take(4), cursor.take(cursor.long()), cursor.take(8 * cursor.short())
    attributes = _plain_attributes(cursor, constants)
    cursor.end()
    return CodeParts(attribute.name, limits, instructions, handlers, attributes)
