"""What the house has too much of: each count may fall, and then its bound with it, and never rise."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter

from test_structure import MODULES, importing, parse, relative

VAGUE = {"found", "each", "one", "known", "told", "made", "kept"}  # say that there is something, not what
MOST = {
    "class names that occur twice": 0,
    "functions with vague names": 0,
    "numbers beside the policy": 131,
    "longest chain of imports": 18,
}


def repeated_classes() -> int:
    """Return how many names several classes have."""
    names = Counter(node.name for path in MODULES for node in ast.walk(parse(path)) if isinstance(node, ast.ClassDef))
    return sum(count > 1 for count in names.values())


def vague_functions() -> int:
    """Return how many functions bind a parameter or a local variable whose name says nothing."""
    functions = (node for path in MODULES for node in ast.walk(parse(path)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return sum(not VAGUE.isdisjoint(_bound(function)) for function in functions)


def _bound(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    arguments = function.args
    yield from (argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
    yield from (node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def numbers() -> int:
    """Return how many constants of the analysis and its statistics are numbers; those that decide belong to `Policy`."""
    statements = (node for path in MODULES if relative(path).startswith(("analysis/", "statistics/")) for node in parse(path).body)
    return sum(isinstance(node, ast.Assign) and _is_number(node.value) for node in statements)


def longest_chain() -> int:
    """Return how many modules the longest chain has in which each imports the next one, at its top or within a function."""
    lengths: dict[str, int] = {}
    for name in TopologicalSorter(importing()).static_order():
        lengths[name] = 1 + max((lengths[below] for below in importing()[name]), default=0)
    return max(lengths.values())


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    return isinstance(value, ast.UnaryOp) and _is_number(value.operand)


def test_nothing_that_there_is_too_much_of_grows() -> None:
    counts = dict(zip(MOST, (repeated_classes(), vague_functions(), numbers(), longest_chain()), strict=True))
    assert counts == MOST, "lower the bound of what has fallen; what has risen is to be named, or to go to the policy"
