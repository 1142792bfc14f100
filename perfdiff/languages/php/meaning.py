"""The meaning of code as words: its tokens without comments, attributes and layout, and without the bodies of functions inside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tree_sitter import Node

from perfdiff.languages.digest import digest
from perfdiff.languages.php.naming import SUPERGLOBALS
from perfdiff.languages.php.syntax import CLASSES, CLOSURES, COMMENT, FUNCTIONS, spine
from perfdiff.languages.syntax_trees import child, inner, text_of

# Which visibility code has is checked when it is compiled; tags are where statements begin; what `use` and `declare` say is told of apart.
_SILENT = frozenset(
    (
        COMMENT, "attribute_list", "visibility_modifier", "final_modifier", "abstract_modifier", "php_tag", "php_end_tag", "heredoc_start",
        "heredoc_end", "namespace_use_declaration",
    )
)  # fmt: skip
_WITH_BODY = frozenset(("if_statement", "else_clause", "else_if_clause", "while_statement", "for_statement", "foreach_statement"))
_BLOCKS = frozenset(("compound_statement", "colon_block"))
_CLOSERS = frozenset((")", "]", "}"))
_LITERALS = frozenset(("boolean", "null", "primitive_type", "cast_type"))
_DECLARED = frozenset(("function_definition", *CLASSES)) - {"anonymous_class"}
_LOCAL = "\0"  # begins the words that are variables
_KEPT = SUPERGLOBALS | {"$this", "$GLOBALS", "$argv", "$argc"}
# What reads or sets variables by their names.
_BY_NAME = frozenset(("compact", "extract", "get_defined_vars", "parse_str", "eval"))
_INCLUDES = frozenset(("include_expression", "include_once_expression", "require_expression", "require_once_expression"))
_PLAIN = re.compile(r"[^\\$']*")


def fingerprint(node: Node, parameters: Iterable[str]) -> str:
    """Return a digest of what a function means; equal for texts that differ in layout and in the names of its local variables alone."""
    tokens = words(node)
    return digest(_numbered(tokens, frozenset(parameters)) if _renames(node) else plain(tokens))


def plain(tokens: Iterable[str]) -> list[str]:
    """Return words without the marks that `words` puts before variables."""
    return [word.removeprefix(_LOCAL) for word in tokens]


def words(node: Node) -> list[str]:
    """Return the words of a node, with a mark before variables."""
    tokens: list[str] = []
    _add(node, tokens, node)
    return tokens


def _add(node: Node, tokens: list[str], root: Node) -> None:
    kind = node.type
    if kind in _SILENT:
        return
    if node is not root and (kind in FUNCTIONS or kind in CLASSES):
        _add_inner(node, tokens, root)
    elif kind == "namespace_definition":
        _add_namespace(node, tokens, root)
    elif kind == "declare_statement" and _is_of_types(node):
        pass
    elif kind == "variable_name":
        tokens.append(f"{_LOCAL}{text_of(node)}")
    elif kind in ("string", "encapsed_string") and (text := _literal(node)) is not None:
        tokens.append(text)
    elif kind in ("array_creation_expression", "list_literal"):
        _add_list(node, tokens, root)
    elif not node.children:
        _add_leaf(node, tokens)
    else:
        _add_children(node, tokens, root)


def _add_namespace(node: Node, tokens: list[str], root: Node) -> None:
    """Add the statements of a namespace; its name is that of what stands in it."""
    body = node.child_by_field_name("body")
    for statement in body.named_children if body is not None else ():
        _add(statement, tokens, root)


def _is_of_types(node: Node) -> bool:
    """Return whether a `declare` says no more than how types are checked."""
    directive = child(node, "declare_directive")
    return directive is not None and text_of(directive).lstrip().lower().startswith("strict_types")


def _add_leaf(node: Node, tokens: list[str]) -> None:
    text = text_of(node)
    if node.type in _CLOSERS and tokens and tokens[-1] == ",":
        tokens.pop()
    if text:
        tokens.append(text.lower() if not node.is_named or node.type in _LITERALS else text)


def _add_children(node: Node, tokens: list[str], root: Node) -> None:
    if node.type == "binary_expression":
        *outer, innermost = spine(node)
        for part in innermost.children:
            _add(part, tokens, root)
        for expression in reversed(outer):
            for part in expression.children[1:]:
                _add(part, tokens, root)
        return
    body = node.child_by_field_name("body") if node.type in _WITH_BODY else None
    if body is None or body.type in _BLOCKS:
        for part in node.children:
            _add(part, tokens, root)
        return
    for part in node.children:
        if part == body:
            tokens.append("{")
        _add(part, tokens, root)
        if part == body:
            tokens.append("}")


def _add_list(node: Node, tokens: list[str], root: Node) -> None:
    """Add `array(…)` and `list(…)` as `[…]`, which is the same."""
    inside = [element for element in node.children if element.type not in ("array", "list")]
    tokens.append("[")
    for element in inside[1:-1]:
        _add(element, tokens, root)
    if tokens[-1] == ",":
        tokens.pop()
    tokens.append("]")


def _add_inner(node: Node, tokens: list[str], root: Node) -> None:
    """Add what a function or class inside does where it stands: it is made there, and told of by itself."""
    if node.type in _DECLARED:
        if root.type in FUNCTIONS:
            tokens.append(f"declares {text_of(node.child_by_field_name('name'))}")
    elif node.type in CLOSURES:
        for part in node.children:
            if part.type not in _BLOCKS and part != node.child_by_field_name("body"):
                _add(part, tokens, root)
        tokens.append("…")
    elif node.type == "anonymous_class":
        for part in node.children:
            if part.type != "declaration_list":
                _add(part, tokens, root)
        tokens.append("…")
    else:
        tokens.append(text_of(node.child_by_field_name("name")))


def _literal(node: Node) -> str | None:
    """Return a text without variables and escapes in it, whatever its quotes; None of another one."""
    contents = [part for part in node.children if part.is_named]
    if any(part.type != "string_content" for part in contents):
        return None
    text = "".join(map(text_of, contents))
    return f"'{text}'" if _PLAIN.fullmatch(text) else None


def _renames(node: Node) -> bool:
    """Return whether nothing in a function asks for variables by their names; those of a file's own code are everybody's."""
    if node.type not in FUNCTIONS:
        return False
    for below in inner(node):
        if below.type in _INCLUDES or below.type == "dynamic_variable_name":
            return False
        if below.type == "function_call_expression" and text_of(below.child_by_field_name("function")).lstrip("\\").lower() in _BY_NAME:
            return False
    return True


def _numbered(tokens: Sequence[str], parameters: frozenset[str]) -> list[str]:
    """Return words with a number for each variable that is neither a parameter nor everybody's."""
    numbers: dict[str, str] = {}
    named = [token.removeprefix(_LOCAL) for token in tokens]
    globals_ = {name for name in named if name in _KEPT} | _globals(tokens)
    result: list[str] = []
    for word, name in zip(tokens, named, strict=True):
        if word.startswith(_LOCAL) and name not in parameters and name not in globals_ and result[-1:] != ["::"]:
            result.append(numbers.setdefault(name, f"${len(numbers) + 1}"))
        else:
            result.append(name)
    return result


def _globals(tokens: Sequence[str]) -> set[str]:
    """Return the variables that `global` statements name."""
    names: set[str] = set()
    inside = False
    for word in tokens:
        inside = word == "global" or (inside and word != ";")
        if inside and word.startswith(_LOCAL):
            names.add(word.removeprefix(_LOCAL))
    return names


def body_of(node: Node) -> Node | None:
    """Return the body of a function."""
    return node.child_by_field_name("body") or child(node, "compound_statement")
