"""The report as one self-contained HTML file: no script, no network, dark and light, for wide and narrow screens and paper."""

from __future__ import annotations

from perfdiff import units
from perfdiff.report import wording
from perfdiff.report.blocks import Diff, DiffLine, Facts, Items, Listing, Plot, Sentence, Table
from perfdiff.report.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, chart, forest
from perfdiff.report.document import Document
from perfdiff.report.printable import quoted_parts

_KINDS = {Sentence: "sentence", Facts: "facts", Items: "items", Table: "table", Listing: "listing", Diff: "diff", Plot: "plot"}
_DIFF_CLASSES = {"+": "added", "-": "removed", "@": "gap", " ": "same"}
# A longer page is searched, not read; the JSON report holds all functions.
MOST_SECTIONS = 100


def render(document: Document) -> str:
    """Return the report as HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("perfdiff.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["kind"] = lambda block: _KINDS[type(block)]
    environment.filters["chart"] = chart
    environment.filters["diff_class"] = lambda line: _DIFF_CLASSES[line.mark]
    environment.filters["count"] = units.count
    environment.filters["parts"] = quoted_parts
    sections = document.functions[:MOST_SECTIONS]
    return environment.get_template("report.html.j2").render(
        document=document,
        findings=document.findings,
        verdict=wording.ANSWERS[document.findings.verdict],
        sections=sections,
        left_out=len(document.functions) - len(sections),
        shown={section.id for section in sections},
        forest=forest([section.span for section in document.functions]),
        frame={"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM},
        sides=[("base", document.findings.base), ("head", document.findings.head)],
        runs=runs,
    )


def runs(diff: Diff) -> list[tuple[str, list[DiffLine]]]:
    """Return a diff's lines in runs of one mark, so that a run is one element."""
    grouped: list[tuple[str, list[DiffLine]]] = []
    for line in diff.lines:
        if not grouped or grouped[-1][0] != line.mark:
            grouped.append((line.mark, []))
        grouped[-1][1].append(line)
    return grouped
