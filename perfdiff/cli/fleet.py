"""Recordings of a fleet on the command line: which parts folders hold, which of two revisions is base, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff.errors import RecordingError, RevisionError, UsageError

if TYPE_CHECKING:
    from perfdiff.progress import Progress
    from perfdiff.records.fleet import Fleet, FleetSelection, Resolve
    from perfdiff.records.recorded import RecordedExperiment
    from perfdiff.records.remote import Folder
    from perfdiff.revisions.repository import Repository


@dataclass(frozen=True, slots=True)
class Wished:
    """What is asked of a fleet's recordings on the command line; `repository` is where git may tell revisions apart."""

    folders: tuple[Folder, ...]
    base: str | None
    head: str | None
    labels: tuple[str, ...]
    pooled: tuple[str, ...]
    repository: Path
    seed: int

    @property
    def says_so(self) -> bool:
        """Return whether anything is asked that only recordings of a fleet have."""
        return bool(self.base or self.head or self.labels or self.pooled)


def is_fleet(folders: Sequence[Folder]) -> bool:
    """Return whether any of the folders holds a part."""
    from perfdiff.records import parts

    return any(next(parts.below(folder), None) is not None for folder in folders if isinstance(folder, Path))


def pooled(wished: Wished, room: Path, progress: Progress) -> RecordedExperiment:
    """Merge all parts that can be compared into one experiment below `room`; raise UsageError or RecordingError."""
    from perfdiff.records import fleet, pooling, recorded, store

    folders = [folder for folder in wished.folders if isinstance(folder, Path)]
    missing = next((folder for folder in wished.folders if folder not in folders or not folder.exists()), None)
    if missing is not None:
        raise UsageError(f"'{missing}' is no folder of this machine that holds parts; copy them here", slug="samples-missing")
    progress.stage("finding parts", None)
    inventory = fleet.find(folders, progress.advance)
    chosen = fleet.choose(inventory, _asked(wished, folders, inventory))
    progress.stage("reading parts", sum(map(len, chosen.sides.values())))
    experiment, tables = pooling.pooled(chosen, wished.seed, progress.advance)
    if not experiment.functions:
        raise RecordingError("the parts hold no calls of any function", slug="samples-empty")
    store.save(room / "pooled", experiment, tables)
    return recorded.load(room / "pooled")


def of_one_version(folder: Path, room: Path, seed: int, progress: Progress) -> RecordedExperiment:
    """Return all parts below a folder, whatever revisions they are of, as one side's experiment, which lies below `room`.

    Raise UsageError where there are none, RecordingError where they are damaged.
    """
    from perfdiff.records import fleet, pooling, recorded, store
    from perfdiff.records.schema import Side

    progress.stage("finding parts", None)
    parts = fleet.find([folder], progress.advance)
    if not parts.parts:
        raise UsageError(f"'{folder}' holds no parts: name what `perfdiff record --to` wrote", slug="samples-missing")
    revision = next(iter(fleet.revisions(parts).values()))
    chosen = fleet.FleetChoice({Side.BASE: parts.parts, Side.HEAD: ()}, dict.fromkeys(Side, revision), parts.notes)
    progress.stage("reading parts", len(parts.parts))
    store.save(room / "in-use", *pooling.pooled(chosen, seed, progress.advance))
    return recorded.load(room / "in-use")


def _asked(wished: Wished, folders: Sequence[Path], inventory: Fleet) -> FleetSelection:
    """Return which parts are compared, with the revisions in an order where the command line does not say it."""
    from perfdiff.records import fleet

    repository = _at_hand(wished.repository)
    base, head = wished.base, wished.head
    if base is None and head is None:
        base, head = _order_of_folders(folders, inventory) or _order_of_git(repository, inventory) or (None, None)
    return fleet.FleetSelection(base, head, _labels(wished.labels), wished.pooled, _resolve(repository))


def _at_hand(directory: Path) -> Repository | None:
    from perfdiff.revisions.repository import find_repository

    try:
        return find_repository(directory)
    except RevisionError:
        return None


def _resolve(repository: Repository | None) -> Resolve | None:
    if repository is None:
        return None

    def resolve(word: str) -> str | None:
        answer = repository.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
        return answer.output.strip() if answer.status == 0 else None

    return resolve


def _order_of_folders(folders: Sequence[Path], inventory: Fleet) -> tuple[str, str] | None:
    """Return the contents of two folders that each have one revision: the first is base's."""
    if len(folders) != 2:
        return None
    trees = [{part.part.tree for part in inventory.parts if part.folder.is_relative_to(folder)} for folder in folders]
    if any(len(contents) != 1 for contents in trees) or trees[0] == trees[1]:
        return None
    return trees[0].pop(), trees[1].pop()


def _order_of_git(repository: Repository | None, inventory: Fleet) -> tuple[str, str] | None:
    """Return the contents of two revisions, the one first that the other descends from."""
    from perfdiff.records import fleet
    from perfdiff.revisions.history import is_ancestor

    commits = {tree: revision.commit for tree, revision in fleet.revisions(inventory).items()}
    if repository is None or len(commits) != 2 or not all(commits.values()):
        return None
    (first, commit), (second, other) = commits.items()
    if is_ancestor(repository, str(commit), str(other)):
        return first, second
    if is_ancestor(repository, str(other), str(commit)):
        return second, first
    return None


def _labels(given: Sequence[str]) -> dict[str, str]:
    labels = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--label {text}: a label is NAME=VALUE", slug="bad-option")
        labels[name] = value
    return labels
