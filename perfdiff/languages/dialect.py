"""What pairing and matching ask of a language: the words of its texts, and how it says that they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from perfdiff.languages.protocol import Declaration, FunctionDefinition
from perfdiff.records.differences import ChangeReason

Renames = frozenset[tuple[str, str]]  # names in base and in head of functions that are the same


class Dialect(Protocol):
    """How the definitions of one language are compared."""

    def parts(self, name: str) -> Sequence[str]:
        """Return the parts of a qualified name; the last one is what a function is called within its class or file."""
        ...

    def tokens(self, definition: FunctionDefinition) -> Sequence[str]:
        """Return the tokens of a definition's text, without what means nothing."""
        ...

    def text_reasons(self, base: FunctionDefinition, head: FunctionDefinition, renames: Renames) -> tuple[ChangeReason, ...]:
        """Return what of a function's own text differs, in words; nothing where only renamed functions are named otherwise."""
        ...

    def is_renamed(self, base: Declaration, head: Declaration, renames: Renames) -> bool:
        """Return whether two declarations differ by nothing but the new name of a function that was renamed."""
        ...

    def uses(self, declaration: Declaration) -> str:
        """Return what a function does with a declaration, which is named: `reads global limit`."""
        ...

    def difference(self, base: Declaration, head: Declaration) -> str:
        """Return what differs between two declarations of the same name, in words: `definition changed from 1 to 2`."""
        ...


def is_same_but_for(base: Sequence[str], head: Sequence[str], is_rename: Callable[[str, str], bool]) -> bool:
    """Return whether two texts, by their tokens, differ by nothing but what `is_rename` says is a new name, such as a class's."""
    return len(base) == len(head) and all(is_rename(old, new) for old, new in {*zip(base, head, strict=True)} if old != new)
