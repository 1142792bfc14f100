"""Runs of a made-up program that asks a service, with known answers a call, at several delays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from perfdiff.models.annotation import Scope
from perfdiff.records.exchanges import Exchanges
from perfdiff.records.recorded import RecordedExperiment, TablesInMemory
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
from programs import git
from test_annotate import perfdiff

__all__ = ["SIDES", "cheaper", "committed", "perfdiff", "recorded"]

SIDES = (Side.BASE,)
SIZES = (4, 16)
MS = 1e6
# A function's time of its own in ns, and how many answers a call waits for, itself and in all, at n elements.
FUNCTIONS = {
    "query": (50_000.0, lambda n: 1, lambda n: 1),
    "node": (30_000.0, lambda n: 0, lambda n: 3),
    "listing": (900_000.0, lambda n: 0, lambda n: n),
    "render": (400_000.0, lambda n: 0, lambda n: 0),
}
CALLS = {"query": lambda n: 2 * n + 12, "node": lambda n: 4, "listing": lambda n: 2, "render": lambda n: 2}
_ANSWER_NS = 100_000.0  # without any delay


def recorded(
    rng: np.random.Generator, delays_ms: Sequence[float], *, runs: int = 10, noise: float = 0.03, really: float = 1.0
) -> RecordedExperiment:
    """Return runs of two sizes at each delay, by which answers come `really` as late as asked."""
    points, made, rows, tables = [], [], [], {name: [] for name in FUNCTIONS}
    for delay in delays_ms:
        for n in SIZES:
            point = len(points)
            points.append(Point(point, "list", {"n": n, "db_delay_ms": delay}, ""))
            for block in range(runs):
                number = len(made)
                level = float(np.exp(noise * rng.standard_normal()))
                answers = CALLS["query"](n) - 4
                late = int(answers * really * delay * MS)
                passed = {"db": Exchanges(1, answers, late_ns=late)} if delay else {}
                made.append(Run(number, Phase.TIMED, point, Side.BASE, block, 1e9, 1e9, 1e6, None, None, "", services=passed))
                for place, (name, (own_ns, own, whole)) in enumerate(FUNCTIONS.items(), 1):
                    calls = CALLS[name](n)
                    cost = own_ns * level * (1 + 0.03 * rng.standard_normal(calls))
                    wait = whole(n) * (_ANSWER_NS * level + really * delay * MS)
                    tables[name].append((number, point, n, cost + wait))
                    self_ns = cost.sum() + calls * own(n) * (_ANSWER_NS + really * delay * MS)
                    rows.append((number, place, calls, (cost + wait).sum(), self_ns))
    run, function, calls, wall_ns, self_ns = np.array(rows, dtype=np.float64).T
    experiment = Experiment(
        base=Revision("base", "a" * 40, "base"),
        head=Revision("base", "a" * 40, "base"),
        environment=Environment("cpu", 2, "linux", None, "cc", False, "tsc", "0.1", "2024-01-01T00:00:00Z"),
        workloads=(Workload("list", "run {n}", ("n", "db_delay_ms")),),
        points=tuple(points),
        functions=tuple(FunctionInfo(place, name, "a.py", place, "python", Change.UNCHANGED) for place, name in enumerate(FUNCTIONS, 1)),
        skipped=(),
        runs=tuple(made),
        totals=Totals(run.astype(np.int64), function.astype(np.int64), calls, wall_ns, self_ns, {}),
        edges=Edges(*(np.zeros(0, np.int64) for _ in range(3)), calls=np.zeros(0), wall_ns=np.zeros(0)),
    )
    return RecordedExperiment(experiment, TablesInMemory(_table(place, tables[name]) for place, name in enumerate(FUNCTIONS, 1)))


def _table(function: int, parts: Sequence[tuple[int, int, int, np.ndarray]]) -> SampleTable:
    lengths = [len(cost) for *_, cost in parts]
    run, point, n = (np.repeat([part[at] for part in parts], lengths) for at in range(3))
    rows = sum(lengths)
    return SampleTable(
        function=function,
        side=Side.BASE,
        metrics={"wall_ns": np.concatenate([cost for *_, cost in parts])},
        features=(Feature("n", Origin.ARGUMENT),),
        values=n[:, None].astype(np.float64),
        branches=(),
        executed=np.zeros((rows, 0)),
        taken=np.zeros((rows, 0)),
        run=run.astype(np.int64),
        point=point.astype(np.int64),
        thread=np.zeros(rows, np.int64),
        call=np.arange(rows),
        weight=np.ones(rows),
    )


def cheaper(scope: Scope) -> Scope:
    """Return a scope that says half of what calls cost."""
    return replace(scope, terms=tuple(replace(term, coefficient=term.coefficient / 2) for term in scope.terms))


def committed(folder: Path) -> None:
    """Make a folder a repository of one commit."""
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "program")
