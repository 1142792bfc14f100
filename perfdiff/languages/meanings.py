"""What the code of two builds has in common where a pack knows of each function what it means, and machines run just that."""

from __future__ import annotations

from dataclasses import dataclass

from perfdiff.languages.protocol import Counterpart


@dataclass(frozen=True, slots=True)
class MeaningComparison:
    """What the code of two builds has in common; `other_files` are those that differ and are neither its code nor documentation.

    `in_tree`: a run opens the files that its code lies in, and these are in the tree. All that differs and may run of files in
    `by_function` is told by functions; those that are `alike` differ in nothing that runs. `may_be_copied`: runs may load other copies.
    """

    identical: bool
    other_files: tuple[str, ...]
    in_tree: bool = False
    by_function: frozenset[str] = frozenset()
    alike: frozenset[str] = frozenset()
    may_be_copied: bool = False

    def is_same(self, pair: Counterpart) -> bool:
        """Return whether a function does the same on both sides, and all that it depends on is the same."""
        return not pair.change.is_suspect

    def is_unlike(self, pair: Counterpart) -> bool:
        """Return whether a function does not do the same on both sides."""
        return pair.change.is_suspect
