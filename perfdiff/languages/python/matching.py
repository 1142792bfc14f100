"""How Python functions differ between base and head."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from perfdiff import units
from perfdiff.languages import matching
from perfdiff.languages.dialect import Renames, is_same_but_for
from perfdiff.languages.protocol import Counterpart, Declaration, FunctionDefinition, Program
from perfdiff.languages.python import texts
from perfdiff.records.differences import ChangeReason, EntityKind, ReasonKind, text_reason

_VERBS = {EntityKind.VARIABLE: "reads", EntityKind.MEMBER: "reads"}
_SEPARATOR = "."
_MOST_NAMED = 3  # of the modules that are newly imported; a new release may have a dozen
_KEPT = 4096  # texts taken apart that are kept: pairing asks several times for those that have no counterpart by name


def match(base: Program, head: Program) -> tuple[Counterpart, ...]:
    """Pair the functions of both revisions and say how each differs; functions without any difference are returned as well.

    A parameter whose default is another one in head is no feature of either side: calls that leave it out would have no equals, though
    their callers ask for the same.
    """
    return tuple(map(_without_changed_defaults, matching.match(base, head, _PythonDialect())))


def _without_changed_defaults(pair: Counterpart) -> Counterpart:
    if pair.base is None or pair.head is None or pair.base.signature == pair.head.signature:
        return pair
    before, after = texts.defaults(pair.base.signature), texts.defaults(pair.head.signature)
    changed = {name for name in before.keys() & after.keys() if before[name] != after[name]}
    return replace(pair, base=_without(pair.base, changed), head=_without(pair.head, changed))


def _without(definition: FunctionDefinition, parameters: Collection[str]) -> FunctionDefinition:
    """Return a definition without the features that are read from some parameters."""
    kept = tuple(plan for plan in definition.features if plan.expression.split(" ")[1].split(".")[0] not in parameters)
    return replace(definition, features=kept)


class _PythonDialect:
    """How texts and declarations of Python are compared: by their tokens, without docstrings and annotations."""

    def __init__(self) -> None:
        self._parts = lru_cache(_KEPT)(texts.parts)

    def parts(self, name: str) -> Sequence[str]:
        """Return the parts of a qualified name."""
        return name.split(_SEPARATOR)

    def tokens(self, definition: FunctionDefinition) -> Sequence[str]:
        """Return the tokens of a definition's text."""
        return self._parts(definition).all

    def text_reasons(self, base: FunctionDefinition, head: FunctionDefinition, renames: Renames) -> tuple[ChangeReason, ...]:
        """Return what of a function's own text differs: its decorators, its signature, its body, with what that newly imports."""
        if base.tokens == head.tokens or _differ_by_local_names(base, head):
            return ()
        before, after = self._parts(base), self._parts(head)
        named = (
            (ChangeReason(ReasonKind.DECORATED, "decorators changed"), before.decorators, after.decorators),
            (text_reason("signature changed"), before.signature, after.signature),
            (text_reason("body changed"), before.body, after.body),
        )
        changed = [reason for reason, old, new in named if not is_same_but_for(old, new, partial(_is_rename, renames=renames))]
        imported = sorted(after.imports - before.imports) if changed else []
        return (*changed, *([ChangeReason(ReasonKind.NEWLY, f"now imports {_listed(imported)}")] if imported else []))

    def is_renamed(self, base: Declaration, head: Declaration, renames: Renames) -> bool:
        """Return whether an import gives the same function or module under its new name."""
        if base.entity.kind is not EntityKind.IMPORT:
            return False
        # A module or class has a new name where what stands in it has one.
        old, new = base.summary, head.summary
        return any(before.startswith(old) and after == new + before[len(old) :] for before, after in renames)

    def uses(self, declaration: Declaration) -> str:
        """Return what a function does with a declaration: `reads global pkg.limits.MOST`."""
        return f"{_VERBS.get(declaration.entity.kind, 'uses')} {declaration.entity}"

    def difference(self, base: Declaration, head: Declaration) -> str:
        """Return what differs between two declarations, with both texts where they are short."""
        what = "source" if head.entity.kind is EntityKind.IMPORT else "definition"
        tells = base.summary and head.summary and base.summary != head.summary
        return f"{what} changed from {base.summary} to {head.summary}" if tells else f"{what} changed"


def _differ_by_local_names(base: FunctionDefinition, head: FunctionDefinition) -> bool:
    """Return whether two functions are the same but for what they call their local variables."""
    meaning = texts.without_local_names(base)
    return meaning is not None and meaning == texts.without_local_names(head)


def _listed(names: Sequence[str]) -> str:
    return units.listed([f"`{name}`" for name in names], _MOST_NAMED)


def _is_rename(old: str, new: str, renames: Renames) -> bool:
    if not (texts.is_word(old) and texts.is_word(new)):
        return False
    return any((old, new) in zip(before.split(_SEPARATOR), after.split(_SEPARATOR), strict=False) for before, after in renames)
