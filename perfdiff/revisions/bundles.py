"""Revisions as they travel to another machine: their git objects, with the history that builds may ask git for, but for its contents."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff.errors import RevisionError
from perfdiff.records.schema import Revision
from perfdiff.revisions.pins import Pin
from perfdiff.revisions.repository import Repository
from perfdiff.revisions.trees import submodules_at

_PACKED = ("pack-objects", "--stdout", "-q", "--delta-base-offset")
_SAFE_NAME = re.compile(r"(?!\.)(?!.*/\.)[^\0\\]+")


@dataclass(frozen=True, slots=True)
class Bundle:
    """Objects of a repository: `packs`, the `tags` in its history and the ends of a `shallow` one, as git writes them.

    Of the history there are commits and trees, for `git describe` and `git log`; files only of the revisions themselves.
    `submodules` are those that the checkout has, by name.
    """

    packs: tuple[bytes, ...]
    tags: str
    shallow: bytes
    object_format: str
    submodules: Mapping[str, Bundle] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Return a digest of the bundle's contents."""
        inner = "".join(f"{name} {bundle.digest} " for name, bundle in sorted(self.submodules.items()))
        return hashlib.blake2b(b"\0".join((*self.packs, self.tags.encode(), self.shallow, inner.encode())), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Sent:
    """A pin without the repository that it lies in."""

    revision: Revision
    commit: str
    tree: str

    @classmethod
    def of(cls, pin: Pin) -> Sent:
        """Return the name of a pin in any repository that has its objects."""
        return cls(pin.revision, pin.commit, pin.tree)

    def pinned(self, repository: Repository) -> Pin:
        """Return the pin in a repository that has its objects."""
        return Pin(self.revision, repository, self.commit, self.tree)


def bundled(pins: Sequence[Pin]) -> Bundle:
    """Return the objects of pins of one repository, the working tree's and those of submodules among them; raise RevisionError."""
    source, snapshots = pins[0].repository, next((pin.snapshots for pin in pins if pin.snapshots), None)
    return _bundled(source, [(pin.commit, pin.tree) for pin in pins], snapshots)


def _bundled(source: Repository, wanted: Sequence[tuple[str, str]], snapshots: Path | None) -> Bundle:
    environment = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(snapshots)} if snapshots else {}
    commits = dict.fromkeys(commit for commit, _ in wanted)
    merged = [f"--merged={commit}" for commit in commits]
    tags = source.tell("for-each-ref", "--format=%(objectname) %(refname)", *merged, "refs/tags")
    trees = dict.fromkeys((*(tree for _, tree in wanted), *(f"{commit}^{{tree}}" for commit in commits)))
    ends = dict.fromkeys((*commits, *trees, *(line.split()[0] for line in tags.splitlines())))
    files = dict.fromkeys(file for tree in trees for file in _files(source, tree, environment))
    packs = [
        source.pipe(*_PACKED, *options, data="".join(f"{name}\n" for name in names).encode(), environment=environment)
        for names, options in ((ends, ("--revs", "--filter=blob:none")), (files, ()))
    ]
    inner: dict[str, tuple[Repository, list[tuple[str, str]]]] = {}
    for _, tree in wanted:
        for name, holder, commit in submodules_at(source, tree, environment):
            inner.setdefault(name, (holder, []))[1].append((commit, commit))
    shallow = source.common_dir / "shallow"
    return Bundle(
        packs=tuple(packs),
        tags=tags,
        shallow=shallow.read_bytes() if source.is_shallow else b"",
        object_format=source.tell("rev-parse", "--show-object-format").strip(),
        submodules={name: _bundled(holder, list(dict.fromkeys(commits)), None) for name, (holder, commits) in inner.items()},
    )


def _files(source: Repository, tree: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the ids of all files of a tree."""
    for entry in source.tell("ls-tree", "-r", "-z", "--full-tree", tree, environment=environment).split("\0"):
        kind, _, name = entry.partition("\t")[0].partition(" ")[2].partition(" ")
        if kind == "blob":
            yield name


def unbundled(bundle: Bundle, git_dir: Path, top: Path, folder: Path) -> Repository:
    """Add what a bundle holds to the repository `git_dir`, which is made where there is none, and return it with `top` as its checkout."""
    repository = Repository(git_dir=git_dir, common_dir=git_dir, top=top, folder=folder)
    top.mkdir(parents=True, exist_ok=True)
    held = git_dir / "bundles" / bundle.digest
    if not held.exists():
        git_dir.mkdir(parents=True, exist_ok=True)
        Repository(git_dir, git_dir, None, folder).tell("init", "--quiet", "--template=", f"--object-format={bundle.object_format}")
        for pack in bundle.packs:
            repository.pipe("index-pack", "--stdin", data=pack)
        for name, inner in bundle.submodules.items():
            if not _SAFE_NAME.fullmatch(name):
                raise RevisionError(f"'{name}' is no name of a submodule", slug="git-failed")
            unbundled(inner, git_dir / "modules" / name, top, folder)
    _leave(git_dir, bundle)
    held.parent.mkdir(exist_ok=True)
    held.touch()
    return repository


def _leave(git_dir: Path, bundle: Bundle) -> None:
    """Write the tags of a bundle, and the ends of its history: those of this comparison alone, as where it comes from."""
    (git_dir / "packed-refs").write_text(bundle.tags)
    if bundle.shallow:
        (git_dir / "shallow").write_bytes(bundle.shallow)
    else:
        (git_dir / "shallow").unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of the checkout, such as one of the overlay or an input: by its path below the top, with its content, or as a link."""

    path: str
    content: bytes
    is_program: bool = False
    is_link: bool = False

    @classmethod
    def read(cls, top: Path, path: Path) -> SentFile:
        """Return a file of a checkout, `path` being relative to its top."""
        file = top / path
        if file.is_symlink():
            return cls(path.as_posix(), os.fsencode(file.readlink()), is_link=True)
        return cls(path.as_posix(), file.read_bytes(), os.access(file, os.X_OK))


def put(files: Iterable[SentFile], top: Path) -> None:
    """Write files into a checkout, in place of what stands there."""
    for file in files:
        place = Path(os.path.normpath(top / file.path))
        if not place.is_relative_to(top):
            raise RevisionError(f"'{file.path}' leads out of the checkout", slug="overlay-outside")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        if file.is_link:
            place.symlink_to(os.fsdecode(file.content))
        else:
            place.write_bytes(file.content)
            place.chmod(0o755 if file.is_program else 0o644)
