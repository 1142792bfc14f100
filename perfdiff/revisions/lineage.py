"""Which revisions a history goes through, oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import RevisionError
from perfdiff.records.schema import Revision
from perfdiff.revisions.pins import resolve_one
from perfdiff.revisions.repository import Repository

_SHORT = 10  # digits of a commit's id in tables
RECENT = 10  # commits of a history that nobody limited


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asked for: revisions by name, or one range `A..B`; or what came since a revision; `tags` alone of it.

    `most` limits how many of a range there are; those left are spread evenly over it, both ends included.
    """

    words: tuple[str, ...] = ()
    since: str | None = None
    tags: bool = False
    most: int = 20


def lineage(repository: Repository, wanted: Wanted) -> tuple[str, ...]:
    """Return the names of the revisions, oldest first.

    Ranges follow first parents and include their start. RevisionError: `unknown-revision` and its kin; `no-revisions` where nothing is
    left.
    """
    if wanted.words and (wanted.since or wanted.tags):
        raise RevisionError("give revisions by name, or --since and --tags, not both", slug="bad-specification")
    start, dots, end = wanted.words[0].partition("..") if len(wanted.words) == 1 else ("", "", "")
    if wanted.words and not dots:
        return _ordered(repository, wanted.words)
    start, end = (start or "HEAD", end or "HEAD") if dots else (wanted.since or "", "HEAD")
    found = _tags(repository, start) if wanted.tags else _commits(repository, start, end)
    if not found:
        raise RevisionError("no tag lies in this history; name revisions, or a range A..B", slug="no-revisions")
    return _spread(found, wanted.most)


def _tags(repository: Repository, since: str) -> tuple[str, ...]:
    containing = [f"--contains={_commit(repository, since)}"] if since else []
    found = repository.tell("tag", "--list", "--merged=HEAD", *containing).splitlines()
    return _ordered(repository, found) if found else ()


def _commits(repository: Repository, start: str, end: str) -> tuple[str, ...]:
    tip = _commit(repository, end)
    if not start:
        return tuple(
            reversed(repository.tell("rev-list", "--first-parent", f"--abbrev={_SHORT}", "--abbrev-commit", f"-{RECENT}", tip).split())
        )
    first = _commit(repository, start)
    if repository.ask("merge-base", "--is-ancestor", first, tip).status != 0:
        raise RevisionError(f"{start} is no ancestor of {end}; name the older revision first", slug="not-an-ancestor")
    between = repository.tell("rev-list", "--first-parent", "--reverse", f"--abbrev={_SHORT}", "--abbrev-commit", tip, f"^{first}")
    return (start, *between.split())


def _ordered(repository: Repository, names: Sequence[str]) -> tuple[str, ...]:
    """Return revisions so that none comes before one of its ancestors."""
    commits = {name: _commit(repository, name) for name in names}
    common = repository.ask("merge-base", "--octopus", *commits.values())
    below = [f"^{base}" for base in common.output.split()[:1]]
    order = [*(base[1:] for base in below), *repository.tell("rev-list", "--topo-order", "--reverse", *commits.values(), *below).split()]
    place = {commit: number for number, commit in enumerate(order)}
    return tuple(sorted(dict.fromkeys(names), key=lambda name: place[commits[name]]))


def revision(repository: Repository, name: str) -> Revision:
    """Return a revision by its name."""
    return resolve_one(repository, name, snapshots=Path()).base.revision


def _commit(repository: Repository, name: str) -> str:
    return resolve_one(repository, name, snapshots=Path()).base.commit


def _spread(names: Sequence[str], most: int) -> tuple[str, ...]:
    """Return at most `most` of the names, evenly spread, the first and the last among them."""
    if len(names) <= most:
        return tuple(names)
    return tuple(names[round(number * (len(names) - 1) / (most - 1))] for number in range(most))
