"""The meaning of code as words: its syntax tree without positions, annotations, and the bodies of functions inside it."""

from __future__ import annotations

import ast
import functools

from perfdiff.languages.digest import digest

_SILENT = frozenset(("annotation", "returns", "type_comment", "type_params", "type_ignores", "ctx", "kind", "simple"))
_BINDING = (ast.Assign, ast.AnnAssign)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def fingerprint(*nodes: ast.AST) -> str:
    """Return a digest of what normalised trees mean; equal for texts that differ in comments, layout and annotations alone."""
    words: list[str] = []
    for node in nodes:
        _add(node, words, _Root(node))
    return digest(words)


class _Root:
    """The node whose meaning is asked for: functions inside it count as definitions, not by what they do."""

    def __init__(self, node: ast.AST) -> None:
        self.node = node
        self.is_function = isinstance(node, (*FUNCTIONS, ast.Lambda))


def _add(node: ast.AST, words: list[str], root: _Root) -> None:
    if isinstance(node, FUNCTIONS) and node is not root.node:
        _add_inner(node, words, root)
        return
    words.append(type(node).__name__)
    bound = bound_lambda(node) if isinstance(node, _BINDING) else None
    for name in _meaningful(node._fields):
        value = getattr(node, name, None)
        if isinstance(value, ast.Lambda) and value is bound:
            _add(value.args, words, root)
        elif isinstance(value, ast.AST):
            _add(value, words, root)
        elif isinstance(value, list):
            _add_all(value, words, root)
        else:
            words.append(_word(value))


@functools.cache
def _meaningful(fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in fields if name not in _SILENT)


def _add_all(values: list[object], words: list[str], root: _Root) -> None:
    words.append("[")
    for value in values:
        if isinstance(value, ast.AST):
            _add(value, words, root)
        else:
            words.append(_word(value))
    words.append("]")


def _add_inner(node: ast.FunctionDef | ast.AsyncFunctionDef, words: list[str], root: _Root) -> None:
    """Add what the definition of a function does where it stands: its decorators and defaults run there.

    Inside of a function, where each call makes it anew, its name and parameters count as well; in modules and classes it is no more than
    a name, so that a function which is added changes nothing but itself.
    """
    decorators: list[object] = [*node.decorator_list]
    if root.is_function:
        words.append(node.name)
        _add(node.args, words, root)
        _add_all(decorators, words, root)
    else:
        defaults = (default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None)
        running: list[object] = [*decorators, *(default for default in defaults if not isinstance(default, ast.Constant))]
        if running:
            _add_all(running, words, root)


def bound_lambda(node: ast.AST) -> ast.Lambda | None:
    """Return the lambda that a statement binds to a name, which makes it a function like one with `def`."""
    match node:
        case (
            ast.Assign(targets=[ast.Name()], value=ast.Lambda() as function)
            | ast.AnnAssign(target=ast.Name(), value=ast.Lambda() as function)
        ):
            return function
    return None


def _word(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"int:{value:x}"  # without the limit on decimal digits
    return f"{type(value).__name__}:{value!r}"
