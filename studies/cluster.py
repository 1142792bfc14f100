"""Print what workers gain: pairs of runs made by 1, 2 and 4, many functions analysed by processes and by a cluster, and up to 10⁹ calls.

    scripts/bench cluster                              all of it, up to 10⁸ calls
    scripts/bench cluster measuring                    pairs of runs in the same time, some minutes
    scripts/bench cluster history --command log        revisions recorded by `log`, `profile` or `bisect`; all three take ten minutes
    scripts/bench cluster calls --most 1e9 --room DIR  the large one: 16 GB of disk and six minutes of two cores
    scripts/bench cluster joblib --functions 1000
    scripts/bench cluster workers

Calls are generated: 200 functions, ten runs of either side, one function in forty of which head is slower by 20 %. Answers are checked.
Pairs of runs are those of a program that spins for 50 to 100 ms. Its head is slower by just what is of interest, so that they take the
whole budget. Histories are of revisions whose running code differs, one of which makes a function slower by 30 %.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dask_lab
from dask_lab import Lab
from histories import Plan, make
from perfdiff import pipeline, units
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Verdict
from perfdiff.config import BuildConfig, ClusterConfig, CompareConfig, Config, CountersConfig, MeasureConfig, WorkloadConfig
from perfdiff.engines.cluster import ClusterEngine
from perfdiff.engines.engine import Engine
from perfdiff.engines.processes import Processes
from perfdiff.progress import Silent
from perfdiff.records import codec, recorded, store, tables
from perfdiff.records.schema import (
    Change,
    Edges,
    Environment,
    Experiment,
    Feature,
    FunctionInfo,
    Origin,
    Phase,
    Point,
    Revision,
    Run,
    SampleTable,
    Side,
    Totals,
    Workload,
)
from perfdiff.request import Request
from studies.analysis import recorded as many_functions
from studies.support import figures, spinning

FUNCTIONS, RUNS, RECORDS = 200, 10, 10_000
SLOWER = 1.2
RATIO_BAR, GROWTH_BAR, MEMORY_BAR = 1.3, 1.2, 4 * 2**30
# Commands over a history: words, commits after the first one, and which of these is slower.
HISTORIES = {
    "log": (("checksum", "good..bad"), 11, 8),
    "profile": (("good..bad",), 11, 8),
    "bisect": (("good", "bad"), 15, 9),
}
BYTES_A_CALL = 20  # on disk, to tell whether there is room
CORES = sorted(os.sched_getaffinity(0))
WORKERS = (1, 2, 4)
ONE_PASS = """
import json, resource, sys, time
from pathlib import Path

