"""Files become a program: what each function calls, depends on, reads and writes, over all files."""

from __future__ import annotations

import builtins
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from perfdiff.languages.closure import Links, closure
from perfdiff.languages.digest import digest
from perfdiff.languages.protocol import Declaration, FunctionDefinition, Program
from perfdiff.languages.python.facts import Imported, ModuleFacts, PythonReferences
from perfdiff.languages.python.namespaces import Class, ImportKey, Meaning, Namespaces, VariableKey, module_key, own_name, qualname
from perfdiff.records.differences import Entity, EntityKind, SkippedFunction

# Attributes of the built-in types: that `x.append` means a method of the project needs more evidence than the name.
_BUILTIN = frozenset(
    name
    for kind in (object, int, float, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, memoryview, type, deque, Exception)
    for name in dir(kind)
) | frozenset(name for name in dir(builtins) if name.startswith("__"))
# More methods of one name than this tell little of which is called: those of classes that the file knows are taken.
_MOST_NAMESAKES = 20
_MOST_OWNERS = 4  # classes with an attribute of one name to which reading and writing it is put down
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__", "__init_subclass__", "__call__")


def link(modules: Iterable[ModuleFacts]) -> Program:
    """Return the program that the facts of all files make."""
    facts = sorted(modules, key=lambda module: module.file)
    problems = tuple(
        SkippedFunction(module.file.rpartition("/")[2], module.file, module.problem) for module in facts if module.problem is not None
    )
    return _PythonLinker(Namespaces(facts)).program(problems)


