"""What users get of a tree where runs find more: archives and images leave files out, and installing puts others in their place."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from filecmp import cmp
from pathlib import Path, PurePosixPath

from perfdiff.configuration.switches import build_folders

# By file: how a line of it names what is left out, a `!` before what is not. Archives are those of `git archive`, which forges offer.
_LEAVING_OUT = {
    ".gitattributes": re.compile(r"(?P<pattern>[^\s#]\S*)(?:\s.*)?\s(?:export-ignore(?!\S)|(?P<kept>[-!]export-ignore)(?!\S))"),
    ".dockerignore": re.compile(r"(?P<kept>!)?\s*(?P<pattern>[^\s#!]\S*)"),
}
_ANCHORED = ".dockerignore"  # whose patterns begin at the top of the tree, with a slash in them or without
_ASIDE = re.compile(
    r"tests?|testing|t|specs?|bench\w*|perf\w*|examples?|samples?|docs?|fuzz\w*|\..+", re.IGNORECASE
)  # folders users do without
_CMAKE, _MESON = "cmake_install.cmake", "meson-info/intro-installed.json"
_INSTALLS = re.compile(r'file\(INSTALL DESTINATION "([^"]*)"[^)]*?(?:RENAME "([^"]*)")?\s+FILES((?:\s+"[^"]*")+)')


def otherwise_delivered(trees: Sequence[Path], met: Collection[str]) -> tuple[str, ...]:
    """Return the files by which users of head get less or other files than runs find in its tree, and users of base do not.

    `met` are files of the revision that runs use. Those of tests and benchmarks are no part of a program.
    """
    used = [name for name in met if not is_aside(name)]
    less = [file for file in _LEAVING_OUT if _left_out(trees[1], file, used) - _left_out(trees[0], file, used)]
    return (*less, *dict.fromkeys(_otherwise_installed(trees)))


def is_aside(name: str) -> bool:
    """Return whether a file lies in a folder that users of the program do without, as those of tests and documents."""
    return any(map(_ASIDE.fullmatch, PurePosixPath(name).parts[:-1]))


def _left_out(tree: Path, file: str, names: Collection[str]) -> set[str]:
    """Return which names a file at the top of a tree leaves out; the last pattern that matches one decides."""
    left: set[str] = set()
    for line in _lines(tree / file):
        if statement := _LEAVING_OUT[file].match(line):
            matching = {name for name in names if _matches(statement["pattern"], name, is_anchored=file == _ANCHORED)}
            left = left - matching if statement["kept"] else left | matching
    return left


def _matches(pattern: str, name: str, *, is_anchored: bool) -> bool:
    """Return whether a pattern matches a path or a folder above it."""
    path = PurePosixPath("/", name)
    inner = pattern.removeprefix("./").strip("/")
    is_anchored = not inner.startswith("**/") and (is_anchored or "/" in inner or pattern.startswith("/"))
    wanted = f"/{inner}" if is_anchored else inner.removeprefix("**/")
    return bool(wanted) and any(place.match(wanted) for place in (path, *path.parents))


def _lines(file: Path) -> list[str]:
    return file.read_text(errors="replace").splitlines() if file.is_file() else []


def _otherwise_installed(trees: Sequence[Path]) -> Iterator[str]:
    """Yield the file that tells of each that head installs in the place of one that base installs, and that head's build made as well."""
    base, head = (_installed(tree) for tree in trees)
    for place, (source, file) in head.items():
        usual = base.get(place, (source, file))[0]
        own, other = (trees[1] / name for name in (usual, source))
        if usual != source and own.is_file() and other.is_file() and not cmp(own, other, shallow=False):
            yield file


def _installed(tree: Path) -> dict[str, tuple[str, str]]:
    """Return which file of a built tree is installed in each place, and the file of the build that tells."""
    places = {
        place: (source, (folder / file).relative_to(tree).as_posix())
        for file, read in ((_CMAKE, _read_cmake), (_MESON, _read_meson))
        for folder in build_folders(tree, file)
        for source, place in read((folder / file).read_text(errors="replace"))
    }
    return {place: (str(Path(source).relative_to(tree)), file) for place, (source, file) in places.items() if tree in Path(source).parents}


def _read_cmake(text: str) -> Iterator[tuple[str, str]]:
    for folder, renamed, sources in _INSTALLS.findall(text):
        for source in re.findall(r'"([^"]*)"', sources):
            yield source, f"{folder}/{renamed or PurePosixPath(source).name}"


def _read_meson(text: str) -> Iterator[tuple[str, str]]:
    yield from json.loads(text).items()
