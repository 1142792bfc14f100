"""The answer of `predict --production`, as text and as JSON."""

from __future__ import annotations

from perfdiff.analysis.annotations.consequences import InUse
from perfdiff.report.terminal import render_blocks
from perfdiff.report.usage import answer, blocks, json_document

__all__ = ["answer", "json_document", "text"]


def text(costs: InUse, *, width: int = 100, colour: bool = False) -> str:
    """Return the answer in a sentence, the functions that make it, and what is not known."""
    return render_blocks(list(blocks(costs)), width=width, colour=colour)
