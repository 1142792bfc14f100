"""The functions of a Java program: its methods, constructors, initialisers and lambdas, with their texts and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdiff.languages.java import branches, features, naming, normal, types
from perfdiff.languages.java.classes import NATIVE, Method
from perfdiff.languages.java.hierarchy import Hierarchy
from perfdiff.languages.java.joining import Joined, captured
from perfdiff.languages.java.syntax import MemberText, Role
from perfdiff.languages.protocol import BranchPlan, FunctionDefinition
from perfdiff.languages.stretches import Stretch, stretches

NATIVE_METHOD = "it is native: its time is its caller's"
NAMESAKE = "another class of the same name is in the tree, and probes tell classes by their names"
TOO_LARGE = "its bytecode leaves no room for a probe"

LANGUAGE = "java"
_PREFIX = "java:"
# A method's bytecode may take 65,535 bytes; probes read thirty inputs at most, each in a few dozen bytes, and wrap every way out.
_MOST_BYTES = 60_000
_LAMBDA = "lambda$"


@dataclass(frozen=True, slots=True)
class JavaFunction:
    """A method with its definition, whose `uses`, `calls`, `reads` and `writes` are not filled in yet.

    `members` are the stretches of source that it was compiled from: one, or those of all fields that an initialiser sets.
    """

    joined: Joined
    method: Method
    definition: FunctionDefinition
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _FunctionText:
    """The stretch of a file that a function takes: its members, and the lines of it that belong to them."""

    members: tuple[int, ...]
    first: MemberText
    start: int
    end: int
    last_line: int


class JavaFunctions:
    """Makes the definitions of a program's functions; features lie up to `depth` fields from what a call is given."""

    def __init__(self, classes: Sequence[Joined], hierarchy: Hierarchy, depth: int) -> None:
        self._classes, self._hierarchy, self._depth = classes, hierarchy, depth
        self._names = naming.name_all(classes)
        self._known = hierarchy.classes

    def all(self) -> Iterator[JavaFunction]:
        """Yield the functions of all classes."""
        seen: set[str] = set()
        for joined in self._classes:
            is_namesake = joined.compiled.name in seen
            seen.add(joined.compiled.name)
            for method in joined.compiled.methods:
                if (function := self._function(joined, method, is_namesake=is_namesake)) is not None:
                    yield function

    def _function(self, joined: Joined, method: Method, *, is_namesake: bool) -> JavaFunction | None:
        text = _text(joined, method)
        if text is None or (method.code is None and not method.access & NATIVE):
            return None
        path, shown = self._named(joined, method, text)
        key = f"{_PREFIX}{path}" + (f" ({joined.source.file})" if is_namesake else "")
        parameters = parameter_names(joined, method, text.first)
        file, line = joined.source.file, text.first.line
        full = naming.in_full(joined, method, len(types.parameters(method.descriptor)))
        binary = types.dotted(joined.compiled.name).join(("", full.removeprefix(joined.shown)))
        definition = FunctionDefinition(
            key=key,
            name=shown,
            names=tuple(dict.fromkeys((shown, full, binary))),
            file=file,
            line=line,
            start=text.start,
            body=text.first.body if text.first.role is not Role.FIELD else text.start,
            end=text.end,
            text=joined.source.text(text.start, text.end),
            signature=f"({', '.join(' '.join(filter(None, (kind, name))) for name, kind in text.first.parameters)})",
            tokens=normal.fingerprint(method, joined.compiled, self._known) if method.code is not None else "",
            features=()
            if is_namesake
            else features.plan(features.MethodInputs(joined.compiled, method, parameters, self._hierarchy), self._depth),
            branches=() if is_namesake else _branches(joined, method, text),
            obstacle=_obstacle(method, is_namesake=is_namesake),
            linkage=(f"{joined.compiled.name} {method.name} {method.descriptor}",),
            language=LANGUAGE,
            above=line - text.first.first_line,
            no_code=_no_code(joined, text),
            loads=method.name == "<clinit>",
        )
        return JavaFunction(joined, method, definition, text.members)

    def _named(self, joined: Joined, method: Method, text: _FunctionText) -> tuple[str, str]:
        names = self._names[joined.source.file]
        if method.name.startswith(_LAMBDA) and text.first.role in (Role.LAMBDA, Role.REFERENCE):
            return names.paths[text.members[0]]
        if method.name == "<clinit>":
            return f"{joined.path}.<clinit>()", f"{joined.shown}.<clinit>()"
        written = len(types.parameters(method.descriptor)) if text.first.role is Role.COMPACT else len(text.first.parameters)
        return naming.named(joined, method, written if text.first.role is not Role.FIELD else 0)


