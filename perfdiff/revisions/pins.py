"""Revisions pinned to their content: what `BASE HEAD`, `A..B`, `A...B` or one revision mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.records.schema import Note, Revision
from perfdiff.revisions.repository import Repository


@dataclass(frozen=True, slots=True)
class Pin:
    """A revision with the tree it stands for.

    `commit` is what is checked out, `tree` the id of the content that is built: the same content has the same `tree`. For the working
    tree `commit` is HEAD's, and `tree` lies in the object folder `snapshots`.
    """

    revision: Revision
    repository: Repository
    commit: str
    tree: str
    snapshots: Path | None = None


@dataclass(frozen=True, slots=True)
class PinnedPair:
    """The two sides of a comparison. They may be the same revision."""

    base: Pin
    head: Pin
    notes: tuple[Note, ...] = ()


def resolve(repository: Repository, specification: Sequence[str], *, snapshots: Path) -> PinnedPair:
    """Pin `BASE HEAD`, `A..B`, `A...B` or one revision (against the working tree).

    The working tree's uncommitted and untracked files are written as git objects to the folder `snapshots`, never to the repository.
    RevisionError: `unknown-revision`, `ambiguous-revision`, `shallow-clone`, `bare-repository`, `no-merge-base`, `bad-specification`.
    """
    raise NotImplementedError
