"""Revisions pinned to their content: what `BASE HEAD`, `A..B`, `A...B` or one revision mean."""

from __future__ import annotations

import difflib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff import temporary, units
from perfdiff.errors import RevisionError
from perfdiff.records.schema import Note, Revision
from perfdiff.revisions.repository import Repository

WORKING_TREE = "working tree"
_SHOWN = 3  # files that a note names


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
    """The two sides of a comparison. They may be the same revision.

    `dirty` are submodules with changes that are in no commit, where a side is the working tree.
    """

    base: Pin
    head: Pin
    notes: tuple[Note, ...] = ()
    dirty: tuple[str, ...] = ()


def resolve(repository: Repository, specification: Sequence[str], *, snapshots: Path, apart: Sequence[Path] = ()) -> PinnedPair:
    """Pin `BASE HEAD`, `A..B`, `A...B` or one revision (against the working tree).

    The working tree's uncommitted and untracked files are written as git objects to the folder `snapshots`, never to the repository.
    Files in `apart` (absolute) are in it as HEAD has them, whatever the checkout holds.
    RevisionError: `unknown-revision`, `ambiguous-revision`, `shallow-clone`, `bare-repository`, `no-merge-base`, `bad-specification`.
    """
    match tuple(specification):
        case (base, head):
            if ".." in base:
                raise RevisionError(
                    f"'{base}' names both ends already: leave '{head}' out, or give two revisions", slug="bad-specification"
                )
            return PinnedPair(_pin_commit(repository, base), _pin_commit(repository, head))
        case (single,):
            return _resolve_single(repository, single, snapshots, apart)
        case _:
            raise RevisionError(
                f"{len(specification)} revisions were given; give BASE HEAD, A..B, A...B, or one revision to compare with the working tree",
                slug="bad-specification",
            )


def resolve_one(repository: Repository, name: str | None, *, snapshots: Path, apart: Sequence[Path] = ()) -> PinnedPair:
    """Pin one revision, or the working tree where none is named, as both sides; raises as `resolve` does."""
    if name is not None:
        pin = _pin_commit(repository, name)
        return PinnedPair(pin, pin)
    pin, dirty = pin_working_tree(repository, snapshots=snapshots, apart=apart)
    return PinnedPair(pin, pin, _told(dirty), dirty)


def resolve_some(
    repository: Repository, specification: Sequence[str], *, snapshots: Path, apart: Sequence[Path] = ()
) -> tuple[PinnedPair, bool]:
    """Pin two revisions, or one alone where a single one is named, or none and thereby the working tree; return whether there are two."""
    if not specification or (len(specification) == 1 and split_range(repository, specification[0]) is None):
        return resolve_one(repository, next(iter(specification), None), snapshots=snapshots, apart=apart), False
    return resolve(repository, specification, snapshots=snapshots, apart=apart), True


def split_range(repository: Repository, word: str) -> tuple[str, str, str] | None:
    """Return `A`, the dots and `B` of the range `A..B` or `A...B`, HEAD where an end is left out; None where one revision is meant."""
    # A revision can hold dots itself (`HEAD^{/fix..}`), so a range is only what is no revision as a whole.
    if ".." not in word or word.startswith("-") or _parse(repository, word) is not None:
        return None
    start, dots, end = word.partition("..." if "..." in word else "..")
    return start or "HEAD", dots, end or "HEAD"


def _resolve_single(repository: Repository, specification: str, snapshots: Path, apart: Sequence[Path]) -> PinnedPair:
    if ends := split_range(repository, specification):
        base, head = _pin_commit(repository, ends[0]), _pin_commit(repository, ends[2])
        return PinnedPair(_merge_base(repository, base, head) if ends[1] == "..." else base, head)
    base = _pin_commit(repository, specification)
    head, dirty = pin_working_tree(repository, snapshots=snapshots, apart=apart)
    return PinnedPair(base, head, _told(dirty), dirty)


def _parse(repository: Repository, name: str) -> str | None:
    answer = repository.ask("rev-parse", "--verify", "--quiet", name)
    return answer.output.strip() if answer.status == 0 else None


