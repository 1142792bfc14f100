"""`perfdiff accept FUNCTION --reason TEXT`: keep a known cost, so that comparisons no longer call it a regression."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff import configuration, units
from perfdiff.cli import acceptances, exits, options, output, requests, suggestions, waiting
from perfdiff.errors import UsageError

if TYPE_CHECKING:
    from perfdiff.analysis.acceptances import Acceptance
from perfdiff.analysis.findings import Findings, FunctionFinding, Ratio
from perfdiff.records.function_names import is_named

app = options.application()

_HELP = """
Accept what a function costs now: write the last comparison's ratio, with a reason, to a file beside perfdiff.toml that belongs in git.

Later comparisons still list the function, with the reason, but do not call it a regression up to that ratio. Above that ratio, or after
the day that --until names, it is a regression again. A function that is slower only because of another one must be accepted separately.

\b
  perfdiff v1.2 HEAD
  perfdiff accept insert --reason "checks its keys now" --until 2027-06-30
  git add perfdiff-accepted.toml
"""


@app.command(help=_HELP)
def accept(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    function: Annotated[
        str,
        typer.Argument(
            metavar="FUNCTION", autocompletion=suggestions.regressions, help="Its name, or FILE:NAME if several share the name."
        ),
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why this cost is acceptable; reports repeat it.")],
    until: Annotated[
        str | None, typer.Option("--until", metavar="DATE", help="The last day on which the acceptance holds, such as 2027-06-30.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option("--metric", metavar="NAME", help="Accept only this metric, not all metrics that make the function a regression."),
    ] = None,
    config: options.ConfigFile = None,
    repository: options.Repository = Path(),
    cache: options.Cache = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Write what the last comparison found of a function to the file of known costs."""
    with exits.exceptions_become_codes(repository):
        if not reason.strip():
            raise UsageError("--reason is empty; say why this cost is fine, since reports repeat it", slug="accept-reason")
        day = _day(until)
        with waiting.progress(quiet=quiet, verbose=verbose) as progress:
            findings = requests.last(repository, options.cache_folder(cache), config, progress).findings
        finding = _regression(function, findings)
        draft = _known(finding, findings, " ".join(reason.split()), day)
        entries = [
            replace(draft, metric=name, ratio=ratio.value, low=ratio.low, high=ratio.high if math.isfinite(ratio.high) else ratio.value)
            for name, ratio in _chosen(finding, metric, findings).items()
        ]
        from perfdiff import accepted
        from perfdiff.report.sentences.catalogue import say

        file = acceptances.file(repository.absolute(), config)
        accepted.write(file, entries)
        left = acceptances.honoured(findings, repository.absolute(), config)
        says = ", ".join(f"{units.ratio(entry.ratio)} of {entry.metric}" for entry in entries)
        output.write(f"accepted {says} of {finding.info.name} in {file}; commit it\nthe last comparison now: {say(left.sentence)}")


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--until '{text}' is no date; write it as 2027-06-30", slug="accept-until") from error
    if day < date.today():
        raise UsageError(f"--until {day} is over; name a day to come", slug="accept-until")
    return day


def _regression(function: str, findings: Findings) -> FunctionFinding:
    """Return the one regressed function that is meant; raise UsageError where there is none, or more."""
    from perfdiff.analysis.findings import Verdict

    named = [finding for finding in findings.functions if is_named(function, finding.info.name, finding.info.file)]
    slower = [finding for finding in named if finding.verdict is Verdict.REGRESSION]
    if len(slower) == 1:
        return slower[0]
    if slower:
        which = ", ".join(f"{finding.info.file}:{finding.info.name}" for finding in slower)
        raise UsageError(f"several functions are named '{function}': {which}; name the file as well", slug="ambiguous-function")
    names = {finding.info.name for finding in findings.functions if finding.verdict is Verdict.REGRESSION}
    compared = f"the last comparison ({findings.base.rev} and {findings.head.rev})"
    if named:
        raise UsageError(f"'{function}' is no regression in {compared}: there is nothing to accept", slug="nothing-to-accept")
    raise UsageError(
        f"'{function}' is no function that {compared} found slower{configuration.nearest(function, names)}", slug="unknown-function"
    )


def _chosen(finding: FunctionFinding, metric: str | None, findings: Findings) -> dict[str, Ratio]:
    """Return the ratios to accept: all that make it a regression, or one."""
    from perfdiff.analysis.verdicts.acceptance import claims

    asked = claims(finding, findings)
    if metric is None:
        if asked:
            return asked
        raise UsageError(f"no ratio shows how much slower '{finding.info.name}' is, so there is none to accept", slug="nothing-to-accept")
    if metric not in asked:
        raise UsageError(
            f"'{finding.info.name}' is a regression by {', '.join(asked) or 'no metric'}, not by '{metric}'", slug="nothing-to-accept"
        )
    return {metric: asked[metric]}


def _known(finding: FunctionFinding, findings: Findings, reason: str, until: date | None) -> Acceptance:
    """Return what all entries on a function share."""
    from perfdiff.analysis.acceptances import Acceptance
    from perfdiff.report import wording

    return Acceptance(
        function=finding.info.name,
        file=finding.info.file,
        metric="",
        ratio=1.0,
        low=1.0,
        high=1.0,
        reason=reason,
        base=wording.revision(findings.base),
        head=wording.revision(findings.head),
        day=date.today(),
        until=until,
    )
