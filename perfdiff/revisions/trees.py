"""Fresh trees of a revision, laid out away from the user's checkout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfdiff.records.schema import Note
from perfdiff.revisions.pins import Pin
from perfdiff.revisions.repository import Repository


def lay_out(pin: Pin, target: Path, *, overlay: Sequence[str] = ()) -> tuple[Note, ...]:
    """Write the tree of `pin` to the new folder `target`, a repository of its own that borrows the user's objects.

    Submodules come from the user's own copies; `overlay` paths, relative to the project's folder, are copied from the user's checkout
    and replace what stands there. RevisionError: `submodule-missing`, `overlay-missing`, `objects-missing`.
    """
    raise NotImplementedError


def overlay_digest(repository: Repository, overlay: Sequence[str]) -> str:
    """Return a digest of the names, modes and contents of the overlay's files."""
    raise NotImplementedError
