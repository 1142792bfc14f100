"""Findings of trends whose texts are safe to show anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.report.printable import printable, printable_lines, printable_values


def clean(findings: TrendFindings, shown_as: Callable[[TrendFindings], TrendFindings] = printable_values) -> TrendFindings:
    """Return a copy in which every text is printable and on one line; lines of sources keep their indentation, tabs expanded.

    With `shown_as=printable_but_files`, places lead to their files.
    """
    sides = findings.experiment.sides
    without = {side: replace(counted, sources={}) for side, counted in sides.items()}
    shown = shown_as(replace(findings, experiment=replace(findings.experiment, sides=without)))
    with_sources = {
        side: replace(
            counted,
            sources={
                printable(file): tuple(" ".join(printable_lines(line)) for line in lines) for file, lines in sides[side].sources.items()
            },
        )
        for side, counted in shown.experiment.sides.items()
    }
    return replace(shown, experiment=replace(shown.experiment, sides=with_sources))
