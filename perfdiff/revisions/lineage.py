"""Which revisions a history goes through, oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import RevisionError
from perfdiff.records.schema import Revision
from perfdiff.revisions.pins import resolve, resolve_one, split_range
from perfdiff.revisions.repository import Repository

_SHORT = 10  # digits of a commit's id in tables
RECENT = 10  # commits of a history that nobody limited


@dataclass(frozen=True, slots=True)
class RevisionRange:
    """What the user asked for: revisions by name, or one range, `A..B` or `A...B`; or what came since a revision; `tags` alone of it.

    `most` limits how many of a range there are; those left are spread evenly over it, both ends included.
    """

    words: tuple[str, ...] = ()
    since: str | None = None
    tags: bool = False
    most: int = 20


def lineage(repository: Repository, wanted: RevisionRange) -> tuple[str, ...]:
    """Return the names of the revisions, oldest first.

    Ranges follow first parents and include their start, which of `A...B` is the merge base. RevisionError: `unknown-revision` and its kin;
    `no-revisions` where nothing is left.
    """
    if wanted.words and (wanted.since or wanted.tags):
        raise RevisionError("give revisions by name, or --since and --tags, not both", slug="bad-specification")
    ends = split_range(repository, wanted.words[0]) if len(wanted.words) == 1 else None
    if wanted.words and ends is None:
        return _ordered(repository, wanted.words)
    start, dots, end = ends or (wanted.since or "", "..", "HEAD")
    if dots == "...":
        fork = resolve(repository, wanted.words, snapshots=Path()).base.commit
        start = repository.tell("rev-parse", f"--short={_SHORT}", fork).strip()
    names = _tags(repository, start) if wanted.tags else _commits(repository, start, end)
    if not names:
        raise RevisionError("no tag lies in this history; name revisions, or a range A..B", slug="no-revisions")
    return _spread(names, wanted.most)


def _tags(repository: Repository, since: str) -> tuple[str, ...]:
    containing = [f"--contains={_commit(repository, since)}"] if since else []
    tags = repository.tell("tag", "--list", "--merged=HEAD", *containing).splitlines()
    return _ordered(repository, tags) if tags else ()


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
