"""What happened to a function: how its cost grew, where, from what to what, and how surely."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.claims import Claim, Fact, claim
from perfdiff.analysis.compare.judgement import Direction
from perfdiff.analysis.findings import MEAN, MetricFinding, Verdict, is_mean
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.rates import run_at, too_short
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.rules import Decision
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import RISING, Annotation, CostClass, Term, product, shape
from perfdiff.models.clock import RESOLUTION_NS
from perfdiff.models.growth import leading_term
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import Side

# Cost functions are told where they meet the costs that are quoted by this much; else a reader would find it contradicts itself.
EXPLAINED = 0.2


@dataclass(frozen=True, slots=True)
class MetricSpot:
    """Where a metric differs most: its median on base there, the switch that selects these calls, the main feature's median."""

    base: float
    switch: str
    feature: str | None
    x: float | None


def happened(case: Case, decision: Decision, metrics: Mapping[str, MetricFinding], spots: Mapping[str, MetricSpot]) -> Claim:
    """Return the claim of how a function's cost changed, without the cause."""
    name = case.info.name
    if decision.verdict in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE):
        return claim("happened", name=name, reason=decision.reason)
    rests_on = metric_of_verdict(case, decision)
    main = rests_on if rests_on in metrics else main_metric(metrics, decision.verdict)
    if main is None or main not in metrics or metrics[main].ratio is None or (main == rests_on and _shows_elsewhere(case, main)):
        return claim("happened-by-change", name=name, change=case.info.change, reason=decision.reason)
    if too_short(case.info.id, main, case.ledger):
        return claim("happened-in-all-of-its-own" if main == "self_ns" else "happened-in-all", name=name, **_in_all(case, main))
    is_own = main == "self_ns" and "wall_ns" in metrics  # with callees it did not clearly move
    beside = claim("in-all-beside", **_in_all(case, main)) if metrics[main].overstates else None
    cost = cost_changed(metrics[main], spots.get(main), case.config, is_own=is_own)
    return claim("happened-to-cost", name=name, cost=cost, beside=beside)


def _shows_elsewhere(case: Case, metric: str) -> bool:
    """Return whether most of what a change costs is no part of what all its calls take: then their own ratio is not what happened."""
    if case.guilt is None or case.guilt.total_ns <= 0 or metric_of(metric).unit != "ns":
        return False
    base, head = (case.ledger.at_points(metric, side, case.info.id) for side in Side)
    return float((head - base).sum()) < POLICY.most * case.guilt.total_ns


def _in_all(case: Case, metric: str) -> Mapping[str, Fact]:
    """Return what all calls take in a run of the point where both sides differ most, and how many they are."""
    place = case.ledger.place[case.info.id]
    by_point = {}
    for point in case.ledger.points:
        sums = [(case.ledger.books[point, side].sums(metric), case.ledger.books[point, side].calls) for side in Side]
        by_point[point] = [(float(np.median(ns[:, place])), float(np.median(calls[:, place]))) for ns, calls in sums if ns is not None]
    at, (base, head) = max(by_point.items(), key=lambda at_point: abs(at_point[1][1][0] - at_point[1][0][0]))
    return {"run": run_at(at, case.ledger), "base": _took(*base), "head": _took(*head), "base_calls": base[1], "head_calls": head[1]}


def _took(ns: float, calls: float) -> Claim:
    """Return what so many calls took, or what they took less than, where probes resolve no more."""
    return claim("took", ns=ns) if ns >= RESOLUTION_NS * calls else claim("took-less", ns=RESOLUTION_NS * calls)


def metric_of_verdict(case: Case, decision: Decision) -> str | None:
    """Return the metric that a verdict rests on: a count that alone decides, or else a time that is known to differ, if any is.

    What is known of the time with callees may be less sure by far than of that without, where these take most of it.
    """
    if decision.grown:
        return decision.grown[0]
    way = {Verdict.REGRESSION: Direction.UP, Verdict.IMPROVEMENT: Direction.DOWN}.get(decision.verdict)
    return next((metric for metric in ("wall_ns", "self_ns") if case.direction(metric) is way), None)