def _pin_commit(repository: Repository, name: str) -> Pin:
    if name.startswith("-") or not name.strip():
        raise RevisionError(f"'{name}' is not the name of a revision", slug="unknown-revision")
    answer = repository.ask("rev-parse", "--verify", name)
    if "is ambiguous" in answer.errors and not _is_one_commit(repository, answer.errors):
        raise RevisionError(
            f"'{name}' can mean several things; write more of the commit's id, or heads/{name} or tags/{name}",
            slug="ambiguous-revision",
            detail=answer.errors,
        )
    commit = _parse(repository, f"{answer.output.strip()}^{{commit}}") if answer.status == 0 else None
    if commit is None:
        raise _unknown(repository, name)
    return _pin(repository, name, commit)


def _is_one_commit(repository: Repository, warning: str) -> bool:
    """Return whether the name that git warns of is a branch and a tag of the same commit, so that either is meant."""
    ambiguity = re.search(r"refname '(.+)' is ambiguous", warning)
    ends = {_parse(repository, f"refs/{kind}/{ambiguity[1]}^{{commit}}") for kind in ("heads", "tags")} if ambiguity else set()
    return len(ends) == 1 and None not in ends


def _pin(repository: Repository, name: str, commit: str) -> Pin:
    tree, _, summary = repository.tell("log", "-1", "--no-show-signature", "--format=%T %s", commit).strip().partition(" ")
    return Pin(revision=Revision(rev=name, commit=commit, summary=summary), repository=repository, commit=commit, tree=tree)


def _unknown(repository: Repository, name: str) -> RevisionError:
    if repository.is_shallow:
        return RevisionError(
            f"'{name}' is not in this shallow clone, whose history was cut off; run 'git fetch --unshallow --tags' and try again",
            slug="shallow-clone",
        )
    checkout = repository.top or repository.git_dir
    if _parse(repository, "HEAD") is None:
        return RevisionError(f"'{name}' is unknown: the repository has no commits yet", slug="unknown-revision")
    stem = re.split(r"[~^]", name)[0]
    if stem not in ("", name) and _parse(repository, f"{stem}^{{commit}}") is not None:
        first = repository.tell("rev-list", "--count", "--first-parent", stem).strip()
        commits = "commit" if first == "1" else "commits"
        return RevisionError(
            f"'{name}' is not a revision of {checkout}: the history of {stem} has {first} {commits}, along first parents; "
            f"'git log --oneline --first-parent {stem}' lists them",
            slug="unknown-revision",
        )
    refs = repository.tell("for-each-ref", "--format=%(refname:short)").split()
    near = difflib.get_close_matches(re.split(r"[~^@:]", name)[0] or name, ["HEAD", *refs], n=3)
    offer = f"; did you mean {' or '.join(near)}?" if near else "; 'git log --oneline --all' lists what there is"
    return RevisionError(f"'{name}' is not a revision of {checkout}{offer}", slug="unknown-revision")


def _merge_base(repository: Repository, base: Pin, head: Pin) -> Pin:
    names = f"{base.revision.rev}...{head.revision.rev}"
    answer = repository.ask("merge-base", base.commit, head.commit)
    if answer.status == 0:
        return _pin(repository, names, answer.output.split()[0])
    if repository.is_shallow:
        raise RevisionError(
            f"{names} have no common ancestor in this shallow clone; run 'git fetch --unshallow' and try again", slug="shallow-clone"
        )
    raise RevisionError(f"{names} have no common ancestor; name the two revisions as 'BASE HEAD'", slug="no-merge-base")


def pin_working_tree(repository: Repository, *, snapshots: Path, apart: Sequence[Path] = ()) -> tuple[Pin, tuple[str, ...]]:
    """Pin the checkout as it stands: HEAD, uncommitted changes, and untracked files that git does not ignore; as `resolve` does."""
    if repository.top is None:
        raise RevisionError(f"{repository.git_dir} is a bare repository without a working tree; name two revisions", slug="bare-repository")
    head = _pin_commit(repository, "HEAD")
    tree = _snapshot(repository, snapshots, _below(repository.top, apart))
    changed = "no uncommitted changes" if tree == head.tree else "uncommitted changes"
    revision = Revision(rev=WORKING_TREE, commit=None, summary=f"{changed} on {head.commit[:10]} {head.revision.summary}")
    pin = Pin(revision=revision, repository=repository, commit=head.commit, tree=tree, snapshots=snapshots / "objects")
    return pin, _dirty_submodules(repository)


