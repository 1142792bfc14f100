"""Exact counts of lines: what a placed build counts, and what one run of it left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfdiff import temporary
from perfdiff.languages.c import cython, gcov, llvm_cov
from perfdiff.languages.c.coverage import CountedLine, Inventory, Sources
from perfdiff.languages.c.gcov import Gcov
from perfdiff.languages.c.llvm_cov import LlvmCov
from perfdiff.languages.c.templates import generic
from perfdiff.languages.protocol import PlainBuild
from perfdiff.records.arrays import Ints
from perfdiff.records.places import Place

_FOLDER = "PERFDIFF_PLACES"  # tells the runtime where to say that a process has counts to be written
_RUNNING = "*.running"


@dataclass(frozen=True, slots=True)
class CompiledPlaces:
    """The counted lines of a placed build, in order, and what reads their counts."""

    places: tuple[Place, ...]
    sources: Mapping[str, tuple[str, ...]]
    _place_of: Ints  # of each line as it was found (index); several of what a tool made of one
    _gcc: Gcov
    _clang: LlvmCov

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables that make a run leave its counts in `folder`, which is there and empty."""
        return {_FOLDER: str(folder), **self._gcc.environment(folder), **self._clang.environment(folder)}

    def read(self, folder: Path) -> Ints:
        """Return how often each place ran in the run that wrote to `folder`, (places,), over all its processes; raise RecordingError."""
        counts = np.zeros(len(self._place_of), dtype=np.int64)
        self._gcc.read(folder, counts)
        self._clang.read(folder, counts)
        merged = np.zeros(len(self.places), dtype=np.int64)
        np.maximum.at(merged, self._place_of, counts)
        return merged

    def lost(self, folder: Path) -> int:
        """Return how many processes of the run ended without writing their counts: killed by SIGKILL, or still running."""
        return sum(1 for _ in folder.glob(_RUNNING))


def places(built: PlainBuild) -> CompiledPlaces:
    """Return the places of a placed build, all in each run; raise RecordingError where the compiler's tools are missing."""
    tree = built.tree.resolve()
    sources = Sources(tree)
    compilers = tuple(dict.fromkeys(command.compiler for command in built.commands))
    inventory = Inventory(sources)
    gcc = gcov.find(tree, compilers, inventory)
    with temporary.folder() as room:
        clang = llvm_cov.find(tree, compilers, inventory, room)
    lines = {line: _written(line, sources) for line in inventory.lines}
    names = {line.function: generic(line.function) for line in lines.values()}
    ordered = sorted(set(lines.values()), key=lambda line: (line.file, line.number, names[line.function], line.function))
    ordered_places = tuple(
        Place(
            function=names[line.function],
            file=line.file,
            line=line.number,
            text=sources.line(line.file, line.number),
            instance=line.function if names[line.function] != line.function else "",
        )
        for line in ordered
    )
    texts = {file: sources.text(file) for file in sorted({line.file for line in ordered})}
    numbers = {line: number for number, line in enumerate(ordered)}
    place_of = np.array([numbers[line] for line in lines.values()], dtype=np.int64)
    return CompiledPlaces(ordered_places, texts, place_of, gcc, clang)


def _written(line: CountedLine, sources: Sources) -> CountedLine:
    """Return a line as its author wrote it, where a tool made the code."""
    place = sources.written(line.file).get(line.number)
    return CountedLine(cython.python_name(line.function) or line.function, *place) if place else line
