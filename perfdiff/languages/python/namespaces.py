"""What names mean across the files of a program: modules, and what stands in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from perfdiff.languages.closure import closure
from perfdiff.languages.python.facts import MODULE, Imported, ModuleFacts, PythonClassFacts, PythonFunctionFacts, VariableFacts
from perfdiff.languages.python.sources import ROOTS

_STAR = "*"
_MOST_STEPS = 20  # of an import that leads to an import, …

Class = tuple[str, str]  # the file and the qualified name


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a dotted name led to. `loose` are attributes of objects of which nothing is known."""

    functions: frozenset[str] = frozenset()
    classes: frozenset[Class] = frozenset()
    variables: frozenset[VariableKey] = frozenset()
    imports: frozenset[ImportKey] = frozenset()
    loose: frozenset[str] = frozenset()


VariableKey = tuple[str, str, str]  # the file, the class or "", the name
ImportKey = tuple[str, str]  # the file and the name that is bound


class Namespaces:
    """All names of a program."""

    def __init__(self, modules: Iterable[ModuleFacts]) -> None:
        self.modules = {module.file: module for module in modules}
        self._files: dict[str, list[str]] = defaultdict(list)
        for file, module in self.modules.items():
            for name in dict.fromkeys((module.module, *_paths(file))):
                self._files[name].append(file)
        self.functions: dict[tuple[str, str], PythonFunctionFacts] = {}  # by file and qualified name
        self.classes: dict[Class, PythonClassFacts] = {}
        self.variables: dict[VariableKey, VariableFacts] = {}
        self._imports: dict[tuple[str, str], list[Imported]] = defaultdict(list)
        for file, module in self.modules.items():
            self.functions |= {(file, qualname(function)): function for function in module.functions}
            self.classes |= {(file, class_.qualname): class_ for class_ in module.classes}
            self.variables |= {(file, variable.owner, variable.name): variable for variable in module.variables}
            for imported in module.imports:
                self._imports[file, imported.name].append(imported)
        self._followed: dict[tuple[str, str], Meaning] = {}
        self._lineages: dict[Class, tuple[Class, ...]] = {}
        self._known_methods: dict[tuple[Class, str], frozenset[str]] = {}

    def module_files(self, name: str, importer: str) -> list[str]:
        """Return the files that a module's name may mean: of scripts, their neighbours too."""
        files = self._files.get(name, [])
        if not files:
            beside = str(PurePosixPath(importer).parent / (name.replace(".", "/") + ".py"))
            files = [beside] if beside in self.modules else []
        if len(files) > 1:  # of several the nearest: with most folders in common
            own = PurePosixPath(importer).parts
            files = sorted(files, key=lambda file: -_shared(own, PurePosixPath(file).parts))[:1]
        return files

    def meaning(self, file: str, dotted: str) -> Meaning:
        """Return the meaning of a name at a module's top level."""
        if (file, dotted) not in self._followed:
            collected = _Collected()
            self._follow(file, dotted.split("."), collected, 0)
            self._followed[file, dotted] = collected.meaning()
        return self._followed[file, dotted]

    def imported(self, imported: Imported, file: str, rest: Iterable[str]) -> Meaning:
        """Return the meaning of an imported name, followed by the attributes `rest`."""
        collected = _Collected()
        self._import(imported, file, [*rest], collected, 0)
        return collected.meaning()

    def _follow(self, file: str, parts: list[str], collected: _Collected, steps: int) -> None:
        if steps > _MOST_STEPS or (file, *parts) in collected.seen:
            return
        collected.seen.add((file, *parts))
        first, rest = parts[0], parts[1:]
        collected.functions |= self._accessors.get((file, "", first), set())
        if (file, first) in self.classes:
            self._in_class((file, first), rest, collected)
        if (file, "", first) in self.variables:
            collected.variables.add((file, "", first))
            collected.loose.update(rest)
        for imported in self._imports.get((file, first), ()):
            collected.imports.add((file, first))
            self._import(imported, file, rest, collected, steps + 1)
        if not self._has(file, first):
            for imported in self._imports.get((file, _STAR), ()):
                for target in self.module_files(imported.module, file):
                    self._follow(target, parts, collected, steps + 1)

    def _has(self, file: str, name: str) -> bool:
        return (
            (file, "", name) in self._accessors
            or (file, name) in self.classes
            or (file, "", name) in self.variables
            or (file, name) in self._imports
        )

    def _import(self, imported: Imported, file: str, rest: list[str], collected: _Collected, steps: int) -> None:
        if imported.attribute and imported.attribute != _STAR:
            submodules = self.module_files(f"{imported.module}.{imported.attribute}", file)
            for target in submodules:
                self._in_module(target, f"{imported.module}.{imported.attribute}", rest, collected, steps)
            for target in self.module_files(imported.module, file) if not submodules else ():
                self._follow(target, [imported.attribute, *rest], collected, steps)
        elif not imported.attribute:
            for target in self.module_files(imported.module, file):
                self._in_module(target, imported.module, rest, collected, steps)

    def _in_module(self, file: str, module: str, rest: list[str], collected: _Collected, steps: int) -> None:
        if not rest:
            return
        if self._has(file, rest[0]):
            self._follow(file, rest, collected, steps + 1)
            return
        inner = f"{module}.{rest[0]}"
        files = self.module_files(inner, file) if inner in self._files else []
        for target in files:
            self._in_module(target, inner, rest[1:], collected, steps + 1)
        if not files:
            self._follow(file, rest, collected, steps + 1)

    def _in_class(self, owner: Class, rest: list[str], collected: _Collected) -> None:
        collected.classes.add(owner)
        if not rest:
            return
        nested = (owner[0], f"{owner[1]}.{rest[0]}")
        if nested in self.classes:
            self._in_class(nested, rest[1:], collected)
            return
        if collected.only_classes:
            return
        collected.functions |= self.methods(owner, rest[0])
        collected.variables |= self.attributes(owner, rest[0])
        collected.loose.update(rest[1:])

    def methods(self, owner: Class, name: str) -> frozenset[str]:
        """Return the keys of the methods that `name` may mean on an object of a class: its own or inherited, and those that override it."""
        if (owner, name) not in self._known_methods:
            overriding = (self._accessors.get((*heir, name), set()) for heir in self.below(owner))
            self._known_methods[owner, name] = self._nearest(self.lineage(owner), name).union(*overriding)
        return self._known_methods[owner, name]

    def inherited(self, owner: Class, name: str) -> frozenset[str]:
        """Return the keys of the methods that `name` may mean in the bases of a class."""
        return self._nearest(self.lineage(owner)[1:], name)

    def _nearest(self, lineage: Iterable[Class], name: str) -> frozenset[str]:
        return frozenset(next((own for ancestor in lineage if (own := self._accessors.get((*ancestor, name)))), ()))

    def attributes(self, owner: Class, name: str) -> set[VariableKey]:
        """Return the class attributes that `name` may mean on an object of a class."""
        attributes: set[VariableKey] = set()
        own = next((ancestor for ancestor in self.lineage(owner) if (*ancestor, name) in self.variables), None)
        for class_ in (*((own,) if own is not None else ()), *self.below(owner)):
            if (*class_, name) in self.variables:
                attributes.add((*class_, name))
        return attributes

    @cached_property
    def _accessors(self) -> Mapping[tuple[str, str, str], set[str]]:
        """The keys of functions by file, class ("" for the module) and name; of a property all of its functions."""
        keys: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        for (file, _), function in self.functions.items():
            if function.owner or "." not in qualname(function):
                keys[file, function.owner, own_name(function)].add(function.definition.key)
        return keys

    def lineage(self, owner: Class) -> tuple[Class, ...]:
        """Return a class and its bases within the program, nearest first."""
        if owner not in self._lineages:
            self._lineages[owner] = tuple(closure((owner,), lambda class_: self._bases[class_])) if owner in self.classes else ()
        return self._lineages[owner]

    def below(self, owner: Class) -> frozenset[Class]:
        """Return the classes that derive from a class."""
        return self._below.get(owner, frozenset())

    def _base(self, file: str, dotted: str) -> set[Class]:
        """Return the classes that a base's name leads to; methods on the way are not asked for, as these hang on bases themselves."""
        collected = _Collected(only_classes=True)
        self._follow(file, dotted.split("."), collected, 0)
        return collected.classes

    @cached_property
    def _bases(self) -> Mapping[Class, list[Class]]:
        return {
            (file, name): sorted(
                target
                for base in facts.bases
                for target in self._base(file, base)
                # `Outer.Inner` leads over `Outer`, which is no base.
                if target != (file, name) and ("." not in base or target[1].rpartition(".")[2] == base.rpartition(".")[2])
            )
            for (file, name), facts in self.classes.items()
        }

    @cached_property
    def _below(self) -> Mapping[Class, frozenset[Class]]:
        derived: dict[Class, set[Class]] = defaultdict(set)
        for class_ in self.classes:
            for base in self.lineage(class_):
                if base != class_:
                    derived[base].add(class_)
        return {base: frozenset(classes) for base, classes in derived.items()}


