"""The sheet: the text that tells a process which PHP functions are probed under which numbers, and what is read.

perfdiff php 1
alias <name>                                     another name that a method of a trait may be called by
file <name>                                      a file of the tree, relative to it
place <path>                                     an absolute path that it may be compiled from; one line each
probe <number> <first line> <last line> <name>   a function of it, by the engine's lines and name; the file's own: `{main}`
read <how> <path>                                its features, in the order of their cells
branch <number> <of> <first line> <last line> <number> <of>
                                                 its conditions: each one's number among the jumps that the compiler writes for the
                                                 function, its lines, and its number among the jumps of its line; 0 of 0: not told
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from perfdiff.errors import store_errors
from perfdiff.languages.protocol import Probe

_MAGIC = "perfdiff php 1"


def write(path: Path, probes: Sequence[Probe], places: Mapping[str, Sequence[Path]], aliases: Iterable[str] = ()) -> None:
    """Write the sheet of `probes`; raise StoreError where `path` cannot be written.

    `places` gives for each file of the tree all absolute paths that it may be loaded from. A path with a line break in it cannot be told,
    so functions loaded from there are not probed. `aliases` are all names that classes of the tree may give to methods of traits.
    """
    by_file: dict[str, list[Probe]] = {}
    for probe in probes:
        by_file.setdefault(probe.definition.file, []).append(probe)
    lines = [_MAGIC, *(f"alias {name}" for name in sorted(set(aliases)))]
    for file, inside in sorted(by_file.items()):
        lines += _lines(file, inside, [str(place) for place in places.get(file, ())])
    with store_errors(path.parent):
        path.write_bytes("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))


def _lines(file: str, probes: Iterable[Probe], places: Sequence[str]) -> Iterator[str]:
    yield f"file {file}"
    yield from (f"place {place}" for place in places if "\n" not in place)
    for probe in probes:
        yield f"probe {probe.id} {probe.definition.linkage[0]}"
        yield from (f"read {probe.definition.features[index].expression}" for index in probe.features)
        yield from (f"branch {probe.definition.branches[index].expression}" for index in probe.branches)
