"""The functions of one file: their keys, texts, meanings, and what they name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from perfdiff.languages.protocol import FunctionDefinition
from perfdiff.languages.python.branches import plan_branches
from perfdiff.languages.python.facts import MODULE, Imported, PythonFunctionFacts, PythonReferences
from perfdiff.languages.python.features import PythonInputs, plan_features
from perfdiff.languages.python.meaning import fingerprint
from perfdiff.languages.python.names import InnerFunction, PythonNames, dotted_name, header
from perfdiff.languages.python.normal import last_name
from perfdiff.languages.python.remarks import Remarks, passed_over
from perfdiff.languages.python.sources import Positions, PythonFile, first_node
from perfdiff.languages.stretches import Stretch

_LAMBDA = "<lambda>"
_ACCESSORS = frozenset(("setter", "deleter", "getter"))
_GLOBAL = re.compile(rb"^\s*global\s", re.MULTILINE)
_CONTAINERS = frozenset(("list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter", "bytearray", "array"))
SAME_LINE = "another function of the same name begins on the same line, and interpreters tell functions by these"


_WORK = (ast.Call, ast.For, ast.AsyncFor, ast.While, ast.comprehension)


@dataclass(frozen=True)
class FunctionScope:
    """A function, or the module's level, as the functions inside see it."""

    qualname: str
    names: PythonNames
    bound: frozenset[str]  # names that are its own; none of the module's level, whose names are everybody's
    self_name: str | None
    inner: dict[str, str]  # keys of functions by the names that they have here
    parent: FunctionScope | None


