"""Contrasts of logarithms as ratios, with the intervals that are judged and reported."""

from __future__ import annotations

import math
from dataclasses import replace

from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.stats.runs import Contrast
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.analysis.sums.rates import per_call
from perfdiff.models.clock import HIDDEN_NS
from perfdiff.records.metrics import metric_of


def as_ratio(seen: Contrast, confidence: float, comparisons: int = 1) -> Ratio:
    """Return a contrast of logarithms as a factor with its interval."""
    low, high = seen.interval(confidence, comparisons)
    return Ratio(_exp(seen.effect), _exp(low), _exp(high), seen.runs_base, seen.runs_head)


def as_resolved(ratio: Ratio, comparison: Comparison, ledger: Ledger) -> Ratio:
    """Return a ratio of a compared metric with an interval that covers what probes cannot resolve of times."""
    if metric_of(comparison.metric).unit != "ns":
        return ratio
    base_ns, _ = per_call(comparison.function, comparison.metric, ledger)
    return with_hidden(ratio, max(base_ns, comparison.typical.cost if comparison.typical else 0.0))


def with_hidden(ratio: Ratio, cost_ns: float) -> Ratio:
    """Widen a ratio of times towards 1: both sides may have cost up to `HIDDEN_NS` a call more than the `cost_ns` that base shows."""
    share = cost_ns / (cost_ns + HIDDEN_NS)
    low, high = 1 + (ratio.low - 1) * share, 1 + (ratio.high - 1) * share
    return replace(ratio, low=min(low, ratio.low), high=max(high, ratio.high))


def _exp(value: float) -> float:
    return math.exp(min(max(value, -700.0), 700.0))
