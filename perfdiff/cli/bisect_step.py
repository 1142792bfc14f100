"""`perfdiff bisect-step`: judge the checkout's commit for `git bisect run`."""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from perfdiff.cli import acceptances, exits, groups, options, output, requests, suggestions
from perfdiff.config import RUNS_FOR_TIME
from perfdiff.errors import MeasurementError, StoreError
from perfdiff.records.function_names import is_named

if TYPE_CHECKING:
    from perfdiff.analysis.findings import Findings
    from perfdiff.analysis.search.ends import SearchSubject
    from perfdiff.progress import Progress
    from perfdiff.request import Request

app = options.application()

_HELP = """
Compare the checked-out commit with a good one, and exit as `git bisect run` expects.

The good commit is the oldest that was given to `git bisect good`, or --good.

\b
  git bisect start main v1.2
  git bisect run perfdiff bisect-step --function insert

`perfdiff bisect` measures fewer commits, says how certain it is, and does not fail because of a single wrong answer.
"""

_EPILOG = """
\b
Exit codes:
  0    good: not slower
  1    bad: slower
  125  skip: it does not build or run, or the answer is inconclusive
  128  abort: the command line, the configuration or the good commit is at fault
"""

_NAMED = 3  # functions that a sentence names
ALONE = 2  # runs that show whether the good commit can be measured at all


class StepCode(IntEnum):
    """What `git bisect run` understands; everything from 128 on ends it."""

    GOOD = 0
    BAD = 1
    SKIP = 125
    ABORT = 128


class _Step(TyperCommand):
    """Ends `git bisect run` where the command itself fails: 2 and 3, which say so elsewhere, are *bad* to git."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command and exit with one of git's codes, or the shell's for a signal."""
        sys.excepthook = _crash
        try:
            return super().main(*args, **kwargs)
        except SystemExit as ended:
            is_code = ended.code in set(StepCode) or (isinstance(ended.code, int) and ended.code > StepCode.ABORT)
            sys.exit(ended.code if is_code else StepCode.ABORT)


def _crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.__excepthook__(kind, error, trace)
    sys.exit(StepCode.ABORT)


@app.command(cls=_Step, help=_HELP, epilog=_EPILOG)
@groups.expanded
def bisect_step(  # noqa: PLR0913 (each is an option of the command line)
    context: typer.Context,
    good: Annotated[
        str | None,
        typer.Option(
            "--good",
            metavar="REV",
            autocompletion=suggestions.revisions,
            help="Compare with this revision, not with git bisect's good one.",
        ),
    ] = None,
    function: Annotated[
        str | None,
        typer.Option("--function", metavar="NAME", autocompletion=suggestions.functions, help="Judge this function, NAME or FILE:NAME."),
    ] = None,
    metric: Annotated[str | None, typer.Option("--metric", metavar="NAME", help="Judge this metric or counter.")] = None,
    *,
    workloads: groups.WorkloadOptions,
    repeats: groups.Repeats,
    project: groups.ProjectOptions,
) -> None:
    """Compare HEAD with the good commit and exit with git's code."""
    with exits.exceptions_become_codes(project.repository):
        options.check_metric(metric)
        overrides = requests.overridden(context, project, workloads, repeats)
        with project.progress() as progress:
            reference = good or _known_good(project.repository)
            asked = requests.request((reference, "HEAD"), project, overrides, progress)
            findings = _measured(asked, project.repository, overrides, progress)
        timed = max(workload.runs for workload in asked.config.workloads) >= RUNS_FOR_TIME
        raise typer.Exit(_code(findings, function, metric, timed=timed))


def _known_good(directory: Path) -> str:
    from perfdiff.revisions.history import bisected_good
    from perfdiff.revisions.repository import find_repository

    return bisected_good(find_repository(directory))


def _measured(asked: Request, directory: Path, overrides: Any, progress: Progress) -> Findings:
    """Compare; exit with 125 where HEAD cannot be measured, and raise where the good commit cannot either."""
    from perfdiff import pipeline

    try:
        return acceptances.compared(asked, directory, overrides, progress).findings
    except StoreError:
        raise
    except MeasurementError as error:
        workloads = tuple(replace(workload, runs=ALONE) for workload in asked.config.workloads)
        alone = replace(asked, revisions=asked.revisions[:1], config=replace(asked.config, workloads=workloads))
        pipeline.record(alone, progress)
        typer.echo(f"perfdiff: skipped: {error} [{error.slug}]", err=True)
        raise typer.Exit(StepCode.SKIP) from error


def _code(findings: Findings, function: str | None, metric: str | None, *, timed: bool) -> StepCode:
    from perfdiff.analysis.findings import Verdict
    from perfdiff.analysis.search.ends import SearchSubject, standing
    from perfdiff.report.sentences.catalogue import say

    named = functools.partial(is_named, function) if function else None
    wanted = SearchSubject(findings.base.rev, findings.head.rev, function, named, metric)
    verdict = standing(findings, wanted)
    code, says = {Verdict.REGRESSION: StepCode.BAD, Verdict.INCONCLUSIVE: StepCode.SKIP}.get(verdict, StepCode.GOOD), say(findings.sentence)
    if code is StepCode.SKIP:
        code, says = _counted(findings, wanted, timed=timed) or (code, says)
    output.write(f"{code.name.lower()}: {says}")
    return code


def _counted(findings: Findings, wanted: SearchSubject, *, timed: bool) -> tuple[StepCode, str] | None:
    """Return what exact counts of work say where time leaves it open, and in which words; None where they do not settle it.

    More work is bad, as for `perfdiff bisect`. The same work is good only where there were too few runs to judge
    the time of calls at all: not `timed`.
    """
    from perfdiff.analysis.findings import Verdict
    from perfdiff.analysis.search.symptom import WORK, figures, symptoms

    asked = wanted.functions(findings) if wanted.function else findings.functions
    left = [function for function in asked if function.verdict is Verdict.INCONCLUSIVE]
    for function in left:
        for symptom in symptoms(findings, function, None):
            if symptom.exact and symptom.metric in WORK and symptom.expected.effect > 0:
                return StepCode.BAD, f"{symptom.says}: {figures(symptom.expected)}; its time stays open"
    if not left or timed or not all(any(name in WORK and function.counts[name].exact for name in function.counts) for function in left):
        return None
    names = ", ".join(f"`{function.info.name}`" for function in left[:_NAMED])
    return (
        StepCode.GOOD,
        f"{names}{', …' if len(left) > _NAMED else ''}: no more work by exact counts; there are too few runs to judge the time of calls",
    )
