"""Functions without the names of their local variables, which mean nothing to a running program where nobody asks for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perfdiff.languages.python.meaning import FUNCTIONS
from perfdiff.languages.python.normal import last_name

# Who calls one of these may get at local variables by their names.
_ASKING = frozenset(("locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"))
_SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BINDING_WORDS = (ast.Match, ast.Global, ast.Nonlocal)  # these name variables by plain text


def number_locals(tree: ast.AST) -> bool:
    """Give the local variables of a function, in place, numbers in the order of its text. Return whether that could be done.

    Left alone are functions with others inside that use these variables as well, and functions in which names may be asked for. Parameters
    keep their names, by which they are passed; so do names that imports, definitions and comprehensions bind.
    """
    if not isinstance(tree, FUNCTIONS):
        return False
    nodes = [node for statement in tree.body for node in ast.walk(statement)]
    if any(isinstance(node, _BINDING_WORDS) or last_name(node) in _ASKING for node in nodes):
        return False
    own = [node for statement in tree.body for node in _own(statement)]
    bound = {node.id for node in own if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in own if isinstance(node, ast.ExceptHandler) and node.name}
    bound -= {node.arg for node in ast.walk(tree.args) if isinstance(node, ast.arg)} | _bound_otherwise(nodes)
    inside = (node for scope in own if isinstance(scope, _SCOPES) for node in ast.walk(scope))
    if any(isinstance(node, ast.Name) and node.id in bound for node in inside):
        return False
    numbers: dict[str, str] = {}
    for node in own:
        if isinstance(node, ast.Name) and node.id in bound:
            node.id = numbers.setdefault(node.id, f"local {len(numbers)}")
        elif isinstance(node, ast.ExceptHandler) and node.name in bound:
            node.name = numbers.setdefault(node.name, f"local {len(numbers)}")
    return True


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it, in the order of the text, but for what stands in scopes inside: these alone."""
    yield node
    if not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _own(child)


def _bound_otherwise(nodes: list[ast.AST]) -> set[str]:
    """Return the names that imports and definitions bind."""
    defined = {node.name for node in nodes if isinstance(node, (*FUNCTIONS, ast.ClassDef))}
    imported = (alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names)
    return defined | {(alias.asname or alias.name).partition(".")[0] for alias in imported}