class ModuleFunctions:
    """Walks over a parsed and normalised file, of which nodes were `dropped`, and makes the facts of its functions."""

    def __init__(self, source: PythonFile, depth: int, dropped: Iterable[ast.AST]) -> None:
        self._source, self._depth = source, depth
        self._positions = Positions(source.data)
        self._remarks = Remarks(self._positions, dropped)
        self._counts: Counter[str] = Counter()
        self._containers: frozenset[str] = frozenset()
        self._rebound: frozenset[str] = frozenset()
        self.names = PythonNames(source.module, source.is_package)
        self.scope = FunctionScope("", self.names, frozenset(), None, {}, None)

    def facts(self, tree: ast.Module) -> tuple[PythonFunctionFacts, ...]:
        """Return the facts of all functions in order of their places, the module's level first."""
        self.names.read(tree.body)
        held = ((variable.name, variable.value) for variable in self.names.held if not variable.owner)
        self._containers = frozenset(name for name, value in held if value is not None and _is_container(value))
        if _GLOBAL.search(self._source.data):
            self._rebound = frozenset(name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)
        facts = [self._module(tree), *self._inside(self.names.inner, self.scope)]
        return tuple(_without_namesakes(sorted(facts, key=lambda function: (function.definition.start, -function.definition.end))))

    def _module(self, tree: ast.Module) -> PythonFunctionFacts:
        size = len(self._source.data)
        definition = FunctionDefinition(
            key=self._key(MODULE),
            name=f"{self._source.module}.{MODULE}",
            names=(f"{self._source.module}.{MODULE}",),
            file=self._source.file,
            line=1,
            start=0,
            body=0,
            end=size,
            text=self._positions.text(0, size),
            signature="",
            tokens=fingerprint(tree),
            linkage=(f"1 {MODULE}",),
            language="python",
            no_code=self._remarks.within(1, self._positions.lines, _passed_over(self.names, is_remade=False)),
            loads=True,
            declares=_declares(tree),
        )
        return PythonFunctionFacts(definition, "", (), references(self.names, self.scope))

    def _inside(self, functions: Iterable[InnerFunction], scope: FunctionScope) -> Iterator[PythonFunctionFacts]:
        """Yield the functions that begin in a scope, each followed by those inside it."""
        named = [(function, self._qualname(function, scope)) for function in functions]
        for function, qualname in named:
            if function.name and not function.owner:
                scope.inner[function.name] = self._key(qualname)
        for function, qualname in named:
            yield from self._function(function, qualname, scope)

    def _qualname(self, function: InnerFunction, scope: FunctionScope) -> str:
        name = function.name or _LAMBDA
        if not isinstance(function.node, ast.Lambda):
            accessors = [part for decorator in function.node.decorator_list if (part := last_name(decorator)) in _ACCESSORS]
            name = ".".join((name, *accessors))
        plain = ".".join(filter(None, (scope.qualname, function.owner, name)))
        self._counts[plain] += 1
        return plain if self._counts[plain] == 1 else f"{plain}#{self._counts[plain]}"

    def _key(self, qualname: str) -> str:
        return f"python:{self._source.file}::{qualname}"

    def _function(self, function: InnerFunction, qualname: str, scope: FunctionScope) -> Iterator[PythonFunctionFacts]:
        node = function.node
        names = PythonNames(self._source.module, self._source.is_package)
        names.bound.update(argument.arg for argument in _arguments(node.args))
        names.read([node.body] if isinstance(node, ast.Lambda) else node.body)
        bound = frozenset(names.bound - names.made_global - names.nonlocals)
        own = FunctionScope(qualname, names, bound, _self_name(function), {}, scope)
        inside = list(self._inside(names.inner, own))
        defined = PythonNames(self._source.module, self._source.is_package)
        defined.read(header(node))
        refers = _joined(references(names, own), references(defined, scope), inside)
        decorators = () if isinstance(node, ast.Lambda) else tuple(node.decorator_list)
        yield PythonFunctionFacts(
            self._definition(function, qualname, own),
            ".".join(filter(None, (scope.qualname, function.owner))) if function.owner else "",
            tuple(text for call in decorators if (text := dotted_name(call.func if isinstance(call, ast.Call) else call)) is not None),
            refers,
        )
        yield from inside

    def _definition(self, function: InnerFunction, qualname: str, own: FunctionScope) -> FunctionDefinition:
        node, positions = function.node, self._positions
        start, end = positions.start(node), positions.end(node)
        body = node.body if isinstance(node, ast.Lambda) else node.body[0] if node.body else None
        name = f"{self._source.module}.{qualname}"
        code_name = _LAMBDA if isinstance(node, ast.Lambda) else node.name
        skipped = own.self_name if _is_method(function) else None
        unset = code_name in ("__init__", "__new__")
        inputs = PythonInputs(node.args, skipped, unset, own.names, self._variables(own), self._containers, self._rebound)
        first_line: int = first_node(node).lineno  # type: ignore[attr-defined]
        return FunctionDefinition(
            key=self._key(qualname),
            name=name,
            names=(name,),
            file=self._source.file,
            line=node.lineno,
            start=start,
            body=positions.start(body) if body is not None else end,
            end=end,
            text=positions.text(start, end),
            signature=f"({ast.unparse(node.args)})",
            tokens=fingerprint(node),
            features=plan_features(inputs, self._depth),
            branches=plan_branches(node, positions),
            linkage=(f"{first_line} {code_name}",),
            language="python",
            above=node.lineno - first_line,
            no_code=self._remarks.within(first_line, node.end_lineno or first_line, _passed_over(own.names, is_remade=True)),
        )

    def _variables(self, scope: FunctionScope) -> frozenset[str]:
        """Return the names of the module's variables that a function sees by them."""
        hidden: set[str] = set()
        level: FunctionScope | None = scope
        while level is not None and level.parent is not None:
            hidden |= level.bound
            level = level.parent
        return frozenset(variable.name for variable in self.names.held if not variable.owner) - hidden


def _passed_over(names: PythonNames, *, is_remade: bool) -> Iterator[Stretch]:
    """Yield the lines of the functions that begin in a stretch of code and are told of by themselves."""
    return (passed_over(function.node, is_remade=is_remade) for function in names.inner if not isinstance(function.node, ast.Lambda))