class _Collected:
    """What following a name has met so far."""

    def __init__(self, *, only_classes: bool = False) -> None:
        self.only_classes = only_classes
        self.functions: set[str] = set()
        self.classes: set[Class] = set()
        self.variables: set[VariableKey] = set()
        self.imports: set[ImportKey] = set()
        self.loose: set[str] = set()
        self.seen: set[tuple[str, ...]] = (
            set()
        )  # files with names in them: modules that import everything of each other are many ways to one

    def meaning(self) -> Meaning:
        return Meaning(
            frozenset(self.functions), frozenset(self.classes), frozenset(self.variables), frozenset(self.imports), frozenset(self.loose)
        )


def qualname(function: PythonFunctionFacts) -> str:
    """Return a function's qualified name within its file."""
    return function.definition.key.partition("::")[2]


def own_name(function: PythonFunctionFacts) -> str:
    """Return the name by which a module or class has a function."""
    inside = qualname(function).removeprefix(f"{function.owner}.") if function.owner else qualname(function)
    return inside.partition("#")[0].partition(".")[0]


def module_key(file: str) -> str:
    """Return the key of a file's module level."""
    return f"python:{file}::{MODULE}"


def _paths(file: str) -> Iterator[str]:
    """Yield the names that a file has by its path: from the tree's root, and from a folder of sources."""
    parts = PurePosixPath(file).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    yield ".".join(parts)
    if not ROOTS.isdisjoint(parts[:1]):
        yield ".".join(parts[1:])


def _shared(own: tuple[str, ...], other: tuple[str, ...]) -> int:
    return next((index for index, (left, right) in enumerate(zip(own, other, strict=False)) if left != right), min(len(own), len(other)))
