"""`perfdiff bisect GOOD BAD`: find the commit that made something slower."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff.cli import destinations, exits, groups, options, output, requests, suggestions, trends
from perfdiff.cli.destinations import Destination
from perfdiff.errors import UsageError
from perfdiff.records.function_names import is_named

if TYPE_CHECKING:
    from perfdiff.analysis.search.bisection import Bisection
    from perfdiff.outcome import Outcome

app = options.application()
_GROWTH_FORMATS = (options.Format.TEXT, options.Format.MARKDOWN, options.Format.HTML, options.Format.JSON)

_HELP = """
Find the commit between GOOD and BAD that made something slower, and compare it with its parent.

First the ends are compared. Then bisect follows the function that this comparison ranks first, or --function: by exact counts of its work
if the regression shows in them, otherwise by its time. The commit that is expected to tell most is measured next. After an interruption,
the same command continues where it stopped. With --metric growth, nothing is timed, and each commit is counted once.

\b
  perfdiff bisect v1.2 main
  perfdiff bisect v1.2 main --function insert --metric alloc_bytes
  perfdiff bisect v1.2 main --first-parent --path src/ -o report.html
  perfdiff bisect v1.2 main --metric growth
"""

_EPILOG = """
\b
Exit codes:
  1    culprit found, or several commits of which one is the culprit
  2    the command line is wrong, or BAD is not slower than GOOD
  3    could not measure
  4    the confidence was not reached, with --strict
"""


@app.command(help=_HELP, epilog=_EPILOG)
@groups.expanded
def bisect(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    context: typer.Context,
    good: Annotated[str, typer.Argument(metavar="GOOD", autocompletion=suggestions.revisions, help="A revision that is not slow yet.")],
    bad: Annotated[str, typer.Argument(metavar="BAD", autocompletion=suggestions.revisions, help="A later revision that is slow.")],
    function: Annotated[
        str | None,
        typer.Option("--function", metavar="NAME", autocompletion=suggestions.functions, help="Follow this function, NAME or FILE:NAME."),
    ] = None,
    metric: Annotated[str | None, typer.Option("--metric", metavar="NAME", help="Follow this metric or counter, or `growth`.")] = None,
    confidence: Annotated[float, typer.Option("--confidence", metavar="SHARE", help="Stop when the culprit is this certain.")] = 0.95,
    first_parent: Annotated[bool, typer.Option("--first-parent", help="Treat each merge as one commit.")] = False,
    path: Annotated[
        list[str] | None, typer.Option("--path", metavar="PATH", help="Only commits that touch this path (may be repeated).")
    ] = None,
    output_files: options.Outputs = None,
    report_format: options.ReportFormat = None,
    full: options.Full = False,
    strict: options.Strict = False,
    cluster: options.Cluster = None,
    *,
    workloads: groups.WorkloadOptions,
    repeats: groups.Repeats,
    project: groups.ProjectOptions,
) -> None:
    """Bisect and exit with the code of what was found."""
    with exits.exceptions_become_codes(project.repository):
        places = destinations.chosen(report_format, output_files, full=full)
        by_growth = metric == options.GROWTH
        if by_growth:
            _check_formats(places)
        else:
            options.check_metric(metric)
        if not 0.5 <= confidence < 1:
            raise UsageError(f"--confidence {confidence:g} must lie between 0.5 and 1, such as 0.95", slug="confidence-range")
        overrides = requests.overridden(context, project, workloads, repeats)
        overrides = replace(overrides, cluster=cluster)
        with project.progress() as progress:
            request = requests.request((good, bad), project, overrides, progress)
            from perfdiff.searches import bisecting, growth_bisect
            from perfdiff.searches.question import SearchQuestion

            named = functools.partial(is_named, function) if function else None
            question = SearchQuestion(request, function, named, metric, confidence, first_parent, tuple(path or ()))
            outcome: Outcome | None = None
            if by_growth:
                bisection = growth_bisect.bisect(question, progress)
            else:
                requests.warn_of_few_runs(request, progress)
                bisection, outcome = bisecting.bisect(question, progress)
        _deliver(bisection, outcome, places)
        output.tell(_answer(bisection), *destinations.written(places), quiet=project.quiet)
        if strict and not bisection.certain:
            raise typer.Exit(exits.ExitCode.INCONCLUSIVE)
        raise typer.Exit(exits.ExitCode.REGRESSION)


def _check_formats(places: Iterable[Destination]) -> None:
    """Raise UsageError where trends are not told in one of the formats."""
    for place in places:
        if place.form not in _GROWTH_FORMATS:
            raise UsageError(f"growth is not told as {place.form.value}; there are {', '.join(_GROWTH_FORMATS)}", slug="format-unknown")


def _answer(bisection: Bisection) -> str:
    from perfdiff.analysis.trends.findings import TrendFindings
    from perfdiff.report.printable import printable
    from perfdiff.report.sentences.catalogue import say
    from perfdiff.report.trends import document

    differs = f"; {document.answer(bisection.findings)}" if isinstance(bisection.findings, TrendFindings) else ""
    return f"{printable(say(bisection.sentence))}{differs}"


def _deliver(bisection: Bisection, outcome: Outcome | None, places: Iterable[Destination]) -> None:
    """Write the reports: the search, and the comparison, or the trends, of the culprit with what stands before it."""
    from perfdiff.analysis.trends.findings import TrendFindings
    from perfdiff.report import bisect as report
    from perfdiff.report import document, json_report
    from perfdiff.report.trends.json_document import json_document

    search, growth = report.blocks(bisection), bisection.findings
    for place in places:
        if outcome and place.form is options.Format.JSON:
            output.write(report.render_json(bisection, json_report.json_document(document.build(outcome.findings))), place.file)
        elif outcome:
            destinations.deliver(outcome, (place,), search)
        elif isinstance(growth, TrendFindings):
            if place.form is options.Format.JSON:
                output.write(report.render_json(bisection, json_document(growth)), place.file)
            else:
                output.write(trends.rendered(growth, place.form, place.file, search), place.file)