def references(names: PythonNames, scope: FunctionScope) -> PythonReferences:
    """Return what a walk over code found, each name told by where it comes from; `scope` is the one that the code runs in."""
    free, own, loose, inner = set[str](), set[str](), set(names.loose), set[str]()
    imports: dict[Imported, None] = dict.fromkeys(names.imports)
    for dotted in names.loaded:
        root, _, rest = dotted.partition(".")
        home = _home(root, scope)
        if home is None:
            free.add(dotted)
        elif root == home.self_name:
            own.add(rest)
        elif root in home.inner:
            inner.add(home.inner[root])
        elif taken := [imported for imported in home.names.imports if imported.name == root]:
            imports.update(dict.fromkeys(taken))
            free.add(dotted)
        else:
            loose.update(rest.split("."))
            if not rest and dotted in names.called:
                loose.add("__call__")
    binds_free, binds_own, binds_loose = set[str](), set[str](), set(names.binds_loose)
    for dotted in names.stored:
        root, _, rest = dotted.partition(".")
        home = _home(root, scope)
        if home is None:
            binds_free.add(root if not rest else dotted)
        elif rest and root == home.self_name:
            binds_own.add(rest.rpartition(".")[2] if "." not in rest else "")
        if rest and (home is None or root != home.self_name or "." in rest):
            binds_loose.add(rest.rpartition(".")[2])
    empty = {""}
    return PythonReferences(
        free=frozenset(free),
        own=frozenset(own - empty),
        inherited=frozenset(names.inherited),
        loose=frozenset(loose - empty),
        imports=tuple(imports),
        inner=frozenset(inner),
        binds_free=frozenset(binds_free),
        binds_own=frozenset(binds_own - empty),
        binds_loose=frozenset(binds_loose - empty),
    )


def _is_container(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return last_name(value.func) in _CONTAINERS
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def _home(name: str, scope: FunctionScope) -> FunctionScope | None:
    """Return the function whose name it is, from the inside out; None where it is the module's, or built in."""
    level: FunctionScope | None = scope
    while level is not None and level.parent is not None:
        if name in level.bound:
            return level
        if name in level.names.made_global:
            return None
        level = level.parent
    return None


def _joined(body: PythonReferences, defined: PythonReferences, inside: Iterable[PythonFunctionFacts]) -> PythonReferences:
    """Return what a function and its header name; a function may call all that begin in it, under whatever name they get about."""
    return replace(
        body,
        free=body.free | defined.free,
        own=body.own | defined.own,
        loose=body.loose | defined.loose,
        inner=body.inner | defined.inner | {function.definition.key for function in inside},
        imports=tuple(dict.fromkeys((*body.imports, *defined.imports))),
    )


def _without_namesakes(functions: Sequence[PythonFunctionFacts]) -> Iterator[PythonFunctionFacts]:
    """Yield the facts, those with an obstacle that an interpreter cannot tell from another function."""
    counts = Counter(facts.definition.linkage for facts in functions)
    for facts in functions:
        shared = counts[facts.definition.linkage] > 1
        yield replace(facts, definition=replace(facts.definition, obstacle=SAME_LINE, features=())) if shared else facts


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None)


def _is_method(function: InnerFunction) -> bool:
    if not function.owner or not function.name:
        return False
    return isinstance(function.node, ast.Lambda) or all(
        last_name(decorator) != "staticmethod" for decorator in function.node.decorator_list
    )


def _self_name(function: InnerFunction) -> str | None:
    """Return the parameter of a method that holds its object or class."""
    if not _is_method(function):
        return None
    positional = (*function.node.args.posonlyargs, *function.node.args.args)
    return positional[0].arg if positional else None


def _declares(tree: ast.Module) -> bool:
    """Return whether what runs when a module is loaded calls nothing, and repeats nothing; bodies of classes run."""
    remaining: list[ast.AST] = [tree]
    while remaining:
        node = remaining.pop()
        if isinstance(node, _WORK):
            return False
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            remaining += [*getattr(node, "decorator_list", ()), node.args]
        else:
            remaining += ast.iter_child_nodes(node)
    return True
