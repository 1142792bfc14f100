"""`perfdiff explain FUNCTION`: tell all that a comparison knows of one function."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff import configuration
from perfdiff.cli import acceptances, comparison, exits, options, output, waiting
from perfdiff.configuration import Overrides
from perfdiff.errors import UsageError
from perfdiff.progress import Progress

if TYPE_CHECKING:
    from perfdiff.analysis.findings import Findings
    from perfdiff.pipeline import Outcome

app = options.application()


_HELP = """
Tell all that a comparison knows of a function: which inputs, how much, how sure, why, and the source on both sides.

\b
  perfdiff explain insert
  perfdiff explain src/list.c:insert v1.2 HEAD
"""


@app.command(help=_HELP)
def explain(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    function: Annotated[str, typer.Argument(metavar="FUNCTION", help="Its name, or FILE:NAME where several share one.")],
    revisions: Annotated[
        list[str] | None, typer.Argument(metavar="[BASE] [HEAD]", help="The comparison; without it, the last one.")
    ] = None,
    config: options.ConfigFile = None,
    repository: options.Repository = Path(),
    cache: options.Cache = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Tell what the last comparison, or another one, knows of a function."""
    with exits.exceptions_become_codes():
        folder = options.cache_folder(cache)
        with waiting.progress(quiet=quiet, verbose=verbose) as progress:
            if revisions:
                outcome = comparison.compared(tuple(revisions), repository, folder, Overrides(file=config), progress)
            else:
                outcome = last(repository.absolute(), folder, config, progress)
                outcome = replace(outcome, findings=acceptances.honoured(outcome.findings, repository.absolute(), config))
        output.write(explanation(outcome, function))


def last(directory: Path, cache: Path, file: Path | None, progress: Progress) -> Outcome:
    """Return the last comparison of the repository at `directory`, with known costs as they were found."""
    from perfdiff import pipeline

    config = configuration.load(directory, overrides=Overrides(file=file), environment=os.environ, measuring=False)
    return pipeline.last(directory, cache, config, progress)


def explanation(outcome: Outcome, function: str) -> str:
    """Return what is known of all functions that `function` names; raise `UsageError` where it names none."""
    from perfdiff.report.explain import explain as section_of

    findings = outcome.findings
    sections = [
        section_of(finding, findings.confidence, outcome.samples, width=output.width(), colour=output.colour())
        for finding in findings.functions
        if is_named(function, finding.info.name, finding.info.file)
    ]
    skipped = [
        f"{skip.name} ({skip.file}) was not measured: {skip.reason}"
        for skip in findings.skipped
        if is_named(function, skip.name, skip.file)
    ]
    if not sections and not skipped:
        raise UsageError(_unknown(function, findings), slug="unknown-function")
    return "\n".join([*sections, *skipped])


def is_named(given: str, name: str, file: str) -> bool:
    """Return whether what a user wrote, `NAME` or `FILE:NAME`, means a function; its parameters and scope may be left out."""
    folder, colon, bare = given.rpartition(":")
    if colon and not folder.endswith(":"):
        return file.endswith(folder) and is_named(bare, name, file)
    return given in (name, name.partition("(")[0], name.partition("(")[0].rpartition("::")[2])


def _unknown(function: str, findings: Findings) -> str:
    names = {finding.info.name for finding in findings.functions}
    compared = f"{findings.base.rev} and {findings.head.rev}"
    return f"'{function}' is no function that the comparison of {compared} looked at{configuration.nearest(function, names)}"
