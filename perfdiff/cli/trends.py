"""`perfdiff trends [REV | BASE HEAD]`: how often each line runs, how that grows with the inputs, and where two revisions differ in it."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff.cli import exits, groups, options, output, requests, suggestions
from perfdiff.records.function_names import is_named

if TYPE_CHECKING:
    from perfdiff.analysis.trends.findings import TrendFindings
    from perfdiff.report.blocks import Block

app = options.application()

_HELP = """
Count how often each line of code runs at every point of the workloads, and show how these counts grow with the inputs: lines that vary
together form clusters, each with the power law that describes it.

For two revisions, show at which line growth differs. Nothing is timed: one run per point is enough, and the machine may be busy. Use
inputs of many sizes; `inputs = ["corpus/**"]` in perfdiff.toml makes a point of each file.

\b
  perfdiff trends
  perfdiff trends v1.2 -o trends.html
  perfdiff trends v1.2 HEAD
"""


class TrendForm(StrEnum):
    """What trends are written in."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    CSV = "csv"


_SUFFIXES = {suffix: TrendForm(form) for suffix, form in options.SUFFIXES.items() if form.value in list(TrendForm)} | {
    ".csv": TrendForm.CSV
}


@app.command(help=_HELP)
@groups.expanded
def trends(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    context: typer.Context,
    revisions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REV | BASE HEAD]", autocompletion=suggestions.revisions, help="One or two revisions; by default the working tree."
        ),
    ] = None,
    output_file: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the result here; .html, .md, .json and .csv choose the format."),
    ] = None,
    form: Annotated[TrendForm | None, typer.Option("--format", help="Format; csv is the matrix of counts.")] = None,
    alpha: Annotated[
        float, typer.Option("--alpha", min=0.0001, max=0.5, help="Lines of a cluster fit its representative with R² above 1 minus this.")
    ] = 0.02,
    calls: Annotated[
        list[str] | None,
        typer.Option(
            "--calls",
            metavar="FUNCTION",
            autocompletion=suggestions.functions,
            help="Use the number of calls of this function as a feature (may be repeated).",
        ),
    ] = None,
    instances: Annotated[bool, typer.Option("--instances", help="Count the instances of C++ templates separately.")] = False,
    strict: options.Strict = False,
    *,
    workloads: groups.WorkloadOptions,
    project: groups.ProjectOptions,
) -> None:
    """Count places of one revision or two and tell their trends."""
    with exits.exceptions_become_codes(project.repository):
        if output_file:
            output.check(output_file)
        chosen = options.report_format(form, output_file, _SUFFIXES)
        overrides = requests.overridden(context, project, workloads)
        with project.progress() as progress:
            from perfdiff import trending

            asked = requests.request(tuple(revisions or ()), project, overrides, progress)
            named = {name: partial(is_named, name) for name in calls or ()}
            findings = trending.trends(asked, progress, alpha=alpha, calls=named, instances=instances)
        output.write(rendered(findings, chosen, output_file), output_file)
        output.tell(_answer(findings), output_file, quiet=project.quiet)
        raise typer.Exit(exits.of_verdict(findings.verdict, strict=strict))


def _answer(findings: TrendFindings) -> str:
    from perfdiff.report.trends import document

    return document.answer(findings)


def rendered(findings: TrendFindings, form: str, output_file: Path | None, search: tuple[Block, ...] = ()) -> str:
    """Return the report of trends in a form, with the `search` that led to them."""
    from perfdiff.report.json_text import json_text
    from perfdiff.report.trends import document, json_document, matrix, page

    match form:
        case TrendForm.JSON:
            return json_text(json_document.json_document(findings))
        case TrendForm.CSV:
            return matrix.csv(findings)
        case TrendForm.HTML:
            return page.page(findings, search)
        case TrendForm.MARKDOWN:
            return document.markdown(findings, search)
    return document.text(findings, width=output.width(output_file), colour=output.colour(output_file), search=search)
