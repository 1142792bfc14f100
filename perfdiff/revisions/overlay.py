"""Overlay: files of the user's checkout, such as workload drivers, that both revisions are built with."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from perfdiff.errors import RevisionError
from perfdiff.languages.kept_files import BYTE_CODE
from perfdiff.revisions.repository import Repository

# Of what git ignores in a folder, these stay behind: objects of an earlier build would pass for up to date on both sides, what a build
# system keeps names the folder that it was made in, and an open editor would have everything measured again.
_PRODUCTS = frozenset((".o", ".obj", ".lo", ".a", ".la", ".so", ".d", ".gch", ".pch", ".gcno", ".gcda", *BYTE_CODE))
_MACHINE_CODE = (b"\x7fELF", b"!<arch>\n")  # programs and libraries, however they are named
_BUILD_STATE = frozenset(("CMakeCache.txt", "build.ninja", "config.status", "meson-info.json"))
_BACKUPS = ("*~", "#*#", ".#*", ".*.sw?")
_FILES_KNOWN = 4096  # digests of overlay files that are kept while they are not written to


def overlay_files(repository: Repository, overlay: Sequence[str]) -> tuple[Path, ...]:
    """Return the overlay's files relative to the checkout's root, sorted.

    Files that git ignores are among them, but for products of an earlier build and backups of editors; those, too, where a path names or
    holds nothing else.
    """
    if not overlay:
        return ()
    if repository.top is None:
        raise RevisionError(f"{repository.git_dir} is bare: there is no checkout to take the overlay from", slug="bare-repository")
    files: set[Path] = set()
    for path in overlay:
        place = _place(repository, path)
        if not (repository.top / place).exists():
            raise RevisionError(f"overlay path '{path}' does not exist in {repository.top / repository.folder}", slug="overlay-missing")
        listed, ignored = (_listed(repository, place, *which) for which in (("--cached", "--others"), ("--others", "--ignored")))
        files |= listed | _wanted(ignored, listed, repository.top) or _all_files(repository.top, place)
    return tuple(sorted(files))


def _listed(repository: Repository, place: Path, *which: str) -> set[Path]:
    listing = repository.tell("ls-files", "-z", *which, "--exclude-standard", "--", f":(top,literal){place.as_posix()}")
    top = repository.top or Path()
    return {Path(name) for name in listing.split("\0") if name and _is_file(top / name)}


def _wanted(ignored: set[Path], listed: set[Path], top: Path) -> set[Path]:
    """Return the ignored files that no build and no editor left; a folder of nothing else where a build system was at work is all its."""
    sources = {folder for file in listed for folder in file.parents}
    built = {file.parent for file in ignored if file.name in _BUILD_STATE} - sources
    return {file for file in ignored if built.isdisjoint(file.parents) and not _is_product(file, top)}


def _is_product(file: Path, top: Path) -> bool:
    if file.suffix in _PRODUCTS or file.name in _BUILD_STATE or any(fnmatchcase(file.name, pattern) for pattern in _BACKUPS):
        return True
    if (top / file).is_symlink():
        return False
    with (top / file).open("rb") as content:
        return content.read(max(map(len, _MACHINE_CODE))).startswith(_MACHINE_CODE)


def overlay_digest(repository: Repository, overlay: Sequence[str]) -> str:
    """Return a digest of the names, modes and contents of the overlay's files."""
    digest = hashlib.sha256()
    for file in overlay_files(repository, overlay):
        source = (repository.top or Path()) / file
        if source.is_symlink():
            kind, content = b"link", os.fsencode(source.readlink())
        else:
            status = source.stat()
            kind = b"program" if os.access(source, os.X_OK) else b"file"
            content = _content_digest(source, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        for part in (os.fsencode(file), kind, content):
            digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


@lru_cache(maxsize=_FILES_KNOWN)
def _content_digest(file: Path, *_status: int) -> bytes:
    """Return the digest of a file's contents; it is asked for by each build, and inputs of workloads may be large."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, hashlib.sha256).digest()


def replace_overlay(repository: Repository, overlay: Sequence[str], files: Sequence[Path], target: Path) -> None:
    """Put the overlay's `files` into the tree `target`, in the place of what its paths held there."""
    for path in overlay:
        place = target / _place(repository, path)
        _stay_inside(place.parent, target, path)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
    for file in files:
        source, place = (repository.top or Path()) / file, target / file
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            place.symlink_to(source.readlink())
        else:
            shutil.copy(source, place)


@contextmanager
def apart(repository: Repository, overlay: Sequence[str], target: Path, room: Path) -> Iterator[None]:
    """Keep what the overlay added to the tree `target` in the empty folder `room` meanwhile, as far as it may pass for a part of a project.

    Packagers that look for packages themselves take each folder for one, and refuse to go on where there are several.
    """
    tree = Repository(target / ".git", target / ".git", target, repository.folder)
    moved = []
    for number, path in enumerate(overlay):
        place = target / _place(repository, path)
        tracked = tree.tell("ls-files", "--", f":(top,literal){place.relative_to(target).as_posix()}")
        if not tracked and (place.is_dir() or place.suffix == ".py"):
            moved.append((place, place.rename(room / str(number))))
    try:
        yield
    finally:
        for place, aside in moved:
            aside.rename(place)


def _place(repository: Repository, path: str) -> Path:
    """Return an overlay path relative to the checkout's root."""
    normal = Path(os.path.normpath(repository.folder / path))
    if normal.is_absolute() or normal.parts[:1] in ((), ("..",), (".git",)):
        raise RevisionError(f"overlay path '{path}' must name a file or folder inside the project", slug="overlay-outside")
    return normal


def _stay_inside(folder: Path, target: Path, path: str) -> None:
    if not folder.resolve().is_relative_to(target.resolve()):
        raise RevisionError(f"overlay path '{path}' leads out of the tree by a symbolic link in this revision", slug="overlay-outside")


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _all_files(top: Path, place: Path) -> set[Path]:
    if _is_file(top / place):
        return {place}
    return {file.relative_to(top) for file in (top / place).rglob("*") if _is_file(file)}
