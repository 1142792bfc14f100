"""Overlay: files of the user's checkout, such as workload drivers, that both revisions are built with."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from perfdiff.errors import RevisionError
from perfdiff.revisions.repository import Repository


def overlay_files(repository: Repository, overlay: Sequence[str]) -> tuple[Path, ...]:
    """Return the overlay's files relative to the checkout's root, sorted.

    What git ignores is left out (objects of an earlier build would pass for up to date), unless a path holds nothing else.
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
        listing = repository.tell("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", f":(top,literal){place.as_posix()}")
        listed = {Path(name) for name in listing.split("\0") if name}
        files |= {file for file in listed if _is_file(repository.top / file)} or _all_files(repository.top, place)
    return tuple(sorted(files))


def overlay_digest(repository: Repository, overlay: Sequence[str]) -> str:
    """Return a digest of the names, modes and contents of the overlay's files."""
    digest = hashlib.sha256()
    for file in overlay_files(repository, overlay):
        source = (repository.top or Path()) / file
        if source.is_symlink():
            kind, content = b"link", os.fsencode(source.readlink())
        else:
            kind, content = b"program" if os.access(source, os.X_OK) else b"file", source.read_bytes()
        for part in (os.fsencode(file), kind, content):
            digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


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
