"""One source file: its types, and what runs in them, with the stretches of text that they take."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import tree_sitter_java
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from perfdiff.languages.java import decisions
from perfdiff.languages.java.decisions import JumpCondition
from perfdiff.languages.stretches import Stretch, stretches
from perfdiff.languages.syntax_trees import as_ascii, child, inner, last_line, line, lines_alone, problem, text_of

_QUERY = """
(package_declaration) @package
(import_declaration) @import
[(class_declaration) (interface_declaration) (enum_declaration) (record_declaration) (annotation_type_declaration)] @type
(object_creation_expression (class_body) @anonymous)
(enum_constant) @constant
(enum_constant body: (class_body) @constant_body)
[(method_declaration) (constructor_declaration) (compact_constructor_declaration)] @method
(static_initializer) @static
(class_body (block) @instance)
(enum_body_declarations (block) @instance)
(field_declaration (variable_declarator) @field)
(constant_declaration (variable_declarator) @field)
(lambda_expression) @lambda
(method_reference) @reference
(local_variable_declaration (variable_declarator name: (identifier) @local))
(enhanced_for_statement name: (identifier) @local)
(catch_formal_parameter name: (identifier) @local)
(resource name: (identifier) @local)
(instanceof_expression name: (identifier) @local)
(type_pattern (identifier) @local)
[(line_comment) (block_comment)] @comment
"""
_TYPES = frozenset(("type", "anonymous", "constant_body"))
_SPACE = re.compile(r"\s+")


class Role(StrEnum):
    """What a member of a type is."""

    METHOD = "method"
    CONSTRUCTOR = "constructor"
    COMPACT = "compact"  # constructor of a record
    STATIC = "static"  # initialiser
    INSTANCE = "instance"  # initialiser
    FIELD = "field"
    CONSTANT = "constant"  # of an enum
    LAMBDA = "lambda"
    REFERENCE = "reference"  # to a method, which may become a lambda


@dataclass(frozen=True, slots=True)
class TypeText:
    """A type in its file, in order of their places.

    `name` is its simple name; of an anonymous one that of its parent, of the body of an enum's constant that of the constant. `owner` is
    the index of the type around it, `within` that of the member that it begins in; -1 where there is none.
    """

    kind: str  # "class", "interface", "enum", "record", "annotation", "anonymous", "constant"
    name: str
    owner: int
    within: int
    start: int
    end: int
    line: int
    last_line: int

    @property
    def is_anonymous(self) -> bool:
        """Return whether it has no name of its own."""
        return self.kind in ("anonymous", "constant")


@dataclass(frozen=True, slots=True)
class MemberText:
    """What stands in the body of a type, and lambdas anywhere, in order of their places.

    `owner` is the index of its type, `within` that of the member that a lambda begins in. `parameters` are names and types, as they are
    written. Bytes from `start` to `end`, `body` is behind the `{`; `line` is that of its name, `first_line` that of its annotations.
    `value` is what a field is given where it is declared, without comments; `variables` are the local ones that it declares, `decides` what
    in its own code becomes jumps.
    """

    role: Role
    name: str
    owner: int
    within: int
    parameters: tuple[tuple[str, str], ...]
    is_static: bool
    start: int
    body: int
    end: int
    first_line: int
    line: int
    last_line: int
    value: str = ""
    variables: tuple[str, ...] = ()
    decides: tuple[JumpCondition, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceText:
    """What a file tells. `imports` are as they are written, `static a.b.C.*`; `remarks` stretches of lines that hold comments alone.

    `problem` says where it could not be parsed; the rest tells of what could.
    """

    package: str
    imports: tuple[str, ...]
    types: tuple[TypeText, ...]
    members: tuple[MemberText, ...]
    remarks: tuple[Stretch, ...]
    problem: str | None = None


def read(data: bytes) -> SourceText:
    """Parse the text of a source file."""
    text = as_ascii(data)
    root = parse(text)
    walk = _SourceWalk(text)
    nodes = ((kind, node) for kind, nodes in QueryCursor(_query()).captures(root).items() for node in nodes)
    for kind, node in sorted(nodes, key=lambda capture: (capture[1].start_byte, -capture[1].end_byte)):  # outer ones before inner ones
        walk.take(kind, node)
    members, remarks = tuple(walk.all_members()), stretches(walk.remarks)
    return SourceText(walk.package, tuple(walk.imports), tuple(walk.types), members, remarks, problem(root))


def parse(text: bytes) -> Node:
    """Return the root of a text's syntax tree."""
    return _parser().parse(text).root_node


@functools.cache
def _parser() -> Parser:
    return Parser(_language())


@functools.cache
def _language() -> Language:
    return Language(tree_sitter_java.language())


@functools.cache
def _query() -> Query:
    return Query(_language(), _QUERY + decisions.QUERY)


