"""The commits between two revisions, oldest first: which holds which, and which are the same as a neighbour for what is built and run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from perfdiff.errors import RevisionError
from perfdiff.revisions.pins import Pin
from perfdiff.revisions.repository import Repository

# Text for readers. A file that a command of the configuration names is none, whatever its suffix.
_DOCUMENTATION = (".md", ".markdown", ".rst", ".adoc", ".org", ".pod", ".texi")
_DOCUMENTS = ("readme", "license", "licence", "copying", "authors", "contributors", "changelog", "changes", "news")
_GIT_FILES = (".gitignore", ".gitattributes")
# What only services that watch the repository read.
_SERVICES = (".github", ".gitlab", ".gitlab-ci", ".circleci")
_SERVICE_FILES = (".gitlab-ci.yml", ".travis.yml", ".cirrus.yml", "appveyor.yml", ".appveyor.yml")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a range. `parents` are numbers of commits of the range; `outside` are parents that the range begins behind."""

    id: str
    summary: str
    parents: tuple[int, ...]
    outside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitHistory:
    """The commits that `bad` has and `good` lacks, parents first.

    `same[i]` is the number of the earliest commit that commit `i` cannot differ from, `i` itself where it changes something, None where
    it cannot differ from `good`.
    """

    good: str
    bad: str
    commits: tuple[Commit, ...]
    same: tuple[int | None, ...]

    def ancestry(self) -> tuple[frozenset[int], ...]:
        """Return for each commit the commits of the range that it holds, itself included."""
        held: list[frozenset[int]] = []
        for number, commit in enumerate(self.commits):
            held.append(frozenset({number}).union(*(held[parent] for parent in commit.parents)))
        return tuple(held)


def history(good: Pin, bad: Pin, *, first_parent: bool, paths: Sequence[str], inert: Callable[[str], bool]) -> CommitHistory:
    """Return the commits between two pinned revisions; with `paths`, which are relative to the project's folder, those that touch them.

    `inert` says of a file, relative to the checkout's root, that it takes no part in what is built and run. RevisionError: `ends-alike`,
    `ends-swapped`, `ends-unrelated`, `shallow-clone`, `no-commits`.
    """
    repository = good.repository
    _require_descent(good, bad)
    walk = ["--first-parent"] if first_parent else []
    limits = ["--", *(f":(top){(repository.folder / path).as_posix()}" for path in paths)] if paths else ["--"]
    listing = repository.tell("rev-list", "--topo-order", "--reverse", "--parents", *walk, f"{good.commit}..{bad.commit}", *limits)
    rows = [line.split() for line in listing.splitlines()]
    if not rows:
        raise RevisionError(
            f"no commit between {good.revision.rev} and {bad.revision.rev} touches {', '.join(paths)}; name other paths, or none",
            slug="no-commits",
        )
    numbers = {row[0]: number for number, row in enumerate(rows)}
    summaries = _summaries(repository, good, bad)
    commits = []
    for commit, *parents in rows:
        followed = parents[:1] if first_parent else parents
        commits.append(
            Commit(
                commit,
                summaries.get(commit, ""),
                tuple(numbers[parent] for parent in followed if parent in numbers),
                tuple(parent for parent in followed if parent not in numbers),
            )
        )
    return CommitHistory(good.commit, bad.commit, tuple(commits), _same(repository, good.commit, commits, inert))