if __name__ == "__main__":
    import joblib
    from perfdiff import analysis
    from perfdiff.condensing import condensed
    from perfdiff.config import CompareConfig

    def cpu():
        joblib.externals.loky.get_reusable_executor().shutdown()  # only processes that ended are counted
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    start, before = time.perf_counter(), cpu()
    found = condensed(Path(sys.argv[1]))
    read, read_cpu = time.perf_counter() - start, cpu() - before
    findings = analyse(found.experiment, found.samples, CompareConfig())
    whole, whole_cpu = time.perf_counter() - start, cpu() - before
    own, workers = (resource.getrusage(who).ru_maxrss * 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    verdicts = {each.info.id: each.verdict for each in findings.functions}
    print(json.dumps([read, read_cpu, whole, whole_cpu, own, workers, verdicts]))
"""


def slope(function: int) -> float:
    """Return what a function costs for each n, in ns; those that get slower are a material share of a run."""
    return (5.0 + function % 17) * (100.0 if is_slower(function) else 1.0)


def is_slower(function: int) -> bool:
    """Return whether a function costs more in head."""
    return function % 40 == 1


def made_part(piece: tuple[int, Side, int, int, int], draft: Path) -> list[tuple[float, ...]]:
    """Write a part, rows `first` to `last` of a function's calls on one side of which a run has `calls`; return sums by run."""
    function, side, number, rows, calls = piece
    first = number * store.PART_ROWS
    last = min(first + store.PART_ROWS, rows)
    rng = np.random.default_rng([function, side is Side.HEAD, number])
    at = np.arange(first, last)
    block = at // calls
    n = rng.integers(1, 1000, len(at)).astype(np.float64)
    factor = SLOWER if side is Side.HEAD and is_slower(function) else 1.0
    pace = np.array([np.random.default_rng([function, side is Side.HEAD, 99, each]).normal(0, 0.02) for each in range(RUNS)])
    cost = np.rint((300 + slope(function) * n) * factor * np.exp(rng.normal(0, 0.05, len(at)) + pace[block]))
    run = 1 + 2 * block + (side is Side.HEAD)
    none = np.zeros((len(at), 0))
    part = SampleTable(
        function=function,
        side=side,
        metrics={"wall_ns": cost, "self_ns": cost},
        features=(Feature("n", Origin.ARGUMENT),),
        values=n[:, None],
        branches=(),
        executed=none,
        taken=none,
        run=run,
        point=np.zeros(len(at), np.int64),
        thread=np.zeros(len(at), np.int64),
        call=at % calls + 1,
        weight=np.ones(len(at)),
    )
    store.write_part(draft, part, number)
    return [(each, function, int((run == each).sum()), float(cost[run == each].sum())) for each in np.unique(run).tolist()]


def experiment(sums: Sequence[tuple[float, ...]]) -> Experiment:
    """Return the experiment of the sums (run, function, calls, ns) of all parts."""
    by_run: dict[tuple[int, int], list[float]] = {}
    for run, function, calls, cost in sums:
        kept = by_run.setdefault((int(run), int(function)), [0.0, 0.0])
        kept[0] += calls
        kept[1] += cost
    rows = np.array([[*key, *kept] for key, kept in sorted(by_run.items())])
    runs, functions = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
    called, ns = rows[:, 2], rows[:, 3]
    whole = {each: float(ns[runs == each].sum()) for each in np.unique(runs).tolist()}
    sides = [Side.BASE, Side.HEAD]
    changes = {True: Change.CHANGED, False: Change.UNCHANGED}
    return Experiment(
        base=Revision("base", "a" * 40, "base"),
        head=Revision("head", "b" * 40, "head"),
        environment=Environment("cpu", 2, "linux", None, "cc", False, "tsc", "0.1", "2026-01-01T00:00:00Z"),
        workloads=(Workload("w", "run"),),
        points=(Point(0, "w", {}, "run"),),
        functions=tuple(FunctionInfo(each, f"f{each}", "f.c", each, "c", changes[each % 5 == 1]) for each in range(1, FUNCTIONS + 1)),
        skipped=(),
        runs=tuple(
            Run(each, Phase.TIMED, 0, sides[(each - 1) % 2], (each - 1) // 2, whole[each], whole[each], 1e6, 0.0, 0.0, "same")
            for each in sorted(whole)
        ),
        totals=Totals(runs, functions, called, ns, ns, {}),
        edges=Edges(runs, np.zeros(len(runs), np.int64), functions, called, ns),
    )


def generated(folder: Path, calls: float, engine: Engine) -> float:
    """Leave an experiment of so many calls in a folder; return its size in bytes."""
    a_run = max(1, round(calls / (FUNCTIONS * RUNS * len(Side))))
    rows = a_run * RUNS
    parts = math.ceil(rows / store.PART_ROWS)
    pieces = [(each, side, number, rows, a_run) for each in range(1, FUNCTIONS + 1) for side in Side for number in range(parts)]
    with tables.written(folder) as draft:
        sums = [row for found in engine.map(made_part, pieces, draft) for row in found]
        store.write_parted(draft, experiment(sums))
    return float(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))


def check_answers(verdicts: dict[str, str]) -> str:
    """Say how many slower functions were found, and how many others were called slower."""
    found = {int(function) for function, verdict in verdicts.items() if verdict == Verdict.REGRESSION}
    slower = {function for function in range(1, FUNCTIONS + 1) if is_slower(function)}
    return f"{len(found & slower)} of {len(slower)}, {len(found - slower)} false"


def by_calls(most: float, room: Path) -> None:
    """Print what one pass over more and more calls takes."""
    columns = (
        "calls",
        "on disk",
        "reading in parts (of CPU)",
        "whole analysis (of CPU)",
        "CPU of 10⁶ calls",
        "largest process",
        "slower functions",
    )
    with figures.printed("Calls of 200 functions, read once", *columns) as table:
        per_million: list[float] = []
        calls = 1e6
        while calls <= most:
            free = shutil.disk_usage(room).free
            if calls * BYTES_A_CALL > 0.9 * free:
                table.remarks.append(f"No room for {calls:,.0f} calls: {units.size(free)} are free in {room}.")
                break
            folder = room / "calls"
            size = generated(folder, calls, Processes(least=0))
            ended = subprocess.run([sys.executable, "-c", ONE_PASS, folder], check=True, stdout=subprocess.PIPE, text=True)
            read, read_cpu, whole, whole_cpu, own, workers, verdicts = json.loads(ended.stdout)
            shutil.rmtree(folder)
            million = whole_cpu / calls * 1e6
            if calls / (FUNCTIONS * len(Side)) > store.PART_ROWS:  # smaller tables are analysed as a whole
                per_million.append(read_cpu / calls * 1e6)
            largest = max(own, workers)
            memory = f"{units.size(largest)} ({figures.against(largest, MEMORY_BAR)})"
            reading = f"{read:.1f} s ({read_cpu:.1f} s)"
            cells = (f"{calls:,.0f}", units.size(size), reading, f"{whole:.1f} s ({whole_cpu:.0f} s)", f"{million:.3f} s")
            table.add(*cells, memory, check_answers(verdicts))
            print(" | ".join((*cells, memory, check_answers(verdicts))), file=sys.stderr, flush=True)
            calls *= 10
        if len(per_million) > 1:
            growth = per_million[-1] / per_million[0]
            kept = figures.against(growth, GROWTH_BAR)
            table.remarks.append(
                f"CPU time of reading 10⁶ calls, of the most against of the fewest in parts: {growth:.2f} (bar {GROWTH_BAR}, {kept})."
            )


def cpu_s() -> float:
    """Return the CPU time of this process and of all that it started and still run."""
    import psutil

    own = psutil.Process()
    return float(sum(each.user + each.system for each in (process.cpu_times() for process in (own, *own.children(recursive=True)))))


def timed(engine: Engine, folder: Path) -> tuple[float, float, str]:
    """Return the seconds that the analysis of an experiment takes, those of CPU, and all its findings as text."""
    found = recorded.load(folder)
    start, spent = time.perf_counter(), cpu_s()
    findings = analyse(found.experiment, found.samples, CompareConfig(), engine=engine)
    taken, spent = time.perf_counter() - start, cpu_s() - spent
    return taken, spent, json.dumps(codec.encode(replace(findings, stages={})), default=float)


def against_joblib(functions: int, room: Path) -> None:
    """Print the time of many functions by joblib and by a local cluster of as many processes."""
    with figures.printed(
        f"{functions:,} functions × {RECORDS:,} records", "by", "seconds", "of CPU", "against joblib", "of CPU", "findings"
    ) as table:
        folder = room / "functions"
        many_functions(folder, RECORDS, max(1, functions // 50))
        processes = Processes(least=0, processes=len(CORES))
        list(processes.map(_nothing, range(len(CORES))))  # started before the clock, as the cluster is
        taken, spent, findings = timed(processes, folder)
        table.add(f"joblib, {len(CORES)} processes", f"{taken:.1f}", f"{spent:.1f}", "", "", "")
        with cluster([CORES] * len(CORES)) as engine:
            list(engine.map(_nothing, range(len(CORES))))
            other, used, found = timed(engine, folder)
        ratio = other / taken
        same = "the same to the last digit" if found == findings else "**others**"
        table.add(
            f"local cluster, {len(CORES)} workers",
            f"{other:.1f}",
            f"{used:.1f}",
            f"{ratio:.2f} (bar {RATIO_BAR}, {figures.against(ratio, RATIO_BAR)})",
            f"{used / spent:.2f}",
            same,
        )
        shutil.rmtree(folder)


def _nothing(item: int) -> int:
    from perfdiff.analysis.compare import study

    return item if study else 0


def by_workers(functions: int, room: Path) -> None:
    """Print the time of many functions by 1, 2 and 4 workers, each pinned to a core, and what limits them."""
    with figures.printed(
        f"{functions:,} functions × {RECORDS:,} records by workers", "workers", "cores", "seconds", "of CPU", "efficiency"
    ) as table:
        folder = room / "functions"
        many_functions(folder, RECORDS, max(1, functions // 50))
        first = 0.0
        for workers in WORKERS:
            cores = [[CORES[place % len(CORES)]] for place in range(workers)]
            with cluster(cores) as engine:
                list(engine.map(_nothing, range(workers)))
                taken, spent, _ = timed(engine, folder)
            first = first or taken
            used = min(workers, len(CORES))
            table.add(workers, used, f"{taken:.1f}", f"{spent:.1f}", f"{first / taken / used:.2f} of a core")
        table.remarks.append(
            "The client, which judges all functions together when they are studied, and the scheduler share the cores with the workers:"
            f" from {len(CORES)} workers on, they and whatever else runs here are what limits. More workers than cores only take turns."
        )
        shutil.rmtree(folder)


@contextmanager
def cluster(cores: Sequence[Sequence[int]]) -> Iterator[ClusterEngine]:
    """Yield the engine of a cluster of one worker process for each set of cores, which it keeps to."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=len(cores), threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0", memory_limit=0
        ) as local,
        distributed.Client(local) as client,
    ):
        client.wait_for_workers(len(cores))
        for address, own in zip(sorted(client.nthreads()), cores, strict=True):
            client.run(os.sched_setaffinity, 0, own, workers=[address])
        yield ClusterEngine(client, least=0)


def by_measuring_workers(budget_s: float, room: Path) -> None:
    """Print how many pairs of runs workers, each pinned to a core, make in the same time, and how wide intervals are then."""
    columns = (
        "who runs them",
        "cores",
        "pairs",
        "a second",
        "efficiency",
        "half width",
        "whole comparison, s",
        "of CPU beside the runs, s",
    )
    with figures.printed(f"Pairs of runs in {budget_s:g} s", *columns) as table:
        checkout = spinning.program(room)
        rates: dict[int, float] = {}
        for workers in (0, *WORKERS):
            with ExitStack() as stack:
                lab = stack.enter_context(pinned(room / f"lab{workers}", workers)) if workers else None
                start, spent = time.perf_counter(), books_s(lab)
                address = lab.address if lab else None
                found = pipeline.compare(spinning_request(checkout, room / f"cache{workers}", budget_s, address), Silent())
                taken, spent = time.perf_counter() - start, books_s(lab) - spent
            assert found.experiment is not None
            pairs = sum(run.phase is Phase.PLAIN and run.side is Side.BASE for run in found.experiment.runs)
            rates[workers] = pairs / found.findings.stages["comparing whole runs"]
            widths = [each.ratio.high - each.ratio.low for each in found.findings.end_to_end if each.ratio]
            table.add(
                f"{workers} worker{'s' * (workers > 1)}" if workers else "this machine, no cluster",
                min(workers, len(CORES)) or len(CORES),
                pairs,
                f"{rates[workers]:.1f}",
                f"{rates[workers] / rates[1] / min(workers, len(CORES)):.2f} of a core" if workers else "",
                f"{100 * max(widths) / 2:.2f} %",
                f"{taken:.0f}",
                f"{spent:.1f}",
            )


@contextmanager
def pinned(folder: Path, workers: int) -> Iterator[Lab]:
    """Yield a lab of so many workers, each of which keeps to one core; where there are more than cores they take turns."""
    with dask_lab.lab(folder) as lab:
        for number in range(workers):
            lab.add(f"w{number}", prefix=("taskset", "-c", str(CORES[number % len(CORES)])))
        lab.wait()
        yield lab


def books_s(lab: Lab | None) -> float:
    """Return the CPU time of this process and of a lab's scheduler and workers, but of no station and nothing that these run."""
    import psutil

    processes = [*lab.workers.values(), lab.scheduler] if lab else []
    times = [psutil.Process(process.pid).cpu_times() for process in processes if process]
    return float(time.process_time() + sum(each.user + each.system for each in times))


def by_recording_workers(commands: Sequence[str], room: Path) -> None:
    """Print how long commands over a history take with none, 1 and 2 workers, each pinned to a core."""
    with figures.printed("Histories by workers", "command", "revisions", "who measures", "cores", "seconds", "against 1 worker") as table:
        for command in commands:
            words, commits, culprit = HISTORIES[command]
            checkout = room / command
            ids = make(Plan(commits, culprit, kinds=(3, 4)), checkout)  # each of the others changes code that runs
            first = math.nan
            for workers in range(len(CORES) + 1):
                with ExitStack() as stack:
                    options = ["--cache", str(room / f"{command}{workers}"), "--format", "json"]
                    if workers:
                        lab = stack.enter_context(pinned(room / f"{command}-lab{workers}", workers))
                        options += ["--cluster", lab.address]
                    start = time.perf_counter()
                    whole = [sys.executable, "-m", "perfdiff", command, *words, *options]
                    ended = subprocess.run(whole, cwd=checkout, env=dask_lab.environment(), capture_output=True, text=True, check=False)
                    taken = time.perf_counter() - start
                assert ended.returncode in (0, 1), ended.stderr
                assert ids[culprit][:7] in ended.stdout, f"{command} does not name the culprit"
                first = taken if workers == 1 else first
                table.add(
                    command,
                    commits + 1,
                    f"{workers} worker{'s' * (workers > 1)}" if workers else "this machine, no cluster",
                    workers or len(CORES),
                    f"{taken:.0f}",
                    f"{first / taken:.2f} times as fast" if workers else "",
                )


def spinning_request(checkout: Path, cache: Path, budget_s: float, address: str | None) -> Request:
    """Ask for whole runs of a program whose head is slower by the smallest effect of interest, in time that is bounded."""
    workload = WorkloadConfig("spin", "./spin {which} {n}", {"which": (1.0,), "n": tuple(10 * n for n in spinning.SIZES)})
    config = Config(
        BuildConfig("make"),
        (workload,),
        compare=CompareConfig(min_effect=spinning.FACTORS[1]),
        measure=MeasureConfig(budget_s=budget_s),
        counters=CountersConfig(software=False),
        cluster=ClusterConfig(address),
    )
    return Request(checkout, ("base", "head0"), config, cache, dict(os.environ))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("all", "measuring", "history", "calls", "joblib", "workers"), default="all")
    parser.add_argument("--most", type=float, default=1e8, help="calls at most; 1e9 are the figures of the documentation")
    parser.add_argument("--budget", type=float, default=30, help="seconds that whole runs may take")
    parser.add_argument("--command", choices=HISTORIES, default=None, help="the one command that history measures, instead of all")
    parser.add_argument("--functions", type=int, default=1000, help="functions that joblib and workers analyse")
    parser.add_argument("--room", type=Path, default=None, help="where calls are generated; they are removed in the end")
    given = parser.parse_args()
    parts: dict[str, Callable[[Path], Any]] = {
        "measuring": lambda room: by_measuring_workers(given.budget, room),
        "history": lambda room: by_recording_workers([given.command] if given.command else [*HISTORIES], room),
        "joblib": lambda room: against_joblib(given.functions, room),
        "workers": lambda room: by_workers(min(given.functions, 200), room),
        "calls": lambda room: by_calls(given.most, room),
    }
    with tempfile.TemporaryDirectory(dir=given.room) as folder:
        for name, print_part in parts.items():
            if given.what in ("all", name):
                print_part(Path(folder))
