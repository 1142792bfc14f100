"""Classes and their sources: which type of which file a class was compiled from, and which stretch of text each method."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from perfdiff.languages.java import types
from perfdiff.languages.java.classes import STATIC, SYNTHETIC, Class, Method
from perfdiff.languages.java.sources import JavaFile
from perfdiff.languages.java.syntax import MemberText, Role, TypeText

_NUMBER = re.compile(r"\$(\d+)")
_NAME = re.compile(r"(?<![\w$.])[^\W\d][\w$]*\b(?!\s*\()")  # neither a method nor something's field
_CONSTRUCTORS = (Role.CONSTRUCTOR, Role.COMPACT)


@dataclass(eq=False)
class Joined:
    """A class and the type of its source; `members` are the indices of its methods' texts, `path` and `shown` its names.

    `path` does not change when other classes are added: `com.acme.Box$Row`, of an anonymous one `com.acme.Box.put(int).new Runnable`.
    """

    place: str
    compiled: Class
    source: JavaFile
    type_index: int
    path: str = ""
    shown: str = ""
    members: dict[tuple[str, str], int] = field(default_factory=dict)
    lambdas: dict[tuple[str, str], int] = field(default_factory=dict)  # of bodies, by name and descriptor

    @property
    def text(self) -> TypeText:
        """Return the class's declaration in the source."""
        return self.source.syntax.types[self.type_index]

    def own_members(self) -> Iterator[tuple[int, MemberText]]:
        """Yield the members that stand in the class's own body, each with its index."""
        for index, member in enumerate(self.source.syntax.members):
            if member.owner == self.type_index and member.within < 0:
                yield index, member

    def offset(self, method: Method, written: int) -> int:
        """Return how many parameters of a method come before those that are written."""
        given = len(types.parameters(method.descriptor))
        if method.name != "<init>":
            return given - written
        if self.compiled.is_enum:
            return min(2, given - written)
        nested = self.compiled.nested
        if nested is None or nested[3] & STATIC or given == written:
            return 0
        outer = types.internal(types.parameters(method.descriptor)[0])
        around = nested[1] or (self.compiled.enclosing[0] if self.compiled.enclosing else None)
        return int(outer == around)


@dataclass(frozen=True, slots=True)
class PlacedClass:
    """A parsed class file and its path."""

    place: str
    compiled: Class


def join(candidates: Iterable[PlacedClass], sources: Sequence[JavaFile]) -> tuple[Joined, ...]:
    """Return the classes that come from the sources; one that lies in several places is one, beside the nearest source.

    Where several sources declare a class of one name, each of those that has class files is returned.
    """
    declaring: dict[str, list[JavaFile]] = defaultdict(list)
    for source in sources:
        for name in source.top_types:
            declaring[name].append(source)
    joined_classes: dict[tuple[str, str], Joined] = {}
    by_name: dict[str, list[PlacedClass]] = defaultdict(list)
    for candidate in candidates:
        by_name[candidate.compiled.name].append(candidate)
    # Outer classes first: what is inside of them is told by them.
    for name in sorted(by_name, key=lambda name: (name.count("$"), [*map(int, _NUMBER.findall(name))], name)):
        for candidate in by_name[name]:
            ends = [dollar.start() for dollar in re.finditer(r"\$", name)]
            top = next((name[:end] for end in (*ends, len(name)) if name[:end] in declaring), None)
            if top is None:
                continue
            source = max(declaring[top], key=lambda source: _shared(candidate.place, source.file))
            if (name, source.file) not in joined_classes and (joined := _joined(candidate, source, top, joined_classes)) is not None:
                joined_classes[name, source.file] = joined
    return tuple(joined_classes.values())


def _shared(place: str, file: str) -> tuple[int, int]:
    """Return how much of its path a class file shares with a source: of several with that class it was made from the nearest."""
    pairs = zip(place.split("/"), file.split("/"), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)), -file.count("/")


