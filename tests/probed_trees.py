"""Trees with every probe that can be planned, their programs, and what those record."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perfdiff.languages.c.index import index
from perfdiff.languages.c.probes import insert
from perfdiff.languages.protocol import CompileCommand, FunctionDefinition, Load, Probe
from perfdiff.records import plan, recording
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import Recording

STRICT = ("-Wall", "-Wextra", "-Werror")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did: exit status, output, and the recordings of its processes."""

    status: int
    output: str
    recordings: tuple[Recording, ...] = ()

    @property
    def met(self) -> set[int]:
        """Return the probes that kept samples."""
        return {number for each in self.recordings for number in each.samples}


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree with probes in it, and the file that makes its program."""

    folder: Path
    main: Path
    flags: tuple[str, ...]
    functions: tuple[FunctionDefinition, ...]
    probes: tuple[Probe, ...]

    def compile(self, compiler: str, runtime: Path, *flags: str) -> Path:
        """Return the program, built with probes; fails on any warning."""
        header = ("-include", str(self.folder / ".perfdiff/probes.h"), "-isystem", str(runtime))
        library = (f"-L{runtime}", f"-Wl,-rpath,{runtime}", "-lperfdiff")
        return compiled(compiler, self.main, *STRICT, *self.flags, *flags, *header, libraries=library)

    def run(self, path: Path, folder: Path, seed: int = 1, *, own: bool = False) -> Outcome:
        """Run a program of this tree, up to 64 calls of each function kept, which `seed` draws; recordings go to `folder`.

        With `own`, each call has its own counts, as in counted runs.
        """
        folder.mkdir()
        entries = {probe.id: ProbePlan(Mode.SAMPLE, 1, True, 64, len(probe.features), len(probe.branches)) for probe in self.probes}
        plan.write(folder / "plan", {id_: replace(entry, own=own) for id_, entry in entries.items()})
        ended = ran(path, {"PERFDIFF_OUT": str(folder), "PERFDIFF_PLAN": str(folder / "plan"), "PERFDIFF_SEED": str(seed)})
        return Outcome(ended.status, ended.output, tuple(recording.read(file) for file in sorted(folder.glob("*.pdrec"))))

    def probe(self, name: str) -> Probe:
        """Return the only probe of a function of this name."""
        (found,) = [probe for probe in self.probes if probe.definition.name == name]
        return found

    def values(self, outcome: Outcome, name: str) -> list[dict[str, float | None]]:
        """Return what each call of a function read, in the order of the calls: values by feature, None where absent."""
        probe, (record,) = self.probe(name), outcome.recordings
        samples, plans = record.samples[probe.id], probe.definition.features
        views = {Load.FLOATING: np.float64, Load.SIGNED: np.int64}
        rows = []
        for call in np.argsort(samples.call):
            cells = [samples.cells[call, i : i + 1].view(views.get(one.load, np.uint64))[0] for i, one in enumerate(plans)]
            read = samples.read[call]
            rows.append({one.name: float(cell) if read[i] else None for i, (one, cell) in enumerate(zip(plans, cells, strict=True))})
        return rows

    def outcomes(self, outcome: Outcome, name: str) -> dict[str, tuple[int, int]]:
        """Return per condition of a function how often it was executed and true, over all calls."""
        probe, (record,) = self.probe(name), outcome.recordings
        cells = record.samples[probe.id].cells[:, len(probe.features) :].sum(axis=0).tolist()
        return {probe.definition.branches[i].text: (int(cells[2 * i]), int(cells[2 * i + 1])) for i in range(len(probe.branches))}


def compiled(compiler: str, source: Path, *flags: str, libraries: Sequence[str] = ()) -> Path:
    """Return the program that a compiler makes of one file."""
    path = source.with_suffix(".run")
    subprocess.run([compiler, *flags, source, "-o", path, *libraries], check=True)
    return path


def ran(path: Path, steering: dict[str, str] | None = None) -> Outcome:
    """Run a program to its end."""
    ended = subprocess.run([path], env=os.environ | (steering or {}), capture_output=True, timeout=60, check=False)
    return Outcome(ended.returncode, ended.stdout.decode("latin-1"))


def probed(main: Path, flags: tuple[str, ...] = ()) -> Tree:
    """Insert every probe, with all features and conditions, into the folder of `main`."""
    cplusplus = main.suffix == ".cpp"
    command = CompileCommand(main, main.parent, "g++" if cplusplus else "gcc", (*flags, "-c", str(main)), cplusplus)
    found = index(main.parent, [command], depth=3, workers=1)
    assert not found.problems
    functions = tuple(one for _, one in sorted(found.functions.items()))
    free = (one for one in functions if one.obstacle is None)
    probes = tuple(
        Probe(number, one, tuple(range(len(one.features))), tuple(range(len(one.branches)))) for number, one in enumerate(free, 1)
    )
    insert(main.parent, probes)
    return Tree(main.parent, main, flags, functions, probes)
