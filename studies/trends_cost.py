"""Print what counting lines costs: CPU time of placed builds over that of plain ones, over the fixtures and ten kernels.

Every program is built by its own commands, plain and placed, and run by turns at its largest point; a figure is the least CPU time of
several placed runs over that of plain ones. Runs shorter than LEAST_S are told apart, as the start of a process is most of them: the mean
is over the others. Needs gcc, make, and clang where `--compiler clang` is given.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

import runtimes
from perfdiff.build.masquerade import FlagKind, Flags, set_up_masquerade
from perfdiff.build.variants import elsewhere
from perfdiff.languages.c.threads import has_threads
from programs import PROGRAMS
from studies.counted import ROUNDS, SOURCE
from studies.support import figures

RUNS = 5
GEOMETRIC_MEAN_BAR = 1.3
LEAST_S = 0.01  # the kernel tells CPU times in µs, but what a process needs to start is about 1 ms


@dataclass(frozen=True, slots=True)
class Program:
    """A folder of sources, how they are built, and the command to run."""

    name: str
    sources: Path
    build: str
    command: str


@dataclass(frozen=True, slots=True)
class Cost:
    """The least CPU times of a program's runs, in s."""

    plain_s: float
    placed_s: float
    atomic: bool

    @property
    def ratio(self) -> float:
        """How many times longer a run takes that is counted."""
        return self.placed_s / self.plain_s


def programs(compiler: str) -> Iterator[Program]:
    """Yield the fixtures' base revisions at their largest points, and the kernels."""
    for path in sorted(PROGRAMS.glob("*/perfdiff.toml")):
        (workload, *_) = tomllib.loads(path.read_text())["workload"]
        largest = {name: max(values) for name, values in workload["parameters"].items()}
        yield Program(path.parent.name, path.parent / "base", "make", workload["command"].format(**largest))
    for kernel, rounds in ROUNDS.items():
        yield Program(kernel, SOURCE.parent, f"{compiler} -O2 {SOURCE.name} -o kernels", f"./kernels {kernel} {rounds}")


def built(program: Program, folder: Path, flags: Flags | None, compiler: str) -> Path:
    """Build a program in a fresh copy of its sources; return the tree."""
    tree = folder / "tree"
    names = None if program.build == "make" else shutil.ignore_patterns("*.py", "[!c]*")
    shutil.copytree(program.sources, tree, ignore=names)
    environment = os.environ | {"CC": compiler, "CXX": {"gcc": "g++", "clang": "clang++"}[compiler]}
    masquerade = set_up_masquerade(folder / "build", tree, environment, flags)
    subprocess.run(
        ["/bin/sh", "-c", program.build],
        cwd=tree,
        env={**masquerade.environment, **elsewhere(folder)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return tree


def cpu_s(command: str, tree: Path, counts: Path) -> float:
    """Run a command once, its counts to an empty folder; return its CPU time."""
    shutil.rmtree(counts, ignore_errors=True)
    counts.mkdir()
    where = {"PERFDIFF_PLACES": str(counts), "GCOV_PREFIX": str(counts)}
    process = subprocess.Popen(["/bin/sh", "-c", f"exec {command}"], cwd=tree, env=os.environ | where, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


def measure(program: Program, folder: Path, compiler: str, runs: int) -> Cost:
    """Run a program plain and placed by turns."""
    plain = built(program, folder / "plain", None, compiler)
    atomic = has_threads(plain)
    flags = Flags(None, runtimes.library(), FlagKind.PLACED_IN_THREADS if atomic else FlagKind.PLACED)
    trees = (plain, built(program, folder / "placed", flags, compiler))
    times = [[cpu_s(program.command, tree, folder / "counts") for tree in trees] for _ in range(runs)]
    plain_s, placed_s = map(min, zip(*times, strict=True))
    return Cost(plain_s, placed_s, atomic)


def counting_cost(names: Sequence[str] = (), *, compiler: str = "gcc", runs: int = RUNS) -> None:
    """Measure the programs of these names, all without any, and print the table."""
    columns = ("program", "plain, ms", "placed / plain", "updates")
    with figures.printed(f"Counting lines, {compiler}", *columns) as table, tempfile.TemporaryDirectory() as folder:
        costs = []
        for program in programs(compiler):
            if names and program.name not in names:
                continue
            cost = measure(program, Path(folder) / program.name, compiler, runs)
            costs.append(cost)
            table.add(program.name, f"{cost.plain_s * 1e3:.1f}", f"{cost.ratio:.2f}", "atomic" if cost.atomic else "single")
        ratios = [cost.ratio for cost in costs if cost.plain_s >= LEAST_S]
        if ratios:
            mean = exp(sum(map(log, ratios)) / len(ratios))
            kept = figures.against(mean, GEOMETRIC_MEAN_BAR)
            table.remarks.append(
                f"Geometric mean over {len(ratios)} programs of {LEAST_S * 1e3:.0f} ms and more {mean:.2f}; bar 1.3, {kept}."
            )
            table.remarks.append(f"Worst {max(ratios):.2f}.")


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="a fixture's or a kernel's name")
    parser.add_argument("--compiler", choices=("gcc", "clang"), default="gcc")
    parser.add_argument("--runs", type=int, default=RUNS)
    chosen = parser.parse_args()
    counting_cost(chosen.programs, compiler=chosen.compiler, runs=chosen.runs)
