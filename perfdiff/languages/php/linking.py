"""Files become a program: what each function calls, depends on, reads and writes, over all files."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from perfdiff.languages.closure import Links, closure
from perfdiff.languages.digest import digest
from perfdiff.languages.php.classes import MOST_NAMESAKES, Classes
from perfdiff.languages.php.facts import MAIN, DeclaredKind, FileFacts, PhpFunctionFacts, PhpReferences, ValueFacts
from perfdiff.languages.protocol import Declaration, FunctionDefinition, Program
from perfdiff.records.differences import Entity, EntityKind, SkippedFunction

_MOST_OWNERS = 4  # classes with a property of one name to which reading and writing it is put down
_STRICT = "declare(strict_types)"
_VALUES = {DeclaredKind.CONSTANT: EntityKind.CONSTANT, DeclaredKind.CASE: EntityKind.CASE, DeclaredKind.PROPERTY: EntityKind.MEMBER}
# What statements and built-in functions may call on anything: that a method of the project is meant needs more evidence than the name.
_SILENT = frozenset(
    name.lower()
    for name in (
        "__get", "__set", "__toString", "__invoke", "__clone", "offsetGet", "offsetSet", "getIterator", "current", "key", "next", "rewind",
        "valid", "count", "jsonSerialize", "__serialize", "__sleep", "__unserialize", "__wakeup", "__construct",
    )
)  # fmt: skip


def link(files: Iterable[FileFacts]) -> Program:
    """Return the program that the facts of all files make."""
    facts = _distinct(sorted(files, key=lambda file: file.file))
    problems = tuple(SkippedFunction(file.file.rpartition("/")[2], file.file, file.problem) for file in facts if file.problem is not None)
    return _PhpLinker(facts).program(problems)


def _distinct(files: list[FileFacts]) -> list[FileFacts]:
    """Return the files with a key of its own for each function: those of one name in several files have their file in it."""
    counts = Counter(function.definition.key for file in files for function in file.functions)
    shared = {key for key, count in counts.items() if count > 1}
    if not shared:
        return files
    distinct = []
    for file in files:
        keys = {key: f"php:{file.file}::{key.removeprefix('php:')}" for facts in file.functions if (key := facts.definition.key) in shared}
        distinct.append(replace(file, functions=tuple(_rekeyed(function, keys) for function in file.functions)) if keys else file)
    return distinct


def _rekeyed(function: PhpFunctionFacts, keys: dict[str, str]) -> PhpFunctionFacts:
    inner = frozenset(keys.get(key, key) for key in function.references.inner)
    definition = replace(function.definition, key=keys.get(function.definition.key, function.definition.key))
    return replace(function, definition=definition, references=replace(function.references, inner=inner))


class _PhpLinker:
    def __init__(self, files: list[FileFacts]) -> None:
        self._files = files
        self._classes = Classes(
            (facts for file in files for facts in file.classes),
            (function for file in files for function in file.functions),
            (value for file in files for value in file.values),
        )
        self._mains = {facts.definition.file: facts.definition.key for file in files for facts in file.functions if facts.name == MAIN}
        self._ends: dict[str, list[str]] = defaultdict(list)
        for name in self._mains:
            self._ends[posixpath.basename(name)].append(name)
        self._imports = {imported.key for file in files for imported in file.imports}
        self._homes = {facts.name.lower(): file.file for file in files for facts in file.classes}
        self._declarations: dict[str, Declaration] = {}
        self._depends: dict[str, set[str]] = {}
        self._declare()

    def program(self, problems: tuple[SkippedFunction, ...]) -> Program:
        """Return all functions with what they lead to, and what they depend on."""
        functions: dict[str, FunctionDefinition] = {}
        for file in self._files:
            for function in file.functions:
                links = self._links(function.references, file.file, function.owner)
                used = links.uses | {_strict_key(file.file)} | (self._class_keys(function.owner) if function.owner else set())
                definition = function.definition
                is_main = function.name == MAIN
                functions[definition.key] = replace(
                    definition,
                    uses=frozenset(closure(used, lambda key: self._depends.get(key, ())) & self._declarations.keys()),
                    calls=frozenset(links.calls - {definition.key}),
                    reads=frozenset(links.reads - links.writes if is_main else links.reads),
                    writes=frozenset(links.writes),
                )
        return Program(dict(sorted(functions.items())), dict(sorted(self._declarations.items())), problems)

    def _links(self, references: PhpReferences, file: str, owner: str) -> Links:
        links = Links(calls=set(references.inner))
        classes, visible = self._classes, self._visible(references, owner)
        for candidates in references.functions:
            links.calls |= {function.definition.key for function in classes.functions(candidates)}
        for text in references.handed:
            name, _, method = text.partition("::")
            callees = classes.methods(name, method) if method else classes.functions(name)
            links.calls |= {function.definition.key for function in callees}
        for expression, name in references.methods:
            links.calls |= {method.definition.key for method in self._methods(expression, name, visible)}
        for name in references.classes:
            links.uses |= self._class_keys(name)
        for candidates in references.constants:
            found_values = next((value for name in candidates.split("|") if (value := classes.value("constant", "", name))), [])
            links.uses |= {_value_key(value) for value in found_values}
        for expression, name in references.class_constants:
            links.uses |= {_value_key(value) for value in classes.value("constant", classes.type_of(expression), name)}
        for members, names in ((references.reads, links.reads), (references.writes, links.writes)):
            for expression, name in members:
                self._property(expression, name, names, links)
        links.reads |= {f"$GLOBALS[{name[1:]}]" for name in references.reads_globals}
        links.writes |= {f"$GLOBALS[{name[1:]}]" for name in references.writes_globals}
        for path in references.included:
            links.calls |= {self._mains[path_included] for path_included in self._included(path, file)}
        links.uses |= {key for name in references.imports if (key := f"{file}::{name}") in self._imports}
        return links

    def _methods(self, expression: str, name: str, visible: frozenset[str]) -> Iterator[PhpFunctionFacts]:
        owner = self._classes.type_of(expression)
        if owner and (owner.lower() in self._classes.classes or self._classes.descendants(owner)):
            yield from self._classes.methods(owner, name)
            return
        if owner:
            return  # an object of another project's class
        named = self._classes.methods_named.get(name.lower(), [])
        if name.lower() in _SILENT or len(named) > MOST_NAMESAKES:
            named = [method for method in named if method.owner.lower() in visible]
        yield from named

    def _visible(self, references: PhpReferences, owner: str) -> frozenset[str]:
        """Return the classes whose objects a function may hold, as far as it names them."""
        named = {name.lower() for name in references.classes} | ({owner.lower()} if owner else set())
        named |= {owner_class.lower() for expression, _ in references.methods if (owner_class := self._classes.type_of(expression))}
        return frozenset(related for name in named for related in (*self._classes.lineage(name), *self._classes.descendants(name)))

    def _property(self, expression: str, name: str, names: set[str], links: Links) -> None:
        owner = self._classes.type_of(expression)
        if owner and owner.lower() in self._classes.classes:
            names.add(f"{self._classes.first_owner(owner, name)}::${name}")
            links.uses |= {_value_key(value) for value in self._classes.value("property", owner, name)}
        if owner:
            return  # what is asked of a class that is not known, is its own
        owners = {self._classes.first_owner(class_name, name) for class_name in self._classes.owners.get(name, ())}
        if 0 < len(owners) <= _MOST_OWNERS:
            names |= {f"{class_name}::${name}" for class_name in owners}
        elif owners:
            names.add(f"->{name}")

    def _included(self, path: str, file: str) -> Iterator[str]:
        if not path.startswith("*"):
            if path in self._mains and path != file:
                yield path
            return
        end = path[1:]
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), end))
        if beside in self._mains:
            yield beside
            return
        yield from (name for name in self._ends.get(posixpath.basename(end), ()) if name == end or name.endswith(f"/{end}"))

    def _class_keys(self, name: str) -> set[str]:
        return {_class_key(self._classes.classes[ancestor].name) for ancestor in self._classes.lineage(name)}

    def _declare(self) -> None:
        for file in self._files:
            strict = Entity(EntityKind.DIRECTIVE, f"{_STRICT} of", file.file)
            word = "1" if file.strict else "0"
            self._declarations[_strict_key(file.file)] = Declaration(_strict_key(file.file), strict, word, word, file.file, 1)
            for facts in file.classes:
                key = _class_key(facts.name)
                entity = Entity(EntityKind.RECORD if facts.kind == "class" else EntityKind.TYPE, facts.kind, facts.name)
                self._declarations[key] = Declaration(key, entity, facts.fingerprint, facts.summary, file.file, facts.line)
                self._depends[key] = set()
            for imported in file.imports:
                self._declarations[imported.key] = Declaration(
                    imported.key, imported.entity, digest([imported.target]), imported.target, file.file, imported.line
                )
            for value in file.values:
                key = _value_key(value)
                self._declarations[key] = Declaration(key, _value_entity(value), value.fingerprint, value.summary, file.file, value.line)
                self._depends[key] = self._links(value.references, file.file, value.owner).uses - {key}


def _value_entity(value: ValueFacts) -> Entity:
    mark = "$" if value.kind is DeclaredKind.PROPERTY else ""
    name = f"{value.owner}::{mark}{value.name}" if value.owner or mark else value.name
    return Entity(_VALUES[value.kind], str(value.kind), name)


def _class_key(name: str) -> str:
    return f"php:class {name}"


def _value_key(value: ValueFacts) -> str:
    return f"php:{_value_entity(value)}"


def _strict_key(file: str) -> str:
    return f"php:{file}::{_STRICT}"
