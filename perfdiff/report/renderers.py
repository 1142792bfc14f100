"""The formats a report comes in, by the name that `--format` takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from perfdiff.report import github, html, json_report, junit, markdown, openmetrics, sarif, terminal
from perfdiff.report.document import Document
from perfdiff.report.profiles import firefox, folded, pprof, speedscope


class Renderer(Protocol):
    """A format: a pure function from the document to text, or to the bytes of a file that is none."""

    def __call__(self, document: Document, /) -> str | bytes:
        """Return the whole report in this format."""
        ...


RENDERERS: Mapping[str, Renderer] = {
    "text": terminal.render,
    "markdown": markdown.render,
    "html": html.render,
    "json": json_report.render,
    "sarif": sarif.render,
    "junit": junit.render,
    "github": github.render,
    "openmetrics": openmetrics.render,
    "folded": folded.render,
    "folded-base": folded.render_base,
    "folded-head": folded.render_head,
    "speedscope": speedscope.render,
    "pprof": pprof.render,
    "firefox": firefox.render,
}

# Formats that draw plots, and so need the samples when the document is built.
DRAWING = frozenset({"html"})
