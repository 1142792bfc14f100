"""The syntax trees of PHP files: parsing, the nodes that stand for code of their own, and the lines by which the engine has them."""

from __future__ import annotations

import functools

import tree_sitter_php
from tree_sitter import Language, Node, Parser

from perfdiff.languages.stretches import Stretch
from perfdiff.languages.syntax_trees import child, inner, last_line, line, lines_alone

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
_WORK = frozenset((
    "function_call_expression", "member_call_expression", "nullsafe_member_call_expression", "scoped_call_expression",
    "object_creation_expression", "for_statement", "foreach_statement", "while_statement", "do_statement",
))  # fmt: skip


def parse(text: bytes) -> Node:
    """Return the root of a text's syntax tree."""
    return _parser().parse(text).root_node


@functools.cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_php.language_php()))


def declares(root: Node) -> bool:
    """Return whether what runs when a file is loaded calls nothing, and repeats nothing."""
    remaining = [root]
    while remaining:
        node = remaining.pop()
        if node.type in _WORK:
            return False
        if node.type not in FUNCTIONS and node.type not in CLASSES:
            remaining += node.named_children
    return True


def spine(node: Node) -> list[Node]:
    """Return an expression of two operands, the one on its left, and so on down: chains of concatenations are hundreds deep."""
    operands = [node]
    while (left := operands[-1].child_by_field_name("left")) is not None and left.type == "binary_expression":
        operands.append(left)
    return operands


def engine_lines(node: Node) -> Stretch:
    """Return the lines between which the engine has a function: from its keyword, whatever stands above and before that.

    The engine has read what stands behind an arrow function by the time that it takes down where that ends.
    """
    keyword = child(node, "function", "fn") or node
    last = last_line(node)
    if node.type == "arrow_function":
        behind = _next_leaf(node)
        last = max(last, line(behind)) if behind is not None else last
    return line(keyword), last


def _next_leaf(node: Node) -> Node | None:
    ancestor: Node | None = node
    while ancestor is not None:
        behind = ancestor.next_sibling
        while behind is not None and behind.type == COMMENT:
            behind = behind.next_sibling
        if behind is not None:
            while behind.children:
                behind = behind.children[0]
            return behind
        ancestor = ancestor.parent
    return None


def lines_of_comments(root: Node, text: bytes) -> frozenset[int]:
    """Return the lines that hold comments and nothing else."""
    comments = (node for node in inner(root) if node.type == COMMENT)
    return frozenset(line for comment in comments for line in lines_alone(comment, text))
