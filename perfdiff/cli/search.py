"""`perfdiff search BASE HEAD | REV`: inputs on which head does more than base, or on which one revision grows steeply."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff.cli import exits, groups, options, output, requests, suggestions

if TYPE_CHECKING:
    from perfdiff.fuzzing.findings import SearchFindings

app = options.application()

_HELP = """
Search inputs on which head does more work than base, from the inputs that the workloads have: parts of them repeated, nested, numbered,
dealt in pairs, then random changes. Each is run on both sides, and its lines are counted, without a clock. What was found is made small,
told with its growth, and timed in whole runs.

For a single revision, search inputs with which its work grows more than linearly.

\b
  perfdiff search v1.2 HEAD
  perfdiff search v1.2 HEAD --time 1m --size 16k
  perfdiff search HEAD -o inputs.json
"""


class SearchForm(StrEnum):
    """What the result is written in."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


_SUFFIXES = {suffix: SearchForm(form) for suffix, form in options.SUFFIXES.items() if form.value in list(SearchForm)}


@app.command(help=_HELP)
@groups.expanded
def search(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    context: typer.Context,
    revisions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REV | BASE HEAD]", autocompletion=suggestions.revisions, help="One or two revisions; by default the working tree."
        ),
    ] = None,
    time: Annotated[str, typer.Option("--time", metavar="TIME", help="Search for so long: 90s, 5m, 1h; builds come on top.")] = "5m",
    size: Annotated[str, typer.Option("--size", metavar="BYTES", help="The largest inputs to try: 16k, 64k, 1M.")] = options.LARGEST_INPUT,
    inputs: Annotated[
        int | None,
        typer.Option("--inputs", metavar="N", min=1, help="Try so many inputs instead: the same ones each time, whatever they take."),
    ] = None,
    function: Annotated[
        str | None,
        typer.Option("--function", metavar="NAME", help="Call this function alone, with arguments like those in the workloads."),
    ] = None,
    keep: Annotated[Path, typer.Option("--keep", metavar="FOLDER", help="Write the inputs that are found here.")] = options.KEEP,
    output_file: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the result here; .md and .json choose the format.")
    ] = None,
    form: Annotated[SearchForm | None, typer.Option("--format", help="Format of the result.")] = None,
    strict: options.Strict = False,
    *,
    workloads: groups.WorkloadOptions,
    project: groups.ProjectOptions,
) -> None:
    """Search inputs that show what head does more."""
    with exits.exceptions_become_codes(project.repository):
        if output_file:
            output.check(output_file)
        chosen = options.report_format(form, output_file, _SUFFIXES)
        largest, seconds = options.size(size, "--size"), options.seconds(time, "--time")
        if inputs is not None:
            seconds = math.inf
        overrides = requests.overridden(context, project, workloads)
        with project.progress() as progress:
            from perfdiff import searching
            from perfdiff.fuzzing.search import SearchLimits

            asked = requests.request(tuple(revisions or ()), project, overrides, progress)
            findings = searching.search(asked, progress, SearchLimits(largest, seconds, inputs, asked.config.compare.seed), keep, function)
        from perfdiff.report import slow_inputs

        output.write(_rendered(findings, chosen, output_file), output_file)
        output.tell(slow_inputs.answer(findings), output_file, quiet=project.quiet)
        raise typer.Exit(exits.of_verdict(findings.verdict, strict=strict))


def _rendered(findings: SearchFindings, form: SearchForm, output_file: Path | None) -> str:
    from perfdiff.report import markdown, slow_inputs, terminal
    from perfdiff.report.json_text import json_text

    if form is SearchForm.JSON:
        return json_text(slow_inputs.json_document(findings))
    answer, *rest = slow_inputs.blocks(findings)
    if form is SearchForm.MARKDOWN:
        return markdown.render_blocks(answer, slow_inputs.title(findings), tuple(rest))
    return terminal.render_blocks([answer, *rest], width=output.width(output_file), colour=output.colour(output_file))
