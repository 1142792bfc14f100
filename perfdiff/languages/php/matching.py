"""How PHP functions differ between base and head."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache, partial
from itertools import zip_longest

from perfdiff.languages import matching
from perfdiff.languages.dialect import TEXTS_KEPT, Dialect, Renames, reasons_of
from perfdiff.languages.php import texts
from perfdiff.languages.php.alignment import aligned
from perfdiff.languages.protocol import Counterpart, FunctionDefinition, Program
from perfdiff.records.differences import ChangeReason, EntityKind, text_reason

_SEPARATOR = re.compile(r"\\|::")
_VERBS = {EntityKind.MEMBER: "reads", EntityKind.CONSTANT: "reads"}


def match(base: Program, head: Program) -> tuple[Counterpart, ...]:
    """Pair the functions of both revisions and say how each differs; functions without any difference are returned as well.

    Closures and anonymous classes keep their counterparts where others are added before them.
    """
    dialect = _dialect()
    same, originals = aligned(base, head, dialect.tokens)
    return tuple(
        replace(pair, head=originals[pair.head.key]) if pair.head is not None else pair for pair in matching.match(base, same, dialect)
    )


def _dialect() -> Dialect:
    """Return how texts of PHP are compared: by their tokens, without comments and attributes."""
    parts = lru_cache(TEXTS_KEPT)(texts.parts)

    def text_reasons(base: FunctionDefinition, head: FunctionDefinition, renames: Renames) -> tuple[ChangeReason, ...]:
        if base.tokens == head.tokens:
            return ()
        before, after = parts(base), parts(head)
        stretches = (
            (text_reason("signature changed"), before.signature, after.signature),
            (text_reason("body changed"), before.body, after.body),
        )
        return tuple(reasons_of(stretches, partial(_is_rename, renames=renames)))

    return Dialect(_parts_of, lambda definition: parts(definition).all, text_reasons, _VERBS)


def _is_rename(old: str, new: str, renames: Renames) -> bool:
    if not (texts.is_word(old) and texts.is_word(new)):
        return False
    pairs = zip_longest(_parts_of(old)[::-1], _parts_of(new)[::-1])
    return all(left is not None and right is not None and _is_part_renamed(left, right, renames) for left, right in pairs if left != right)


def _is_part_renamed(old: str, new: str, renames: Renames) -> bool:
    """Return whether a part of a name is called otherwise in one that was renamed; from their ends, as namespaces may become longer."""
    return any((old, new) in zip(_parts_of(before)[::-1], _parts_of(after)[::-1], strict=False) for before, after in renames)


def _parts_of(name: str) -> list[str]:
    return _SEPARATOR.split(name)
