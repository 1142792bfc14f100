"""Trends for a terminal and for a ticket."""

from __future__ import annotations

from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.report import markdown as tickets
from perfdiff.report import terminal
from perfdiff.report.blocks import Block, Sentence, Tone
from perfdiff.report.trends import wording
from perfdiff.report.trends.clean import clean
from perfdiff.report.trends.document import answered, blocks, title


def answer(found: TrendFindings) -> str:
    """Return the answer in a sentence, its texts printable."""
    return wording.answer(clean(found))


def text(found: TrendFindings, *, width: int = 100, colour: bool = False, search: tuple[Block, ...] = ()) -> str:
    """Return the report as text of at most `width` columns where names allow it, with ANSI colours only if `colour`.

    The `search` that led to it stands ahead.
    """
    shown = clean(found)
    told = [*search, Sentence(title(shown), Tone.MUTED), answered(shown), *blocks(shown)]
    return terminal.render_blocks(told, width=width, colour=colour, all_rows=bool(search))


def markdown(found: TrendFindings, search: tuple[Block, ...] = ()) -> str:
    """Return the report as Markdown for a ticket: at most 60,000 bytes, the answer first."""
    shown = clean(found)
    told: list[Block] = [*search, answered(shown), *blocks(shown)]
    first, *rest = told
    assert isinstance(first, Sentence)
    return tickets.render_blocks(first, title(shown), tuple(rest))
