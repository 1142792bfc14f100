"""Syntax trees by tree-sitter, of whatever language: the text of nodes, where they stand, and which lines hold comments alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tree_sitter import Node

_OTHER_BYTES = bytes(byte if byte < 0x80 else ord("x") for byte in range(0x100))
_BLANK = re.compile(rb"[ \t\f]*(?:[\r\n]|\Z)")


def as_ascii(data: bytes) -> bytes:
    """Return the same bytes where they are UTF-8, else, as places must stay, with an `x` for each that is not ASCII."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.translate(_OTHER_BYTES)
    return data


def text_of(node: Node | None) -> str:
    """Return the text of a node; nothing of none."""
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def inner(node: Node) -> Iterator[Node]:
    """Yield a node and all that is in it, in the order of the text."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def child(node: Node, *types: str) -> Node | None:
    """Return the first child of one of some types."""
    return next((inside for inside in node.children if inside.type in types), None)


def line(node: Node) -> int:
    """Return the line that a node begins on."""
    return node.start_point.row + 1


def last_line(node: Node) -> int:
    """Return the line that a node ends on."""
    return node.end_point.row + 1


def problem(root: Node) -> str | None:
    """Return where a text could not be parsed, None where it could."""
    if not root.has_error:
        return None
    wrong = next((node for node in inner(root) if node.is_error or node.is_missing), root)
    return f"it cannot be parsed (line {line(wrong)})"


def lines_alone(comment: Node, text: bytes) -> Iterable[int]:
    """Return the lines of a text that hold nothing but a comment."""
    begin = text.rfind(b"\n", 0, comment.start_byte) + 1
    first, last = line(comment), last_line(comment)
    if comment.end_point.column == 0:  # a comment to the end of its line may have that end in it
        last = max(first, last - 1)
    before = text[begin : comment.start_byte].strip()
    behind = _BLANK.match(text, comment.end_byte) or text[comment.end_byte - 1 : comment.end_byte] == b"\n"
    return range(first + bool(before), last + bool(behind))
