"""What is asked of a search, and the commits that it is to be searched in."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from perfdiff import storage
from perfdiff.progress import Progress
from perfdiff.request import Request
from perfdiff.revisions.history import CommitHistory, history, inert_files
from perfdiff.revisions.pins import PinnedPair, resolve
from perfdiff.revisions.repository import find_repository


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """What is asked: `request.revisions` are the good and the bad end; `named(name, file)` says whether a function is the one asked for."""

    request: Request
    function: str | None = None
    named: Callable[[str, str], bool] | None = None
    metric: str | None = None
    confidence: float = 0.95
    first_parent: bool = False
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchRange:
    """The good and bad ends of a search and the commits between them; `inert` tells whether a file is neither built nor run."""

    pins: PinnedPair
    commits: CommitHistory
    inert: Callable[[str], bool]


def stretch(question: SearchQuestion, progress: Progress, met: Collection[str] = ()) -> SearchRange:
    """Return the commits among which a question is searched; raise RevisionError as `history` does.

    Files that slower runs `met` are not inert, whatever they are called.
    """
    request = question.request
    progress.stage("resolving revisions", None)
    repository = find_repository(request.repository)
    with storage.in_use(request.cache, progress):
        pins = resolve(repository, request.revisions, snapshots=request.cache / "snapshots")
    is_inert = inert_files(repository, request.config.build.overlay, request.config.commands)

    def inert(file: str) -> bool:
        return file not in met and is_inert(file)

    commits = history(pins.base, pins.head, first_parent=question.first_parent, paths=question.paths, inert=inert)
    return SearchRange(pins, commits, inert)
