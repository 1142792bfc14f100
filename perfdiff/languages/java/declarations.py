"""What methods depend on besides other methods: classes and what they inherit from, constants of enums, records, fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfdiff.languages.digest import digest
from perfdiff.languages.java import normal, types
from perfdiff.languages.java.classes import ENUM, FINAL, STATIC, SYNTHETIC, Field
from perfdiff.languages.java.hierarchy import Hierarchy
from perfdiff.languages.java.joining import Joined
from perfdiff.languages.java.syntax import MemberText, Role
from perfdiff.languages.java.texts import tokens
from perfdiff.languages.protocol import Declaration, FunctionDefinition
from perfdiff.records.differences import Entity, EntityKind

CONSTANT, CLASS, INTERFACES, LAYOUT = "java:constant ", "java:class ", "java:interfaces ", "java:fields "
CONSTANTS, RECORD, FIELD = "java:constants ", "java:record ", "java:field "
OVERRIDDEN = "java:overridden "
_NUMBER = re.compile(r"#\d+")
_MOST_TEXT = 40  # characters of a value that are said when it changes
_IMPLICIT = frozenset(("java/lang/Object", "java/lang/Enum", "java/lang/Record"))  # parents that nobody writes
_VOLATILE, _TRANSIENT = 0x0040, 0x0080
_MEANT = STATIC | FINAL | _VOLATILE | _TRANSIENT


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The declarations of a program, what each depends on itself, and their keys: by kind and class, and by class and field."""

    declarations: Mapping[str, Declaration]
    depends: Mapping[str, frozenset[str]]
    keys: Mapping[tuple[str, str], str]
    fields: Mapping[tuple[str, str], str]


def dependencies(joined: Mapping[str, Joined], hierarchy: Hierarchy) -> Dependencies:
    """Return the declarations of classes by internal name."""
    declarations: dict[str, Declaration] = {}
    depends: dict[str, frozenset[str]] = {}
    keys: dict[tuple[str, str], str] = {}
    fields: dict[tuple[str, str], str] = {}
    for name, class_ in joined.items():
        parents = [parent for parent in hierarchy.lineage(name)[1:] if parent in joined and not joined[parent].text.is_anonymous]
        extended = [parent for parent in parents if not joined[parent].compiled.is_interface]
        for kind, declaration in _of_class(class_):
            declarations[declaration.key], keys[kind, name] = declaration, declaration.key
            follows = {CLASS: extended, LAYOUT: extended, INTERFACES: parents}.get(kind, [])
            depends[declaration.key] = frozenset(f"{kind}{joined[parent].path}" for parent in follows)
        for field, declared in _of_fields(class_):
            declarations[declared.key], fields[name, field] = declared, declared.key
    return Dependencies(dict(sorted(declarations.items())), depends, keys, fields)


def _of_class(joined: Joined) -> Iterator[tuple[str, Declaration]]:
    """Yield the declarations of a class, with their kinds."""
    type_ = joined.compiled
    if joined.text.is_anonymous:
        return  # what it inherits from is in the name that it goes by, and what it captures in the code that makes it
    extends = f"class extends {types.simple(f'L{type_.parent};')}" if type_.parent not in (None, *_IMPLICIT) else "class"
    yield _declared(CLASS, (EntityKind.RECORD, "class"), joined, [type_.parent or "", *normal.meaningful(type_.annotations)], extends)
    implemented = ", ".join(types.simple(f"L{name};") for name in type_.interfaces) or "none"
    yield _declared(INTERFACES, (EntityKind.TYPE, "interfaces of"), joined, sorted(type_.interfaces), implemented)
    own = sorted(field.descriptor for field in type_.fields if not field.access & STATIC)
    yield _declared(LAYOUT, (EntityKind.TYPE, "fields of"), joined, own, f"{len(own)} field{'s' if len(own) != 1 else ''}")
    if type_.is_enum:
        yield _declared(CONSTANTS, (EntityKind.TYPE, "constants of"), joined, [*type_.constants], ", ".join(type_.constants))
    if type_.components is not None:
        words = [part for component in type_.components for part in component]
        shown = ", ".join(f"{types.simple(descriptor)} {name}" for name, descriptor in type_.components)
        yield _declared(RECORD, (EntityKind.TYPE, "record"), joined, words, f"({shown})")


def _declared(kind: str, what: tuple[EntityKind, str], joined: Joined, words: list[str], summary: str) -> tuple[str, Declaration]:
    key, entity = f"{kind}{joined.path}", Entity(*what, _unnumbered(joined.shown))
    return kind, Declaration(key, entity, digest(words), summary, joined.source.file, joined.text.line)


def _unnumbered(name: str) -> str:
    """Return a name without the numbers of local and anonymous classes, which change with what else is there."""
    return _NUMBER.sub("", name)


def overridden(function: FunctionDefinition) -> Declaration:
    """Return what a method that overrides a function depends on: what becomes of calls where it is added or removed."""
    return Declaration(
        f"{OVERRIDDEN}{function.name}", Entity(EntityKind.METHOD, "method", function.name), "", "", function.file, function.line
    )


def _of_fields(joined: Joined) -> Iterator[tuple[str, Declaration]]:
    members = {member.name: member for _, member in joined.own_members() if member.role in (Role.FIELD, Role.CONSTANT)}
    for field in joined.compiled.fields:
        member = members.get(field.name)
        if field.access & SYNTHETIC or member is None or field.access & ENUM:
            continue
        is_constant = field.constant is not None and bool(field.access & STATIC)
        prefix, kind = (CONSTANT, EntityKind.CONSTANT) if is_constant else (FIELD, EntityKind.MEMBER)
        words = [field.descriptor, str(field.access & _MEANT), *_value(field, member), *normal.meaningful(field.annotations)]
        summary = member.value if 0 < len(member.value) <= _MOST_TEXT else "" if member.value else types.simple(field.descriptor)
        key = f"{prefix}{joined.path}.{field.name}"
        entity = Entity(kind, "constant" if is_constant else "field", f"{_unnumbered(joined.shown)}.{field.name}")
        yield field.name, Declaration(key, entity, digest(words), summary, joined.source.file, member.line)


def _value(field: Field, member: MemberText) -> list[str]:
    """Return what a field is given: the value that compilers found, else the tokens of its text."""
    if field.constant is not None:
        return [field.constant]
    match tokens(member.value):
        case ("0" | "0L" | "0.0" | "0f" | "0.0f" | "0d" | "false" | "null",):
            return []  # what it has anyway
        case ("new", *_, "[", "0", "]"):
            return ["{", "}"]
        case ("new", *_, "[", "]", "{", "}"):
            return ["{", "}"]
        case value:
            return [*value]
