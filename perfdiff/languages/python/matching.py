"""How Python functions differ between base and head."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache, partial

from perfdiff import units
from perfdiff.languages import matching
from perfdiff.languages.dialect import TEXTS_KEPT, Dialect, Renames, reasons_of
from perfdiff.languages.protocol import Counterpart, FunctionDefinition, Program
from perfdiff.languages.python import texts
from perfdiff.records.differences import ChangeReason, EntityKind, ReasonKind, text_reason

_VERBS = {EntityKind.VARIABLE: "reads", EntityKind.MEMBER: "reads"}
_SEPARATOR = "."
_MOST_NAMED = 3  # of the modules that are newly imported; a new release may have a dozen


def match(base: Program, head: Program) -> tuple[Counterpart, ...]:
    """Pair the functions of both revisions and say how each differs; functions without any difference are returned as well.

    A parameter whose default is another one in head is no feature of either side: calls that leave it out would have no equals, though
    their callers ask for the same.
    """
    return tuple(map(_without_changed_defaults, matching.match(base, head, _dialect())))


def _without_changed_defaults(pair: Counterpart) -> Counterpart:
    if pair.base is None or pair.head is None or pair.base.signature == pair.head.signature:
        return pair
    before, after = texts.defaults(pair.base.signature), texts.defaults(pair.head.signature)
    changed = {name for name in before.keys() & after.keys() if before[name] != after[name]}
    return replace(pair, base=_without(pair.base, changed), head=_without(pair.head, changed))


def _without(definition: FunctionDefinition, parameters: Collection[str]) -> FunctionDefinition:
    """Return a definition without the features that are read from some parameters."""
    features = tuple(plan for plan in definition.features if plan.expression.split(" ")[1].split(".")[0] not in parameters)
    return replace(definition, features=features)


def _dialect() -> Dialect:
    """Return how texts of Python are compared: by their tokens, without docstrings and annotations."""
    parts = lru_cache(TEXTS_KEPT)(texts.parts)

    def text_reasons(base: FunctionDefinition, head: FunctionDefinition, renames: Renames) -> tuple[ChangeReason, ...]:
        if base.tokens == head.tokens or _differ_by_local_names(base, head):
            return ()
        before, after = parts(base), parts(head)
        stretches = (
            (ChangeReason(ReasonKind.DECORATED, "decorators changed"), before.decorators, after.decorators),
            (text_reason("signature changed"), before.signature, after.signature),
            (text_reason("body changed"), before.body, after.body),
        )
        changed = reasons_of(stretches, partial(_is_rename, renames=renames))
        imported = [f"`{name}`" for name in sorted(after.imports - before.imports)] if changed else []
        newly = [ChangeReason(ReasonKind.NEWLY, f"now imports {units.listed(imported, _MOST_NAMED)}")] if imported else []
        return (*changed, *newly)

    return Dialect(lambda name: name.split(_SEPARATOR), lambda definition: parts(definition).all, text_reasons, _VERBS)


def _differ_by_local_names(base: FunctionDefinition, head: FunctionDefinition) -> bool:
    """Return whether two functions are the same but for what they call their local variables."""
    meaning = texts.without_local_names(base)
    return meaning is not None and meaning == texts.without_local_names(head)


def _is_rename(old: str, new: str, renames: Renames) -> bool:
    if not (texts.is_word(old) and texts.is_word(new)):
        return False
    return any((old, new) in zip(before.split(_SEPARATOR), after.split(_SEPARATOR), strict=False) for before, after in renames)
