"""Trends for a terminal and for a ticket."""

from __future__ import annotations

from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.report import markdown as tickets
from perfdiff.report import terminal
from perfdiff.report.blocks import Sentence, Tone
from perfdiff.report.trends import wording
from perfdiff.report.trends.clean import clean
from perfdiff.report.trends.document import answered, blocks, title


def answer(found: TrendFindings) -> str:
    """Return the answer in a sentence, its texts printable."""
    return wording.answer(clean(found))


def text(found: TrendFindings, *, width: int = 100, colour: bool = False) -> str:
    """Return the report as text of at most `width` columns where names allow it, with ANSI colours only if `colour`."""
    shown = clean(found)
    return terminal.render_blocks([Sentence(title(shown), Tone.MUTED), answered(shown), *blocks(shown)], width=width, colour=colour)


def markdown(found: TrendFindings) -> str:
    """Return the report as Markdown for a ticket: at most 60,000 bytes, the answer first."""
    shown = clean(found)
    return tickets.render_blocks(answered(shown), title(shown), blocks(shown))
