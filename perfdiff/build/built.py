"""What a build leaves: its tree with all that later stages ask of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfdiff.build.commands import DroppedProbe, Uncounted
from perfdiff.build.links import RecordedLink
from perfdiff.languages.protocol import CompileCommand
from perfdiff.records.schema import Note, Phase


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build: `tree` is its root, `folder` the project's folder in it, where the build ran and workloads run.

    `uncounted` names what a counted or placed build had to leave plain. `used` are the programs, libraries and objects, by their names in
    the tree, that runs of a plain build open, where that is known.
    """

    variant: Phase
    tree: Path
    folder: Path
    commands: tuple[CompileCommand, ...]
    dropped: tuple[DroppedProbe, ...]
    notes: tuple[Note, ...]
    duration_s: float
    uncounted: tuple[Uncounted, ...] = ()
    links: tuple[RecordedLink, ...] = ()  # of a plain build
    anew: str = ""  # why a variant was not made from the plain build
    used: frozenset[str] = frozenset()

    @property
    def beside(self) -> Path:
        """Return the folder of the build, with the tree and what languages laid beside it."""
        return self.tree.parent
