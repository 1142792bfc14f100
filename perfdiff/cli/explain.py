"""`perfdiff explain FUNCTION`: tell all that a comparison knows of one function."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff import configuration
from perfdiff.cli import acceptances, exits, groups, options, output, requests, suggestions, waiting
from perfdiff.configuration import Overrides
from perfdiff.errors import UsageError
from perfdiff.records.function_names import is_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfdiff.analysis.findings import Findings, FunctionFinding
    from perfdiff.outcome import Outcome

app = options.application()

_HELP = """
Show everything that a comparison found out about a function: for which inputs, how much, how certain, why, and the source on both sides.

\b
  perfdiff explain insert
  perfdiff explain src/list.c:insert v1.2 HEAD
  perfdiff explain src/list.c:120
  perfdiff explain insert v1.2 HEAD --param n=1000,3000 -- ./bench/sort {n}
"""


@app.command(help=_HELP)
def explain(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    context: typer.Context,
    function: Annotated[
        str,
        typer.Argument(metavar="FUNCTION", autocompletion=suggestions.functions, help="Its name, or FILE:NAME or a FILE:LINE of its code."),
    ],
    revisions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[BASE] [HEAD]", autocompletion=suggestions.revisions, help="The comparison; without it, the last one."),
    ] = None,
    build: options.Build = None,
    param: options.Parameters = None,
    config: options.ConfigFile = None,
    repository: options.Repository = Path(),
    cache: options.Cache = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Print all that the last comparison, or another one, found out about a function."""
    with exits.exceptions_become_codes(repository):
        folder, command = options.cache_folder(cache), requests.command_text(context.obj or [])
        if not revisions and (command or build or param):
            raise UsageError(
                "a workload or a build says which comparison of two revisions is meant: name these as well, or leave it out for the last "
                "comparison",
                slug="which-comparison",
            )
        with waiting.progress(quiet=quiet, verbose=verbose) as progress:
            if revisions:
                overrides = Overrides(file=config, build=build, command=command, parameters=options.parameters(param))
                asked = requests.request(tuple(revisions), groups.ProjectOptions(repository=repository, cache=cache), overrides, progress)
                outcome = acceptances.compared(asked, repository, overrides, progress)
            else:
                outcome = requests.last(repository, folder, config, progress)
                outcome = replace(outcome, findings=acceptances.honoured(outcome.findings, repository.absolute(), config))
        output.write(explanation(outcome, function))


def explanation(outcome: Outcome, function: str) -> str:
    """Return the sections of all functions that `function` names; raise UsageError if it names none."""
    from perfdiff.report import wording
    from perfdiff.report.explain import explain as section_of

    findings = outcome.findings
    named = [finding for finding in findings.functions if _is_meant(function, finding)]
    if len({wording.place(finding.info) for finding in named}) > 1:
        sections = [_choice(function, named, findings.min_effect)]
    else:
        width, colour = output.width(), output.colour()
        drawn = outcome.drawn
        sections = [section_of(finding, findings, drawn, width=width, colour=colour) for finding in named]
    skipped = [
        f"{skip.name} ({skip.file}) was not measured: {skip.reason}"
        for skip in findings.skipped
        if is_named(function, skip.name, skip.file)
    ]
    if not sections and not skipped:
        raise UsageError(_unknown(function, findings), slug="unknown-function")
    return "\n".join([*sections, *skipped])


def _is_meant(given: str, finding: FunctionFinding) -> bool:
    """Return whether a user wrote the name of a function, a place in its code as `FILE:LINE`, or the place that reports give of it."""
    from perfdiff.report import wording

    info = finding.info
    if is_named(given, info.name, info.file) or f"/{wording.place(info)}".endswith(f"/{given}"):
        return True
    file, _, line = given.rpartition(":")
    source = info.head or info.base
    return bool(source and file and line.isdecimal() and f"/{source.file}".endswith(f"/{file}") and int(line) in source.code)


def _choice(given: str, named: Sequence[FunctionFinding], min_effect: float) -> str:
    """Return a list of the functions that a name means, such as overloads, each by the place that means it alone."""
    from perfdiff.report import wording
    from perfdiff.report.printable import printable

    places = [wording.place(finding.info) for finding in named]
    width = max(map(len, places))
    standings = [wording.standing(finding, min_effect) for finding in named]
    rows = [f"  {place:{width}}  {finding.info.name}: {says}" for place, finding, says in zip(places, named, standings, strict=True)]
    said = [f"{len(named)} functions are named '{given}':", *rows, f"`perfdiff explain {places[0]}` tells all of the first one"]
    return "\n".join(map(printable, said))


def _unknown(function: str, findings: Findings) -> str:
    names = {finding.info.name for finding in findings.functions}
    compared = f"{findings.base.rev} and {findings.head.rev}"
    near = configuration.nearest(function, names)
    listed = near or "; changed functions and callers of these are, as far as probes there cost little: the report's table lists them"
    return f"'{function}' is no function that the comparison of {compared} looked at{listed}"
