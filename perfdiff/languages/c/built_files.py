"""The files of a built tree that hold code: objects, archives, programs and shared objects."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.c.elf import ARCHIVE_MAGIC, ELF_MAGIC

_HEAD_BYTES = 20  # up to the kind of an ELF file, and its machine
_KIND_AT, _RELOCATABLE, _LINKED = 16, 1, (2, 3)
_BITCODE, _THIN = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b"), b"!<thin>\n"

_FOLDERS = frozenset((".git", ".github", ".deps", "autom4te.cache", "meson-info", "meson-logs", "meson-private", "__pycache__"))
_CMAKE, _OF_TARGET = "CMakeFiles", ".dir"  # objects lie in a folder for each target there, beside what CMake tries compilers out with


@dataclass(frozen=True, slots=True)
class BuiltFiles:
    """Paths relative to a built tree."""

    objects: tuple[str, ...]
    archives: tuple[str, ...]
    programs: tuple[str, ...]
    bitcode: tuple[str, ...]


def look_through(tree: Path) -> BuiltFiles:
    """Return the files of a built tree, by what their first bytes say."""
    by_kind: dict[str, list[str]] = {kind: [] for kind in ("objects", "archives", "programs", "bitcode")}
    for name in _walk(tree):
        kind = _kind(tree / name)
        if kind is not None:
            by_kind[kind].append(name)
    return BuiltFiles(**{kind: tuple(names) for kind, names in by_kind.items()})


def _walk(tree: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(tree):
        is_cmakes = os.path.basename(folder) == _CMAKE  # noqa: PTH119 - tens of thousands of files
        folders[:] = sorted(name for name in folders if name not in _FOLDERS and (name.endswith(_OF_TARGET) or not is_cmakes))
        for name in sorted(() if is_cmakes else names):
            yield os.path.relpath(os.path.join(folder, name), tree)  # noqa: PTH118 - tens of thousands of files


def _kind(path: Path) -> str | None:
    """Return what a file is by its first bytes: a kind of code, or None."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    if head.startswith((ARCHIVE_MAGIC, _THIN)):
        return "archives"
    if head.startswith(_BITCODE):
        return "bitcode"
    if not head.startswith(ELF_MAGIC) or len(head) < _HEAD_BYTES:
        return None
    kind = struct.unpack_from("<H", head, _KIND_AT)[0]
    return "objects" if kind == _RELOCATABLE else "programs" if kind in _LINKED else None
