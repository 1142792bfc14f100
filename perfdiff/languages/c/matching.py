"""How C and C++ functions differ between base and head."""

from __future__ import annotations

from functools import partial

from perfdiff.languages import matching
from perfdiff.languages.c import lexer
from perfdiff.languages.dialect import Renames, is_same_but_for
from perfdiff.languages.protocol import Counterpart, Declaration, FunctionDefinition, Program
from perfdiff.records.differences import ChangeReason, EntityKind, text_reason

_VERBS = {EntityKind.MACRO: "expands", EntityKind.VARIABLE: "reads"}


def match(base: Program, head: Program) -> tuple[Counterpart, ...]:
    """Pair the functions of both revisions and say how each differs; functions without any difference are returned as well."""
    return matching.match(base, head, _CDialect())


class _CDialect:
    """How texts and declarations of C and C++ are compared: by their tokens."""

    def parts(self, name: str) -> list[str]:
        """Return the parts of a qualified name."""
        return name.split("::")

    def tokens(self, definition: FunctionDefinition) -> list[str]:
        """Return the tokens of a definition's text."""
        return lexer.tokens(definition.text.encode())

    def text_reasons(self, base: FunctionDefinition, head: FunctionDefinition, renames: Renames) -> tuple[ChangeReason, ...]:
        """Return what of a function's own text differs: its signature, its body, or the rest of its declaration."""
        reasons, is_rename = [], partial(_is_rename, renames=renames)
        if not is_same_but_for(lexer.tokens(base.signature.encode()), lexer.tokens(head.signature.encode()), is_rename):
            reasons.append("signature changed")
        if base.tokens != head.tokens and not is_same_but_for(self.tokens(base), self.tokens(head), is_rename):
            bodies = [lexer.tokens(one.text.encode()[one.body - one.start :]) for one in (base, head)]
            if bodies[0] != bodies[1]:
                reasons.append("body changed")
            elif not reasons:
                reasons.append("declaration changed")
        return tuple(map(text_reason, reasons))

    def is_renamed(self, base: Declaration, head: Declaration, renames: Renames) -> bool:
        """Return False: declarations of C are compared by their tokens, names of functions included."""
        return False

    def uses(self, declaration: Declaration) -> str:
        """Return what a function does with a declaration: `expands macro HASH`."""
        return f"{_VERBS.get(declaration.entity.kind, 'uses')} {declaration.entity}"

    def difference(self, base: Declaration, head: Declaration) -> str:
        """Return what differs between two declarations: layout, size in bytes, or definition."""
        if base.summary == head.summary:
            return "layout changed" if head.entity.kind is EntityKind.RECORD else "definition changed"
        if base.size_bytes is not None and head.size_bytes is not None:
            return f"size changed from {base.size_bytes} to {head.size_bytes} bytes"
        return f"definition changed from {base.summary} to {head.summary}" if base.summary and head.summary else "definition changed"


def _is_rename(old: str, new: str, renames: Renames) -> bool:
    # A name made by a macro (`PREFIX(scan)`) stands only partly in the text.
    return lexer.is_word(old) and lexer.is_word(new) and any(before.replace(old, new) == after for before, after in renames)
