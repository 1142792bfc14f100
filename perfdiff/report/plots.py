"""Points and curves of a function's cost, as data."""

from __future__ import annotations

from collections.abc import Callable

from perfdiff.analysis.findings import FunctionFinding
from perfdiff.records.schema import SampleTable, Side
from perfdiff.report.blocks import Plot


def function_plot(finding: FunctionFinding, samples: Callable[[int, Side], SampleTable | None]) -> Plot | None:
    """Return the plot of a function's leading metric."""
    return None
