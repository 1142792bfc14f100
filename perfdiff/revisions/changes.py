"""What a checkout holds beyond its commit, as a patch that can go elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.revisions.overlay import overlay_files
from perfdiff.revisions.pins import Pin


@dataclass(frozen=True, slots=True)
class Changes:
    """A patch on `commit`, "" where nothing differs; `binary` are files that differ, but are no text; `ignored` are overlay files."""

    commit: str
    patch: str
    binary: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def changes(pin: Pin, *, only: Sequence[str] | None, overlay: Sequence[str], without: Sequence[Path]) -> Changes:
    """Return how a pinned working tree differs from its commit, in the paths `only` of the project, or everywhere but in `without`.

    What git ignores is in no patch: `ignored` says which files of the `overlay` it hides. Raise RevisionError.
    """
    repository = pin.repository
    top = repository.top or Path()
    # Objects of the working tree lie in a folder of their own.
    environment = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(pin.snapshots)} if pin.snapshots else {}
    limits = [f":(top,literal){(repository.folder / path).as_posix()}" for path in only] if only is not None else [":(top)"]
    limits += [f":(top,exclude,literal){path.relative_to(top).as_posix()}" for path in without if path.is_relative_to(top)]

    def difference(*form: str, paths: Sequence[str]) -> str:
        return repository.tell("diff-tree", "-r", "--no-renames", *form, pin.commit, pin.tree, "--", *paths, environment=environment)

    rows = [row.split("\t", 2) for row in difference("--numstat", "-z", paths=limits).split("\0") if row]
    binary = tuple(name for added, _, name in rows if added == "-")
    patch = difference("-p", "--full-index", paths=[*limits, *(f":(top,exclude,literal){name}" for name in binary)])
    tracked = set(repository.tell("ls-tree", "-r", "-z", "--name-only", "--full-tree", pin.tree, environment=environment).split("\0"))
    ignored = tuple(file.as_posix() for file in overlay_files(repository, overlay) if file.as_posix() not in tracked)
    return Changes(pin.commit, patch, binary, ignored)
