"""Sheets of probes, which an interpreter's module reads: where each file is loaded from, and what is read in its functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from perfdiff.errors import store_errors
from perfdiff.languages.protocol import Probe


def write(
    path: Path, head: Iterable[str], probes: Sequence[Probe], places: Mapping[str, Sequence[Path]], named: Callable[[str], str] = str
) -> None:
    """Write the sheet of `probes` below the lines of its `head`; raise StoreError where `path` cannot be written.

    `places` gives for each file of the tree all absolute paths that it may be loaded from, `named` what stands on a file's line. A path
    with a line break in it cannot be told, so functions loaded from there are not probed.
    """
    by_file: dict[str, list[Probe]] = {}
    for probe in probes:
        by_file.setdefault(probe.definition.file, []).append(probe)
    lines = [*head]
    for file, inside in sorted(by_file.items()):
        lines += [f"file {named(file)}", *(f"place {place}" for place in places.get(file, ()) if "\n" not in str(place)), *_lines(inside)]
    with store_errors(path.parent):
        path.write_bytes("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))


def _lines(probes: Iterable[Probe]) -> Iterator[str]:
    for probe in probes:
        yield f"probe {probe.id} {probe.definition.linkage[0]}"
        yield from (f"read {probe.definition.features[index].expression}" for index in probe.features)
        yield from (f"branch {probe.definition.branches[index].expression}" for index in probe.branches)
