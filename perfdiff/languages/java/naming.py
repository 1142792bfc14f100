"""What classes, methods and lambdas are called: names that stay when something else is added to a file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from perfdiff.languages.java import types
from perfdiff.languages.java.classes import Method
from perfdiff.languages.java.joining import Joined
from perfdiff.languages.java.syntax import Role


@dataclass
class MemberNames:
    """The names of what stands in one file, by the indices of its members: `path` for keys, `shown` for people."""

    paths: dict[int, tuple[str, str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def name_all(classes: Iterable[Joined]) -> dict[str, MemberNames]:
    """Name all classes, outer ones before those inside them, and return the names of their members by file."""
    files: dict[str, MemberNames] = defaultdict(MemberNames)
    by_type: dict[tuple[str, int], Joined] = {}
    for joined in sorted(classes, key=lambda class_: (class_.source.file, class_.type_index)):
        names = files[joined.source.file]
        by_type[joined.source.file, joined.type_index] = joined
        _name(joined, names, by_type)
        _name_members(joined, names)
    return files


def _name(joined: Joined, names: MemberNames, by_type: dict[tuple[str, int], Joined]) -> None:
    text = joined.text
    around = by_type.get((joined.source.file, text.owner))
    if text.within < 0:
        joined.path = joined.compiled.name.replace("/", ".")
        joined.shown = f"{around.shown}.{text.name}" if around is not None else joined.path
        return
    path, shown = names.paths.get(text.within) or ((around.path, around.shown) if around is not None else ("", ""))
    label = "" if text.kind == "constant" else f".new {text.name}" if text.is_anonymous else f".{text.name}"
    names.counts[path + label] += 1
    number = names.counts[path + label]
    label += f"#{number}" if number > 1 else ""
    joined.path, joined.shown = path + label, shown + label


def _name_members(joined: Joined, names: MemberNames) -> None:
    for (name, descriptor), index in joined.members.items():
        written = len(joined.source.syntax.members[index].parameters)
        names.paths[index] = named(joined, joined.compiled.by_signature[name, descriptor], written)
    for index, member in joined.own_members():
        if member.role in (Role.FIELD, Role.CONSTANT):
            names.paths[index] = f"{joined.path}.{member.name}", f"{joined.shown}.{member.name}"
        elif member.role in (Role.STATIC, Role.INSTANCE):
            what = "<clinit>" if member.role is Role.STATIC else "<init>"
            names.paths[index] = f"{joined.path}.{what}", f"{joined.shown}.{what}"
    for index, member in enumerate(joined.source.syntax.members):
        # References count where they are lambdas only: which of them are, compilers know.
        is_lambda = member.role is Role.LAMBDA or (member.role is Role.REFERENCE and index in joined.lambdas.values())
        if member.owner == joined.type_index and is_lambda:
            path, shown = names.paths.get(member.within, (joined.path, joined.shown))
            names.counts[f"{path}.lambda"] += 1
            number = names.counts[f"{path}.lambda"]
            names.paths[index] = f"{path}.lambda{number}", f"{shown}.lambda{number}"


def named(joined: Joined, method: Method, written: int) -> tuple[str, str]:
    """Return the path of a method and the name that is shown: `com.acme.Box.put(java.lang.Object,int)` and `com.acme.Box.put(Object, int)`.

    Only as many parameters are shown as are `written`; compilers add others.
    """
    given = types.parameters(method.descriptor)
    style = types.shown if _has_namesake(joined, method) else types.brief
    return f"{joined.path}.{method.name}({','.join(map(types.binary, given))})", _shown(joined, method, written, style)


def in_full(joined: Joined, method: Method, written: int) -> str:
    """Return the name of a method that says the packages of its parameters' types: `com.acme.Box.put(java.lang.Object, int)`."""
    return _shown(joined, method, written, types.shown)


def _shown(joined: Joined, method: Method, written: int, style: Callable[[str], str]) -> str:
    before = joined.offset(method, written)
    given = types.parameters(method.descriptor)[before : before + written]
    return f"{joined.shown}.{method.name}({', '.join(map(style, given))})"


def _has_namesake(joined: Joined, method: Method) -> bool:
    """Return whether only packages tell the parameters of a method from those of another of its name."""
    given = types.parameters(method.descriptor)
    others = (types.parameters(other.descriptor) for other in joined.compiled.methods if other.name == method.name)
    return any(other != given and [*map(types.brief, other)] == [*map(types.brief, given)] for other in others)
