"""What a function costs a whole run, over the workload's parameters (trend-prof §2: the cost of a location as the workload grows).

A call that costs twice as much and is made twice as often is one story in the run and two at the call. Growth that comes from both, or
from state that no argument shows, is plain here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perfdiff.analysis.compare.shift import describe
from perfdiff.analysis.findings import RUN, MetricFinding, Ratio
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig
from perfdiff.models.clock import STEP_NS
from perfdiff.models.fitting import fit
from perfdiff.models.middle import median
from perfdiff.records.schema import Feature, Floats, FunctionInfo, Origin, Point, SampleTable, Side

LEAST_POINTS = 3  # fewer tell no growth


def over_runs(
    info: FunctionInfo, ledger: Ledger, points: Sequence[Point], *, total: Ratio | None, config: CompareConfig
) -> MetricFinding | None:
    """Return the growth of a function's time per run on both sides, or None where the workload's points cannot tell it.

    Of several workloads, the one with most points in which the function ran on both sides speaks. `total` is head over base.
    """
    chosen = _points(info.id, ledger, points)
    features = tuple(Feature(parameter, Origin.WORKLOAD) for parameter in _parameters(chosen))
    if len(chosen) < LEAST_POINTS or not features:
        return None
    base, head = (_table(info.id, side, ledger, chosen, features) for side in Side)
    # To the models this is a time like any other; only its name tells that it is of a run.
    shift = describe(fit(base, "wall_ns", seed=config.seed, function=info.name), base, head, differs=True, config=config)
    return MetricFinding(
        metric=RUN,
        base=replace(shift.base, metric=RUN),
        head=replace(shift.head, metric=RUN),
        feature=shift.feature,
        ratio=total,
        stratum="",
        overall=total,
        q=float("nan"),
        mix=None,
        calls=None,
        total=total,
        floor=float("nan"),
        coefficients=shift.coefficients,
        predictions=shift.predictions,
        crosses=shift.crosses,
        class_changed=shift.base.growth is not shift.head.growth,
    )


def _points(function: int, ledger: Ledger, points: Sequence[Point]) -> list[Point]:
    column = ledger.place[function]
    ran = [
        point for point in points if point.id in ledger.points and all((book.calls[:, column] > 0).all() for book in ledger.pair(point.id))
    ]
    most = Counter(point.workload for point in ran).most_common(1)
    return [point for point in ran if point.workload == most[0][0]]


def _parameters(points: Sequence[Point]) -> list[str]:
    """Return the parameters that are numbers and vary."""
    names = points[0].parameters if points else {}
    return [
        name
        for name in names
        if all(isinstance(point.parameters[name], int | float) for point in points)
        and len({point.parameters[name] for point in points}) > 1
    ]


def _table(function: int, side: Side, ledger: Ledger, points: Sequence[Point], features: tuple[Feature, ...]) -> SampleTable:
    """Return the runs of one side as rows, as if each were one call; calls shorter than the clock's step all cost the same.

    Sampled ones of them tell the mean and no more; one interrupted call among them would stand for many.
    """
    column = ledger.place[function]
    books = [ledger.books[point.id, side] for point in points]
    mean = sum(median(book.wall_ns[:, column]) for book in books) / sum(median(book.calls[:, column]) for book in books)
    rows: list[tuple[int, int, float, list[float]]] = []
    for point, book in zip(points, books, strict=True):
        values = [float(point.parameters[feature.name]) for feature in features]
        costs = book.wall_ns[:, column] if mean >= STEP_NS else max(mean, 0.0) * book.calls[:, column]
        rows += [(run.id, point.id, float(cost), values) for run, cost in zip(book.runs, costs, strict=True)]
    n = len(rows)
    none: Floats = np.empty((n, 0))
    return SampleTable(
        function=function,
        side=side,
        metrics={"wall_ns": np.array([cost for _, _, cost, _ in rows])},
        features=features,
        values=np.array([values for *_, values in rows]),
        branches=(),
        executed=none,
        taken=none,
        run=np.array([run for run, *_ in rows], dtype=np.int64),
        point=np.array([point for _, point, *_ in rows], dtype=np.int64),
        thread=np.zeros(n, dtype=np.int64),
        call=np.ones(n, dtype=np.int64),
        weight=np.ones(n),
    )
