"""The cheapest workload point that shows a difference, for those who want to see it with little waiting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from perfdiff.analysis.findings import Findings, FunctionFinding, MetricFinding, Ratio, Verdict
from perfdiff.records.metrics import METRICS
from perfdiff.records.schema import Point


@dataclass(frozen=True, slots=True)
class PointFinding:
    """A workload point with what one metric of a function shows there; `run_ns` is what a run of both sides takes, NaN if not known."""

    function: FunctionFinding
    metric: str
    point: Point
    ratio: Ratio
    run_ns: float


def telling(findings: Findings) -> list[FunctionFinding]:
    """Return the functions that the verdict rests on, foremost first; none where nothing differs."""
    if findings.verdict not in (Verdict.REGRESSION, Verdict.IMPROVEMENT):
        return []
    return [finding for finding in findings.functions if finding.verdict is findings.verdict and not finding.accepted]


def cheapest(findings: Findings) -> PointFinding | None:
    """Return the point with the shortest runs at which a telling function's interval lies beyond the smallest effect of interest.

    It is of the foremost function that any point shows alone. None where no point does: a difference can be sure only over all of them.
    """
    run_ns = {end.point.id: end.base_ns + end.head_ns for end in findings.end_to_end}
    points = {point.id: point for point in findings.points}
    for function, metric in product(telling(findings), METRICS):
        metric_finding = function.metrics.get(metric)
        showing = [point for point in _beyond(metric_finding, findings) if point in points] if metric_finding else []
        if metric_finding and showing:
            best = min(showing, key=lambda point: (run_ns.get(point, math.inf), point))
            return PointFinding(function, metric, points[best], metric_finding.points[best], run_ns.get(best, math.nan))
    return None


def _beyond(metric: MetricFinding, findings: Findings) -> list[int]:
    own = {point.id: point.min_effect for point in findings.points if point.min_effect is not None}
    limits = {point: 1 + own.get(point, findings.min_effect) for point in metric.points}
    if findings.verdict is Verdict.REGRESSION:
        return [point for point, ratio in metric.points.items() if ratio.low > limits[point]]
    return [point for point, ratio in metric.points.items() if ratio.high < 1 / limits[point]]
