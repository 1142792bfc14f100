"""Print class and time of annotations for calls with known truth: ten features, 5 % multiplicative noise, one core."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from perfdiff.models.annotation import Annotation
from perfdiff.models.fitting import fit
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Feature, Origin, SampleTable, Side
from studies.support import figures

REPEATS = 5
NOISE = 0.05


def calls(columns: dict[str, Floats], cost: Floats, labels: dict[int, str] | None = None) -> SampleTable:
    n = len(cost)
    zeros = np.zeros(n, dtype=np.int64)
    return SampleTable(
        function=1,
        side=Side.BASE,
        metrics={"wall_ns": cost},
        features=tuple(Feature(name, Origin.ARGUMENT, name == "mode", labels or {}) for name in columns),
        values=np.column_stack(list(columns.values())),
        branches=(),
        executed=np.zeros((n, 0)),
        taken=np.zeros((n, 0)),
        run=np.arange(n) % 20,
        point=zeros,
        thread=zeros,
        call=np.arange(n),
        weight=np.ones(n),
    )


def cases(n: int) -> Iterator[tuple[str, SampleTable, str]]:
    """Yield a name, calls, and the class that is right."""
    rng = np.random.default_rng(1)
    columns = {f"f{i}": rng.integers(0, 1000, n).astype(np.float64) for i in range(10)}
    x = columns["f0"]

    def noisy(cost: Floats) -> Floats:
        return cost * (1 + NOISE * rng.standard_normal(n))

    yield "linear", calls(columns, noisy(500 + 20 * x)), "linear"
    yield "quadratic", calls(columns, noisy(500 + 3 * x**2)), "quadratic"
    yield "n log n", calls(columns, noisy(300 + 5 * x * np.log2(np.maximum(x, 1)))), "n log n"
    mode = rng.integers(0, 3, n).astype(np.float64)
    modes = noisy(np.where(mode == 1, 1000 + 50 * x, 5000.0))
    yield "two modes by an enum", calls(columns | {"mode": mode}, modes, {0: "SLOW", 1: "FAST", 2: "OTHER"}), "piecewise"
    yield "constant", calls(columns, noisy(np.full(n, 1000.0))), "constant"
    yield "mixture of three", calls(columns, noisy(rng.choice([1000.0, 3000.0, 9000.0], n, p=[0.5, 0.3, 0.2]))), "mixture"
    yield "linear + exponential noise", calls(columns, 500 + 20 * x + rng.exponential(3000, n)), "linear"
    yield "correlated twin", calls(columns | {"twin": x + rng.normal(0, 20, n)}, noisy(500 + 20 * x)), "linear"
    many = columns | {f"g{i}": rng.integers(0, 1000, n).astype(np.float64) for i in range(20)}
    yield "30 features", calls(many, noisy(500 + 20 * x)), "linear"


def timed(table: SampleTable) -> tuple[Annotation, float]:
    """Return the annotation and the median CPU time to learn it in seconds."""
    taken = []
    for _ in range(REPEATS):
        start = time.process_time()
        annotation = fit(table, "wall_ns", seed=1, function="f")
        taken.append(time.process_time() - start)
    return annotation, float(np.median(taken))


def main() -> int:
    """Print the table; return 1 where a class is wrong."""
    fit(next(cases(100))[1], "wall_ns", seed=1)
    wrong = 0
    with figures.printed("Annotations", "records", "truth", "class", "right", "seconds", "R²", "cross-validated R²") as table:
        for n in (1_000, 10_000):
            for name, calls_of, right in cases(n):
                annotation, seconds = timed(calls_of)
                same = fit(calls_of, "wall_ns", seed=1, function="f") == annotation
                correct = annotation.cost_class.value == right and same
                wrong += not correct
                said = (annotation.cost_class.value, "yes" if correct else "**no**")
                table.add(f"{n:,}", name, *said, f"{seconds:.3f}", f"{annotation.r2:.3f}", f"{annotation.cv_r2:.3f}")
        table.remarks.append(f"CPU time, median of {REPEATS}, one core.")
    return 1 if wrong else 0
