"""Everything that a comparison found out about one function, for a terminal."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from perfdiff import units
from perfdiff.analysis.findings import Findings, FunctionFinding, MetricFinding
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Side
from perfdiff.report import terminal, wording
from perfdiff.report.blocks import Cell, Column, Items, Table
from perfdiff.report.document import SampleLoader
from perfdiff.report.function import function_section
from perfdiff.report.printable import printable, printable_values

# Strata of the measured calls: quarters are too coarse to see a bend, more than eight rows are not read.
_STRATA = 8


def explain(
    finding: FunctionFinding, findings: Findings, samples: SampleLoader | None = None, *, width: int = 100, colour: bool = False
) -> str:
    """Return all metrics, annotations, coefficients, the chain, causes and the source diff of a function of `findings` as text.

    With `samples`, also what its calls cost on both sides in equally frequent ranges of the main feature.
    """
    clean: FunctionFinding = printable_values(finding)
    section = function_section(clean, replace(findings, points=printable_values(findings.points)))
    strata = _strata(finding, samples) if samples else None
    details = (*([strata] if strata else []), *section.details, *_rules(clean, findings))
    return terminal.render_section(replace(section, details=details), width=width, colour=colour)


def _rules(finding: FunctionFinding, findings: Findings) -> Iterator[Items]:
    """Yield the rules that decided on a function, and on the comparison: the last one of a function, the first one of a comparison."""
    for title, rules in (("Rules that held", finding.rules), ("Rules that held for the whole", findings.rules)):
        if rules:
            yield Items(title, tuple(f"{rule.name}: {rule.asks}" for rule in rules), ordered=True)


def _strata(finding: FunctionFinding, samples: SampleLoader) -> Table | None:
    """Return base's and head's median cost within equally frequent ranges of the main feature."""
    metric = wording.leading(finding)
    if metric is None or metric.feature is None:
        return None
    columns = {side: _columns(finding.info.id, side, metric, metric.feature, samples) for side in Side}
    base, head = columns[Side.BASE], columns[Side.HEAD]
    if base is None or head is None:
        return None
    rows = [
        _stratum_row(metric.metric, label, [y[(x >= low) & (x <= high)] for x, y in (base, head)])
        for label, low, high in _ranges(np.concatenate([base[0], head[0]]))
    ]
    columns_shown = (
        Column(printable(metric.feature)),
        Column("calls base", right=True),
        Column("calls head", right=True),
        Column("base, median", right=True),
        Column("head, median", right=True),
        Column("ratio", right=True),
    )
    return Table(f"Measured calls, by input ({wording.metric_says(metric.metric)})", columns_shown, tuple(rows)) if rows else None


def _ranges(values: Floats) -> Iterator[tuple[str, float, float]]:
    """Yield a label and the first and last of the different values of each stratum: single values where they are few."""
    different = np.unique(values)
    if len(different) <= _STRATA:
        yield from ((units.count(value), value, value) for value in different.tolist())
        return
    edges = np.unique(np.searchsorted(different, np.quantile(values, np.linspace(0, 1, _STRATA + 1)[1:])))
    for first, last in itertools.pairwise([-1, *edges.tolist()]):
        low, high = float(different[first + 1]), float(different[last])
        yield f"{units.count(low)} to {units.count(high)}" if low < high else units.count(low), low, high


def _stratum_row(metric: str, label: str, within: list[Floats]) -> tuple[Cell, ...]:
    base, head = (float(np.median(costs)) if len(costs) else None for costs in within)
    ratio = units.ratio(head / base) if base and head is not None else wording.ABSENT
    counts = [units.count(len(costs)) for costs in within]
    return (Cell(label), *map(Cell, counts), Cell(wording.amount(metric, base)), Cell(wording.amount(metric, head)), Cell(ratio))


def _columns(function: int, side: Side, metric: MetricFinding, feature: str, samples: SampleLoader) -> tuple[Floats, Floats] | None:
    table = samples(function, side)
    names = [] if table is None else [both_finite.name for both_finite in table.features]
    if table is None or feature not in names or metric.metric not in table.metrics:
        return None
    x, y = table.values[:, names.index(feature)], table.metrics[metric.metric]
    both_finite = np.isfinite(x) & np.isfinite(y)
    return (x[both_finite], y[both_finite]) if both_finite.any() else None
