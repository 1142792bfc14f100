"""Small trees with the compilers' own counters, and what runs of their programs count."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfdiff.build.commands import CompileLog, Uncounted, read_compile_log
from perfdiff.build.masquerade import FlagKind, Flags, set_up_masquerade
from perfdiff.build.variants import elsewhere
from perfdiff.languages.c import places
from perfdiff.languages.protocol import CompileCommand, PlaceReader
from perfdiff.records.places import Place, together


@dataclass(frozen=True, slots=True)
class Counts:
    """What one run counted: `by_place`, and of `each` instance; how many processes were `lost`, and how the run ended."""

    by_place: Mapping[Place, int]
    each: Mapping[Place, int]
    lost: int
    status: int
    output: str

    def of(self, text: str, function: str | None = None) -> int:
        """Return the count of the only place whose line holds `text`, in a function where one is named."""
        (found,) = [count for place, count in self.by_place.items() if text in place.text and function in (None, place.function)]
        return found

    def functions(self, text: str) -> dict[str, int]:
        """Return the counts of a line by the functions that it stands in."""
        return {place.function: count for place, count in self.by_place.items() if text in place.text}

    def instances(self, text: str) -> dict[str, int]:
        """Return the counts of a line by the instances of the template that it stands in."""
        return {place.instance: count for place, count in self.each.items() if text in place.text}


@dataclass(frozen=True, slots=True)
class PlacedTree:
    """A placed build of a few sources; `folder` is for its runs."""

    tree: Path
    log: CompileLog
    folder: Path
    reader: PlaceReader

    @property
    def commands(self) -> tuple[CompileCommand, ...]:
        return self.log.commands

    @property
    def uncounted(self) -> tuple[Uncounted, ...]:
        return self.log.uncounted

    def run(self, command: str, name: str = "run") -> Counts:
        """Run a shell command in the tree and return what it counted."""
        status, output = self.run_only(command, name)
        return self.read(name, status, output)

    def run_only(self, command: str, name: str = "run") -> tuple[int, str]:
        """Run a shell command in the tree; nothing is read."""
        folder = self.folder / name
        folder.mkdir()
        environment = os.environ | self.reader.environment(folder)
        ended = subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.tree, env=environment, capture_output=True, text=True, timeout=30, check=False
        )
        return ended.returncode, ended.stdout + ended.stderr

    def read(self, name: str, status: int, output: str) -> Counts:
        """Return what a run of this name counted."""
        folder = self.folder / name
        counts = self.reader.read(folder)
        places, sums, _ = together(self.reader.places, counts[:, None].astype(np.float64))
        return Counts(
            by_place=dict(zip(places, sums[:, 0].astype(int).tolist(), strict=True)),
            each=dict(zip(self.reader.places, counts.tolist(), strict=True)),
            lost=self.reader.lost(folder),
            status=status,
            output=output,
        )


def placed(room: Path, runtime: Path, sources: Mapping[str, str], commands: Sequence[str], *, threads: bool = False) -> PlacedTree:
    """Write `sources` to a tree, run the commands that build it under the masquerade, and read what is counted in it."""
    tree = (room / "tree").resolve()
    for name, text in sources.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    masquerade = set_up_masquerade(room / "build", tree, os.environ, flags(runtime, threads=threads))
    for command in commands:
        built = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=tree,
            env={**masquerade.environment, **elsewhere(room / "build")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert built.returncode == 0, built.stderr
    log = read_compile_log(masquerade.calls, tree)
    (room / "runs").mkdir()
    return PlacedTree(tree, log, room / "runs", places.places(_Built(tree, log.commands)))


def flags(runtime: Path, *, threads: bool) -> Flags:
    """Return what a placed build adds."""
    return Flags(None, runtime, FlagKind.PLACED_IN_THREADS if threads else FlagKind.PLACED)


@dataclass(frozen=True, slots=True)
class _Built:
    tree: Path
    commands: tuple[CompileCommand, ...]
