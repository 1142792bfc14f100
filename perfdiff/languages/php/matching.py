"""How PHP functions differ between base and head."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import zip_longest

from perfdiff.languages import matching
from perfdiff.languages.dialect import Renames, is_same_but_for
from perfdiff.languages.php import texts
from perfdiff.languages.php.alignment import aligned
from perfdiff.languages.protocol import Counterpart, Declaration, FunctionDefinition, Program
from perfdiff.records.differences import ChangeReason, EntityKind, text_reason

_SEPARATOR = re.compile(r"\\|::")
_VERBS = {EntityKind.MEMBER: "reads", EntityKind.CONSTANT: "reads"}
_KEPT = 4096  # texts taken apart that are kept: pairing asks several times for those that have no counterpart by name


def match(base: Program, head: Program) -> tuple[Counterpart, ...]:
    """Pair the functions of both revisions and say how each differs; functions without any difference are returned as well.

    Closures and anonymous classes keep their counterparts where others are added before them.
    """
    dialect = _PhpDialect()
    same, originals = aligned(base, head, dialect.tokens)
    return tuple(
        replace(pair, head=originals[pair.head.key]) if pair.head is not None else pair for pair in matching.match(base, same, dialect)
    )


class _PhpDialect:
    """How texts and declarations of PHP are compared: by their tokens, without comments and attributes."""

    def __init__(self) -> None:
        self._parts = lru_cache(_KEPT)(texts.parts)

    def parts(self, name: str) -> Sequence[str]:
        """Return the parts of a qualified name."""
        return _parts_of(name)

    def tokens(self, definition: FunctionDefinition) -> Sequence[str]:
        """Return the tokens of a definition's text."""
        return self._parts(definition).all

    def text_reasons(self, base: FunctionDefinition, head: FunctionDefinition, renames: Renames) -> tuple[ChangeReason, ...]:
        """Return what of a function's own text differs: its signature, its body."""
        if base.tokens == head.tokens:
            return ()
        before, after = self._parts(base), self._parts(head)
        named = (("signature", before.signature, after.signature), ("body", before.body, after.body))
        changed = [part for part, old, new in named if not is_same_but_for(old, new, partial(_is_rename, renames=renames))]
        return tuple(text_reason(f"{part} changed") for part in changed)

    def is_renamed(self, base: Declaration, head: Declaration, renames: Renames) -> bool:
        """Return whether an import gives the same class or function under its new name."""
        if base.entity.kind is not EntityKind.IMPORT:
            return False
        old, new = base.summary, head.summary
        return any(before.startswith(old) and after == new + before[len(old) :] for before, after in renames)

    def uses(self, declaration: Declaration) -> str:
        """Return what a function does with a declaration: `reads constant Space\\LIMIT`."""
        return f"{_VERBS.get(declaration.entity.kind, 'uses')} {declaration.entity}"

    def difference(self, base: Declaration, head: Declaration) -> str:
        """Return what differs between two declarations, with both texts where they are short."""
        what = "source" if head.entity.kind is EntityKind.IMPORT else "definition"
        if base.summary and head.summary and base.summary != head.summary:
            return f"{what} changed from {base.summary} to {head.summary}"
        return f"{what} changed"


def _is_rename(old: str, new: str, renames: Renames) -> bool:
    if not (texts.is_word(old) and texts.is_word(new)):
        return False
    pairs = zip_longest(_parts_of(old)[::-1], _parts_of(new)[::-1])
    return all(one is not None and other is not None and _is_part_renamed(one, other, renames) for one, other in pairs if one != other)


def _is_part_renamed(old: str, new: str, renames: Renames) -> bool:
    """Return whether a part of a name is called otherwise in one that was renamed; from their ends, as namespaces may become longer."""
    return any((old, new) in zip(_parts_of(before)[::-1], _parts_of(after)[::-1], strict=False) for before, after in renames)


def _parts_of(name: str) -> list[str]:
    return _SEPARATOR.split(name)
