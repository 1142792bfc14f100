"""What the programs of a build run under, as packs keep it beside the tree, and how two revisions differ in what they use of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from perfdiff.errors import StoreError
from perfdiff.languages.kept import decoded, encoded
from perfdiff.records.schema import Note

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DependencyChange:
    """A dependency whose version differs in head; a version is None if the side does not use it."""

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

    @property
    def note(self) -> Note:
        """Return it as something to be told of a comparison."""
        return Note("dependency-changed", f"head {self.says}")


def changes(base: Mapping[str, str], head: Mapping[str, str]) -> tuple[DependencyChange, ...]:
    """Return how the versions of projects of others differ, by name."""
    names = sorted(base.keys() | head.keys())
    return tuple(DependencyChange(name, base.get(name), head.get(name)) for name in names if base.get(name) != head.get(name))


def keep(file: Path, under: object) -> None:
    """Keep what a build runs under in a file beside its tree; raise OSError."""
    file.write_text(encoded(under))


def kept(kind: type[T], file: Path, what: str) -> T:
    """Return what `keep` wrote; raise StoreError (`damaged-build`) where that cannot be read. `what` names it in words."""
    try:
        return decoded(kind, file.read_text())
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{what} {file.parent} is damaged: {error}; `perfdiff cache verify --remove` clears it", slug="damaged-build"
        ) from error