def _joined(candidate: PlacedClass, source: JavaFile, top: str, joined_classes: Mapping[tuple[str, str], Joined]) -> Joined | None:
    class_ = candidate.compiled
    index = source.top_types[top] if class_.name == top else _inner_type(class_, source, joined_classes)
    if index is None or class_.access & SYNTHETIC:
        return None
    joined = Joined(candidate.place, class_, source, index)
    _join_methods(joined)
    _join_lambdas(joined)
    return joined


def _inner_type(class_: Class, source: JavaFile, joined_classes: Mapping[tuple[str, str], Joined]) -> int | None:
    """Return the index of the type that a nested, local or anonymous class comes from."""
    nested = class_.nested
    if nested is None:
        return None
    _, outer, simple, _ = nested
    around = joined_classes.get(((outer or (class_.enclosing[0] if class_.enclosing else None) or ""), source.file))
    if around is None:
        return None
    numbered_types = enumerate(source.syntax.types)
    if outer is not None:
        return next(
            (i for i, type_ in numbered_types if type_.owner == around.type_index and type_.within < 0 and type_.name == simple), None
        )
    taken = {other.type_index for other in joined_classes.values() if other.source is source}
    lines = {line for method in class_.methods if method.code is not None for line in method.code.lines}
    local = [(i, type_) for i, type_ in numbered_types if type_.owner == around.type_index and type_.within >= 0 and i not in taken]
    if simple is not None:
        likely = [(i, type_) for i, type_ in local if type_.name == simple and not type_.is_anonymous]
    else:
        parents = {(parent or "").replace("$", "/").rpartition("/")[2] for parent in (class_.parent, *class_.interfaces)}
        likely = [(i, type_) for i, type_ in local if type_.kind == "constant" or (type_.is_anonymous and type_.name in parents)]
        likely = likely or [(i, type_) for i, type_ in local if type_.is_anonymous]
    there = [i for i, type_ in likely if all(type_.line <= line <= type_.last_line for line in lines)]
    return next(iter(there or [i for i, _ in likely]), None)


def _join_methods(joined: Joined) -> None:
    """Find the text of each method that has one: by its name, by how many parameters it has, by lines, by their types."""
    members = [(i, member) for i, member in joined.own_members() if member.role in (Role.METHOD, *_CONSTRUCTORS)]
    taken: set[int] = set()
    for method in joined.compiled.methods:
        if method.is_synthetic or method.name == "<clinit>":
            continue
        likely = [(i, member) for i, member in members if i not in taken and _may_be(joined, method, member)]
        first = method.code.first if method.code is not None else None
        if len(likely) > 1 and first is not None:
            likely = [(i, member) for i, member in likely if member.first_line <= first <= member.last_line] or likely
        if likely:
            index, _ = max(likely, key=lambda candidate: (_likeness(method, candidate[1]), -candidate[0]))
            if first is None or joined.text.line <= first <= joined.text.last_line:  # else it is another text that was compiled
                joined.members[method.name, method.descriptor] = index
                taken.add(index)


def _may_be(joined: Joined, method: Method, member: MemberText) -> bool:
    if method.name != "<init>":
        return member.role is Role.METHOD and member.name == method.name and _count(method) == len(member.parameters)
    if member.role is Role.COMPACT:
        components = joined.compiled.components or ()
        return types.parameters(method.descriptor) == tuple(descriptor for _, descriptor in components)
    if member.role is not Role.CONSTRUCTOR:
        return False
    before = joined.offset(method, len(member.parameters))
    is_local = joined.compiled.nested is not None and joined.compiled.nested[1] is None  # what it captures comes behind
    behind = _count(method) - before - len(member.parameters)
    return behind == 0 or (is_local and behind > 0)


def _count(method: Method) -> int:
    return len(types.parameters(method.descriptor))