def inert_files(repository: Repository, overlay: Sequence[str], commands: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a file is neither built nor run.

    The overlay stands in its place, or no command names it and it is documentation or what tells a service how to test the project.
    """
    replaced = [PurePosixPath((repository.folder / path).as_posix()) for path in overlay]

    def is_inert(file: str) -> bool:
        path = PurePosixPath(file)
        if any(path.is_relative_to(place) for place in replaced):
            return True
        is_named = path.name.lower().removesuffix(".txt") in _DOCUMENTS or path.name in _GIT_FILES
        is_document = path.suffix.lower() in _DOCUMENTATION or is_named
        is_service = path.parts[0] in _SERVICES or file in _SERVICE_FILES
        return (is_document or is_service) and not any(_names(command, path) for command in commands)

    return is_inert


def is_ancestor(repository: Repository, first: str, second: str) -> bool:
    """Return whether `second` has `first` in its history."""
    return repository.ask("merge-base", "--is-ancestor", first, second).status == 0


def bisected_good(repository: Repository) -> str:
    """Return the oldest commit that `git bisect good` was told; raise RevisionError where no bisect is under way."""
    goods = repository.tell("for-each-ref", "--format=%(objectname)", "refs/bisect/good*").split()
    if not goods:
        raise RevisionError(
            "no good commit is known: no bisect is under way; run 'git bisect start BAD GOOD' first, or name it with --good",
            slug="no-bisect",
        )
    # The one that most others have in their history: it stays the same while git adds others, so its builds are found again.
    return max(goods, key=lambda commit: sum(is_ancestor(repository, commit, other) for other in goods))


def changed_files(repository: Repository, base: str, head: str) -> tuple[str, ...]:
    """Return the files that differ between two commits, relative to the checkout's root; submodules count as files."""
    listing = repository.tell("diff-tree", "-r", "-z", "--no-renames", "--name-only", base, head)
    return tuple(name for name in listing.split("\0") if name)


def _names(command: str, path: PurePosixPath) -> bool:
    """Return whether a command may read a file: its name, a folder above it, or a pattern of its suffix stands in it."""
    above = [str(folder) for folder in path.parents if folder != PurePosixPath(".")]
    return any(word in command for word in (path.name, f"*{path.suffix}", *above))


def _require_descent(good: Pin, bad: Pin) -> None:
    repository, names = good.repository, (good.revision.rev, bad.revision.rev)
    if good.commit == bad.commit:
        raise RevisionError(f"{names[0]} and {names[1]} are the same commit; there is nothing to search", slug="ends-alike")
    if is_ancestor(repository, good.commit, bad.commit):
        return
    if is_ancestor(repository, bad.commit, good.commit):
        raise RevisionError(
            f"{names[1]} is older than {names[0]}; give GOOD first: perfdiff bisect {names[1]} {names[0]}", slug="ends-swapped"
        )
    if repository.is_shallow:
        raise RevisionError(
            f"{names[0]} is not in what this shallow clone has of the history of {names[1]}; run 'git fetch --unshallow' and try again",
            slug="shallow-clone",
        )
    raise RevisionError(
        f"{names[0]} is not in the history of {names[1]}: they lie on different branches; start from where these part: "
        f"perfdiff bisect $(git merge-base {names[0]} {names[1]}) {names[1]}",
        slug="ends-unrelated",
    )


def _summaries(repository: Repository, good: Pin, bad: Pin) -> dict[str, str]:
    listing = repository.tell("log", "-z", "--no-show-signature", "--format=%H %s", f"{good.commit}..{bad.commit}")
    return dict(entry.split(" ", 1) for entry in listing.split("\0") if " " in entry)


def _same(repository: Repository, good: str, commits: Sequence[Commit], inert: Callable[[str], bool]) -> tuple[int | None, ...]:
    """Return for each commit the earliest one that it is the same as: no file that takes part differs from a parent's."""
    same: list[int | None] = []
    for number, commit in enumerate(commits):
        earliest: int | None = number
        for parent in commit.parents:
            if _alike(repository, commits[parent].id, commit.id, inert):
                earliest = same[parent]
                break
        else:
            # Only the good end itself is known; other parents outside are neither measured nor candidates.
            if good in commit.outside and _alike(repository, good, commit.id, inert):
                earliest = None
        same.append(earliest)
    return tuple(same)


def _alike(repository: Repository, base: str, head: str, inert: Callable[[str], bool]) -> bool:
    return all(inert(file) for file in changed_files(repository, base, head))
