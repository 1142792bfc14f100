"""The classes of one file and the variables of its module and classes: what functions depend on besides other functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from perfdiff.languages.digest import digest
from perfdiff.languages.python.facts import PythonClassFacts, VariableFacts
from perfdiff.languages.python.functions import FunctionScope, references
from perfdiff.languages.python.meaning import fingerprint
from perfdiff.languages.python.names import Assignment, PythonNames, dotted_name

_MOST_TEXT = 40  # characters of a value that are said when it changes
_SLOTS = "__slots__"


def variables(names: PythonNames, scope: FunctionScope) -> Iterator[VariableFacts]:
    """Yield the variables of a module's level and the attributes of its classes, each with all values that it is given there."""
    groups: dict[tuple[str, str], list[Assignment]] = {}
    for variable in names.held:
        if variable.name != _SLOTS or not variable.owner:
            groups.setdefault((variable.owner, variable.name), []).append(variable)
    for (owner, name), held in groups.items():
        values = [variable.value for variable in held if variable.value is not None]
        used = _names_in(values, names)
        yield VariableFacts(
            name=name,
            owner=owner,
            line=held[0].statement.lineno,
            fingerprint=digest(
                fingerprint(variable.statement) if isinstance(variable.statement, ast.AugAssign) else _value(variable) for variable in held
            ),
            summary=_text(values[0]) if len(values) == 1 else "",
            references=references(used, scope),
        )


def classes(names: PythonNames, scope: FunctionScope) -> Iterator[PythonClassFacts]:
    """Yield the classes of a module, those inside classes included; of two of one name, the first."""
    seen: set[str] = set()
    for node, qualname in names.classes:
        if qualname in seen:
            continue
        seen.add(qualname)
        heads = [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
        slots = [held.value for held in names.held if held.owner == qualname and held.name == _SLOTS and held.value is not None]
        fields = [part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)]
        words = [fingerprint(*heads), *(str(keyword.arg) for keyword in node.keywords), "slots", fingerprint(*slots), *fields]
        yield PythonClassFacts(
            qualname=qualname,
            line=node.lineno,
            bases=tuple(text for base in node.bases if (text := dotted_name(base)) is not None),
            fingerprint=digest(words),
            summary=_head(node, has_slots=bool(slots)),
            references=references(_names_in(heads, names), scope),
        )


def _names_in(values: Iterable[ast.expr], around: PythonNames) -> PythonNames:
    used = PythonNames(around.module, around.is_package)
    used.read(values)
    return used


def _value(held: Assignment) -> str:
    return fingerprint(held.value) if held.value is not None else ""


def _text(value: ast.expr) -> str:
    """Return a value as it is written; of a longer one what it is: `a set of 23`, `frozenset(…)`."""
    text = ast.unparse(value)
    if len(text) <= _MOST_TEXT and "\n" not in text:
        return text
    match value:
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            is_open = any(isinstance(element, ast.Starred) for element in elements)
        case ast.Dict(keys=elements):
            is_open = None in elements
        case ast.Call(func=function) if (name := dotted_name(function)) is not None and len(name) <= _MOST_TEXT:
            return f"{name}(…)"
        case _:
            return ""
    return "" if is_open else f"a {type(value).__name__.lower()} of {len(elements)}"


def _head(node: ast.ClassDef, *, has_slots: bool) -> str:
    """Return a class in a few words: `(Base) with __slots__`."""
    bases = f"({', '.join(map(ast.unparse, (*node.bases, *(keyword.value for keyword in node.keywords))))})" if node.bases else ""
    decorators = "".join(f"@{ast.unparse(decorator)} " for decorator in node.decorator_list)
    text = f"{decorators}class{bases}{f' with {_SLOTS}' if has_slots else ''}"
    return text if len(text) <= 2 * _MOST_TEXT else ""