def main_metric(metrics: Mapping[str, MetricFinding], verdict: Verdict) -> str | None:
    """Return the time that shows the change best: with callees where that clearly moved, else without."""
    for metric in ("wall_ns", "self_ns"):
        time = metrics.get(metric)
        if time is not None and time.ratio is not None:
            moved = time.ratio.low > 1 if verdict is Verdict.REGRESSION else time.ratio.high < 1
            if moved:
                return metric
    return None


def cost_changed(finding: MetricFinding, spot: MetricSpot | None, config: CompareConfig, *, is_own: bool) -> Claim:
    """Return how a metric grew: by which cost functions, where, from what to what, and how surely."""
    ratio = finding.ratio
    assert ratio is not None
    mean = is_mean(finding.stratum)
    has_input = spot is not None and spot.feature and spot.x is not None
    return claim(
        "cost-changed",
        metric=finding.metric,
        is_own=is_own,
        growth=_growth(finding, spot, spot.base * ratio.value if spot else math.nan),
        stratum=None if mean else finding.stratum,
        over=finding.stratum.removeprefix(MEAN) if mean else None,
        switch=spot.switch if spot else None,
        feature=spot.feature if spot and has_input else None,
        at=spot.x if spot else None,
        base=spot.base if spot else None,
        ratio=ratio.figures,
        runs=(ratio.runs_base, ratio.runs_head),
        confidence=config.confidence,
    )


def _growth(finding: MetricFinding, spot: MetricSpot | None, head: float) -> Claim | None:
    """Return the cost functions where they account for the costs that are quoted, base's at `spot` and `head`; else the classes.

    Costs that are quoted of no input, as means are, say nothing of the functions: then the classes must have changed as the cost did.
    """
    if finding.base is None or finding.head is None:
        return None
    explains = _explains((finding.base.growth, finding.head.growth), finding)
    leads = leading_term(finding.base, finding.feature), leading_term(finding.head, finding.feature)
    if leads[0] and leads[1] and (finding.class_changed or leads[0].factors == leads[1].factors) and (leads[0].factors or leads[1].factors):
        x, unit = spot.x if spot is not None else None, metric_of(finding.metric).unit
        sides = (_formulas(finding.base, leads[0], x), _formulas(finding.head, leads[1], x))
        for before, after in zip(*sides, strict=True):
            if spot is None or x is None:
                is_met = explains or not finding.class_changed
            else:
                is_met = _is_near(before.cost, spot.base, unit) and _is_near(after.cost, head, unit)
            if is_met:
                return claim("formulas", base=before.formula, head=after.formula)
    if finding.class_changed and finding.feature and explains:
        return claim("classes", base=finding.base.growth, head=finding.head.growth, feature=finding.feature)
    return None


def _explains(classes: tuple[CostClass, CostClass], finding: MetricFinding) -> bool:
    """Return whether the growth changed as the cost did: one that is slower by a lower growth would read as a contradiction."""
    if not set(classes) <= set(RISING):
        return False
    before, after = map(RISING.index, classes)
    return finding.ratio is None or (after > before) == (finding.ratio.value > 1)


@dataclass(frozen=True, slots=True)
class _Formula:
    """A cost function as a headline tells it, and the cost by it at the quoted input, NaN where none is quoted."""

    formula: Claim
    cost: float


def _formulas(annotation: Annotation, lead: Term, x: float | None) -> tuple[_Formula, _Formula]:
    """Return a cost function by its leading term alone, and with its constant, which may be most of it at small inputs."""
    unit = metric_of(annotation.metric).unit
    grows = shape(lead) if lead.factors else None
    values = {name: np.array([math.nan if x is None else x]) for name, _ in lead.factors}
    cost = lead.coefficient * float(product(lead.factors, values, 1)[0])
    constant = next((term.coefficient for term in annotation.scopes[0].terms if not term.factors), 0.0) if lead.factors else 0.0
    alone, whole = (
        _Formula(claim("formula", coefficient=lead.coefficient, grows=grows, constant=added, unit=unit), cost + added)
        for added in (0.0, constant)
    )
    return alone, whole


def _is_near(cost: float, quoted: float, unit: str) -> bool:
    return abs(cost - quoted) <= max(EXPLAINED * quoted, RESOLUTION_NS if unit == "ns" else 0.0)
