"""Syntax trees without what means nothing to a running program: docstrings, annotations, `pass`, code for type checkers alone."""

from __future__ import annotations

import ast

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_TYPE_ALIAS = getattr(ast, "TypeAlias", None)  # `type X = …`, from Python 3.12 on: evaluated when it is asked for


def normalise(tree: ast.AST) -> list[ast.AST]:
    """Take out of a tree, in place, the statements that do nothing, and the annotations of assignments; return what was taken out.

    Annotations of parameters and results stay (features are planned by them) and are passed over by `meaning`.
    """
    dropped: list[ast.AST] = []
    keeps_fields = isinstance(tree, ast.ClassDef) and bool(tree.decorator_list or tree.bases)
    for name in _BODIES:
        statements = getattr(tree, name, None)
        if isinstance(statements, list):
            remaining = _statements(statements, dropped, keeps_fields=keeps_fields)
            setattr(tree, name, remaining)
            for statement in remaining:
                dropped += normalise(statement)
    return dropped


def _statements(statements: list[ast.AST], dropped: list[ast.AST], *, keeps_fields: bool) -> list[ast.AST]:
    """Return the statements that do something; others are added to `dropped`."""
    remaining: list[ast.AST] = []
    for statement in statements:
        if isinstance(statement, ast.If) and last_name(statement.test) == "TYPE_CHECKING":
            dropped += statement.body if statement.orelse else [statement]
            remaining += _statements(list(statement.orelse), dropped, keeps_fields=keeps_fields)
        elif isinstance(statement, ast.AnnAssign) and not keeps_fields:
            # Where bases or decorators may make fields of annotated names (dataclasses, named tuples), they stay as they are.
            if statement.value is not None:
                remaining.append(ast.copy_location(ast.Assign([statement.target], statement.value), statement))
            else:
                dropped.append(statement)
        elif _is_nothing(statement):
            dropped.append(statement)
        else:
            remaining.append(statement)
    return remaining


def _is_nothing(statement: ast.AST) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return any(last_name(decorator) == "overload" for decorator in statement.decorator_list)
    return _TYPE_ALIAS is not None and isinstance(statement, _TYPE_ALIAS)


def last_name(node: ast.AST) -> str | None:
    """Return the last part of a dotted name, or None where a node is none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None
