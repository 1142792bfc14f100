"""Claims: what a witness saw, or a rule concluded, as a kind and its figures. `report/sentences` puts them into words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


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


def parts(said: Claim | None) -> Iterator[Claim]:
    """Yield a claim and every claim within it."""
    if isinstance(said, Claim):
        yield said
        for fact in said.facts.values():
            for part in fact if isinstance(fact, tuple) else (fact,):
                yield from parts(part if isinstance(part, Claim) else None)


def tells(said: Claim, other: Claim) -> bool:
    """Return whether a claim has another one within it, or all that it is made of but for the lines that it cites."""
    within = tuple(parts(said))
    made_of = [fact for name, fact in other.facts.items() if isinstance(fact, Claim) and name != "lines"]
    return other in within or (bool(made_of) and all(fact in within for fact in made_of))


def replaced(fact: Fact, old: Claim, new: Claim) -> Any:
    """Return a claim, or what it is part of, with another claim in the place of one."""
    if fact == old:
        return new
    if isinstance(fact, Claim):
        return Claim(fact.kind, {name: replaced(part, old, new) for name, part in fact.facts.items()})
    return tuple(replaced(part, old, new) for part in fact) if isinstance(fact, tuple) else fact


def claim(kind: str, /, **facts: Fact) -> Claim:
    """Return a claim of a kind; a member of an enumeration is a fact by its value, as which it is read again."""
    return Claim(kind, {name: fact.value if isinstance(fact, StrEnum) else fact for name, fact in facts.items()})
