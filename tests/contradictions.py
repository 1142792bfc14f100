"""Figures of one block of a report that belong together and do not agree."""

from __future__ import annotations

from collections.abc import Iterator

from perfdiff.analysis.findings import Findings, FunctionFinding, MetricFinding, Verdict
from perfdiff.models.clock import RESOLUTION_NS
from perfdiff.records.metrics import metric_of
from perfdiff.report import wording
from perfdiff.report.function import answer_facts
from perfdiff.report.sentences.catalogue import say

ROUNDED = 1.25  # a reader who works figures out of others, told with three digits each, finds them again within this factor
APART = 2.0  # what calls take more, times the calls, is the extra time within this factor: a typical call is not the mean of all


def contradictions(findings: Findings) -> list[str]:
    """Return what does not agree in the blocks on functions that are told to be slower."""
    guilty = [each for each in findings.functions if each.verdict is Verdict.REGRESSION and each.rank is not None]
    return [f"`{each.info.name}`: {says}" for each in guilty for says in _of(each, findings)]


def _of(finding: FunctionFinding, findings: Findings) -> Iterator[str]:
    facts = {fact.label: fact.text for fact in answer_facts(finding, findings.confidence, len(findings.points)).facts}
    metric = wording.leading(finding)
    if metric is not None and metric.ratio is not None and not metric.ratio.is_unknown and "cost" in facts:
        yield from _ratio(metric, facts)
        yield from _calls(finding, metric, facts)
    for cause in finding.causes:
        for item in cause.evidence[:1]:
            if item.head <= item.base and cause.name.startswith(("more-", "deeper-", "first-")):
                yield f"{cause.name} by {item.counter}, {item.base:.6g} before and {item.head:.6g} now: {say(cause.says)}"
    if finding.extra_ci_ns is not None and not finding.extra_ci_ns[0] <= finding.extra_ns <= finding.extra_ci_ns[1]:
        yield f"{finding.extra_ns:.6g} ns are not within {finding.extra_ci_ns}"


def _ratio(metric: MetricFinding, facts: dict[str, str]) -> Iterator[str]:
    """Compare the costs of a call with the ratio beside them, unless that says of what else it is."""
    base, head = wording.both_costs(metric)
    if base is None or head is None or base < RESOLUTION_NS or metric.ratio is None or "(over all inputs)" in facts["ratio"]:
        return
    if not 1 / ROUNDED <= head / base / metric.ratio.value <= ROUNDED:
        yield f"cost {facts['cost']} beside ratio {facts['ratio']}"


def _calls(finding: FunctionFinding, metric: MetricFinding, facts: dict[str, str]) -> Iterator[str]:
    """Compare what a call costs more, times the calls, with the extra time, unless the block says what all take, or where else it is."""
    base, head = wording.both_costs(metric)
    if base is None or head is None or metric_of(metric.metric).unit != "ns" or finding.extra_ci_ns is None or wording.cost_at(metric):
        return
    is_elsewhere = f"{finding.info.change}: {say(finding.reason)}" in say(finding.headline) and bool(finding.causes)
    if "in all" in facts or " more in all" in facts.get("share", "") or is_elsewhere or not finding.calls_base or not finding.calls_head:
        return
    more = head * finding.calls_head - base * finding.calls_base
    if not 1 / APART <= more / finding.extra_ns <= APART:
        yield f"cost {facts['cost']} and {facts['calls']}, but {facts.get('share')}"
