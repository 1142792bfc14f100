"""Figures of one report that belong together and do not agree."""

from __future__ import annotations

import math
from collections.abc import Iterator

from perfdiff.analysis.compare.comparison import is_mean
from perfdiff.analysis.findings import Findings, FunctionFinding, MetricFinding, Verdict
from perfdiff.records.metrics import metric_of
from perfdiff.report import wording

ROUNDING = 0.02  # figures are told with three digits
APART = 2.0  # a typical call speaks for all where its difference, times the calls, is the extra time within this factor


def contradictions(findings: Findings) -> list[str]:
    """Return what does not agree in the blocks on functions that are told to be slower or faster."""
    judged = [each for each in findings.functions if each.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT)]
    return [f"{each.info.name}: {says}" for each in judged for says in _of(each)]


def _of(finding: FunctionFinding) -> Iterator[str]:
    metric = wording.leading(finding)
    if metric is not None and metric.ratio is not None and not metric.ratio.is_unknown:
        yield from _costs(metric)
        yield from _calls(finding, metric)
    for cause in finding.causes:
        for item in cause.evidence[:1]:
            if item.head <= item.base and cause.name.startswith("more-"):
                yield f"cause {cause.name} by {item.counter}, {item.base} before and {item.head} now: {cause.says}"
    if finding.extra_ci_ns is not None and not finding.extra_ci_ns[0] <= finding.extra_ns <= finding.extra_ci_ns[1]:
        yield f"extra {finding.extra_ns} outside of {finding.extra_ci_ns}"


def _costs(metric: MetricFinding) -> Iterator[str]:
    """Compare the costs of a call with the ratio beside them."""
    base, head = wording.both_costs(metric)
    if base and head and metric.ratio is not None and abs(math.log(head / base / metric.ratio.value)) > ROUNDING:
        yield f"{wording.costs(metric)} a call beside {metric.ratio.value:.3g} ({metric.metric}, {metric.stratum!r})"


def _calls(finding: FunctionFinding, metric: MetricFinding) -> Iterator[str]:
    """Compare what a call costs more, times the calls, with the extra time, where the cost is said of all calls alike."""
    base, head = wording.both_costs(metric)
    is_of_all = not metric.stratum or is_mean(metric.stratum)
    if base is None or head is None or not finding.calls_base or not finding.calls_head or metric_of(metric.metric).unit != "ns":
        return
    if wording.cost_at(metric) or not is_of_all or finding.extra_ci_ns is None or abs(finding.calls_head / finding.calls_base - 1) > 0.05:
        return
    seen = (head - base) * finding.calls_head
    if not 1 / APART <= seen / finding.extra_ns <= APART:
        yield f"{wording.costs(metric)} a call, {finding.calls_head:.6g} calls, but {finding.extra_ns:.3g} ns ({metric.metric}, {metric.stratum!r}): {finding.headline}"
