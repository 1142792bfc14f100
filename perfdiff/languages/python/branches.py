"""The conditions of a function whose outcomes the interpreter tells: of `if`, `while` and conditional expressions, by their places.

What is joined by `and`, `or` and `not` are several conditions, each with a jump of its own in the bytecode, at the place of its text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perfdiff.languages.protocol import BranchPlan
from perfdiff.languages.python.sources import Positions

# Code of their own, where conditions are not this function's; and comprehensions, which are code of their own in some versions.
_OTHER_CODE = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def plan_branches(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, positions: Positions) -> tuple[BranchPlan, ...]:
    """Return the conditions in a function's own code, in the order of their text."""
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    conditions = [condition for statement in body for test in _tests(statement) for condition in _parts(test)]
    return tuple(sorted((_plan(condition, positions) for condition in conditions), key=lambda plan: plan.start))


def _tests(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, _OTHER_CODE):
        return
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield node.test
    for child in ast.iter_child_nodes(node):
        yield from _tests(child)


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    """Yield the conditions that jumps of their own decide; a chain of comparisons is several jumps at one place."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _parts(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _parts(test.operand)
    elif isinstance(test, ast.Compare):
        if len(test.ops) == 1:
            yield test
    elif not isinstance(test, (ast.Constant, ast.IfExp)):
        yield test


def _plan(condition: ast.expr, positions: Positions) -> BranchPlan:
    start, end = positions.start(condition), positions.end(condition)
    place = f"{condition.lineno} {condition.col_offset} {condition.end_lineno} {condition.end_col_offset}"
    text = " ".join(positions.text(start, end).split())
    return BranchPlan(start, end, condition.lineno, text, f"{_asks(condition)} {place}")


def _asks(condition: ast.expr) -> str:
    """Return what a condition asks for, as the interpreter has jumps of their own for `None`."""
    if isinstance(condition, ast.Compare) and isinstance(condition.comparators[0], ast.Constant) and condition.comparators[0].value is None:
        if isinstance(condition.ops[0], ast.Is):
            return "none"
        if isinstance(condition.ops[0], ast.IsNot):
            return "some"
    return "true"