class _SourceWalk:
    """Takes the nodes of a file in their order, and knows which of them are open around the present one."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._open: list[tuple[int, bool, int]] = []  # end, whether it is a type, index
        self.package, self.imports = "", list[str]()
        self.types, self.members, self.remarks = list[TypeText](), list[MemberText](), set[int]()
        self._variables: dict[int, list[str]] = defaultdict(list)
        self._decisions: dict[int, list[JumpCondition]] = defaultdict(list)

    def take(self, kind: str, node: Node) -> None:
        """Take note of one node."""
        while self._open and self._open[-1][0] <= node.start_byte:
            self._open.pop()
        if kind == "comment":
            self.remarks.update(lines_alone(node, self._text))
        elif kind == "package":
            self.package = _word(node.named_children[-1])
        elif kind == "import":
            self.imports.append(" ".join(text_of(node).removeprefix("import").rstrip(";").split()).replace(" .", ".").replace(". ", "."))
        elif kind == "local":
            self._variables[self._within()].append(_word(node))
        elif kind == "decides":
            self._decisions[self._within()].extend(decisions.decisions(node))
        elif kind in _TYPES:
            self._type(kind, node)
        else:
            self._member(kind, node)

    def all_members(self) -> Iterator[MemberText]:
        """Yield the members with the variables that they declare, and their decisions."""
        for index, member in enumerate(self.members):
            variables, decides = self._variables.get(index, ()), self._decisions.get(index, ())
            yield replace(member, variables=tuple(variables), decides=tuple(decides)) if variables or decides else member

    def _owner(self) -> int:
        return next((index for _, is_type, index in reversed(self._open) if is_type), -1)

    def _within(self) -> int:
        """Return the member that a node begins in directly; of members of a type -1."""
        if not self._open:
            return -1
        _, is_type, index = self._open[-1]
        return -1 if is_type else index

    def _type(self, kind: str, node: Node) -> None:
        shown = node
        if kind == "type":
            what = node.type.removesuffix("_declaration").removesuffix("_type")
            name = _word(node.child_by_field_name("name"))
        else:
            assert node.parent is not None, "a body stands in what it is the body of"
            what, shown = ("anonymous", node.parent) if kind == "anonymous" else ("constant", node.parent)
            named = _word(shown.child_by_field_name("type" if kind == "anonymous" else "name"))
            name = re.sub(r"<.*>", "", named).rpartition(".")[2]  # of a type's name the last part
        self.types.append(TypeText(what, name, self._owner(), self._within(), node.start_byte, node.end_byte, line(shown), last_line(node)))
        self._open.append((node.end_byte, True, len(self.types) - 1))

    def _member(self, kind: str, node: Node) -> None:
        declared = node.parent if kind == "field" else node
        assert declared is not None, "a field stands in its declaration"
        named = node.child_by_field_name("name")
        body = node.child_by_field_name("body") or (node if kind == "instance" else child(node, "block") if kind != "field" else None)
        role = Role(node.type.removesuffix("_declaration").removesuffix("_constructor")) if kind == "method" else Role(kind)
        modifiers = child(declared, "modifiers")
        words = [word.type for word in modifiers.children] if modifiers is not None else []
        in_interface = declared.type == "constant_declaration"
        value = node.child_by_field_name("arguments" if kind == "constant" else "value") if kind in ("constant", "field") else None
        self.members.append(
            MemberText(
                role,
                _word(named) if named is not None else "",
                self._owner(),
                self._within(),
                tuple(_parameters(node)) if kind in ("method", "lambda") else (),
                kind in ("static", "constant") or in_interface or "static" in words,
                declared.start_byte,
                _behind(body, node),
                declared.end_byte,
                line(declared),
                line(named or node),
                last_line(declared),
                written(value) if value is not None else "",
            )
        )
        self._open.append((node.end_byte, False, len(self.members) - 1))


def written(node: Node) -> str:
    """Return the text of a node without comments, its tokens with single spaces where there was white space."""
    if not any(below.type.endswith("_comment") for below in inner(node)):
        return _SPACE.sub(" ", text_of(node))
    parts, at = [], node.start_byte
    data = node.text or b""
    for below in inner(node):
        if below.type.endswith("_comment"):
            parts.append(data[at - node.start_byte : below.start_byte - node.start_byte])
            at = below.end_byte
    parts.append(data[at - node.start_byte :])
    return _SPACE.sub(" ", b" ".join(parts).decode("utf-8", "replace")).strip()


def _word(node: Node | None) -> str:
    return "" if node is None else "".join(written(node).split())


def _behind(body: Node | None, node: Node) -> int:
    """Return where the statements of a body begin; of what has none, its end."""
    if body is None:
        return node.end_byte
    return body.start_byte + (body.type in ("block", "constructor_body"))


def _parameters(node: Node) -> Iterator[tuple[str, str]]:
    given = node.child_by_field_name("parameters")
    if given is None:
        return
    if given.type == "identifier":
        yield _word(given), ""
        return
    for parameter in given.named_children:
        if parameter.type == "identifier":
            yield _word(parameter), ""
        elif parameter.type == "formal_parameter":
            dimensions = "".join(_word(part) for part in parameter.children if part.type == "dimensions")
            yield _word(parameter.child_by_field_name("name")), _word(parameter.child_by_field_name("type")) + dimensions
        elif parameter.type == "spread_parameter":
            parts = [child for child in parameter.named_children if child.type not in ("modifiers", "annotation", "marker_annotation")]
            yield _word(parts[-1].child_by_field_name("name") or parts[-1]), f"{_word(parts[0])}..."
