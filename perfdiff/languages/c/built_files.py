"""The files of a built tree: objects, archives and programs, and what else a program may read while it runs."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.c.elf import ARCHIVE_MAGIC, ELF_MAGIC

_HEAD_BYTES = 20  # up to the kind of an ELF file, and its machine
_KIND_AT, _RELOCATABLE, _LINKED = 16, 1, (2, 3)
_BITCODE, _THIN = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b"), b"!<thin>\n"
_CHUNK = 1 << 20

_FOLDERS = frozenset(
    (".git", ".github", ".deps", "CMakeFiles", "autom4te.cache", "meson-info", "meson-logs", "meson-private", "__pycache__")
)
# Sources, headers and what compilers leave; what build systems read and write. Of other files nothing tells whether a program reads them.
_BUILD_FILES = re.compile(
    r".*\.(?:c|cc|cp|cpp|cxx|c\+\+|C|h|hh|hp|hpp|hxx|h\+\+|H|ipp|tpp|tcc|txx|inl|s|S|sx|asm|i|ii|o|obj|a|d|dep|P|Po|Plo|Tpo|lo|la|gch|pch"
    r"|gcda|gcno|dwo|su|log|mk|mak|cmake|m4|am|ac|pc|ninja|pyc)"
    r"|(?:GNU)?[Mm]akefile(?:\.\w+)?|CMakeLists\.txt|CMakeCache\.txt|meson\.build|meson(?:_options\.txt|\.options)|configure(?:\.in)?"
    r"|config\.(?:status|h\.in|guess|sub|cache)|config\.h\.in~|libtool|ltmain\.sh|install-sh|depcomp|missing|compile|stamp-\w+|\.dirstamp"
    r"|compile_commands\.json|install_manifest\.txt|\.ninja_(?:log|deps)|\.git\w*|\.clang-(?:format|tidy)|\.editorconfig"
)


@dataclass(frozen=True, slots=True)
class BuiltFiles:
    """Paths relative to a built tree. `others` are neither code nor sources nor the build system's."""

    objects: tuple[str, ...]
    archives: tuple[str, ...]
    programs: tuple[str, ...]
    bitcode: tuple[str, ...]
    others: frozenset[str]


def look_through(tree: Path) -> BuiltFiles:
    """Return the files of a built tree, by what their first bytes say."""
    found: dict[str, list[str]] = {kind: [] for kind in ("objects", "archives", "programs", "bitcode", "others")}
    for name in _walk(tree):
        kind = _kind(tree / name)
        if kind is not None:
            found[kind].append(name)
        elif not _BUILD_FILES.fullmatch(os.path.basename(name)):  # noqa: PTH119 - tens of thousands of files
            found["others"].append(name)
    return BuiltFiles(
        objects=tuple(found["objects"]),
        archives=tuple(found["archives"]),
        programs=tuple(found["programs"]),
        bitcode=tuple(found["bitcode"]),
        others=frozenset(found["others"]),
    )


def differing(base: Path, head: Path, base_files: BuiltFiles, head_files: BuiltFiles) -> tuple[str, ...]:
    """Return the other files that are not the same in both trees, in order; in their texts the trees' own paths count as one."""
    only_one = base_files.others ^ head_files.others
    both = base_files.others & head_files.others
    return tuple(sorted([*only_one, *(name for name in both if not _same_file(base, head, name))]))


def _walk(tree: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(tree):
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118
        folders[:] = sorted(name for name in folders if name not in _FOLDERS)
        for name in sorted([*names, *linked]):
            yield os.path.relpath(os.path.join(folder, name), tree)  # noqa: PTH118


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


def _same_file(base: Path, head: Path, name: str) -> bool:
    first, second = base / name, head / name
    if first.is_symlink() or second.is_symlink():
        targets = [
            str(path.readlink()).replace(str(tree), "") if path.is_symlink() else None for path, tree in ((first, base), (second, head))
        ]
        return targets[0] == targets[1]
    if not (first.is_file() and second.is_file()):
        return first.is_file() == second.is_file()
    try:
        if same_bytes(first, second):
            return True
        return _holds(first, base) and first.read_bytes().replace(_path(base), b"\0") == second.read_bytes().replace(_path(head), b"\0")
    except OSError:
        return False


def same_bytes(first: Path, second: Path) -> bool:
    """Return whether two files have the same content."""
    if first.stat().st_size != second.stat().st_size:
        return False
    with first.open("rb") as one, second.open("rb") as other:
        while chunk := one.read(_CHUNK):
            if chunk != other.read(_CHUNK):
                return False
    return True


def _holds(path: Path, tree: Path) -> bool:
    """Return whether a file has the tree's own path in it, which only a build can have put there."""
    with path.open("rb") as file:
        rest = b""
        while chunk := file.read(_CHUNK):
            if _path(tree) in rest + chunk:
                return True
            rest = chunk[-len(_path(tree)) :]
    return False


def _path(tree: Path) -> bytes:
    return os.fsencode(tree)
