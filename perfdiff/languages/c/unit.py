"""The functions and declarations of one translation unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clang.cindex import CursorKind, TypeKind

from perfdiff.languages.c import front, lexer
from perfdiff.languages.c.bodies import traffic
from perfdiff.languages.c.branches import plan_branches
from perfdiff.languages.c.cursors import (
    FUNCTION,
    LAMBDA,
    RECORD,
    STOP,
    Cursor,
    SourcePosition,
    SourcePositions,
    TreeFiles,
    body_among,
    bound,
    children,
    is_null,
    native,
    overridden,
    subtree,
)
from perfdiff.languages.c.declarations import Dependency, Macro, Macros, Types, describe_global
from perfdiff.languages.c.features import FeaturePlanner
from perfdiff.languages.c.obstacles import INHERITED, INITIALISER, first_statement, ifunc_resolvers, obstacle
from perfdiff.languages.c.references import ReferenceResolver, linkage_names, qualified_name, stable_spelling
from perfdiff.languages.closure import closure
from perfdiff.languages.digest import digest
from perfdiff.languages.protocol import FunctionDefinition, MacroBody

_MACRO_DEFINITION = CursorKind.MACRO_DEFINITION.value
_EXPANSION = CursorKind.MACRO_INSTANTIATION.value
_VARIABLE = CursorKind.VAR_DECL.value
_COMPOUND = CursorKind.COMPOUND_STMT.value
_STATEMENT_EXPRESSION = CursorKind.StmtExpr.value
_METHOD = CursorKind.CXX_METHOD.value
# Types of constants that are constant expressions by their being const: integers and enumerations.
_INTEGRAL = frozenset((*range(TypeKind.BOOL.value, TypeKind.INT128.value + 1), TypeKind.ENUM.value))
_CONTAINERS = RECORD | frozenset(
    kind.value for kind in (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL, CursorKind.FRIEND_DECL)
)
_WANTED = _CONTAINERS | FUNCTION | {_MACRO_DEFINITION, _EXPANSION, _VARIABLE}


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """What one translation unit says. Texts are not filled in yet, and keys are those of this unit alone.

    `overrides` maps methods to the methods they override, `files` are the files of the tree it was made of, `missing` the headers that it
    names and that are not there.
    """

    file: str
    functions: tuple[FunctionDefinition, ...]
    dependencies: tuple[Dependency, ...]
    overrides: Mapping[str, tuple[str, ...]]
    files: tuple[str, ...]
    problem: str | None
    missing: tuple[str, ...] = ()


@dataclass(slots=True)
class IndexMemory:
    """What the units indexed so far have told, so that a header's functions, types and macros are read once and not once per unit."""

    files: TreeFiles
    functions: dict[tuple[str, int, str], tuple[FunctionDefinition, ...]] = field(default_factory=dict)
    overrides: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dependencies: dict[str, Dependency] = field(default_factory=dict)
    macros: dict[tuple[str, int], Macro] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _UnindexedFunction:
    """A function on its way into the index."""

    cursor: Cursor
    key: str
    name: str
    place: SourcePosition
    end: int


def index_unit(unit: front.Unit, parsed: Any, tree: Path, *, depth: int, memory: IndexMemory) -> UnitFacts:
    """Return the facts of a translation unit that was parsed."""
    places = SourcePositions(memory.files, unit.directory)
    walk = _UnitWalk(parsed, places, depth, memory, is_cplusplus="c++" in unit.arguments)
    walk.collect(parsed.cursor)
    functions, overrides = walk.functions()
    dependencies = _reachable((key for function in functions for key in function.uses), memory)
    file = str(unit.file.resolve().relative_to(tree.resolve()))
    included = {places.relative(inclusion.include.name) for inclusion in parsed.get_includes()}
    files = tuple(sorted({file, *filter(None, included)}))
    problem, missing = front.first_error(parsed, tree), front.missing_headers(parsed)
    return UnitFacts(file, functions, (*dependencies, *walk.globals()), overrides, files, problem, missing)


def _reachable(keys: Iterator[str], memory: IndexMemory) -> tuple[Dependency, ...]:
    dependencies = memory.dependencies
    reached = closure(keys, lambda key: dependencies[key].uses if key in dependencies else ())
    return tuple(dependencies[key] for key in sorted(reached & dependencies.keys()))


