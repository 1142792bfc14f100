"""Fresh trees of a revision, laid out away from the user's checkout."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from perfdiff.errors import RevisionError
from perfdiff.records.schema import Note
from perfdiff.revisions.largefiles import fill_in_large_files
from perfdiff.revisions.overlay import overlay_files, replace_overlay
from perfdiff.revisions.pins import Pin
from perfdiff.revisions.repository import Repository, find_repository

_APART_NS = 1_000  # between files of a checkout: so little that those of a tree have one second, which is what byte code notes of them
_GITLINK = re.compile(r"160000 commit ([0-9a-f]+)\t(.*)", re.DOTALL)


def lay_out(pin: Pin, target: Path, *, overlay: Sequence[str] = ()) -> tuple[Note, ...]:
    """Write the tree of `pin` to the new folder `target`, a repository of its own that borrows the user's objects.

    Submodules come from the user's own copies; `overlay` paths, relative to the project's folder, are copied from the user's checkout
    and replace what stands there. RevisionError: `submodule-missing`, `overlay-missing`, `objects-missing`.
    """
    files = overlay_files(pin.repository, overlay)
    tree = _check_out(pin.repository, pin.commit, pin.tree, target, pin.snapshots)
    notes = (*_lay_out_submodules(pin, pin.repository, tree), *fill_in_large_files(pin.repository, tree))
    settle(target)
    tree.ask("update-index", "-q", "--refresh")
    replace_overlay(pin.repository, overlay, files, target)
    return notes


def settle(tree: Path) -> None:
    """Give all files of `tree` one time of change.

    A checkout writes files in any order, so generated files that are committed (parsers, `configure`) would look out of date, and the
    build would ask for tools that made them.
    """
    now = time.time_ns()
    for folder, folders, names in os.walk(tree):
        if ".git" in folders:
            folders.remove(".git")
        for name in names:
            os.utime(Path(folder, name), ns=(now, now), follow_symlinks=False)


def settle_in_order(tree: Path, *, but: Collection[Path] = ()) -> None:
    """Give the files of `tree` the times that a checkout gives them, which writes one after the other in the order of their paths.

    Programs that compare times of their own files find what they find in a fresh clone. `but` are paths below the tree that keep theirs.
    """
    files = [Path(folder, name) for folder, _, names in os.walk(tree) for name in names]
    paths = sorted((file.relative_to(tree) for file in files), key=lambda path: os.fsencode(path.as_posix()))
    times = itertools.count(time.time_ns() // 1_000_000_000 * 1_000_000_000, _APART_NS)
    for path in paths:
        if path.parts[0] != ".git" and path not in but:
            os.utime(tree / path, ns=(now := next(times), now), follow_symlinks=False)
    find_repository(tree).ask("update-index", "-q", "--refresh")


def _check_out(source: Repository, commit: str, content: str, target: Path, snapshots: Path | None) -> Repository:
    """Make `target` a repository with `commit` as its detached HEAD and `content` as index and files.

    Not `git clone --shared`: that starts `git upload-pack` in the user's repository, which asks who owns it, and copies every branch.
    """
    git_dir = target / ".git"
    tree = Repository(git_dir=git_dir, common_dir=git_dir, top=target, folder=source.folder)
    target.mkdir(parents=True, exist_ok=True)
    object_format = source.tell("rev-parse", "--show-object-format").strip()
    tree.tell("init", "--quiet", "--template=", f"--object-format={object_format}")
    borrowed = [source.objects, *([snapshots] if snapshots else [])]
    (git_dir / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (git_dir / "objects" / "info" / "alternates").write_text("".join(f"{folder}\n" for folder in borrowed))
    # Tags let `git describe` name the version; branches have no meaning in a tree that is built.
    (git_dir / "packed-refs").write_text(source.tell("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"))
    if source.is_shallow:
        shutil.copyfile(source.common_dir / "shallow", git_dir / "shallow")
    tree.tell("update-ref", "--no-deref", "HEAD", commit)
    tree.tell("read-tree", "--reset", "-u", content)
    return tree


def submodules_at(source: Repository, tree: str, environment: Mapping[str, str]) -> Iterator[tuple[str, Repository, str]]:
    """Yield the submodules of a tree that are on this machine: name, repository and commit."""
    listing = source.tell("ls-tree", "-r", "-z", tree, environment=environment)
    links = [link for entry in listing.split("\0") if (link := _GITLINK.fullmatch(entry))]
    if not links:
        return
    answer = source.ask("config", f"--blob={tree}:.gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$", environment=environment)
    names = _names_by_path(answer.output)
    for link in links:
        commit, path = link[1], link[2]
        for copy in _local_copies(source, path, names.get(path)) if path in names else ():
            if copy.ask("cat-file", "-e", f"{commit}^{{commit}}").status == 0:
                yield names[path], copy, commit
                break


def _lay_out_submodules(pin: Pin, source: Repository, tree: Repository) -> tuple[Note, ...]:
    names = _submodule_names(tree)
    notes: list[Note] = []
    empty: list[str] = []
    for entry in tree.tell("ls-tree", "-r", "-z", tree.tell("write-tree").strip()).split("\0"):
        link = _GITLINK.fullmatch(entry)
        if link is None:
            continue
        commit, path = link[1], link[2]
        copies = _local_copies(source, path, names.get(path))
        holder = next((copy for copy in copies if copy.ask("cat-file", "-e", f"{commit}^{{commit}}").status == 0), None)
        if holder is not None and tree.top is not None:
            inner = _check_out(holder, commit, commit, tree.top / path, None)
            notes.extend(_lay_out_submodules(pin, holder, inner))
        elif copies:
            raise RevisionError(
                f"{pin.revision.rev} needs commit {commit[:10]} of submodule {path}, which is not in your checkout; "
                f"run 'git -C {path} fetch origin {commit}' and try again",
                slug="submodule-missing",
            )
        elif path in names:
            empty.append(path)
    if empty:
        # The same words for both revisions: it is one state of one checkout, and is told once.
        what, them = (f"submodule {empty[0]} is", "it") if len(empty) == 1 else (f"submodules {', '.join(empty)} are", "them")
        command = f"git submodule update --init {' '.join(map(shlex.quote, empty))}"
        text = f"{what} empty: not initialised; run '{command}' if the build needs {them}"
        notes.append(Note(slug="submodule-missing", text=text))
    return tuple(notes)


def _submodule_names(tree: Repository) -> dict[str, str]:
    """Return the names of the submodules by path."""
    if tree.top is None or not (tree.top / ".gitmodules").is_file():
        return {}
    answer = tree.ask("config", "--file", str(tree.top / ".gitmodules"), "--null", "--get-regexp", r"^submodule\..*\.path$")
    return _names_by_path(answer.output)


def _names_by_path(answer: str) -> dict[str, str]:
    pairs = (entry.partition("\n") for entry in answer.split("\0") if entry)
    return {path: key.removeprefix("submodule.").removesuffix(".path") for key, _, path in pairs}


def _local_copies(source: Repository, path: str, name: str | None) -> list[Repository]:
    """Return the repositories on this machine that the submodule's objects may be in."""
    copies = []
    if source.top is not None and (source.top / path / ".git").exists():
        copies.append(find_repository(source.top / path))
    if name is not None:
        for git_dir in dict.fromkeys((source.git_dir / "modules" / name, source.common_dir / "modules" / name)):
            if (git_dir / "objects").is_dir():
                copies.append(Repository(git_dir=git_dir, common_dir=git_dir, top=None, folder=Path()))
    return copies
