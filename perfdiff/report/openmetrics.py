"""The report as OpenMetrics text (1.0), for databases of time series.

Every family is a gauge, and `# EOF` is a comment to older readers, so that the text can also be collected as Prometheus' own format.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

from perfdiff.analysis.findings import Findings, FunctionFinding, Ratio, Verdict
from perfdiff.records.schema import Side
from perfdiff.report import wording
from perfdiff.report.document import Document, is_cut_short
from perfdiff.report.labels import LONGEST, labels
from perfdiff.report.printable import shortened

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

# OpenMetrics counts in base units: seconds, not nanoseconds.
_UNITS = {"ns": ("seconds", 1e-9), "bytes": ("bytes", 1.0), "count": ("events", 1.0)}


def render(document: Document) -> str:
    """Return the verdict, and for each function and metric base's and head's cost of a call and their ratio with its bounds."""
    from prometheus_client.openmetrics.exposition import generate_latest

    findings = document.findings
    families = [*_comparison(findings), *_of_functions(findings), *_of_metrics(findings)]
    collected = SimpleNamespace(collect=lambda: [family for family in families if family.samples])
    text: bytes = generate_latest(collected)  # type: ignore[no-untyped-call]
    return text.decode()


def _comparison(findings: Findings) -> Iterator[Metric]:
    family = _gauge("perfdiff_comparison", "What was compared, and the verdict; always 1.")
    sides = {"base": findings.base, "head": findings.head}
    revisions = {name: shortened(revision.rev, LONGEST) for name, revision in sides.items()}
    commits = {f"{name}_commit": revision.commit or "" for name, revision in sides.items()}
    _add(family, 1.0, {**revisions, **commits, "verdict": findings.verdict.value})
    yield family
    cut_short = _gauge("perfdiff_cut_short", "1 where measuring was cut short, so that the verdict is the answer so far; else none.")
    if is_cut_short(findings):
        _add(cut_short, 1.0, {**revisions, **commits})
    yield cut_short


def _of_functions(findings: Findings) -> Iterator[Metric]:
    regressed = _gauge(
        "perfdiff_regressed",
        "1 where the function costs more at equal inputs and nobody accepted that, else 0; none where it is inconclusive.",
    )
    calls = _gauge("perfdiff_calls", "Calls of the function in a run.")
    for function, finding in _labelled_functions(findings):
        if finding.verdict is not Verdict.INCONCLUSIVE:
            _add(regressed, float(finding.is_open_regression), function)
        for side, count in zip(Side, (finding.calls_base, finding.calls_head), strict=True):
            _add(calls, count, {**function, "side": side.value})
    yield regressed
    yield calls


def _of_metrics(findings: Findings) -> Iterator[Metric]:
    costs = {
        unit: _gauge(f"perfdiff_cost_{name}", "Cost of a call, of run_ns of a run, at the inputs where base and head differ most.", name)
        for unit, (name, _) in _UNITS.items()
    }
    confidence = wording.percent(findings.confidence)
    ratio = _gauge("perfdiff_ratio", "Head's cost over base's at equal inputs.")
    low = _gauge("perfdiff_ratio_low", f"Lower bound of the ratio's {confidence} interval.")
    high = _gauge("perfdiff_ratio_high", f"Upper bound of the ratio's {confidence} interval.")
    for function, finding in _labelled_functions(findings):
        for name, both, ratio_found in _figures(finding):
            named = {**function, "metric": name}
            unit = wording.metric_unit(name)
            for side, cost in zip(Side, both, strict=True):
                _add(costs[unit], None if cost is None else cost * _UNITS[unit][1], {**named, "side": side.value})
            if ratio_found is not None:
                _add(ratio, ratio_found.value, named)
                _add(low, ratio_found.low, named)
                _add(high, ratio_found.high, named)
    yield from (*costs.values(), ratio, low, high)


def _figures(finding: FunctionFinding) -> Iterator[tuple[str, tuple[float | None, float | None], Ratio | None]]:
    """Yield each metric and counter with base's and head's cost, and their ratio."""
    for metric in finding.metrics.values():
        yield metric.metric, wording.both_costs(metric), metric.ratio
    for count in finding.counts.values():
        if count.counter not in finding.metrics:
            yield count.counter, (count.base, count.head), count.ratio


def _labelled_functions(findings: Findings) -> Iterator[tuple[dict[str, str], FunctionFinding]]:
    label_by_id = labels(findings.functions)
    for finding in findings.functions:
        label = label_by_id[finding.info.id]
        yield {"function": label.name, "file": label.file}, finding


def _gauge(name: str, says: str, unit: str = "") -> Metric:
    from prometheus_client.metrics_core import GaugeMetricFamily  # takes as long to import as a report to render

    return GaugeMetricFamily(name, says, unit=unit)


def _add(family: Metric, value: float | None, labelled: dict[str, str]) -> None:
    """Add a sample to a family; what is absent has none."""
    if value is not None and not math.isnan(value):
        family.add_sample(family.name, labelled, value)
