"""Simulated sample tables with known truth, for tests of the models."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Branch, Feature, Origin, SampleTable, Side


def table(
    columns: Mapping[str, Floats],
    cost: Floats,
    *,
    metric: str = "wall_ns",
    run: Ints | None = None,
    point: Ints | None = None,
    labels: Mapping[str, Mapping[int, str]] | None = None,
    origins: Mapping[str, Origin] | None = None,
    taken: Mapping[str, Floats] | None = None,
) -> SampleTable:
    """Return one function's calls; `labels` make a column a category, `taken` are branches by text, executed once a call."""
    n = len(cost)
    labels, origins, taken = labels or {}, origins or {}, taken or {}
    return SampleTable(
        function=1,
        side=Side.BASE,
        metrics={metric: cost},
        features=tuple(Feature(name, origins.get(name, Origin.ARGUMENT), name in labels, labels.get(name, {})) for name in columns),
        values=np.column_stack(list(columns.values())) if columns else np.zeros((n, 0)),
        branches=tuple(Branch(text, line) for line, text in enumerate(taken, start=10)),
        executed=np.ones((n, len(taken))),
        taken=np.column_stack(list(taken.values())) if taken else np.zeros((n, 0)),
        run=np.arange(n) % 20 if run is None else run,
        point=np.zeros(n, dtype=np.int64) if point is None else point,
        thread=np.zeros(n, dtype=np.int64),
        call=np.arange(n),
        weight=np.ones(n),
    )


def noisy(rng: np.random.Generator, cost: Floats, noise: float = 0.05, outliers: float = 0.02) -> Floats:
    """Return costs with multiplicative noise, a share of them preempted: 1.5 to 10 times as long."""
    measured = cost * (1 + noise * rng.standard_normal(len(cost)))
    return np.where(rng.random(len(cost)) < outliers, measured * rng.uniform(1.5, 10, len(cost)), measured)


def strangers(rng: np.random.Generator, n: int, count: int = 9) -> dict[str, Floats]:
    """Return features that have nothing to do with the cost."""
    return {f"f{i}": rng.integers(0, 1000, n).astype(np.float64) for i in range(count)}
