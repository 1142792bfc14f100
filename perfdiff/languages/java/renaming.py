"""Which class of base has another name, or another package, in head."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from perfdiff.languages.protocol import FunctionDefinition

Functions = Mapping[str, FunctionDefinition]

_LOCAL = re.compile(r"\$\d")
# Share of methods that do the same in both, from which on a class is another one's successor: more of it stayed than changed.
_SAME = 0.5


def renamed_classes(base: Functions, head: Functions) -> dict[str, str]:
    """Return by the names of head which class of base each class is that is new there, both with dots.

    It is the one of those that are gone whose methods do the same for the most part, or the only one of its simple name.
    """
    before, after = _methods(base), _methods(head)
    gone = {name: methods for name, methods in before.items() if name not in after}
    new = {name: methods for name, methods in after.items() if name not in before}
    holders: dict[str, list[str]] = defaultdict(list)
    for name, methods in gone.items():
        for method in methods:
            holders[method].append(name)
    scored = []
    for name, methods in new.items():
        shared = Counter(other for method in methods for other in holders.get(method, ()))
        for other, count in shared.items():
            scored.append((2 * count / (len(methods) + len(gone[other])), _simple(other) == _simple(name), other, name))
    renamed: dict[str, str] = {}
    for score, _, other, name in sorted(scored, reverse=True):
        if score >= _SAME and name not in renamed and other not in renamed.values():
            renamed[name] = other
    return renamed | _by_simple_name(gone.keys() - set(renamed.values()), new.keys() - renamed.keys())


def class_of(function: FunctionDefinition) -> str:
    """Return the name of a function's class with dots; of a local or anonymous one that of the class around it."""
    return _LOCAL.split(function.linkage[0].partition(" ")[0], maxsplit=1)[0].replace("/", ".")


def _methods(functions: Functions) -> dict[str, set[str]]:
    """Return by class what its methods do, each with its name."""
    by_class: dict[str, set[str]] = defaultdict(set)
    for function in functions.values():
        _, name, _ = function.linkage[0].split(" ")
        by_class[class_of(function)].add(f"{name} {function.tokens}")
    return by_class


def _by_simple_name(gone: set[str], new: set[str]) -> dict[str, str]:
    names = [Counter(map(_simple, group)) for group in (gone, new)]
    by_name = {_simple(name): name for name in gone}
    return {name: by_name[_simple(name)] for name in new if all(count[_simple(name)] == 1 for count in names)}


def _simple(name: str) -> str:
    return name.rpartition(".")[2]
