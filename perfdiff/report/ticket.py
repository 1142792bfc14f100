"""The folder for a ticket: the report in three formats, its plots as pictures, and how to reproduce them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from perfdiff import units
from perfdiff.analysis.annotations.consequences import Consequences
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.analysis.telling.minimal import PointFinding, telling
from perfdiff.fuzzing.findings import SearchFindings
from perfdiff.report import document, html, json_report, markdown, wording
from perfdiff.report.blocks import Plot
from perfdiff.report.document import Document, SampleLoader
from perfdiff.report.drawing import draw

TEXT, PAGE, DATA, SCRIPT, PATCH, PLOTS = "ticket.md", "report.html", "report.json", "reproduce.sh", "changes.patch", "plots"
INPUTS = "inputs"
NAMES = frozenset((TEXT, PAGE, DATA, SCRIPT, PATCH, PLOTS, INPUTS))

_MOST_DRAWN = 10  # functions; each takes half a second, and nobody looks at more
_LONGEST_NAME = 80  # of a function in the name of a file


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a ticket is written from; homes and known forms of secrets are taken out of it already.

    `script` compares again; `shown` is the cheapest point that shows the difference, and `at_point` the command that compares there.
    `variables` are those of the environment that builds depend on; `patch` is what the script applies, "" where that is nothing. What a
    search found, `searched`, has its files in the folder `INPUTS`; their contents by name are `inputs`.
    """

    findings: Findings
    samples: SampleLoader
    script: str
    variables: Mapping[str, str]
    shown: PointFinding | None = None
    at_point: str | None = None
    patch: str = ""
    consequences: Consequences | None = None
    searched: SearchFindings | None = None
    inputs: Mapping[str, bytes] = field(default_factory=dict)


def files(ticket: Ticket) -> Iterator[tuple[str, bytes]]:
    """Yield the path of each file in the ticket's folder with its content."""
    report = document.build(ticket.findings, ticket.samples, ticket.consequences, ticket.searched)
    yield DATA, json_report.render(report).encode()
    yield PAGE, html.render(report).encode()
    yield SCRIPT, ticket.script.encode(errors="surrogateescape")
    if ticket.patch:
        yield PATCH, ticket.patch.encode(errors="surrogateescape")
    yield from ((f"{INPUTS}/{name}", content) for name, content in ticket.inputs.items())
    names = []
    for name, plot in _plots(report):
        picture = draw(plot)
        yield f"{PLOTS}/{name}.svg", picture.svg
        yield f"{PLOTS}/{name}.png", picture.png
        names.append(name)
    yield TEXT, markdown.render(report, tuple(_lead(ticket, names))).encode()


def _plots(report: Document) -> Iterator[tuple[str, Plot]]:
    """Yield the plots of what differs, or is open; where nothing is, those of the functions that are told of first."""
    sections = [section for section in report.functions if section.verdict is not Verdict.UNCHANGED] or list(report.functions)
    drawn = [section for section in sections if section.plot is not None][:_MOST_DRAWN]
    for number, section in enumerate(drawn, 1):
        if section.plot is not None:
            yield f"{number}-{re.sub(r'[^A-Za-z0-9_.-]+', '_', section.name)[:_LONGEST_NAME]}", section.plot


def _lead(ticket: Ticket, plots: list[str]) -> Iterator[str]:
    """Yield how to see it elsewhere, as parts of the Markdown."""
    yield "### How to see it"
    if ticket.shown is not None:
        yield from _least(ticket, ticket.shown)
    elif telling(ticket.findings):
        yield "No workload point shows the difference beyond the threshold by itself; all of them together do."
    yield f"The whole comparison again ({markdown.code(SCRIPT)}):"
    yield markdown.fenced(ticket.script.rstrip("\n").split("\n"), "sh")
    if ticket.variables:
        rows = [f"- {markdown.code(name)}: {markdown.code(value)}" for name, value in ticket.variables.items()]
        yield "\n".join(["Variables of the environment that the builds depend on:", "", *rows])
    attached = [PAGE, DATA, *([SCRIPT, PATCH] if ticket.patch else []), *(f"{PLOTS}/{name}.png" for name in plots)]
    attached += [f"{INPUTS}/{name}" for name in ticket.inputs]
    yield f"Attached: {', '.join(markdown.code(name) for name in attached)}; plots also as SVG."


def _least(ticket: Ticket, shown: PointFinding) -> Iterator[str]:
    ratio = wording.certainty(shown.ratio, shown.metric, ticket.findings.confidence)
    takes = f"; a run of both sides takes {units.duration(shown.run_ns)}" if math.isfinite(shown.run_ns) else ""
    yield (
        f"The cheapest workload point that shows it: {markdown.code(shown.point.label)}, where "
        f"{markdown.code(shown.function.info.name)} costs {markdown.escaped(ratio)} "
        f"({markdown.escaped(wording.metric_says(shown.metric))}){takes}."
    )
    if ticket.at_point:
        yield f"Compared there alone, with the configuration of {markdown.code(SCRIPT)}:"
        yield markdown.fenced(ticket.at_point.split("\n"), "sh")
    yield "Or without perfdiff, in a build of each revision:"
    yield markdown.fenced(shown.point.command.split("\n"), "sh")
