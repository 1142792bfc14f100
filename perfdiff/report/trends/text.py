"""Trends for a terminal and for a ticket."""

from __future__ import annotations

from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.report import terminal
from perfdiff.report.trends import wording
from perfdiff.report.trends.clean import clean
from perfdiff.report.trends.document import blocks


def answer(found: TrendFindings) -> str:
    """Return the answer in a sentence, its texts printable."""
    return wording.answer(clean(found))


def text(found: TrendFindings, *, width: int = 100, colour: bool = False) -> str:
    """Return the report as text of at most `width` columns where names allow it, with ANSI colours only if `colour`."""
    return terminal.render_blocks(list(blocks(clean(found))), width=width, colour=colour)
