"""Print how long users wait: the analysis of many functions, a comparison asked for again, and the demo once all is installed.

An analysis is a process of its own, from its start on, so that its memory can be told: that of the process and of its workers, each at
its largest, together.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import cmark
import programs
from experiments import Columns, Made, World
from perfdiff import units
from perfdiff.records import store
from perfdiff.records.schema import Change, Edges, Side
from studies import ROOT
from studies.support import figures

FUNCTIONS, MANY = 50, 1000
RECORDS = 10_000
RUNS = 10
SIZES = (1000.0, 3000.0, 10_000.0, 30_000.0)
ANALYSIS_BAR_S, MANY_BAR_S, AGAIN_BAR_S, DEMO_BAR_S = 5.0, 60.0, 3.0, 60.0
ANALYSIS = """
import resource, sys
from pathlib import Path
from perfdiff.analysis.analysis import analyse
from perfdiff.config import CompareConfig
from perfdiff.records import recorded

if __name__ == "__main__":
    import joblib

    found = recorded.load(Path(sys.argv[1]))
    analyse(found.experiment, found.samples, CompareConfig())
    joblib.externals.loky.get_reusable_executor().shutdown()
    own, workers = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(1024 * (own + joblib.cpu_count() * workers))
"""
GROWTHS: tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], ...] = (
    lambda n, k: 5000 + 0 * n,
    lambda n, k: 500 + 20 * n,
    lambda n, k: 300 + 5 * n * np.log2(n),
    lambda n, k: 500 + 3 * n + 200 * k,
)
FIXTURE = "list-append"
DEMO = ROOT / "scripts" / "demo"
INSTALLED = ROOT / ".venv" / "pyproject.toml.done"  # the demo would install first


def made(number: int) -> Made:
    """Return a function with three features; one in ten has changed, and of these every second one got slower."""
    grows = GROWTHS[number % len(GROWTHS)]
    changed = number % 10 == 1
    factor = 1.5 if number % 20 == 1 else 1.0

    def cost(side: Side, inputs: Columns) -> np.ndarray:
        return np.asarray(grows(inputs["n"], inputs["k"]) * (factor if side is Side.HEAD else 1.0), dtype=float)

    def inputs(_: Side, n: float, count: int, rng: np.random.Generator) -> Columns:
        return {"n": rng.uniform(n / 2, n, count), "k": rng.integers(0, 50, count), "flags": rng.integers(0, 3, count)}

    caller = "" if number == 0 else f"f{(number - 1) // 3}"
    return Made(
        name=f"f{number}",
        cost=cost,
        change=Change.CHANGED if changed else Change.UNCHANGED,
        calls=lambda side, n: {caller: RECORDS},
        inputs=inputs,
        categories=("flags",),
    )


def recorded(folder: Path, records: int, copies: int) -> None:
    """Save an experiment of `FUNCTIONS` functions, each in so many copies, with so many records a function and side."""
    world = World(tuple(made(number) for number in range(FUNCTIONS)), sizes=SIZES, runs=RUNS, kept=records // (RUNS * len(SIZES)))
    tables = [table for function in world.ids.values() for side in Side if (table := world.samples(function, side)) is not None]
    one = world.experiment()
    offsets = [copy * (FUNCTIONS + 1) for copy in range(copies)]

    def copied(ids: np.ndarray) -> np.ndarray:
        """Return ids (n,) of all copies, one after the other; 0 stays the start of a thread."""
        return np.concatenate([np.where(ids > 0, ids + offset, 0) for offset in offsets])

    totals, edges = one.totals, one.edges
    experiment = replace(
        one,
        functions=tuple(replace(info, id=info.id + offset, name=f"{info.name}_{offset}") for offset in offsets for info in one.functions),
        totals=replace(
            totals,
            run=np.tile(totals.run, copies),
            function=copied(totals.function),
            calls=np.tile(totals.calls, copies),
            wall_ns=np.tile(totals.wall_ns, copies),
            self_ns=np.tile(totals.self_ns, copies),
            other={name: np.tile(values, copies) for name, values in totals.other.items()},
        ),
        edges=Edges(
            run=np.tile(edges.run, copies),
            caller=copied(edges.caller),
            callee=copied(edges.callee),
            calls=np.tile(edges.calls, copies),
            wall_ns=np.tile(edges.wall_ns, copies),
        ),
    )
    store.save(folder, experiment, (replace(table, function=table.function + offset) for offset in offsets for table in tables))


def analysed(folder: Path) -> tuple[float, float]:
    """Return the seconds that the analysis of a saved experiment takes, and the bytes it needs."""
    start = time.perf_counter()
    ended = subprocess.run([sys.executable, "-c", ANALYSIS, folder], check=True, stdout=subprocess.PIPE, text=True)
    return time.perf_counter() - start, float(ended.stdout)


def seconds(directory: Path, *command: str | Path) -> float:
    """Run a command that ends with 0, or with perfdiff's 1 for a regression, and return how long it took."""
    start = time.perf_counter()
    ended = subprocess.run(command, cwd=directory, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    taken = time.perf_counter() - start
    if ended.returncode not in (0, 1) or "Traceback" in ended.stderr:
        raise SystemExit(f"{command} ended with {ended.returncode}:\n{ended.stderr}")
    return taken


def asked(room: Path, checkout: Path, *arguments: str) -> Iterator[tuple[str, float]]:
    """Yield what `perfdiff base head` takes at first, when asked again, and when asked for a page with plots."""
    command = ("perfdiff", "-q", "base", "head", "--cache", str(room / "cache"))
    yield "at first", seconds(checkout, *command, *arguments)
    yield "again", seconds(checkout, *command, *arguments)
    yield "again, as HTML", seconds(checkout, *command, "-o", str(room / "report.html"), *arguments)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder, figures.printed("Waiting", "what", "seconds", "bar") as table:
        room = Path(folder)

        def add(what: str, taken: float, bar_s: float | None = None) -> None:
            table.add(what, f"{taken:.1f}", f"{bar_s:.0f} s, {figures.against(taken, bar_s)}" if bar_s else "")

        for copies, bar_s in ((1, ANALYSIS_BAR_S), (MANY // FUNCTIONS, MANY_BAR_S)):
            saved = room / f"experiment-{copies}"
            recorded(saved, RECORDS, copies)
            taken, needed = analysed(saved)
            what = f"analysis of {copies * FUNCTIONS:,} functions with {RECORDS:,} records on each side, {units.size(needed)}"
            add(what, taken, bar_s)
        fixture = programs.repository(next(case for case in programs.cases() if case.name == FIXTURE), room / FIXTURE)
        real = cmark.repository(room / "cmark")
        workload = ("--build", cmark.BUILD.command, "--param", "n=2000,8000", "--runs", "5", "--", cmark.PARAGRAPHS.command)
        for name, checkout, arguments in ((FIXTURE, fixture, ()), ("cmark", real, workload)):
            for how, taken in asked(room, checkout, *arguments):
                add(f"comparison of {name}, {how}", taken, None if how == "at first" else AGAIN_BAR_S)
        if INSTALLED.exists():
            add("demo, installed", seconds(DEMO.parent, DEMO), DEMO_BAR_S)
