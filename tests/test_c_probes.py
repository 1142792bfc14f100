"""Programs with every probe that can be planned, compiled and run: they build without a word and do what they do without probes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfdiff.languages.c import runtime_library
from perfdiff.languages.c.index import index
from perfdiff.languages.c.probes import insert
from perfdiff.languages.protocol import CompileCommand, FunctionDefinition, Probe
from perfdiff.records import plan, recording
from perfdiff.records.plan import Entry, Mode
from tests.c_programs import function, program

PROGRAMS = Path(__file__).parent / "probed"
STRICT = ("-Wall", "-Wextra", "-Werror")


@dataclass(frozen=True, slots=True)
class Case:
    """A program of `tests/probed`; `obstructed` are its functions that carry no probe."""

    name: str
    flags: tuple[str, ...]
    obstructed: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.name


CASES = (
    Case("control.c", ("-std=gnu11", "-Wno-implicit-fallthrough")),
    Case("ansi.c", ("-std=c89", "-pedantic")),
    Case("renamed.c", ("-std=c99", "-pedantic"), frozenset({"made_by_a_macro", "strange_braces"})),
    Case("parameters.c", ("-std=gnu11",)),
    Case("processes.c", ("-std=gnu11", "-pthread")),
    Case("exceptions.cpp", ("-std=c++17", "-pedantic")),
    Case("generic.cpp", ("-std=c++17", "-pedantic"), frozenset({"square", "positive"})),
    Case("coroutine.cpp", ("-std=c++20", "-fcoroutines"), frozenset({"numbers"})),
)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runtime_library.build("gcc", tmp_path_factory.mktemp("runtime"))


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree with probes in it, and the file that makes its program."""

    folder: Path
    main: Path
    flags: tuple[str, ...]
    probes: tuple[Probe, ...]

    def compile(self, compiler: str, runtime: Path, *flags: str) -> Path:
        """Return the program, built with probes; fails on any warning."""
        header = ("-include", str(self.folder / ".perfdiff/probes.h"), "-isystem", str(runtime))
        library = (f"-L{runtime}", f"-Wl,-rpath,{runtime}", "-lperfdiff")
        return compiled(compiler, self.main, *STRICT, *self.flags, *flags, *header, libraries=library)

    def run(self, path: Path, folder: Path) -> tuple[tuple[int, str], set[int]]:
        """Return status and output of a run that samples every call, and the probes that were met."""
        folder.mkdir()
        entries = {probe.id: Entry(Mode.SAMPLE, 1, True, 16, len(probe.features), len(probe.branches)) for probe in self.probes}
        plan.write(folder / "plan", entries)
        steering = {"PERFDIFF_OUT": str(folder), "PERFDIFF_PLAN": str(folder / "plan"), "PERFDIFF_SEED": "1"}
        outcome = ran(path, steering)
        recordings = [recording.read(file) for file in folder.glob("*.pdrec")]
        return outcome, {number for each in recordings for number in each.samples}


def compiled(compiler: str, source: Path, *flags: str, libraries: Sequence[str] = ()) -> Path:
    path = source.with_suffix(".run")
    subprocess.run([compiler, *flags, source, "-o", path, *libraries], check=True)
    return path


def ran(path: Path, steering: dict[str, str] | None = None) -> tuple[int, str]:
    ended = subprocess.run([path], env=os.environ | (steering or {}), capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stdout


def probed(folder: Path, main: Path, flags: tuple[str, ...]) -> tuple[Tree, list[FunctionDefinition]]:
    """Insert every probe with all features and conditions; return the tree and all functions of it."""
    cplusplus = main.suffix == ".cpp"
    command = CompileCommand(main, folder, "g++" if cplusplus else "gcc", (*flags, "-c", str(main)), cplusplus)
    found = index(folder, [command], depth=3, workers=1)
    assert not found.problems
    definitions = [one for _, one in sorted(found.functions.items())]
    probes = tuple(
        Probe(number, one, tuple(range(len(one.features))), tuple(range(len(one.branches))))
        for number, one in enumerate((one for one in definitions if one.obstacle is None), 1)
    )
    insert(folder, probes)
    return Tree(folder, main, flags, probes), definitions


def copied(case: Case, folder: Path) -> Path:
    """Copy a program and what it includes; return its file."""
    folder.mkdir()
    for file in PROGRAMS.glob(Path(case.name).stem + ".*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder / case.name


@pytest.mark.integration
@pytest.mark.parametrize("case", CASES, ids=str)
def test_probed_program_does_what_it_does_without_probes(case: Case, runtime: Path, tmp_path: Path) -> None:
    plain, main = copied(case, tmp_path / "plain"), copied(case, tmp_path / "probed")
    tree, definitions = probed(main.parent, main, case.flags)
    assert {one.name.rpartition("::")[2] for one in definitions if one.obstacle is not None} == case.obstructed
    c, clang = ("g++", "clang++") if main.suffix == ".cpp" else ("gcc", "clang")
    compilers = ((c, "-O0"), (c, "-O2"), *(((clang, "-O1"),) if "-fcoroutines" not in case.flags else ()))
    expected = ran(compiled(c, plain, *case.flags))
    for compiler, level in compilers:
        outcome, met = tree.run(tree.compile(compiler, runtime, level), tmp_path / f"{compiler}{level}")
        assert outcome == expected
        assert len(met) > len(tree.probes) / 2
