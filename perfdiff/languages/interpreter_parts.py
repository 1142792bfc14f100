"""What packs of interpreted languages share: the compiler of their modules, the runtime below these, and sheets of probes and lines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import store_errors
from perfdiff.languages.check import compiler
from perfdiff.languages.protocol import PlainBuild, Probe, Surroundings
from perfdiff.records.schema import Phase

_SHARED = Path(__file__).parent / "interpreted"
_ENTRY = "module.c"  # where a module begins


@dataclass(frozen=True, slots=True)
class InterpreterParts:
    """The parts of the pack `name` that go into an interpreter, compiled into `cache`: by `default` where a build has no compiler."""

    name: str
    cache: Path
    default: str

    @classmethod
    def of(cls, name: str, around: Surroundings) -> InterpreterParts:
        """Return the parts of a pack, compiled with what the user's PATH has."""
        return cls(name, around.cache / "runtime", compiler(around.environment))

    def compiler(self, built: PlainBuild) -> str:
        """Return what a module is compiled with: as the project's own modules are, so that all find the same runtime in a process."""
        return built.commands[0].compiler if built.commands else self.default

    def sheet(self, phase: Phase, built: PlainBuild, probes: Sequence[Probe], folder: Path, write: Callable[[Path], None]) -> Path:
        """Return the sheet of some probes in a build; `write` writes it where it is not there."""
        return _written(folder / f"{self.name}-{phase}-{_digest(built, probes)}.sheet", write)

    def line_sheet(self, built: PlainBuild, folder: Path, write: Callable[[Path], object]) -> Path:
        """Return the sheet of a tree's lines, whatever is probed in it; `write` writes it where it is not there."""
        return _written(folder / f"lines-{_digest(built, ())}.sheet", write)


def sources(pack: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yield the sources of a module that is made of parts (`runtime`, `counting`, `lines`) of the pack in a folder, and of what is shared.

    The first part says how the module begins.
    """
    for part in parts:
        for folder in (pack / part, _SHARED / part):
            files = (path for path in sorted(folder.iterdir()) if path.suffix in (".c", ".h"))
            yield from (path for path in files if part == parts[0] or path.name != _ENTRY)


def write_probes(
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


def _written(path: Path, write: Callable[[Path], object]) -> Path:
    if not path.exists():
        write(path)
    return path


def _digest(built: PlainBuild, probes: Sequence[Probe]) -> str:
    rows = [str(built.tree), *(repr((probe.id, probe.definition.key, probe.features, probe.branches)) for probe in probes)]
    return hashlib.blake2b("\n".join(rows).encode(errors="surrogateescape"), digest_size=8).hexdigest()
