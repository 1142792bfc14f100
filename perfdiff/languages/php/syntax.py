"""The syntax trees of PHP files, by tree-sitter: parsing, places, and the nodes that stand for code of their own."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

import tree_sitter_php
from tree_sitter import Language, Node, Parser

Stretch = tuple[int, int]  # first and last line

CLOSURES = frozenset(("anonymous_function", "arrow_function"))
NAMED = frozenset(("function_definition", "method_declaration", "property_hook"))
FUNCTIONS = CLOSURES | NAMED
CLASSES = {
    "class_declaration": "class",
    "interface_declaration": "interface",
    "trait_declaration": "trait",
    "enum_declaration": "enum",
    "anonymous_class": "class",
}
COMMENT = "comment"
_OTHER_BYTES = bytes(each if each < 0x80 else ord("x") for each in range(0x100))
_BLANK = re.compile(rb"[ \t\f]*(?:[\r\n]|\Z)")


def parse(text: bytes) -> Node:
    """Return the root of a text's syntax tree."""
    return _parser().parse(text).root_node


def as_ascii(data: bytes) -> bytes:
    """Return the same bytes where they are UTF-8, else, as places must stay, with an `x` for each that is not ASCII."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.translate(_OTHER_BYTES)
    return data


@functools.cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_php.language_php()))


def text_of(node: Node | None) -> str:
    """Return the text of a node; nothing of none."""
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def inner(node: Node) -> Iterator[Node]:
    """Yield a node and all that is in it, in the order of the text."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(reversed(each.children))


def child(node: Node, *types: str) -> Node | None:
    """Return the first child of one of some types."""
    return next((each for each in node.children if each.type in types), None)


def problem(root: Node) -> str | None:
    """Return where a text could not be parsed, None where it could."""
    if not root.has_error:
        return None
    wrong = next((each for each in inner(root) if each.is_error or each.is_missing), root)
    return f"it cannot be parsed (line {line(wrong)})"


def line(node: Node) -> int:
    """Return the line that a node begins on."""
    return node.start_point.row + 1


def engine_lines(node: Node) -> Stretch:
    """Return the lines between which the engine has a function: from its keyword, whatever stands above and before that.

    The engine has read what stands behind an arrow function by the time that it takes down where that ends.
    """
    keyword = child(node, "function", "fn") or node
    last = node.end_point.row + 1
    if node.type == "arrow_function":
        behind = _next_leaf(node)
        last = max(last, line(behind)) if behind is not None else last
    return line(keyword), last


def _next_leaf(node: Node) -> Node | None:
    each: Node | None = node
    while each is not None:
        behind = each.next_sibling
        while behind is not None and behind.type == COMMENT:
            behind = behind.next_sibling
        if behind is not None:
            while behind.children:
                behind = behind.children[0]
            return behind
        each = each.parent
    return None


def lines_of_comments(root: Node, text: bytes) -> frozenset[int]:
    """Return the lines that hold comments and nothing else."""
    found: set[int] = set()
    for each in inner(root):
        if each.type == COMMENT:
            found.update(_alone(each, text))
    return frozenset(found)


def _alone(node: Node, text: bytes) -> Iterable[int]:
    begin = text.rfind(b"\n", 0, node.start_byte) + 1
    first, last = line(node), node.end_point.row + 1
    if node.end_point.column == 0:  # a comment to the end of its line may have that end in it
        last = max(first, last - 1)
    before = text[begin : node.start_byte].strip()
    behind = _BLANK.match(text, node.end_byte) or text[node.end_byte - 1 : node.end_byte] == b"\n"
    return range(first + bool(before), last + bool(behind))


def stretches(lines: Iterable[int]) -> tuple[Stretch, ...]:
    """Return lines as stretches of neighbours, in order."""
    ordered = sorted(lines)
    if not ordered:
        return ()
    breaks = [(one, other) for one, other in pairwise(ordered) if other != one + 1]
    firsts, lasts = [ordered[0], *(other for _, other in breaks)], [*(one for one, _ in breaks), ordered[-1]]
    return tuple(zip(firsts, lasts, strict=True))
