"""What earlier versions stored in words alone, as the values of this one: the only place that reads kinds out of words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perfdiff.records.differences import ChangeReason, Entity, EntityKind, ReasonKind, SkipKind, SkippedFunction

_WORDS = {
    "struct": EntityKind.RECORD,
    "union": EntityKind.RECORD,
    "class": EntityKind.RECORD,
    "type": EntityKind.ALIAS,
    "typedef": EntityKind.ALIAS,
    "enum": EntityKind.TYPE,
    "interface": EntityKind.TYPE,
    "trait": EntityKind.TYPE,
    "record": EntityKind.TYPE,
    "interfaces of": EntityKind.TYPE,
    "fields of": EntityKind.TYPE,
    "constants of": EntityKind.TYPE,
    "global": EntityKind.VARIABLE,
    "attribute": EntityKind.MEMBER,
    "property": EntityKind.MEMBER,
    "field": EntityKind.MEMBER,
    "constant": EntityKind.CONSTANT,
    "case": EntityKind.CASE,
    "enumerator": EntityKind.CASE,
    "macro": EntityKind.MACRO,
    "function": EntityKind.FUNCTION,
    "method": EntityKind.METHOD,
    "compile flags of": EntityKind.FLAGS,
    "imported name": EntityKind.IMPORT,
    "declare(strict_types) of": EntityKind.DIRECTIVE,
}
_REASONS = (  # how reasons begin
    ("added", ReasonKind.ONE_SIDED),
    ("removed", ReasonKind.ONE_SIDED),
    ("decorators changed", ReasonKind.DECORATED),
    ("now ", ReasonKind.NEWLY),
    ("moved from ", ReasonKind.MOVED),
    ("renamed from ", ReasonKind.MOVED),
    ("signature changed", ReasonKind.TEXT),
    ("body changed", ReasonKind.TEXT),
    ("declaration changed", ReasonKind.TEXT),
    ("annotations changed", ReasonKind.TEXT),
    ("uses ", ReasonKind.DEPENDENCY),
    ("reads ", ReasonKind.DEPENDENCY),
    ("expands ", ReasonKind.DEPENDENCY),
    ("holds ", ReasonKind.DEPENDENCY),
    ("is compiled with other flags", ReasonKind.DEPENDENCY),
)
_SKIPS = {"never called by any workload": SkipKind.NEVER_CALLED, "no workload runs anything of its file": SkipKind.FILE_NOT_RUN}
_EXCLUDED = "excluded by "


def entity(stored: Any) -> Any:
    """Return the entity that a culprit's text names: `struct list`."""
    if not isinstance(stored, str):
        return stored
    word = next((word for word in _WORDS if stored.startswith(f"{word} ")), stored.partition(" ")[0])
    return {"kind": _WORDS.get(word, EntityKind.UNKNOWN).value, "word": word, "name": stored[len(word) + 1 :]}


def change_reason(stored: Any) -> Any:
    """Return the reason that a text gives: `body changed`."""
    if not isinstance(stored, str):
        return stored
    return {"kind": next((kind for start, kind in _REASONS if stored.startswith(start)), ReasonKind.OTHER).value, "says": stored}


def skipped(stored: Any) -> Any:
    """Return what was not measured, with the kind that its reason tells."""
    if not isinstance(stored, dict) or "kind" in stored:
        return stored
    reason = str(stored.get("reason", ""))
    return stored | {"kind": (SkipKind.EXCLUDED if reason.startswith(_EXCLUDED) else _SKIPS.get(reason, SkipKind.OTHER)).value}


CONVERTED: Mapping[Any, Callable[[Any], Any]] = {Entity: entity, ChangeReason: change_reason, SkippedFunction: skipped}
