"""Claims: what a witness saw, or a rule concluded, as a kind and its figures. `report/sentences` puts them into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement without words: its `kind`, and the `facts` of it, in ns, bytes, counts, shares (0 to 1) and names.

    A ratio is told by `Ratio.figures`. What a statement follows from, or has beside it, is a claim among its facts.
    """

    kind: str
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def __hash__(self) -> int:
        """Return a hash by the kind and the names of facts, whose mapping has none."""
        return hash((self.kind, frozenset(self.facts)))

    def __format__(self, format_spec: str) -> str:
        """Raise TypeError: a claim within a text would not be in words."""
        raise TypeError(f"{self.kind} is put into words by report.sentences.catalogue.say")


Fact = Claim | float | int | str | None | tuple[float, ...] | tuple[str, ...] | tuple[Claim | str, ...]


Said = Claim | str  # what is not a claim yet is in words


def claim(kind: str, /, **facts: Fact) -> Claim:
    """Return a claim of a kind."""
    return Claim(kind, facts)
