"""Which lines of a file are no code of a function: comments, docstrings, what only type checkers read, functions inside it."""

from __future__ import annotations

import ast
import codecs
import re
from collections.abc import Iterable, Iterator

from perfdiff.languages.python.sources import Positions, first_node
from perfdiff.languages.stretches import Stretch, stretches

# Comments, and the strings that a `#` may stand in.
_COMMENT = re.compile(
    rb"""
      (?P<comment> \#[^\r\n]* )
    | \"\"\"(?:\\.|[^\\])*?\"\"\" | '''(?:\\.|[^\\])*?'''
    | "(?:\\.|[^"\\\r\n])*" | '(?:\\.|[^'\\\r\n])*'
    """,
    re.VERBOSE | re.DOTALL,
)
_BEHIND = re.compile(rb"[ \t\f]*(?:\#|[\r\n]|\Z)")  # the rest of a line without code
_NEWLINE = re.compile(rb"\r\n|\r|\n")

Definition = ast.FunctionDef | ast.AsyncFunctionDef


class Remarks:
    """The lines of one file that mean nothing: those with a comment alone, and those of the `dropped` nodes of its tree."""

    def __init__(self, positions: Positions, dropped: Iterable[ast.AST]) -> None:
        self._lines = frozenset((*_comments(positions.data), *(line for node in dropped for line in _alone(node, positions))))

    def within(self, first: int, last: int, inside: Iterable[Stretch] = ()) -> tuple[Stretch, ...]:
        """Return these lines between two lines, and those of functions `inside`, as stretches in order."""
        lines = {line for line in self._lines if first <= line <= last}
        return stretches(lines.union(*(range(start, end + 1) for start, end in inside)))


def passed_over(definition: Definition, *, is_remade: bool) -> Stretch:
    """Return the lines of a function's definition that do nothing where it stands.

    Its decorators and defaults are run there; inside of a function, where each call makes it anew (`is_remade`), all of its head counts.
    """
    arguments, end = definition.args, definition.end_lineno or definition.lineno
    defaults = [value for value in (*arguments.defaults, *arguments.kw_defaults) if value is not None]
    if not is_remade and not definition.decorator_list and all(isinstance(value, ast.Constant) for value in defaults):
        return definition.lineno, end
    body = first_node(definition.body[0]).lineno if definition.body else end + 1  # type: ignore[attr-defined]
    return max(body, definition.lineno + 1), end


def _comments(data: bytes) -> Iterator[int]:
    """Yield the lines that hold a comment and nothing else."""
    line, seen = 1, 0
    for match in _COMMENT.finditer(data):
        line += len(_NEWLINE.findall(data, seen, match.start()))
        seen = match.start()
        if match.lastgroup == "comment" and not _before(data, seen):
            yield line


def _alone(node: ast.AST, positions: Positions) -> Iterator[int]:
    """Yield the lines of a node that it shares with no other code, such as the head of a function whose body stands behind it."""
    lines = range(first_node(node).lineno, node.end_lineno + 1)  # type: ignore[attr-defined]
    behind = _BEHIND.match(positions.data, positions.end(node))
    shared = {lines[0]} if _before(positions.data, positions.start(node)) else set()
    shared |= set() if behind else {lines[-1]}
    return (line for line in lines if line not in shared)


def _before(data: bytes, offset: int) -> bytes:
    """Return what stands before an offset on its line, without white space and the mark of an encoding."""
    begin = max(data.rfind(b"\n", 0, offset), data.rfind(b"\r", 0, offset)) + 1
    return data[begin:offset].removeprefix(codecs.BOM_UTF8).strip()
