"""What revisions use of other projects, by name and version, and how two of them differ in that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DependencyChange:
    """What a project uses of another one, in another version in head; None where a side uses none of it."""

    name: str
    base: str | None
    head: str | None

    @property
    def says(self) -> str:
        """Return the change in words."""
        if self.base is None:
            return f"now uses {self.name} {self.head}, which it did not before"
        if self.head is None:
            return f"does without {self.name}, was {self.base}"
        return f"now uses {self.name} {self.head}, was {self.base}"


def changes(base: Mapping[str, str], head: Mapping[str, str]) -> tuple[DependencyChange, ...]:
    """Return how the versions differ, by name."""
    names = sorted(base.keys() | head.keys())
    return tuple(DependencyChange(name, base.get(name), head.get(name)) for name in names if base.get(name) != head.get(name))