def _likeness(method: Method, member: MemberText) -> int:
    """Return how many parameters are of the types that are written."""
    given = types.parameters(method.descriptor)
    written = [_simple(kind) for _, kind in member.parameters]
    return sum(types.simple(descriptor) == other for descriptor, other in zip(given[len(given) - len(written) :], written, strict=True))


def _simple(written: str) -> str:
    """Return a type that is written somehow as its simple name: `java.util.List<int[]>[]` gives `List[]`, `int...` `int[]`."""
    plain = written.replace("...", "[]")
    while (shorter := re.sub(r"<[^<>]*>|@[\w.]+(?:\([^()]*\))?", "", plain)) != plain:
        plain = shorter
    return plain.rpartition(".")[2]


def _join_lambdas(joined: Joined) -> None:
    """Find the text of each lambda: those that a method makes are in their order those that stand in it."""
    methods = joined.compiled.by_signature
    inside: dict[int, list[int]] = defaultdict(list)
    for index, member in enumerate(joined.source.syntax.members):
        if member.role in (Role.LAMBDA, Role.REFERENCE) and member.owner == joined.type_index:
            inside[member.within].append(index)
    waiting: list[tuple[Method, list[int]]] = []
    for method in joined.compiled.methods:
        if method.code is not None and method.code.made and not (method.is_synthetic and method.name.startswith("lambda$")):
            waiting.append((method, [lambda_index for around in _around(joined, method) for lambda_index in inside[around]]))
    while waiting:
        method, likely = waiting.pop(0)
        assert method.code is not None, "it makes lambdas"
        for lambda_method in method.code.made:
            name, _, descriptor = lambda_method.partition(" ")
            body = methods.get((name, descriptor))
            if body is None or (name, descriptor) in joined.lambdas:
                continue
            lambda_index = _lambda_text(joined, body, likely)
            if lambda_index is not None:
                joined.lambdas[name, descriptor] = lambda_index
                if body.code is not None and body.code.made:
                    waiting.append((body, inside[lambda_index]))


def _around(joined: Joined, method: Method) -> list[int]:
    """Return the members whose text a method's instructions come from: constructors run the initialisers of fields too."""
    own = joined.members.get((method.name, method.descriptor))
    indices = [] if own is None else [own]
    if method.name in ("<init>", "<clinit>"):
        wanted = method.name == "<clinit>"
        roles = (Role.FIELD, Role.CONSTANT, Role.STATIC, Role.INSTANCE)
        indices += [index for index, member in joined.own_members() if member.role in roles and member.is_static == wanted]
    return sorted(indices)


def _lambda_text(joined: Joined, body: Method, likely: Sequence[int]) -> int | None:
    """Return the lambda that a body was compiled from: of those on its lines one that names as many variables around it as it takes."""
    members = joined.source.syntax.members
    taken = set(joined.lambdas.values())
    lines = body.code.lines if body.code is not None else ()
    free = [index for index in likely if index not in taken and len(members[index].parameters) <= _count(body)]
    there = [index for index in free if all(members[index].first_line <= line <= members[index].last_line for line in lines)]

    def rank(index: int) -> tuple[bool, bool, int]:
        member = members[index]
        if member.role is Role.LAMBDA:
            return False, len(captured(joined.source, member)) != _count(body) - len(member.parameters), index
        # A reference to a method is a lambda only where it cannot be linked directly.
        text = joined.source.text(member.start, member.end)
        return True, not (text.startswith("super") or "[]" in text), index

    return min(there, key=rank, default=None)


def captured(source: JavaFile, member: MemberText) -> tuple[str, ...]:
    """Return the variables around a lambda that it names, in the order in which it does: as compilers hand them over."""
    members, own = source.syntax.members, {name for name, _ in member.parameters} | {*member.variables}
    around, outer = member.within, set[str]()
    while around >= 0:
        outer |= {*members[around].variables, *(name for name, _ in members[around].parameters)}
        around = members[around].within
    words = _NAME.findall(source.text(member.body, member.end)) if outer - own else []
    return tuple(dict.fromkeys(word for word in words if word in outer - own))
