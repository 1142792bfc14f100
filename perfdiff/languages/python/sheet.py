"""The sheet: the text that tells a process which Python functions are probed under which numbers, and what is read.

perfdiff python 1
file <module> <name>                     a file of the tree: as it is imported, and relative to the tree
place <path>                             an absolute path that it may be imported from; one line each
probe <number> <first line> <code name>  a function of this file
read <how> <path>                        its features, in the order of their cells
branch <what> <place>                    its conditions: do they ask for `true`, `none` or `some`; first line and column, last ones
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from perfdiff.errors import store_errors
from perfdiff.languages.protocol import Probe

_MAGIC = "perfdiff python 1"


def write(path: Path, probes: Sequence[Probe], places: Mapping[str, Sequence[Path]]) -> None:
    """Write the sheet of `probes`; raise StoreError where `path` cannot be written.

    `places` gives for each file of the tree all absolute paths that it may be imported from: the tree's own first, then copies in
    site-packages. A path with a line break in it cannot be told, so functions imported from there are not probed.
    """
    by_file: dict[str, list[Probe]] = {}
    for probe in probes:
        by_file.setdefault(probe.definition.file, []).append(probe)
    lines = [_MAGIC]
    for file, inside in sorted(by_file.items()):
        lines += _lines(file, inside, [str(place) for place in places.get(file, ())])
    with store_errors(path.parent):
        path.write_bytes("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))


def _lines(file: str, probes: Iterable[Probe], places: Sequence[str]) -> Iterator[str]:
    yield f"file {module_name(file, Path(places[0]) if places else Path(file))} {file}"
    yield from (f"place {place}" for place in places if "\n" not in place)
    for probe in probes:
        yield f"probe {probe.id} {probe.definition.linkage[0]}"
        yield from (f"read {probe.definition.features[index].expression}" for index in probe.features)
        yield from (f"branch {probe.definition.branches[index].expression}" for index in probe.branches)


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
