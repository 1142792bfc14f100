"""How C and C++ functions differ between base and head."""

from __future__ import annotations

from functools import partial

from perfdiff.languages import matching
from perfdiff.languages.c import lexer
from perfdiff.languages.dialect import Dialect, Renames, is_same_but_for, summaries_differ
from perfdiff.languages.protocol import Counterpart, Declaration, FunctionDefinition, Program
from perfdiff.records.differences import ChangeReason, EntityKind, text_reason

_VERBS = {EntityKind.MACRO: "expands", EntityKind.VARIABLE: "reads"}


def match(base: Program, head: Program) -> tuple[Counterpart, ...]:
    """Pair the functions of both revisions and say how each differs; functions without any difference are returned as well."""
    return matching.match(base, head, Dialect(lambda name: name.split("::"), _tokens, _text_reasons, _VERBS, _difference))


def _tokens(definition: FunctionDefinition) -> list[str]:
    return lexer.tokens(definition.text.encode())


def _text_reasons(base: FunctionDefinition, head: FunctionDefinition, renames: Renames) -> tuple[ChangeReason, ...]:
    """Return what of a function's own text differs: its signature, its body, or the rest of its declaration."""
    reasons, is_rename = list[str](), partial(_is_rename, renames=renames)
    if base.signature != head.signature:
        before, after = (lexer.tokens(definition.signature.encode()) for definition in (base, head))
        reasons += [] if is_same_but_for(before, after, is_rename) else ["signature changed"]
    if base.tokens != head.tokens and not is_same_but_for(_tokens(base), _tokens(head), is_rename):
        bodies = [lexer.tokens(definition.text.encode()[definition.body - definition.start :]) for definition in (base, head)]
        if bodies[0] != bodies[1]:
            reasons.append("body changed")
        elif not reasons:
            reasons.append("declaration changed")
    return tuple(map(text_reason, reasons))


def _difference(base: Declaration, head: Declaration) -> str:
    """Return what differs between two declarations: layout, size in bytes, or definition."""
    if base.summary == head.summary and head.entity.kind is EntityKind.RECORD:
        return "layout changed"
    if base.summary != head.summary and base.size_bytes is not None and head.size_bytes is not None:
        return f"size changed from {base.size_bytes} to {head.size_bytes} bytes"
    return summaries_differ(base, head)


def _is_rename(old: str, new: str, renames: Renames) -> bool:
    # A name made by a macro (`PREFIX(scan)`) stands only partly in the text.
    return lexer.is_word(old) and lexer.is_word(new) and any(before.replace(old, new) == after for before, after in renames)
