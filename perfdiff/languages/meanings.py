"""What two builds have in common where a pack knows of each function what it means: that ranks functions, and proves nothing of files."""

from __future__ import annotations

from dataclasses import dataclass

from perfdiff.languages.protocol import Counterpart


@dataclass(frozen=True, slots=True)
class MeaningComparison:
    """What is proved of the files of two builds (see `CodeComparison`), beside pairs of functions that were compared by their meaning."""

    alike: frozenset[str] = frozenset()
    by_function: frozenset[str] = frozenset()
    compiled: frozenset[str] = frozenset()
    in_tree: bool = False

    def is_same(self, pair: Counterpart) -> bool:
        """Return whether a function does the same on both sides, and all that it depends on is the same."""
        return not pair.change.is_suspect

    def is_unlike(self, pair: Counterpart) -> bool:
        """Return whether a function does not do the same on both sides."""
        return pair.change.is_suspect
