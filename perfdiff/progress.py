"""How a long piece of work tells how far it is, without knowing who listens."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives what a comparison is doing. Implementations must not raise."""

    def stage(self, name: str, total: int | None) -> None:
        """Begin a stage of `total` steps, or of an unknown number; the stage before it is done."""
        ...

    def advance(self, text: str = "") -> None:
        """Count one step of the stage; `text` says what it was."""
        ...

    def note(self, text: str) -> None:
        """Tell something that the reader should know while waiting."""
        ...


class Silent:
    """A `Progress` that says nothing."""

    def stage(self, name: str, total: int | None) -> None:
        """Ignore the stage."""

    def advance(self, text: str = "") -> None:
        """Ignore the step."""

    def note(self, text: str) -> None:
        """Ignore the note."""