class _PythonLinker:
    def __init__(self, names: Namespaces) -> None:
        self._names = names
        self._methods: dict[str, set[tuple[str, str]]] = defaultdict(set)  # files and keys by name
        self._attributes: dict[str, set[VariableKey]] = defaultdict(set)
        self._owners: dict[str, set[Class]] = defaultdict(set)  # classes whose objects have an attribute of a name
        for (file, _), function in names.functions.items():
            if function.owner:
                self._methods[own_name(function)].add((file, function.definition.key))
                for attribute in function.references.binds_own:
                    self._owners[attribute].add((file, function.owner))
        for file, owner, name in names.variables:
            if owner:
                self._attributes[name].add((file, owner, name))
                self._owners[name].add((file, owner))
        self._written = self._owners.keys() | {
            name for function in names.functions.values() for name in function.references.binds_loose if name not in _BUILTIN
        }
        self._visible = {file: self._visible_files(module) for file, module in names.modules.items()}
        self._loose: dict[tuple[str, str], Links] = {}
        self._wrappers, self._wrapped = self._wrapping()

    def program(self, problems: tuple[SkippedFunction, ...]) -> Program:
        """Return all functions with what they lead to, and what they depend on."""
        declarations, depends = self._declarations()
        functions: dict[str, FunctionDefinition] = {}
        aliases = self._aliases()
        for (file, _), function in sorted(self._names.functions.items()):
            links = self._links(function.references, file, function.owner)
            if function.owner and (file, function.owner) in self._names.classes:
                links.uses.add(_class_key((file, function.owner)))
            definition = function.definition
            uses = closure(links.uses, lambda key: depends.get(key, frozenset()))
            # What a module's level sets once are declarations: who reads one that changed is affected by it, and by no other line there.
            is_module = definition.key == module_key(file)
            calls = links.calls | self._wrapped.get(definition.key, set())
            functions[definition.key] = replace(
                definition,
                names=(*definition.names, *aliases.get(definition.key, ())),
                uses=frozenset(uses & declarations.keys()),
                calls=frozenset(calls.union(*(self._wrappers.get(key, ()) for key in links.calls))),
                reads=frozenset(links.reads),
                writes=frozenset() if is_module else frozenset(links.writes),
            )
        return Program(functions, declarations, problems)

    def _links(self, references: PythonReferences, file: str, owner: str) -> Links:
        links = Links(calls=set(references.inner))
        local = {imported.name: imported for imported in references.imports if imported.name}
        for imported in references.imports:
            self._loads_module(imported, file, links)
        for dotted in references.free:
            root, _, rest = dotted.partition(".")
            if root in local and (file, root) not in self._names.functions:
                self._add(self._names.imported(local[root], file, rest.split(".") if rest else ()), file, links)
            self._add(self._names.meaning(file, dotted), file, links)
        for dotted in references.own:
            self._own(dotted, (file, owner), links)
        for name in references.inherited:
            links.calls |= self._names.inherited((file, owner), name)
        for name in references.loose:
            self._add_loose(name, file, links)
        self._bindings(references, file, owner, links)
        return links

    def _bindings(self, references: PythonReferences, file: str, owner: str, links: Links) -> None:
        for name in references.binds_free:
            if "." not in name and (file, "", name) in self._names.variables:
                links.writes.add(self._variable_name((file, "", name)))
        for name in references.binds_own:
            links.writes.add(self._attribute_of((file, owner), name))
            links.calls |= {key for key in self._names.methods((file, owner), name) if key.endswith((".setter", ".deleter"))}
        for name in references.binds_loose:
            links.writes |= self._attribute_names(name)
            links.calls |= {key for _, key in self._methods.get(name, ()) if key.endswith((".setter", ".deleter"))}

    def _add(self, meaning: Meaning, file: str, links: Links) -> None:
        links.calls |= meaning.functions
        links.uses |= {_variable_key(variable) for variable in meaning.variables} | {_import_key(imported) for imported in meaning.imports}
        links.reads |= {self._variable_name(variable) for variable in meaning.variables}
        for class_ in meaning.classes:
            links.uses.add(_class_key(class_))
            for name in _CONSTRUCTORS:
                links.calls |= self._names.methods(class_, name)
        for name in meaning.loose:
            self._add_loose(name, file, links)

    def _own(self, dotted: str, owner: Class, links: Links) -> None:
        """Follow an attribute of an object of a known class; what none of its classes has, any class may have mixed in."""
        first, *rest = dotted.split(".")
        methods, attributes = self._names.methods(owner, first), self._names.attributes(owner, first)
        links.calls |= methods
        links.uses |= {_variable_key(variable) for variable in attributes}
        if not methods:
            links.reads.add(self._attribute_of(owner, first))
        owners = self._owners.get(first, set())
        if not methods and not attributes and owners.isdisjoint(self._names.lineage(owner)):
            self._add_loose(first, owner[0], links)
        for name in rest:
            self._add_loose(name, owner[0], links)

    def _add_loose(self, name: str, file: str, links: Links) -> None:
        if (name, file) not in self._loose:
            self._loose[name, file] = self._of_anything(name, file)
        any_owner = self._loose[name, file]
        links.uses |= any_owner.uses
        links.calls |= any_owner.calls
        links.reads |= any_owner.reads

    def _of_anything(self, name: str, file: str) -> Links:
        """Return what an attribute of an unknown object may be: of all methods of that name, those that there is evidence for."""
        visible = self._visible[file]
        methods = self._methods.get(name, set())
        if name in _BUILTIN or len(methods) > _MOST_NAMESAKES:
            methods = {(home, key) for home, key in methods if home in visible}
        attributes = {attribute for attribute in self._attributes.get(name, ()) if attribute[0] in visible}
        reads = self._attribute_names(name) if not methods else set[str]()
        return Links({_variable_key(attribute) for attribute in attributes}, {key for _, key in methods}, reads)

    def _attribute_names(self, name: str) -> set[str]:
        if name not in self._written:
            return set()
        owners = {self._first_owner(owner, name) for owner in self._owners.get(name, ())}
        if 0 < len(owners) <= _MOST_OWNERS:
            return {f"{owner[1]}.{name}" for owner in owners}
        return {f".{name}"}

    def _attribute_of(self, owner: Class, name: str) -> str:
        return f"{self._first_owner(owner, name)[1]}.{name}"

    def _first_owner(self, owner: Class, name: str) -> Class:
        """Return the farthest base of a class that has an attribute itself: one name for what base and derived classes share."""
        owners = self._owners.get(name, set())
        return next((ancestor for ancestor in reversed(self._names.lineage(owner)) if ancestor in owners), owner)

    def _variable_name(self, key: VariableKey) -> str:
        file, owner, name = key
        return f"{owner}.{name}" if owner else f"{self._names.modules[file].module}.{name}"

    def _visible_files(self, module: ModuleFacts) -> frozenset[str]:
        """Return the files whose classes a file may hold objects of, as far as its imports tell: its own, and what they lead to."""
        local = (imported for function in module.functions for imported in function.references.imports)
        files = {module.file}
        for imported in {*module.imports, *local}:
            files.update(self._names.module_files(imported.module, module.file))
            if imported.attribute:
                files.update(self._names.module_files(f"{imported.module}.{imported.attribute}", module.file))
                meaning = self._names.imported(imported, module.file, ())
                files.update(file for file, _ in meaning.classes)
                files.update(key.removeprefix("python:").partition("::")[0] for key in meaning.functions)
        return frozenset(files)

    def _loads_module(self, imported: Imported, file: str, links: Links) -> None:
        """Importing runs a module's level, and that of the packages around it."""
        names = [imported.module, f"{imported.module}.{imported.attribute}"] if imported.attribute else [imported.module]
        for name in names:
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                links.calls |= {module_key(home) for home in self._names.module_files(".".join(parts[:length]), file)} - {module_key(file)}

    def _wrapping(self) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
        """Return by key which functions inside its decorators stand in for a decorated function, and which functions those call in turn."""
        wrappers: dict[str, set[str]] = defaultdict(set)
        wrapped: dict[str, set[str]] = defaultdict(set)
        for (file, _), function in self._names.functions.items():
            for decorator in function.decorators:
                for key in self._names.meaning(file, decorator).functions:
                    for inner in self._inside(key):
                        wrappers[function.definition.key].add(inner)
                        wrapped[inner].add(function.definition.key)
        return wrappers, wrapped

    def _inside(self, key: str) -> Iterator[str]:
        file, _, name = key.removeprefix("python:").partition("::")
        function = self._names.functions[file, name]
        return (inner for inner in function.references.inner if inner.startswith(f"{key}."))

    def _declarations(self) -> tuple[dict[str, Declaration], dict[str, frozenset[str]]]:
        """Return the declarations, and what each depends on itself."""
        declarations: dict[str, Declaration] = {}
        depends: dict[str, frozenset[str]] = {}
        for variable, facts in self._names.variables.items():
            kind, word = (EntityKind.MEMBER, "attribute") if facts.owner else (EntityKind.VARIABLE, "global")
            key, entity = _variable_key(variable), Entity(kind, word, self._dotted(variable[0], facts.owner, facts.name))
            declarations[key] = Declaration(key, entity, facts.fingerprint, facts.summary, variable[0], facts.line)
            depends[key] = frozenset(self._links(facts.references, variable[0], facts.owner).uses - {key})
        for class_, described in self._names.classes.items():
            key, entity = _class_key(class_), Entity(EntityKind.RECORD, "class", self._dotted(class_[0], "", described.qualname))
            declarations[key] = Declaration(key, entity, described.fingerprint, described.summary, class_[0], described.line)
            depends[key] = frozenset(self._links(described.references, class_[0], "").uses - {key})
        for file, module in self._names.modules.items():
            groups: dict[str, list[Imported]] = defaultdict(list)
            for imported in module.imports:
                groups[imported.name].append(imported)
            for name, group in groups.items():
                if name:
                    targets = [".".join(filter(None, (imported.module, imported.attribute))) for imported in group]
                    key, entity = _import_key((file, name)), Entity(EntityKind.IMPORT, "imported name", self._dotted(file, "", name))
                    declarations[key] = Declaration(key, entity, digest(targets), " or ".join(targets), file, group[0].line)
        return dict(sorted(declarations.items())), depends

    def _dotted(self, file: str, owner: str, name: str) -> str:
        return ".".join(filter(None, (self._names.modules[file].module, owner, name)))

    def _aliases(self) -> dict[str, tuple[str, ...]]:
        """Return by key the names under which packages offer functions, and the methods of classes, that stand in their modules."""
        names_by_key: dict[str, dict[str, None]] = defaultdict(dict)
        for file, module in self._names.modules.items():
            for imported in module.imports if module.is_package else ():
                if not imported.name or not imported.attribute:
                    continue
                meaning = self._names.imported(imported, file, ())
                for key in meaning.functions:
                    names_by_key[key][f"{module.module}.{imported.name}"] = None
                for home, name in meaning.classes:
                    for function in self._names.modules[home].functions:
                        if function.owner == name:
                            short = qualname(function).removeprefix(f"{name}.")
                            names_by_key[function.definition.key][f"{module.module}.{imported.name}.{short}"] = None
        return {key: tuple(names) for key, names in names_by_key.items()}


def _class_key(class_: Class) -> str:
    return f"python:{class_[0]}::class {class_[1]}"


def _variable_key(variable: VariableKey) -> str:
    return f"python:{variable[0]}::variable {'.'.join(filter(None, variable[1:]))}"


def _import_key(imported: ImportKey) -> str:
    return f"python:{imported[0]}::import {imported[1]}"
