"""How a long piece of work tells how far it is, without knowing who listens."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol


class Progress(Protocol):
    """Receives what a comparison is doing. Implementations must not raise."""

    def stage(self, name: str, total: int | None) -> None:
        """Begin a stage of `total` steps at most, or of an unknown number; the stage before it is done."""
        ...

    def advance(self, text: str = "") -> None:
        """Report that one step of the stage is done; `text` names it."""
        ...

    def note(self, text: str) -> None:
        """Tell something that the reader should know while waiting."""
        ...

    def know(self, text: str) -> None:
        """Keep in sight what is known of the answer by now, in place of what was before."""
        ...


class Silent:
    """A `Progress` that says nothing."""

    def stage(self, name: str, total: int | None) -> None:
        """Ignore the stage."""

    def advance(self, text: str = "") -> None:
        """Ignore the step."""

    def note(self, text: str) -> None:
        """Ignore the note."""

    def know(self, text: str) -> None:
        """Ignore what is known."""


class Within:
    """The progress of a comparison within a search: its stages are steps of one stage, and what it notes has been told before."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        progress.stage(title, None)

    def stage(self, name: str, _total: int | None) -> None:
        """Tell the comparison's stage as a step."""
        self._progress.advance(name)

    def advance(self, text: str = "") -> None:
        """Pass over a step of a stage."""

    def note(self, text: str) -> None:
        """Pass over what the ends' comparison has told."""

    def know(self, text: str) -> None:
        """Pass over what is known of one comparison of many."""


class Stopwatch:
    """Passes everything on, and keeps how long each stage took."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._seconds: dict[str, float] = {}
        self._running: tuple[str, float] | None = None

    @property
    def seconds(self) -> Mapping[str, float]:
        """Return the seconds of each stage so far, the running one included; those of one name are added up."""
        if self._running is None:
            return dict(self._seconds)
        name, since = self._running
        return {**self._seconds, name: self._seconds.get(name, 0.0) + time.monotonic() - since}

    @property
    def current(self) -> str:
        """Return the stage that runs, "" where none was begun."""
        return self._running[0] if self._running else ""

    def stage(self, name: str, total: int | None) -> None:
        """Begin a stage; the one before it is done, unless it is the same, of an unknown number of steps, which goes on."""
        if total is None and self._running is not None and self._running[0] == name:
            return
        self._seconds = dict(self.seconds)
        self._running = name, time.monotonic()
        self._progress.stage(name, total)

    def advance(self, text: str = "") -> None:
        """Pass a step on."""
        self._progress.advance(text)

    def note(self, text: str) -> None:
        """Pass a note on."""
        self._progress.note(text)

    def know(self, text: str) -> None:
        """Pass on what is known."""
        self._progress.know(text)
