"""Other tools that say what got slower, each asked in the way its own documentation shows, installed into a temporary folder.

A tool is asked about two builds of a program. It answers with the function that it puts the slow-down down to and the growth that it
finds there, as far as it says such things at all, and with whether it reports a difference.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from programs import PROGRAMS
from studies.support.sizes import ACCURACY, anew

SIZES = (1000, 2000, 4000, 8000, 16_000)
LARGEST = SIZES[-1]
LEVEL = 0.05  # of significance, and of a difference where a tool has no test
RUNS = 10
REPETITIONS = 9  # the least that compare.py asks for
MODELLED_RUNS = 3


class UnavailableError(Exception):
    """A tool that cannot be installed or run here, with the reason."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool says of two builds; None where it says nothing of the kind."""

    differs: bool
    function: str | None = None
    growth: str | None = None


class Peer(Protocol):
    """A tool that compares two builds of a program."""

    @property
    def name(self) -> str:
        """Return what it is called."""
        ...

    def ask(self, program: str, base: str, head: str, folder: Path) -> Answer:
        """Build the sides `base` and `head` of a program in an empty folder and compare them."""
        ...


def ran(*command: str | Path, folder: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """Run a command and return what it printed; raise UnavailableError where it fails."""
    try:
        ended = subprocess.run(
            command, check=True, cwd=folder, env=os.environ | (environment or {}), capture_output=True, text=True, timeout=600
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise UnavailableError(f"`{command[0]}`: {said.strip().splitlines()[-1] if said.strip() else error}") from error
    return ended.stdout


def packages(folder: Path, *names: str) -> Path:
    """Unpack Debian packages into `folder` without installing them."""
    anew(folder)
    for name in names:
        ran("apt-get", "download", "-q", name, folder=folder)
    for package in folder.glob("*.deb"):
        ran("dpkg", "-x", package, folder / "root")
    return folder / "root"


def compiled(program: str, side: str, out: Path, *flags: str) -> Path:
    """Compile a side of a fixture."""
    sources = sorted((PROGRAMS / program / side).glob("*.c"))
    ran("gcc", "-O2", "-g", *flags, *sources, "-o", out)
    return out


@dataclass(frozen=True, slots=True)
class Hyperfine:
    """Whole runs of two programs, ten each, one program after the other; judged by Welch's test, as its own script does."""

    folder: Path
    name: str = "hyperfine"
    _tool: list[Path] = field(default_factory=list)

    def ask(self, program: str, base: str, head: str, folder: Path) -> Answer:
        """Compare whole runs at the largest size."""
        from scipy.stats import ttest_ind

        if not self._tool:
            known = shutil.which("hyperfine")
            self._tool.append(Path(known) if known else packages(self.folder / "hyperfine", "hyperfine") / "usr/bin/hyperfine")
        commands = [f"{compiled(program, side, folder / f'{place}-{side}')} {LARGEST}" for place, side in enumerate((base, head))]
        out = folder / "times.json"
        ran(self._tool[0], "-N", "--warmup", "3", "--runs", str(RUNS), "--style", "none", "--export-json", out, *commands)
        times = [result["times"] for result in json.loads(out.read_text())["results"]]
        return Answer(bool(ttest_ind(*times, equal_var=False).pvalue < LEVEL))


def traced(program: str, side: str, folder: Path, size: int) -> dict[str, float]:
    """Return each function's own time in one run under uftrace, in µs."""
    made = folder / "traced"
    if not made.exists():
        compiled(program, side, made, "-pg")
    data = folder / f"data{size}"
    ran("uftrace", "record", "--no-event", "--no-libcall", "-d", data, made, str(size))
    rows = ran("uftrace", "report", "--no-pager", "-d", data, "-f", "self")
    unit = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
    found = re.findall(r"^\s*([\d.]+)\s+(\w+)\s+(\w+)$", rows, re.MULTILINE)
    return {name: float(value) * unit[scale] for value, scale, name in found if scale in unit}


@dataclass(frozen=True, slots=True)
class Uftrace:
    """`uftrace report --diff` of one traced run each; the function that it lists first. It has no test: more than 5 % is a difference."""

    name: str = "uftrace report --diff"

    def ask(self, program: str, base: str, head: str, folder: Path) -> Answer:
        """Compare single traced runs at the largest size."""
        places = [anew(folder / f"{place}") for place in range(2)]
        times = [traced(program, side, place, LARGEST) for side, place in zip((base, head), places, strict=True)]
        data = [place / f"data{LARGEST}" for place in places]
        rows = ran("uftrace", "report", "--no-pager", "-d", data[0], "--diff", data[1], "-s", "self")
        first = re.findall(r"(\w+)$", rows.partition("=\n")[2], re.MULTILINE)[:1]
        name = first[0] if first else ""
        before, after = (each.get(name, 0.0) for each in times)
        return Answer(abs(after - before) > LEVEL * max(before, 1e-3), name)


@dataclass(frozen=True, slots=True)
class ExtraP:
    """Extra-P's models of each function's own time over five sizes, three traced runs each: a class that changes is a difference."""

    folder: Path
    name: str = "Extra-P, on uftrace's times"
    _tool: list[Path] = field(default_factory=list)

    def ask(self, program: str, base: str, head: str, folder: Path) -> Answer:
        """Model both builds and compare the classes."""
        if not self._tool:
            environment = anew(self.folder / "extrap")
            ran(sys.executable, "-m", "venv", environment)
            ran(environment / "bin/pip", "install", "-q", "extrap")
            self._tool.append(environment / "bin/extrap")
        sides = [self._growths(program, side, anew(folder / f"{place}")) for place, side in enumerate((base, head))]
        changed = [name for name in sides[0] if name in sides[1] and sides[0][name] != sides[1][name]]
        if not changed:
            return Answer(False)
        # It ranks nothing: several changed classes are no answer to the question of the function.
        return Answer(True, changed[0] if len(changed) == 1 else " and ".join(changed), sides[1][changed[0]] if len(changed) == 1 else None)

    def _growths(self, program: str, side: str, folder: Path) -> dict[str, str]:
        rows: dict[str, list[list[float]]] = {}
        for size in SIZES:
            runs = [traced(program, side, folder, size) for _ in range(MODELLED_RUNS)]
            for name in set.intersection(*(set(run) for run in runs)):
                rows.setdefault(name, []).append([run[name] for run in runs])
        lines = ["PARAMETER n", f"POINTS {' '.join(map(str, SIZES))}"]
        for name, points in rows.items():
            if len(points) == len(SIZES):
                lines += [f"REGION {name}", "METRIC time", *(f"DATA {' '.join(f'{value:.4f}' for value in point)}" for point in points)]
        data = folder / "times.txt"
        data.write_text("\n".join(lines) + "\n")
        models = ran(self._tool[0], "--text", "--disable-progress", "--print", "{callpath} :: {model}", data)
        return {name: growth(model) for name, model in re.findall(r"^(\w+) :: (.*)$", models, re.MULTILINE)}


def growth(model: str) -> str:
    """Return the class of a model such as `0.5 + 2e-06 * n^(2)`, in perfdiff's words where it has one."""
    power = re.search(r"n\^\(([^)]*)\)", model)
    logarithm = "log2(n)" in model
    if power is None:
        return "logarithmic" if logarithm else "constant"
    names = {("1", False): "linear", ("1", True): "n log n", ("2", False): "quadratic", ("3", False): "cubic"}
    return names.get((power[1], logarithm), f"n^({power[1]}){' log n' if logarithm else ''}")


@dataclass(frozen=True, slots=True)
class GoogleBenchmark:
    """compare.py of Google Benchmark on hand-written benchmarks of two functions: its U test, and its asymptotic complexity."""

    folder: Path
    name: str = "Google Benchmark, compare.py"
    _root: list[Path] = field(default_factory=list)

    def ask(self, program: str, base: str, head: str, folder: Path) -> Answer:
        """Run the benchmarks of both builds and compare them."""
        if not self._root:
            self._root.append(packages(self.folder / "benchmark", "libbenchmark-tools", "libbenchmark-dev", "libbenchmark1debian"))
        results = [folder / f"{place}.json" for place in range(2)]
        for side, out in zip((base, head), results, strict=True):
            self._benchmarked(program, side, folder, out)
        compare, compared = self._root[0] / "usr/share/benchmark/compare.py", folder / "compared.json"
        ran(sys.executable, compare, "-d", compared, "benchmarks", *results)
        tested = [row for row in json.loads(compared.read_text()) if row.get("utest")]
        differing = [row for row in tested if row["utest"]["time_pvalue"] < LEVEL]
        if not differing:
            return Answer(False)
        worst = max(differing, key=lambda row: float(np.mean([each["time"] for each in row["measurements"]])))
        name = str(worst["name"]).partition("/")[0]
        return Answer(True, name, self._complexity(results[1], name))

    def _benchmarked(self, program: str, side: str, folder: Path, out: Path) -> None:
        library = self._root[0] / "usr/lib/x86_64-linux-gnu"
        made = anew(folder / out.stem)
        source = PROGRAMS / program / side
        for file in sorted(source.glob("*.c")):  # all functions can be seen, and main is another one's
            ran("gcc", "-O2", "-c", "-Dstatic=", "-Dmain=program_main", file, "-o", made / f"{file.stem}.o")
        include = self._root[0] / "usr/include"
        objects = sorted(made.glob("*.o"))
        harness = ACCURACY / "peers" / f"{program}.cc"
        ran("g++", "-O2", f"-I{include}", f"-I{source}", harness, *objects, f"-L{library}", "-lbenchmark", "-lpthread", "-o", made / "run")
        options = ("--benchmark_min_time=0.02", f"--benchmark_repetitions={REPETITIONS}", "--benchmark_out_format=json")
        ran(made / "run", *options, f"--benchmark_out={out}", environment={"LD_LIBRARY_PATH": str(library)})

    def _complexity(self, result: Path, name: str) -> str | None:
        words = {"(1)": "constant", "lgN": "logarithmic", "N": "linear", "NlgN": "n log n", "N^2": "quadratic", "N^3": "cubic"}
        for row in json.loads(result.read_text())["benchmarks"]:
            if row["run_name"] == name and row.get("aggregate_name") == "BigO":
                return words.get(row["big_o"], str(row["big_o"]))
        return None


NOT_ASKED: Sequence[str] = (
    "Perun is not asked: its installation takes 1.5 GB.",
    "asv is not asked: it times Python code in packages that it installs itself.",
)


def all_peers(folder: Path) -> list[Peer]:
    """Return the tools, which install themselves into `folder` when they are first asked."""
    return [Hyperfine(folder), Uftrace(), ExtraP(folder), GoogleBenchmark(folder)]
