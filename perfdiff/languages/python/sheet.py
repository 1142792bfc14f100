"""The sheet: the text that tells a process which Python functions are probed under which numbers, and what is read.

perfdiff python 1
file <module> <name>                     a file of the tree: as it is imported, and relative to the tree
place <path>                             an absolute path that it may be imported from; one line each
probe <number> <first line> <code name>  a function of this file
read <how> <path>                        its features, in the order of their cells
branch <what> <place>                    its conditions: do they ask for `true`, `none` or `some`; first line and column, last ones
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from perfdiff.languages.interpreter_parts import write_probes
from perfdiff.languages.protocol import Probe

_MAGIC = "perfdiff python 1"


def write(path: Path, probes: Sequence[Probe], places: Mapping[str, Sequence[Path]]) -> None:
    """Write the sheet of `probes`; raise StoreError where `path` cannot be written.

    `places` gives for each file of the tree all absolute paths that it may be imported from: the tree's own first, then copies in
    site-packages. A path with a line break in it cannot be told, so functions imported from there are not probed.
    """

    def named(file: str) -> str:
        place = next(iter(places.get(file, ())), Path(file))
        return f"{module_name(file, place)} {file}"

    write_probes(path, (_MAGIC,), probes, places, named)


def module_name(file: str, place: Path) -> str:
    """Return the name that a file of the tree is imported under: its folders upward, as long as each has an `__init__.py`.

    `place` is where the file lies. A package's `__init__.py` goes by the package's name.
    """
    parts = [PurePosixPath(file).stem]
    for parent in place.parents[: len(PurePosixPath(file).parts) - 1]:
        if not (parent / "__init__.py").is_file():
            break
        parts.insert(0, parent.name)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)