class _UnitWalk:
    """One pass over the top level of a unit, then one over each function body."""

    def __init__(self, parsed: Any, places: SourcePositions, depth: int, memory: IndexMemory, *, is_cplusplus: bool) -> None:
        self._parsed, self._places, self._memory = parsed, places, memory
        self._references = ReferenceResolver(parsed, places)
        self._types = Types(parsed, places, self._references)
        self._macros = Macros(parsed, places, memory.macros)
        self._resolvers: dict[str, frozenset[str]] = {}
        self._is_cplusplus, self._wanted = is_cplusplus, _WANTED if is_cplusplus else _WANTED - RECORD
        self._features = FeaturePlanner(parsed, depth)
        self._functions: list[Cursor] = []
        self._variables: list[Cursor] = []

    def collect(self, scope: Cursor) -> None:
        """Gather the macros, functions and variables of the tree's files."""
        for cursor in children(scope):
            kind = cursor._kind_id
            if kind not in self._wanted or (kind in FUNCTION and not native.clang_isCursorDefinition(cursor)):
                continue
            if (place := self._places.of(cursor)) is None:
                continue
            if kind == _EXPANSION:
                self._macros.expand(cursor, place)
            elif kind == _MACRO_DEFINITION:
                self._macros.define(cursor, place)
            elif kind in _CONTAINERS:
                self.collect(cursor)
            elif not (self._is_cplusplus and self._is_instance(cursor, place)):
                (self._variables if kind == _VARIABLE else self._functions).append(cursor)

    def _is_instance(self, cursor: Cursor, place: SourcePosition) -> bool:
        """Return whether a template became this, which libclang has beside it where a unit has precompiled headers."""
        template = native.clang_getSpecializedCursorTemplate(cursor)
        if is_null(template):
            return False
        definition = native.clang_getCursorDefinition(template)
        return place in (self._places.of(template), None if is_null(definition) else self._places.of(definition))

    def functions(self) -> tuple[tuple[FunctionDefinition, ...], dict[str, tuple[str, ...]]]:
        """Return the definitions of all functions, and which methods override which."""
        self._macros.sort()
        definitions: list[FunctionDefinition] = []
        overrides: dict[str, tuple[str, ...]] = {}
        for cursor in self._functions:
            definitions += self._remembered(cursor)
        for variable in self._variables:
            definitions += self._of_variable(variable)
        for definition in definitions:
            if definition.key in self._memory.overrides:
                overrides[definition.key] = self._memory.overrides[definition.key]
        return tuple(definitions), overrides

    def globals(self) -> Iterator[Dependency]:
        """Yield the variables outside of functions that this unit defines, with the types and macros they use."""
        for variable in self._variables:
            dependency = describe_global(variable, self._parsed, self._places, self._references)
            if dependency is not None:
                place = self._places.span(variable)
                macros = self._macros.within(place[0].file, place[0].offset, place[1]) if place is not None else set()
                self._describe(dependency.uses | macros)
                yield Dependency(dependency.declaration, dependency.uses | macros, dependency.calls)
                yield from _reachable(iter(dependency.uses | macros), self._memory)

    def _remembered(self, cursor: Cursor) -> tuple[FunctionDefinition, ...]:
        span = self._places.span(cursor)
        if span is None:
            return ()
        key = self._references.function_key(cursor)
        place = (span[0].file, span[0].offset, key)
        if place not in self._memory.functions:
            function = _UnindexedFunction(cursor, key, qualified_name(cursor, self._parsed), *span)
            definitions = tuple(self._definitions(function, None))
            self._memory.functions[place] = definitions
            for definition in definitions:
                self._describe(definition.uses)
            if cursor._kind_id == _METHOD and (base := overridden(cursor)):
                self._memory.overrides[key] = tuple(map(self._references.function_key, base))
        return self._memory.functions[place]

    def _describe(self, keys: frozenset[str] | set[str]) -> None:
        waiting = set(keys)
        dependencies = self._memory.dependencies
        while waiting:
            key = waiting.pop()
            if key in dependencies:
                continue
            if key in self._references.types:
                dependencies[key] = self._types.describe(key, self._references.types[key])
            elif key.startswith("macro:"):
                dependencies[key] = self._macros.describe(key)
            else:
                continue
            waiting |= dependencies[key].uses

    def _of_variable(self, variable: Cursor) -> Iterator[FunctionDefinition]:
        """Yield the lambdas of a variable's initialiser."""
        span = self._places.span(variable)
        if span is None:
            return
        text = set(lexer.tokens(self._places.source(span[0].file)[span[0].offset : span[1]]))
        if not text.issuperset("[]{}"):
            return
        lambdas = [cursor for cursor, _ in subtree(variable, STOP) if cursor._kind_id == LAMBDA]
        named = self._named(lambdas, self._references.global_key(variable), qualified_name(variable, self._parsed))
        for inner in named:
            yield from self._definitions(inner, self._constant(variable, self._head(span[0], named[0].place.offset)))

    def _constant(self, variable: Cursor, head: set[str]) -> str | None:
        """Return why functions in a variable's initialiser cannot carry a probe, or None; `head` are the tokens ahead of the first."""
        if "constexpr" in head:
            return "constexpr"
        kind = native.clang_getCursorType(variable)
        kind._tu = self._parsed
        is_usable = kind.is_const_qualified() and kind.get_canonical().kind.value in _INTEGRAL
        return INITIALISER if is_usable or "constinit" in head else None

    def _named(self, cursors: list[Cursor], owner: str, name: str) -> list[_UnindexedFunction]:
        """Give the functions inside a function their keys: lambdas are numbered, methods of local classes keep their names."""
        named, ordinal = [], 0
        for cursor in cursors:
            if (span := self._places.span(cursor)) is None:
                continue
            if cursor._kind_id == LAMBDA:
                ordinal += 1
                named.append(_UnindexedFunction(cursor, f"{owner}/lambda#{ordinal}", f"{name}::<lambda {ordinal}>", *span))
            else:
                local = qualified_name(cursor, self._parsed)
                key = f"{owner}/{local} {self._signature(cursor, b'')}"
                self._references.name_function(cursor, key)
                named.append(_UnindexedFunction(cursor, key, f"{name}::{local}", *span))
        return named

    def _definitions(self, outer: _UnindexedFunction, outer_obstacle: str | None) -> Iterator[FunctionDefinition]:
        """Yield the definition of a function, then those of the functions inside it; nothing where it has no body."""
        cursor, place = outer.cursor, outer.place
        nodes = subtree(cursor, STOP)
        braces = self._braces(nodes, place.file)
        if braces is None or bound(cursor, self._parsed).is_default_method():
            return
        inner = self._named([node for node, _ in nodes if node._kind_id in STOP], outer.key, outer.name)
        references, body = traffic(nodes, self._references), body_among(nodes, cursor)
        source = self._places.source(place.file)
        written_out = (
            place.offset <= braces[0] < braces[1] <= outer.end and source[braces[0]] == b"{"[0] and source[braces[1] - 1] == b"}"[0]
        )
        holes = self._holes(inner) if written_out else []
        macro = None if written_out else self._made(outer, braces[0])
        text = lexer.tokens(lexer.without(source, place.offset, outer.end, holes))
        macros = self._macros.within(place.file, place.offset, outer.end, holes)
        reason = (
            outer_obstacle
            or obstacle(
                self._head(place, braces[0]),
                self._macros.words(macros).union(text),
                has_place=written_out or macro is not None,
                name=outer.name,
                resolvers=self._ifunc_resolvers(place.file),
            )
            or (first_statement(source, braces[0] + 1) if macro is None else first_statement(self._places.source(macro.file), macro.offset))
        )
        nested = [definition for function in inner for definition in self._definitions(function, reason if reason in INHERITED else None)]
        yield FunctionDefinition(
            key=outer.key,
            name=outer.name,
            names=(outer.name,),
            file=place.file,
            line=place.line,
            start=place.offset,
            body=braces[0] + 1,
            end=outer.end,
            text="",
            signature=self._signature(cursor, source[place.offset : braces[0]]),
            tokens=digest(text),
            uses=frozenset(references.uses | macros),
            calls=frozenset(references.calls | {definition.key for definition in nested}),
            reads=frozenset(references.reads),
            writes=frozenset(references.writes),
            features=self._features.plans(bound(cursor, self._parsed), body) if reason is None else (),
            branches=plan_branches(bound(cursor, self._parsed), body, source) if reason is None and written_out and body else (),
            obstacle=reason,
            linkage=linkage_names(cursor, self._parsed),
            made=macro,
        )
        yield from nested

    def _made(self, function: _UnindexedFunction, brace: int) -> MacroBody | None:
        """Return where a macro has the body of a function of C, whose `{` counts where the macro is used."""
        is_told_by_name = "::" not in function.name
        return self._macros.body(function.place.file, brace, function.name) if is_told_by_name and brace >= function.place.offset else None

    def _head(self, start: SourcePosition, brace: int) -> set[str]:
        """Return the tokens ahead of a body, with those of the macros among them."""
        words = set(lexer.tokens(self._places.source(start.file)[start.offset : brace]))
        return words | self._macros.words(self._macros.within(start.file, start.offset, max(brace, start.offset + 1)))

    def _braces(self, nodes: list[tuple[Cursor, Cursor]], file: str) -> tuple[int, int] | None:
        """Return the offsets of the body's `{` and behind its `}`; None where there is no body (defaulted, deleted)."""
        for node, parent in nodes:
            if node._kind_id == _COMPOUND and parent._kind_id != _STATEMENT_EXPRESSION:
                span = self._places.span(node)
                return (span[0].offset, span[1]) if span is not None and span[0].file == file else (0, 0)
        return None

    def _holes(self, inner: list[_UnindexedFunction]) -> list[tuple[int, int]]:
        holes = []
        for function in inner:
            braces = self._braces(subtree(function.cursor, STOP), function.place.file)
            if braces is not None and braces[0] < braces[1]:
                holes.append(braces)
        return sorted(holes)

    def _signature(self, cursor: Cursor, head: bytes) -> str:
        if cursor._kind_id == LAMBDA:
            return " ".join(lexer.tokens(head))
        return stable_spelling(bound(cursor, self._parsed).type.get_canonical().spelling)

    def _ifunc_resolvers(self, file: str) -> frozenset[str]:
        if file not in self._resolvers:
            self._resolvers[file] = ifunc_resolvers(self._places.source(file))
        return self._resolvers[file]
