"""What pairing and matching ask of a language: the words of its texts, and how it says that they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from perfdiff.languages.protocol import Declaration, FunctionDefinition
from perfdiff.records.differences import ChangeReason, EntityKind

Renames = frozenset[tuple[str, str]]  # names in base and in head of functions that are the same
TEXTS_KEPT = 4096  # texts taken apart that are kept: pairing asks several times for those that have no counterpart by name


def summaries_differ(base: Declaration, head: Declaration) -> str:
    """Return what differs between two declarations of the same name, with both texts where they are short."""
    what = "source" if head.entity.kind is EntityKind.IMPORT else "definition"
    are_told = base.summary and head.summary and base.summary != head.summary
    return f"{what} changed from {base.summary} to {head.summary}" if are_told else f"{what} changed"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the definitions of one language are compared.

    `parts` returns the parts of a qualified name, the last of which is what a function is called within its class or file. `tokens` returns
    those of a definition's text, without what means nothing. `text_reasons` returns what of a function's own text differs; nothing
    where only renamed functions are named otherwise. `verbs` say what functions do with declarations, by their kind. `difference` returns
    what differs between two declarations of the same name: `definition changed from 1 to 2`.
    """

    parts: Callable[[str], Sequence[str]]
    tokens: Callable[[FunctionDefinition], Sequence[str]]
    text_reasons: Callable[[FunctionDefinition, FunctionDefinition, Renames], tuple[ChangeReason, ...]]
    verbs: Mapping[EntityKind, str] = field(default_factory=dict)
    difference: Callable[[Declaration, Declaration], str] = summaries_differ

    def uses(self, declaration: Declaration) -> str:
        """Return what a function does with a declaration, which is named: `reads global limit`."""
        return f"{self.verbs.get(declaration.entity.kind, 'uses')} {declaration.entity}"


def is_same_but_for(base: Sequence[str], head: Sequence[str], is_rename: Callable[[str, str], bool]) -> bool:
    """Return whether two texts, by their tokens, differ by nothing but what `is_rename` says is a new name, such as a class's."""
    return len(base) == len(head) and all(is_rename(old, new) for old, new in {*zip(base, head, strict=True)} if old != new)


def reasons_of(
    stretches: Iterable[tuple[ChangeReason, Sequence[str], Sequence[str]]], is_rename: Callable[[str, str], bool]
) -> list[ChangeReason]:
    """Return the reasons of those stretches of a text, each by its tokens in base and in head, that differ by more than new names."""
    return [reason for reason, old, new in stretches if not is_same_but_for(old, new, is_rename)]


def is_renamed(base: Declaration, head: Declaration, renames: Renames) -> bool:
    """Return whether an import gives the same under its new name: a module or class has one where what stands in it has one."""
    if base.entity.kind is not EntityKind.IMPORT:
        return False
    old, new = base.summary, head.summary
    return any(before.startswith(old) and after == new + before[len(old) :] for before, after in renames)