def left_out(repository: Repository, pins: PinnedPair, excluded: Sequence[Path]) -> tuple[Note, ...]:
    """Tell which changes of tracked files no side of a comparison has, where one is what the checkout is of; not of `excluded` files."""
    sides = (pins.base, pins.head)
    if repository.top is None or any(side.revision.commit is None for side in sides):
        return ()
    if _parse(repository, "HEAD^{commit}") not in [side.commit for side in sides]:
        return ()
    changed = repository.tell("diff", "--name-only", "-z", "--ignore-submodules=all", "HEAD").split("\0")[:-1]
    files = [file for file in changed if not any(Path(file).is_relative_to(name) for name in _below(repository.top, excluded))]
    if not files:
        return ()
    text = f"uncommitted changes of {units.listed(files, _SHOWN)} are part of neither side; `perfdiff BASE` alone compares with them"
    return (Note("uncommitted", text),)


def _below(top: Path, files: Sequence[Path]) -> list[str]:
    """Return those of the files that lie in the checkout, from its root."""
    resolved = [file.resolve() for file in files]
    return [file.relative_to(top).as_posix() for file in resolved if file.is_relative_to(top)]


def _snapshot(repository: Repository, snapshots: Path, apart: Sequence[str]) -> str:
    """Write the working tree as git objects to `snapshots`, with a copy of the index, and return the tree's id."""
    (snapshots / "objects").mkdir(parents=True, exist_ok=True)
    (snapshots / ".gitignore").write_text("*\n")  # where the cache lies in the checkout, it is no part of it
    with temporary.folder("tmp", within=snapshots) as scratch:
        index = scratch / "index"
        if (repository.git_dir / "index").exists():
            # With the files' times in it only changed files are read, and by its own time git knows which ones to doubt all the same.
            shutil.copy2(repository.git_dir / "index", index)
        # The user's objects stay out of sight: git would give those that it meets again a new time of change.
        environment = {"GIT_INDEX_FILE": str(index), "GIT_OBJECT_DIRECTORY": str(snapshots / "objects")}
        _look_at_all(repository, repository.top, environment)
        repository.tell("add", "--all", environment=environment)
        for name in apart:
            mode, kind, blob = (repository.tell("ls-tree", "-z", "HEAD", "--", name).partition("\t")[0].split() or ["", "", ""])[:3]
            change = ["--add", "--cacheinfo", f"{mode},{blob},{name}"] if kind == "blob" else ["--force-remove", "--", name]
            repository.tell("update-index", *change, environment=environment)
        return repository.tell("write-tree", "--missing-ok", environment=environment).strip()


def _look_at_all(repository: Repository, top: Path | None, environment: Mapping[str, str]) -> None:
    """Have git look at the files of an index that it was told to take for unchanged; absent ones may be so in a sparse checkout."""
    entries = repository.tell("ls-files", "-v", "-z", environment=environment).split("\0")[:-1]
    unseen = [name for tag, _, name in (entry.partition(" ") for entry in entries) if tag == "S" or tag.islower()]
    present = "\0".join(name for name in unseen if top is not None and os.path.lexists(top / name))
    for flag in ("--no-assume-unchanged", "--no-skip-worktree") if present else ():
        repository.pipe("update-index", flag, "-z", "--stdin", data=os.fsencode(present), environment=environment)


def _dirty_submodules(repository: Repository) -> tuple[str, ...]:
    status = repository.tell("status", "--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=none")
    matches = (re.match(r"[12] \S+ S.(M.|.U) (?:\S+ ){5}(?:R\d+ |C\d+ )?(.*)", entry) for entry in status.split("\0"))
    return tuple(match[2] for match in matches if match)


def _told(dirty: Sequence[str]) -> tuple[Note, ...]:
    """Return notes on submodules with changes that are in no commit."""
    texts = (f"submodule {name} has uncommitted changes, which are not compared; commit them in the submodule" for name in dirty)
    return tuple(Note(slug="submodule-dirty", text=text) for text in texts)
