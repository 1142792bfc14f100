"""Print how many times slower single-threaded kernels run in the counted build, beside callgrind with its cache simulation.

Each kernel is compiled at -O2 as perfdiff does it, plain and counted, and run by turns; a figure is the CPU time of the counted run over
that of the plain one, the least of several runs each. Callgrind runs the plain program once with the same caches. Counts of the
counted build are compared over the runs. Needs gcc; valgrind where there is one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path

from perfdiff.languages.c import runtime_library
from studies.support import figures

RUNS = 7
SAME_RUNS = 20
GEOMETRIC_MEAN_BAR = 20.0
WORST_BAR = 40.0
PEER_BAR = 3.0  # times faster than callgrind
SOURCE = Path(__file__).parent / "counted_kernels.c"
MACHINE = "l1d=32768/8,l2=1048576/16,llc=33554432/16,line=64,nodes=1"
CALLGRIND = ("--tool=callgrind", "--cache-sim=yes", "--D1=32768,8,64", "--LL=33554432,16,64", "--callgrind-out-file=/dev/null")
# A kernel's rounds make its plain run last 50 ms or more.
ROUNDS = {
    "matrix-product": 24,
    "list-traversal": 1000,
    "hash-table": 24000,
    "sort": 100,
    "string-scan": 60,
    "linear-regression": 70,
    "histogram": 120,
    "k-medoids": 500,
    "reverse-index": 300,
    "search-tree": 700,
}


@dataclass(frozen=True, slots=True)
class Builds:
    """The kernels' program, twice."""

    plain: Path
    counted: Path


@dataclass(slots=True)
class Cost:
    """A kernel's CPU times, in s. `callgrind` is None where valgrind is absent."""

    plain: list[float] = field(default_factory=list)
    counted: list[float] = field(default_factory=list)
    callgrind: float | None = None

    @property
    def ratio(self) -> float:
        """How many times slower than plain the counted build is."""
        return min(self.counted) / min(self.plain)

    @property
    def peer(self) -> float | None:
        """How many times slower than the counted build callgrind is."""
        return None if self.callgrind is None else self.callgrind / min(self.counted)


def build(folder: Path) -> Builds:
    """Compile the kernels at -O2, plain and counted."""
    library = runtime_library.build("gcc", folder / "runtime")
    builds = Builds(folder / "plain", folder / "counted")
    counting: list[str | Path] = [f"-specs={library / runtime_library.SPECS}", "-include", library / runtime_library.INLINE_HEADER]
    linking: list[str | Path] = ["-L", library, "-lperfdiff_counted", f"-Wl,-rpath,{library}"]
    subprocess.run(["gcc", "-O2", SOURCE, "-o", builds.plain], check=True)
    subprocess.run(["gcc", "-O2", *counting, SOURCE, "-o", builds.counted, *linking], check=True)
    return builds


def cpu_s(command: Sequence[str | Path]) -> float:
    """Run a program once; return its CPU time."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"PERFDIFF_PMU": MACHINE})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, [str(word) for word in command])
    return usage.ru_utime + usage.ru_stime


def measure(builds: Builds, kernel: str, *, runs: int, callgrind: bool) -> Cost:
    """Run a kernel plain and counted by turns, and once under callgrind."""
    cost = Cost()
    arguments = (kernel, str(ROUNDS[kernel]))
    for _ in range(runs):
        cost.plain.append(cpu_s((builds.plain, *arguments)))
        cost.counted.append(cpu_s((builds.counted, *arguments)))
    valgrind = shutil.which("valgrind") if callgrind else None
    if valgrind:
        cost.callgrind = cpu_s((valgrind, *CALLGRIND, builds.plain, *arguments))
    return cost


def identical_runs(builds: Builds, kernel: str) -> int:
    """Return how many of SAME_RUNS short runs, at one address layout, have the counts of the first."""
    counts = [
        subprocess.run(
            ["setarch", "-R", builds.counted, kernel, "1", "counts"], env={"PERFDIFF_PMU": MACHINE}, capture_output=True, check=True
        ).stdout
        for _ in range(SAME_RUNS)
    ]
    return counts.count(counts[0])


def run(kernels: Sequence[str] = tuple(ROUNDS), *, runs: int = RUNS, callgrind: bool = True) -> None:
    """Measure kernels and print the table."""
    columns = ("kernel", "plain, ms", "counted / plain", "callgrind / plain", "callgrind / counted", "same counts")
    with figures.printed("Counted builds", *columns) as table, tempfile.TemporaryDirectory() as folder:
        builds = build(Path(folder))
        costs = {}
        for kernel in kernels:
            cost = costs[kernel] = measure(builds, kernel, runs=runs, callgrind=callgrind)
            peer = ("-", "-") if cost.peer is None else (f"{cost.peer * cost.ratio:.0f}", f"{cost.peer:.1f}")
            same = f"{identical_runs(builds, kernel)} of {SAME_RUNS}"
            table.add(kernel, f"{min(cost.plain) * 1e3:.0f}", f"{cost.ratio:.1f}", *peer, same)
        mean, worst = exp(sum(log(cost.ratio) for cost in costs.values()) / len(costs)), max(cost.ratio for cost in costs.values())
        table.remarks.append(f"Geometric mean {mean:.1f}; bar {GEOMETRIC_MEAN_BAR:.0f}, {figures.against(mean, GEOMETRIC_MEAN_BAR)}.")
        table.remarks.append(f"Worst {worst:.1f}; bar {WORST_BAR:.0f}, {figures.against(worst, WORST_BAR)}.")
        peers = [cost.peer for cost in costs.values() if cost.peer is not None]
        if peers:
            kept = figures.against(-min(peers), -PEER_BAR)
            table.remarks.append(f"Least lead over callgrind {min(peers):.1f} times; bar {PEER_BAR:.0f}, {kept}.")


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=list(ROUNDS), metavar="KERNEL", help=", ".join(ROUNDS))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--no-callgrind", action="store_true", help="callgrind takes most of the time")
    chosen = parser.parse_args()
    run(chosen.kernels, runs=chosen.runs, callgrind=not chosen.no_callgrind)
