"""What a function costs a whole run, over the workload's parameters (trend-prof §2: the cost of a location as the workload grows).

A call that costs twice as much and is made twice as often is one story in the run and two at the call. Growth that comes from both, or
from state that no argument shows, is plain here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.compare.shift import describe
from perfdiff.analysis.findings import RUN, MetricFinding, Ratio
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import CostClass
from perfdiff.models.clock import STEP_NS
from perfdiff.models.fitting import fit
from perfdiff.models.middle import median
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Feature, FunctionInfo, Origin, Point, Run, SampleTable, Side

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
    base, head = (_table(_times(info.id, side, ledger, chosen), side, info.id, features) for side in Side)
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


@dataclass(frozen=True, slots=True)
class CountGrowth:
    """How the counts of a run grow, and how many there are at the point where they are most."""

    growth: CostClass
    point: int
    most: float


@dataclass(frozen=True, slots=True)
class RunCounts:
    """What counted runs of the workload's points count."""

    counted: Ledger
    points: Sequence[Point]
    seed: int

    def work(self, functions: Sequence[int], side: Side, metric: str) -> CountGrowth | None:
        """Return how what some functions count in a run grows, at the points where the first one ran; None where these cannot tell it."""
        if any(function not in self.counted.place for function in functions):
            return None
        chosen = _points(functions[0], self.counted, self.points)
        features = tuple(Feature(parameter, Origin.WORKLOAD) for parameter in _parameters(chosen))
        books = [self.counted.books[point.id, side] for point in chosen]
        if len(chosen) < LEAST_POINTS or not features or not all(metric in book.other for book in books):
            return None
        columns = [self.counted.place[function] for function in functions]
        sums = [_Sums(point, book.runs, book.other[metric][:, columns].sum(axis=1)) for point, book in zip(chosen, books, strict=True)]
        learnt = fit(_table(sums, side, functions[0], features, metric), metric, seed=self.seed)
        most = max(sums, key=lambda point_sums: median(point_sums.costs))
        return CountGrowth(learnt.cost_class, most.point.id, median(most.costs))


@dataclass(frozen=True, slots=True)
class _Sums:
    """What the runs of a point cost (r,)."""

    point: Point
    runs: tuple[Run, ...]
    costs: Floats


def _times(function: int, side: Side, ledger: Ledger, points: Sequence[Point]) -> list[_Sums]:
    """Return the time of a function in the runs of one side; calls shorter than the clock's step all cost the same.

    Sampled ones of them tell the mean and no more; one interrupted call among them would stand for many.
    """
    column = ledger.place[function]
    books = [ledger.books[point.id, side] for point in points]
    mean = sum(median(book.wall_ns[:, column]) for book in books) / sum(median(book.calls[:, column]) for book in books)
    return [
        _Sums(point, book.runs, book.wall_ns[:, column] if mean >= STEP_NS else max(mean, 0.0) * book.calls[:, column])
        for point, book in zip(points, books, strict=True)
    ]


def _table(sums: Sequence[_Sums], side: Side, function: int, features: tuple[Feature, ...], metric: str = "wall_ns") -> SampleTable:
    """Return the runs of one side as rows, as if each were one call."""
    values = {point_sums.point.id: [float(point_sums.point.parameters[feature.name]) for feature in features] for point_sums in sums}
    rows = [
        (run.id, point_sums.point.id, float(cost))
        for point_sums in sums
        for run, cost in zip(point_sums.runs, point_sums.costs, strict=True)
    ]
    n = len(rows)
    none: Floats = np.empty((n, 0))
    return SampleTable(
        function=function,
        side=side,
        metrics={metric: np.array([cost for *_, cost in rows])},
        features=features,
        values=np.array([values[point] for _, point, _ in rows]),
        branches=(),
        executed=none,
        taken=none,
        run=np.array([run for run, *_ in rows], dtype=np.int64),
        point=np.array([point for _, point, _ in rows], dtype=np.int64),
        thread=np.zeros(n, dtype=np.int64),
        call=np.ones(n, dtype=np.int64),
        weight=np.ones(n),
    )
