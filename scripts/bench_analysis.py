#!/usr/bin/env python3
"""Print how long users wait: the analysis of many functions, a comparison asked for again, and the demo once all is installed."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import figures
import numpy as np

import cmark
import programs
from experiments import Columns, Made, World
from perfdiff import analysis
from perfdiff.config import CompareConfig
from perfdiff.records import store
from perfdiff.records.schema import Change, Side

FUNCTIONS = 50
RECORDS = 10_000
RUNS = 10
SIZES = (1000.0, 3000.0, 10_000.0, 30_000.0)
ANALYSIS_BAR_S, AGAIN_BAR_S, DEMO_BAR_S = 5.0, 3.0, 60.0
GROWTHS = (lambda n, k: 5000 + 0 * n, lambda n, k: 500 + 20 * n, lambda n, k: 300 + 5 * n * np.log2(n), lambda n, k: 500 + 3 * n + 200 * k)
FIXTURE = "list-append"
DEMO = Path(__file__).parent / "demo"
INSTALLED = DEMO.parent.parent / ".venv" / "pyproject.toml.done"  # the demo would install first


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


def analysed(records: int, count: int = FUNCTIONS) -> float:
    """Return the seconds to load and analyse an experiment of `count` functions with so many records a function and side."""
    functions = tuple(made(number) for number in range(count))
    world = World(functions, sizes=SIZES, runs=RUNS, kept=records // (RUNS * len(SIZES)))
    tables = [table for function in world.ids.values() for side in Side if (table := world.samples(function, side)) is not None]
    with tempfile.TemporaryDirectory() as folder:
        store.save(Path(folder) / "experiment", world.experiment(), tables)
        start = time.perf_counter()
        experiment = store.load(Path(folder) / "experiment")
        analysis.analyse(experiment, lambda *key: store.samples(Path(folder) / "experiment", *key), CompareConfig())
        return time.perf_counter() - start


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

        analysed(RECORDS, count=2)  # imports are part of the waiting below
        for records in (RECORDS // 2, RECORDS):
            add(f"analysis of {FUNCTIONS} functions with {records:,} records on each side", analysed(records), ANALYSIS_BAR_S)
        fixture = programs.repository(next(case for case in programs.cases() if case.name == FIXTURE), room / FIXTURE)
        real = cmark.repository(room / "cmark")
        workload = ("--build", cmark.BUILD.command, "--param", "n=2000,8000", "--runs", "5", "--", cmark.PARAGRAPHS.command)
        for name, checkout, arguments in ((FIXTURE, fixture, ()), ("cmark", real, workload)):
            for how, taken in asked(room, checkout, *arguments):
                add(f"comparison of {name}, {how}", taken, None if how == "at first" else AGAIN_BAR_S)
        if INSTALLED.exists():
            add("demo, installed", seconds(DEMO.parent, DEMO), DEMO_BAR_S)


if __name__ == "__main__":
    main()