def _text(joined: Joined, method: Method) -> _FunctionText | None:
    """Return what a method was compiled from; None of one that compilers made up."""
    members = joined.source.syntax.members
    index = joined.members.get((method.name, method.descriptor), joined.lambdas.get((method.name, method.descriptor)))
    if index is not None:
        member = members[index]
        return _FunctionText((index,), member, member.start, member.end, member.last_line)
    if method.name not in ("<init>", "<clinit>") or method.code is None:
        return None
    if method.name == "<init>" and any(member.role is Role.CONSTRUCTOR for _, member in joined.own_members()):
        return None
    parts = [(i, member) for i, member in joined.own_members() if _is_initialiser(member, is_static=method.name == "<clinit>")]
    if method.name == "<clinit>":
        constants = {field.name for field in joined.compiled.fields if field.constant is not None}
        parts = [(i, member) for i, member in parts if member.name not in constants]
    if not parts:
        return None
    last = max((member for _, member in parts), key=lambda member: member.end)
    return _FunctionText(tuple(i for i, _ in parts), parts[0][1], parts[0][1].start, last.end, last.last_line)


def _branches(joined: Joined, method: Method, text: _FunctionText) -> tuple[BranchPlan, ...]:
    """Return the conditions that can be watched; of fields' initialisers, which each constructor has, none."""
    if method.code is None or text.first.role is Role.FIELD:
        return ()
    conditions = (decision for index in text.members for decision in joined.source.syntax.members[index].decides)
    return branches.plan_branches(joined.source.data, conditions, method.code)


def _is_initialiser(member: MemberText, *, is_static: bool) -> bool:
    if member.role is Role.FIELD:
        return bool(member.value) and member.is_static == is_static
    return member.role in ((Role.STATIC, Role.CONSTANT) if is_static else (Role.INSTANCE,))


def parameter_names(joined: Joined, method: Method, member: MemberText) -> tuple[str, ...]:
    """Return the names of a method's parameters, "" of those that compilers added and gave none."""
    given = types.parameters(method.descriptor)
    written = [name for name, _ in member.parameters]
    if member.role is Role.COMPACT:
        written = [name for name, _ in joined.compiled.components or ()]
    names = [""] * len(given)
    if method.code is not None:
        by_slot, slot = dict(method.code.locals), 0 if method.is_static else 1
        for index, descriptor in enumerate(given):
            names[index] = by_slot.get(slot, "")
            slot += 1 + (descriptor in ("J", "D"))
    for index, recorded in enumerate(method.parameters if len(method.parameters) == len(given) else ()):
        names[index] = recorded or names[index]
    before = joined.offset(method, len(written))
    for index, name in enumerate(written[: len(given) - before], start=before):
        names[index] = name
    if member.role is Role.LAMBDA and not all(names[:before]):
        named = captured(joined.source, member)
        names[:before] = named if len(named) == before else names[:before]
    return tuple("" if "$" in name else name for name in names)


def _obstacle(method: Method, *, is_namesake: bool) -> str | None:
    if method.code is None:
        return NATIVE_METHOD
    if is_namesake:
        return NAMESAKE
    return TOO_LARGE if method.code.size > _MOST_BYTES else None


def _no_code(joined: Joined, text: _FunctionText) -> tuple[Stretch, ...]:
    """Return the lines that are comments, other functions, or between the parts of an initialiser."""
    source = joined.source.syntax
    first, last = text.first.first_line, text.last_line
    own, lines = set[int](), set(joined.source.remarks.intersection(range(first, last + 1)))
    for index in text.members:
        member = source.members[index]
        own.update(range(member.first_line, member.last_line + 1))
        lines.update(_inside(joined, member, index))
    return stretches(lines | (set(range(first, last + 1)) - own))


def _inside(joined: Joined, around: MemberText, index: int) -> Iterable[int]:
    """Yield the lines of functions that stand in another one and share them with no code of that."""
    members, data = joined.source.syntax.members, joined.source.data
    for member in members[index + 1 :]:
        if member.start >= around.end:
            return
        if member.role is Role.LAMBDA and member.last_line > member.line:
            begin = data.rfind(b"\n", 0, member.body) + 1
            opened = data.count(b"\n", member.start, begin) + member.first_line
            if data[member.body - 1 : member.body] == b"{":
                yield from range(opened + 1, member.last_line)
        elif member.role in (Role.METHOD, Role.CONSTRUCTOR) and member.owner != around.owner:
            before = data[data.rfind(b"\n", 0, member.start) + 1 : member.start].strip()
            end = data.find(b"\n", member.end)
            behind = data[member.end : end if end >= 0 else len(data)].strip()
            yield from range(member.first_line + bool(before), member.last_line + (not behind))


def by_signature(functions: Iterable[JavaFunction]) -> Mapping[tuple[str, str, str], str]:
    """Return the keys of functions by class, name and descriptor; of namesakes the first."""
    keys: dict[tuple[str, str, str], str] = {}
    for function in functions:
        keys.setdefault((function.joined.compiled.name, function.method.name, function.method.descriptor), function.definition.key)
    return keys
