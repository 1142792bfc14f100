"""Functions become a program: what each calls, depends on, reads and writes, over all classes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from perfdiff.languages.closure import closure
from perfdiff.languages.java import types
from perfdiff.languages.java.classes import STATIC, Class, Code
from perfdiff.languages.java.declarations import (
    CLASS,
    CONSTANT,
    CONSTANTS,
    INTERFACES,
    LAYOUT,
    RECORD,
    Dependencies,
    dependencies,
    overridden,
)
from perfdiff.languages.java.functions import JavaFunction, by_signature
from perfdiff.languages.java.hierarchy import Hierarchy, Signature, is_virtual
from perfdiff.languages.java.joining import Joined
from perfdiff.languages.java.syntax import Role
from perfdiff.languages.protocol import Declaration, FunctionDefinition, Program
from perfdiff.records.differences import SkippedFunction

_WORDS = re.compile(r"[^\W\d][\w$]*(?:\s*\.\s*[^\W\d][\w$]*)*")
_SPACE = re.compile(r"\s+")
# What asks for the constants of an enum, besides a switch over them.
_ASKS_CONSTANTS = re.compile(
    r"\.(?:values|valueOf|ordinal|compareTo|allOf|noneOf|complementOf|range)\(|java/util/EnumMap|\$SwitchMap\$|enumSwitch"
)


def link(
    functions: Iterable[JavaFunction], classes: Iterable[Joined], hierarchy: Hierarchy, problems: tuple[SkippedFunction, ...]
) -> Program:
    """Return the program that functions and classes make."""
    functions = tuple(functions)
    joined: dict[str, Joined] = {}
    for class_ in classes:
        joined.setdefault(class_.compiled.name, class_)
    linker = _JavaLinker(functions, joined, hierarchy, dependencies(joined, hierarchy))
    definitions = {function.definition.key: linker.linked(function) for function in functions}
    declarations = {**linker.dependencies.declarations, **{declaration.key: declaration for declaration in linker.overridden.values()}}
    return Program(dict(sorted(definitions.items())), dict(sorted(declarations.items())), problems)


class _JavaLinker:
    def __init__(
        self, functions: tuple[JavaFunction, ...], joined: Mapping[str, Joined], hierarchy: Hierarchy, dependencies: Dependencies
    ) -> None:
        self._joined, self._hierarchy, self.dependencies = joined, hierarchy, dependencies
        self._keys = by_signature(functions)
        self._expanded: dict[Signature, frozenset[str]] = {}
        self._constants: dict[str, list[tuple[str, str]]] = defaultdict(list)  # classes and keys by name
        for (owner, name), key in dependencies.fields.items():
            if key.startswith(CONSTANT):
                self._constants[name].append((owner, key))
        self._enums = {owner: key for (kind, owner), key in dependencies.keys.items() if kind == CONSTANTS}
        self._written = self._in_values()
        self._definitions = {function.definition.key: function.definition for function in functions}
        self.overridden: dict[str, Declaration] = {}

    def linked(self, function: JavaFunction) -> FunctionDefinition:
        """Return the definition of a function with all that it leads to."""
        code = function.method.code
        if code is None:
            return function.definition
        uses = closure(
            self._uses(function, code), lambda key: self.dependencies.depends.get(key, frozenset()) | self._written.get(key, set())
        ) | set(self._overrides(function))
        return replace(
            function.definition,
            uses=frozenset(uses),
            calls=self._calls(function.joined.compiled, code) - {function.definition.key},
            reads=frozenset(self._field_names(code.reads)),
            writes=frozenset(self._field_names(code.writes)),
        )

    def _overrides(self, function: JavaFunction) -> Iterator[str]:
        method = function.method
        above = self._hierarchy.overridden(function.joined.compiled.name, method) if is_virtual(method) else None
        key = self._keys.get((above, method.name, method.descriptor)) if above is not None else None
        if key is not None:
            declaration = self.overridden.setdefault(key, overridden(self._definitions[key]))
            yield declaration.key

    def _calls(self, of: Class, code: Code) -> frozenset[str]:
        callees: set[str] = set()
        for lambda_method in code.made:
            name, _, descriptor = lambda_method.partition(" ")
            callees |= self._through((of.name, name, descriptor))
        for call in code.calls:
            for target in self._hierarchy.targets(call):
                callees |= self._through(target)
        called = (call.split(" ")[1] for call in code.calls if call.startswith("s "))
        for owner in {*code.created, *self._owners_of_statics(code), *called} - {of.name}:
            if (key := self._keys.get((owner, "<clinit>", "()V"))) is not None:
                callees.add(key)
        for created in code.created:
            callees |= self._handed(created)
        return frozenset(callees)

    def _owners_of_statics(self, code: Code) -> Iterator[str]:
        """Yield the classes whose static fields are read or written: the first one to do so waits for their initialisers."""
        for home, name in self._homes((*code.reads, *code.writes)):
            if self._hierarchy.classes[home].by_field[name].access & STATIC:
                yield home

    def _through(self, target: Signature, above: frozenset[Signature] = frozenset()) -> frozenset[str]:
        """Return the function that a method is, or, of one that compilers made up, those that it calls."""
        if (key := self._keys.get(target)) is not None:
            return frozenset((key,))
        if target in above:
            return frozenset()
        if target not in self._expanded:
            owner, name, descriptor = target
            method = self._hierarchy.classes[owner].by_signature.get((name, descriptor))
            callees: set[str] = set()
            if method is not None and method.code is not None:
                lambda_calls = (f"s {owner} {lambda_method}" for lambda_method in method.code.made)
                for call in (*method.code.calls, *lambda_calls):
                    for next_one in self._hierarchy.targets(call):
                        callees |= self._through(next_one, above | {target})
            if above:
                return frozenset(callees)  # of a ring, only its beginning knows all
            self._expanded[target] = frozenset(callees)
        return self._expanded[target]

    def _handed(self, created: str) -> frozenset[str]:
        """Return the methods of an anonymous or local class, which whoever gets its object may call: other projects too."""
        class_ = self._joined.get(created)
        if class_ is None or class_.text.within < 0:
            return frozenset()
        methods = (method for method in class_.compiled.methods if not method.name.startswith(("<", "lambda$")))
        return frozenset(key for method in methods if (key := self._keys.get((created, method.name, method.descriptor))) is not None)

    def _field_names(self, fields: Iterable[str]) -> Iterator[str]:
        for home, name in self._homes(fields):
            if home in self._joined and "$" not in name:
                yield f"{self._joined[home].shown}.{name}"

    def _homes(self, fields: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield the classes of the project that declare fields, and the names of these."""
        for field in fields:
            owner, name, _ = field.split("#")
            if (home := self._hierarchy.field_owner(owner, name)) is not None:
                yield home, name

    def _uses(self, function: JavaFunction, code: Code) -> Iterator[str]:
        of = function.joined.compiled
        owners = {call.split(" ")[1] for call in code.calls}
        touched = {field.split("#")[0] for field in (*code.reads, *code.writes)}
        for kind, named in (
            (CLASS, {of.name, *map(_element, code.types)}),
            (RECORD, {*owners, *code.created}),
            (INTERFACES, code.created),
            (LAYOUT, code.created),
        ):
            for owner in named:
                if (key := self.dependencies.keys.get((kind, owner))) is not None:
                    yield key
        if _ASKS_CONSTANTS.search(code.text):
            yield from self._asked_enums(code, touched | owners | set(code.types))
        homes = self._homes((*code.reads, *code.writes))
        yield from (self.dependencies.fields[field] for field in homes if field in self.dependencies.fields)
        for index in function.members:
            member = function.joined.source.syntax.members[index]
            yield from self._named_constants(function.joined, function.joined.source.text(member.start, member.end))

    def _asked_enums(self, code: Code, named: set[str]) -> Iterator[str]:
        for owner, key in self._enums.items():
            mapped = f"$SwitchMap${owner.replace('/', '$')}"
            if owner in named or mapped in code.text or f"L{owner};" in code.text:
                yield key

    def _named_constants(self, joined: Joined, text: str) -> Iterator[str]:
        """Yield the constants that a text names: compilers write their values into those that use them, and no name is left."""
        for expression in set(_WORDS.findall(text)):
            parts = _SPACE.sub("", expression).split(".")
            for end, name in enumerate(parts):
                for owner, key in self._constants.get(name, ()):
                    if self._is_named(joined, owner, name, parts[:end]):
                        yield key

    def _is_named(self, joined: Joined, owner: str, name: str, before: list[str]) -> bool:
        """Return whether a name, with what stands before it, may mean the constant of a class."""
        seen = self._around(joined)
        dotted = types.dotted(owner)
        imports = joined.source.syntax.imports
        if not before:
            package = dotted.rpartition(".")[0]
            return any(owner in self._hierarchy.lineage(class_) for class_ in seen) or any(
                imported in imports for imported in (f"static {dotted}.{name}", f"static {dotted}.*", f"static {package}.*")
            )
        last = before[-1]
        if last == "this":
            return any(owner in self._hierarchy.lineage(class_) for class_ in seen)
        heirs = {owner, *self._hierarchy.descendants(owner)}
        return any(types.dotted(heir).rpartition(".")[2] == last and self._is_visible(joined, heir, before, seen) for heir in heirs)

    def _is_visible(self, joined: Joined, owner: str, before: list[str], seen: list[str]) -> bool:
        dotted = types.dotted(owner)
        if len(before) > 1:
            return dotted.endswith(".".join(before))
        package, imports = dotted.rpartition(".")[0], joined.source.syntax.imports
        if package == joined.source.syntax.package or dotted in imports or f"{package}.*" in imports or f"static {dotted}" in imports:
            return True
        lines = {ancestor for class_ in seen for ancestor in self._hierarchy.lineage(class_)}
        return owner in lines or owner.rpartition("$")[0] in lines

    def _around(self, joined: Joined) -> list[str]:
        """Return the classes that a class stands in, itself first."""
        around, name = [joined.compiled.name], joined.compiled.name
        while "$" in name:
            name = name.rpartition("$")[0]
            around.append(name)
        return around

    def _in_values(self) -> dict[str, set[str]]:
        """Return by field which constants its value names."""
        constants: dict[str, set[str]] = {}
        for owner, joined in self._joined.items():
            for _, member in joined.own_members():
                key = self.dependencies.fields.get((owner, member.name)) if member.role is Role.FIELD and member.value else None
                if key is not None:
                    constants[key] = set(self._named_constants(joined, member.value)) - {key}
        return constants


def _element(name: str) -> str:
    """Return the class that an array is of, or the class itself."""
    return name.lstrip("[").removeprefix("L").removesuffix(";") if name.startswith("[") else name
