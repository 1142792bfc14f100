"""The tokens of a definition's text, without what means nothing, for comparing texts that are not the same."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from perfdiff.languages.dialect import TEXTS_KEPT
from perfdiff.languages.java import syntax
from perfdiff.languages.protocol import FunctionDefinition

_TOKEN = re.compile(
    r"""
      //[^\n]* | /\*.*?\*/
    | (?P<token>
        \"\"\".*?(?<!\\)\"\"\" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
      | \.?\d(?:[eEpP][+-]|[\w.])*
      | [^\W\d][\w$]*|\$[\w$]*
      | >>>=|<<=|>>=|\.\.\.|->|::|\+\+|--|&&|\|\||[-+*/%&|^<>=!]=
      | \S
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[^\W\d][\w$]*\Z")
_BEFORE, _BEHIND = "class _ {", "}"
_BEFORE_LAMBDA, _BEHIND_LAMBDA = "class _ { Object _ =", ";}"
_ANNOTATIONS = ("marker_annotation", "annotation")
# What does nothing to a running program; `final` of parameters and locals stands among them.
_SILENT = frozenset(("public", "protected", "private", "final", "abstract", "default", "transient", "sealed", "non-sealed"))
_FUNCTIONS = ("method_declaration", "constructor_declaration", "compact_constructor_declaration")


@dataclass(frozen=True, slots=True)
class JavaTextParts:
    """The tokens of a definition, part by part; `modifiers` are those that mean something, such as `synchronized`."""

    annotations: tuple[str, ...]
    modifiers: tuple[str, ...]
    signature: tuple[str, ...]
    body: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Return the tokens in the order of the text."""
        return (*self.annotations, *self.modifiers, *self.signature, *self.body)


def tokens(text: str) -> tuple[str, ...]:
    """Return the tokens of a text, without comments."""
    return tuple(match["token"] for match in _TOKEN.finditer(text) if match["token"])


def is_word(token: str) -> bool:
    """Return whether a token is a name or keyword."""
    return _WORD.match(token) is not None


def parts(definition: FunctionDefinition) -> JavaTextParts:
    """Return the tokens of a definition's text: without modifiers that do nothing, and without the bodies of functions inside it."""
    method = definition.linkage[0].split(" ")[1]
    return _taken_apart(definition.text, is_lambda=method.startswith("lambda$"), is_initialiser=method == "<clinit>")


@functools.lru_cache(TEXTS_KEPT)
def _taken_apart(text: str, *, is_lambda: bool, is_initialiser: bool) -> JavaTextParts:
    before, behind = (_BEFORE_LAMBDA, _BEHIND_LAMBDA) if is_lambda else (_BEFORE, _BEHIND)
    root = syntax.parse(f"{before}{text}{behind}".encode())
    if is_lambda:
        function = _first(root, ("lambda_expression", "method_reference"))
        return JavaTextParts((), (), *_of_lambda(function)) if function is not None else JavaTextParts((), (), (), tokens(text))
    if is_initialiser or (function := _first(root, _FUNCTIONS)) is None or function.start_byte > len(_BEFORE) + 1:
        return JavaTextParts((), (), (), tuple(_of_initialiser(root)))
    return _of_function(function)


def _of_function(node: Node) -> JavaTextParts:
    modifiers = next((child for child in node.children if child.type == "modifiers"), None)
    children = modifiers.children if modifiers is not None else []
    annotations = [token for child in children if child.type in _ANNOTATIONS for token in _leaves(child)]
    words = [child.type for child in children if child.type not in (*_ANNOTATIONS, *_SILENT) and not child.type.endswith("_comment")]
    body = node.child_by_field_name("body") or next((child for child in node.children if child.type == "block"), None)
    head = [child for child in node.children if child not in (modifiers, body)]
    return JavaTextParts(
        tuple(annotations),
        tuple(sorted(words)),
        tuple(token for child in head for token in _leaves(child)),
        tuple(_leaves(body)) if body is not None else (),
    )


def _of_lambda(node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    parameters, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
    if body is None:
        return (), tuple(_leaves(node))
    return (tuple(_leaves(parameters)) if parameters is not None else ()), tuple(_leaves(body, is_root=True))


def _of_initialiser(root: Node) -> Iterator[str]:
    """Yield the tokens of the fields and blocks of an initialiser's text, in which methods may stand as well."""
    body = _first(root, ("class_body",))
    for child in body.children if body is not None else ():
        if child.type not in _FUNCTIONS and not child.type.endswith(("class_declaration", "interface_declaration", "enum_declaration")):
            yield from _leaves(child)


def _first(root: Node, kinds: Sequence[str]) -> Node | None:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type in kinds:
            return node
        waiting.extend(reversed(node.children))
    return None


def _leaves(node: Node, *, is_root: bool = False) -> Iterator[str]:
    """Yield the tokens of a node; the bodies of lambdas and of the methods of classes inside it are told of by themselves."""
    if node.type.endswith("_comment"):
        return
    if node.type == "lambda_expression" and not is_root:
        parameters = node.child_by_field_name("parameters")
        yield from _leaves(parameters) if parameters is not None else ()
        yield "->"
        return
    if node.type == "class_body" and not is_root:
        for child in node.children:
            if child.type not in _FUNCTIONS:
                yield from _leaves(child)
        return
    if node.type in (*_ANNOTATIONS, "final") and node.parent is not None and node.parent.type == "modifiers" and _is_inner(node.parent):
        return
    if not node.children or node.type in ("string_literal", "character_literal"):
        yield (node.text or b"").decode("utf-8", "replace")
        return
    for child in node.children:
        yield from _leaves(child)


def _is_inner(modifiers: Node) -> bool:
    """Return whether modifiers are those of a parameter or local variable."""
    around = modifiers.parent
    return around is not None and around.type in ("formal_parameter", "spread_parameter", "local_variable_declaration", "resource")
