"""The report as OpenMetrics text (1.0), for databases of time series.

Every family is a gauge, and `# EOF` is a comment to older readers, so that the text can also be collected as Prometheus' own format.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from perfdiff.analysis.findings import Findings, FunctionFinding, Ratio, Verdict
from perfdiff.records.schema import Side
from perfdiff.report import wording
from perfdiff.report.document import Document
from perfdiff.report.labels import LONGEST, labels
from perfdiff.report.printable import shortened

# OpenMetrics counts in base units: seconds, not nanoseconds.
_UNITS = {"ns": ("seconds", 1e-9), "bytes": ("bytes", 1.0), "count": ("events", 1.0)}


@dataclass(slots=True)
class _Family:
    """A metric family: what it tells, its unit, and its samples as labels with a value."""

    name: str
    says: str
    unit: str = ""
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)

    def add(self, value: float | None, labelled: Mapping[str, str]) -> None:
        """Add a sample; what is absent has none."""
        if value is not None and not math.isnan(value):
            self.samples.append((labelled, value))

    def lines(self) -> Iterator[str]:
        """Yield the family's lines, none where it has no samples."""
        if not self.samples:
            return
        yield f"# TYPE {self.name} gauge"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {_escaped(self.says)}"
        for labelled, value in self.samples:
            yield _sample(self.name, labelled, value)


def render(document: Document) -> str:
    """Return the verdict, and for each function and metric base's and head's cost of a call and their ratio with its bounds."""
    findings = document.findings
    families = [_comparison(findings), *_of_functions(findings), *_of_metrics(findings)]
    return "".join(f"{line}\n" for line in [*(line for family in families for line in family.lines()), "# EOF"])


def _comparison(findings: Findings) -> _Family:
    family = _Family("perfdiff_comparison", "What was compared, and the verdict; always 1.")
    sides = {"base": findings.base, "head": findings.head}
    revisions = {name: shortened(revision.rev, LONGEST) for name, revision in sides.items()}
    commits = {f"{name}_commit": revision.commit or "" for name, revision in sides.items()}
    family.add(1.0, {**revisions, **commits, "verdict": findings.verdict.value})
    return family


def _of_functions(findings: Findings) -> Iterator[_Family]:
    regressed = _Family(
        "perfdiff_regressed",
        "1 where the function costs more at equal inputs and nobody accepted that, else 0; none where it is inconclusive.",
    )
    calls = _Family("perfdiff_calls", "Calls of the function in a run.")
    for function, finding in _labelled_functions(findings):
        if finding.verdict is not Verdict.INCONCLUSIVE:
            regressed.add(float(finding.is_open_regression), function)
        for side, count in zip(Side, (finding.calls_base, finding.calls_head), strict=True):
            calls.add(count, {**function, "side": side.value})
    yield regressed
    yield calls


def _of_metrics(findings: Findings) -> Iterator[_Family]:
    costs = {
        unit: _Family(f"perfdiff_cost_{name}", "Cost of a call, of run_ns of a run, at the inputs where base and head differ most.", name)
        for unit, (name, _) in _UNITS.items()
    }
    confidence = wording.percent(findings.confidence)
    ratio = _Family("perfdiff_ratio", "Head's cost over base's at equal inputs.")
    low = _Family("perfdiff_ratio_low", f"Lower bound of the ratio's {confidence} interval.")
    high = _Family("perfdiff_ratio_high", f"Upper bound of the ratio's {confidence} interval.")
    for function, finding in _labelled_functions(findings):
        for name, both, found in _figures(finding):
            named = {**function, "metric": name}
            unit = wording.metric_unit(name)
            for side, cost in zip(Side, both, strict=True):
                costs[unit].add(None if cost is None else cost * _UNITS[unit][1], {**named, "side": side.value})
            if found is not None:
                ratio.add(found.value, named)
                low.add(found.low, named)
                high.add(found.high, named)
    yield from (*costs.values(), ratio, low, high)


def _figures(finding: FunctionFinding) -> Iterator[tuple[str, tuple[float | None, float | None], Ratio | None]]:
    """Yield each metric and counter with base's and head's cost, and their ratio."""
    for metric in finding.metrics.values():
        yield metric.metric, wording.both_costs(metric), metric.ratio
    for count in finding.counts.values():
        if count.counter not in finding.metrics:
            yield count.counter, (count.base, count.head), count.ratio


def _labelled_functions(findings: Findings) -> Iterator[tuple[dict[str, str], FunctionFinding]]:
    known = labels(findings.functions)
    for finding in findings.functions:
        label = known[finding.info.id]
        yield {"function": label.name, "file": label.file}, finding


def _sample(name: str, labelled: Mapping[str, str], value: float) -> str:
    given = ",".join(f'{key}="{_escaped(text)}"' for key, text in labelled.items())
    return f"{name}{{{given}}} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
