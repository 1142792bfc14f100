"""Which files a program includes, as far as its text tells."""

from __future__ import annotations

import posixpath

from tree_sitter import Node

from perfdiff.languages.php.expressions import constant_text
from perfdiff.languages.syntax_trees import text_of


def written_path(node: Node, file: str) -> str | None:
    """Return the path that an expression in a file stands for: from the root of the tree, or its end after a `*`; None of others."""
    if node.type == "parenthesized_expression" and node.named_children:
        return written_path(node.named_children[0], file)
    text = constant_text(node)
    if text is not None or node.type != "binary_expression":
        return f"*{text.lstrip('./')}" if text else None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    end = constant_text(right) if right is not None else None
    if left is None or end is None:
        return None
    folder = _folder(left, file)
    return f"*{end.lstrip('./')}" if folder is None else posixpath.normpath(posixpath.join(folder, end.lstrip("/")))


def _folder(node: Node, file: str) -> str | None:
    """Return the folder that `__DIR__` or `dirname(__FILE__)` stands for, as a path from the root of the tree."""
    text = "".join(text_of(node).split())
    levels = 0
    while text.startswith("dirname(") and text.endswith(")"):
        inside, levels = text[8:-1], levels + 1
        first, comma, number = inside.rpartition(",")
        text, levels = (first, levels + int(number) - 1) if comma and number.isdigit() else (inside, levels)
    levels += {"__DIR__": 1, "__FILE__": 0}.get(text, -100)
    if levels < 1:
        return None
    folder = file
    for _ in range(levels):
        folder = posixpath.dirname(folder)
    return folder
