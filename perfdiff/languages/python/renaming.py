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
    nodes = [each for statement in tree.body for each in ast.walk(statement)]
    if any(isinstance(each, _BINDING_WORDS) or last_name(each) in _ASKING for each in nodes):
        return False
    own = [each for statement in tree.body for each in _own(statement)]
    bound = {each.id for each in own if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    bound |= {each.name for each in own if isinstance(each, ast.ExceptHandler) and each.name}
    bound -= {each.arg for each in ast.walk(tree.args) if isinstance(each, ast.arg)} | _bound_otherwise(nodes)
    inside = (each for scope in own if isinstance(scope, _SCOPES) for each in ast.walk(scope))
    if any(isinstance(each, ast.Name) and each.id in bound for each in inside):
        return False
    numbers: dict[str, str] = {}
    for each in own:
        if isinstance(each, ast.Name) and each.id in bound:
            each.id = numbers.setdefault(each.id, f"local {len(numbers)}")
        elif isinstance(each, ast.ExceptHandler) and each.name in bound:
            each.name = numbers.setdefault(each.name, f"local {len(numbers)}")
    return True


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it, in the order of the text, but for what stands in scopes inside: these alone."""
    yield node
    if not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _own(child)


def _bound_otherwise(nodes: list[ast.AST]) -> set[str]:
    """Return the names that imports and definitions bind."""
    found = {each.name for each in nodes if isinstance(each, (*FUNCTIONS, ast.ClassDef))}
    imported = (alias for each in nodes if isinstance(each, ast.Import | ast.ImportFrom) for alias in each.names)
    return found | {(alias.asname or alias.name).partition(".")[0] for alias in imported}
