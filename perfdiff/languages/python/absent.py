"""Packages that sources import where there are any, and that environments of revisions have not: the user's own interpreter may.

A project that takes a faster package where it finds one runs otherwise in an environment that has only what it requires. Where it is listed
for those who want it (extras, further lists of requirements, images), base and head may list it otherwise.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from perfdiff.languages.python.pyproject import normal
from perfdiff.languages.python.sources import is_foreign
from perfdiff.languages.tree_files import uncommented

_SUFFIX = ".py"
_LISTS = re.compile(
    r"(?:.+/)?(?:[^/]*(?:requirements|constraints)[^/]*(?:/[^/]+)?\.(?:txt|in)|Pipfile|(?:Docker|Container)file[^/]*"
    r"|[^/]+\.(?:toml|cfg|sh|ya?ml|nix))"
)
_WORD = re.compile(r"[A-Za-z_][\w.-]*\w")


def absent(
    differing: Mapping[str, Mapping[int, Path]], trees: Sequence[Path], folders: Sequence[Path], own: Sequence[Path]
) -> tuple[str, ...]:
    """Return the packages that `differing` files import, and that stand in `own` folders, and neither in `folders` nor in trees."""
    files = [path for name, places in differing.items() if name.endswith(_SUFFIX) for path in places.values() if path.is_file()]
    named = {name for path in files if not is_foreign(path.parent) for name in _imported(path)} - sys.stdlib_module_names
    places = (*(place for tree in trees for place in (tree, tree / "src")), *(path.parent for path in files), *folders)
    return tuple(sorted(name for name in named if _has(own, name) and not _has(places, name)))


def listed_otherwise(
    differing: Mapping[str, tuple[Path, Path]], sources: Sequence[Path], trees: Sequence[Path], folders: Sequence[Path]
) -> tuple[str, ...]:
    """Return the files that list, on one side alone, a package that `sources` import, and that neither trees nor `folders` have.

    Its name must have that of its module in it, as `python-rapidjson` has `rapidjson`, and `PyYAML` has `yaml`.
    """
    named = {name for path in sources if not is_foreign(path.parent) for name in _imported(path)} - sys.stdlib_module_names
    places = (*(place for tree in trees for place in (tree, tree / "src")), *(path.parent for path in sources), *folders)
    lacking = {normal(name) for name in named if not _has(places, name)}
    lists = {name: paths for name, paths in differing.items() if _LISTS.fullmatch(name) and not name.startswith(".")}
    return tuple(name for name, (base, head) in lists.items() if lacking & (_words(base) ^ _words(head)))


def _words(file: Path) -> set[str]:
    """Return the names in a text outside of comments, whole and in parts, with and without a leading `py`."""
    names = {normal(word) for line in uncommented(file) for word in _WORD.findall(line)}
    parts = {part for name in names for part in (name, *name.split("-"))}
    return parts | {part.removeprefix("py") for part in parts}


def _imported(path: Path) -> Iterator[str]:
    """Yield the first parts of the names that a file imports, but for those of its own package; none where it cannot be parsed."""
    try:
        module = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _has(folders: Collection[Path], name: str) -> bool:
    """Return whether one of the folders holds a module or package of a name."""
    return any(
        (folder / name).is_dir() or (folder / f"{name}{_SUFFIX}").is_file() or any(folder.glob(f"{name}.*.so")) for folder in folders
    )
