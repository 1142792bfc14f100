"""The formats a report comes in, by the name that `--format` takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from perfdiff.report import github, html, json_report, junit, markdown, openmetrics, sarif, terminal
from perfdiff.report.document import Document


class Renderer(Protocol):
    """A format: a pure function from the document to text."""

    def __call__(self, document: Document, /) -> str:
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
}

# Formats that draw plots, and so need the samples when the document is built.
DRAWING = frozenset({"html"})
