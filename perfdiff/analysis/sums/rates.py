"""A function's sums per call and per run, at the point where head has most of them."""

from __future__ import annotations

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.stats.inference import contrast
from perfdiff.analysis.stats.runs import PointRuns
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.models.clock import RESOLUTION_NS
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import Side


def per_call(function: int, metric: str, ledger: Ledger) -> tuple[float, float]:
    """Return a metric per call on base and head at the point where head has most of it."""
    point = most_of(function, metric, ledger)
    return per_call_at(point, function, metric, ledger) if point is not None else (0.0, 0.0)


def most_of(function: int, metric: str, ledger: Ledger) -> int | None:
    """Return the point where a call in head has most of a metric, the last of equals; None where some point keeps no sums of it."""
    if any(metric not in book.medians for point in ledger.points for book in ledger.pair(point)):
        return None
    return max(reversed(ledger.points), key=lambda point: per_call_at(point, function, metric, ledger)[1], default=None)


def label_of_most(function: int, metric: str, ledger: Ledger) -> str | None:
    """Return the label of the point where a call in head has most of a metric, None where all points have as much."""
    point = most_of(function, metric, ledger)
    alike = len({per_call_at(other, function, metric, ledger) for other in ledger.points}) == 1
    return None if point is None or alike else ledger.labels.get(point)


def per_call_at(point: int, function: int, metric: str, ledger: Ledger) -> tuple[float, float]:
    """Return a metric per call on base and head at one point; the point must keep sums of it."""
    values, column = [], ledger.place[function]
    for book in ledger.pair(point):
        calls = float(book.medians["calls"][column])
        values.append(float(book.medians[metric][column]) / calls if calls else 0.0)
    return values[0], values[1]


def average_of(function: int, metric: str, ledger: Ledger) -> float | None:
    """Return the mean cost of a call in base, over one run of each point, None if no sums are kept."""
    cost, calls = (float(ledger.of_a_run(total, Side.BASE, function)[0]) for total in (metric, "calls"))
    return cost / calls if cost > 0 and calls > 0 else None


def calls_per_call(caller: int, callee: int, ledger: Ledger, place: int) -> tuple[float, float]:
    """Return calls of `callee` per call of `caller` on base and head, at the `place`-th point."""
    rates = []
    for book in ledger.pair(ledger.points[place]):
        own = float(book.medians["calls"][ledger.place[caller]])
        callee_calls = float(np.median(book.edges.get((ledger.place[callee], ledger.place[caller]), np.zeros(1))))
        rates.append(callee_calls / own if own else 0.0)
    return rates[0], rates[1]


def extra_calls_ns(function: int, ledger: Ledger) -> float:
    """Return the ns that calls made by head alone take with their callees, in one run of each point."""
    place, extra = ledger.place[function], 0.0
    for before, after in (ledger.pair(point) for point in ledger.points):
        base, head = (float(book.medians["calls"][place]) for book in (before, after))
        if head > base:
            extra += float(after.medians["wall_ns"][place]) * (head - base) / head
    return extra


def grew(function: int, metric: str, ledger: Ledger) -> bool:
    """Return whether a metric per call grew beyond chance at the point whose values are told.

    Points are not pooled: where a class changed, each has a ratio of its own, and what they differ by would count as error. A run without
    any counts as half a unit.
    """
    point = most_of(function, metric, ledger)
    if point is None:
        return False
    column, groups = ledger.place[function], []
    for book in ledger.pair(point):
        sums, calls = book.sums(metric), book.calls[:, column]
        assert sums is not None
        with np.errstate(divide="ignore"):
            groups.append(book.group(np.log(np.maximum(sums[:, column], 0.5) / calls)))
    seen = contrast([PointRuns(*groups)])
    return seen is not None and seen.effect > 0 and seen.p * len(ledger.points) < POLICY.chance


def too_short(function: int, metric: str, ledger: Ledger) -> bool:
    """Return whether a call, on either side, takes less time than probes resolve: a ratio would be one of clamped values."""
    return metric_of(metric).unit == "ns" and min(per_call(function, metric, ledger)) < RESOLUTION_NS


def run_at(point: int, ledger: Ledger) -> Claim:
    """Return the run that figures of a single point are of."""
    return claim("a-run-of", point=ledger.labels[point]) if point in ledger.labels and len(ledger.points) > 1 else claim("a-run")
