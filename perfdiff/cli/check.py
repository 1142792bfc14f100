"""`perfdiff check FILE [REV] [-- COMMAND…]`: saved annotations, or saved trends, as assertions."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfdiff.cli import exits, groups, options, output, recordings, requests, samples, saved, suggestions
from perfdiff.configuration import Worse, links
from perfdiff.errors import UsageError
from perfdiff.records.remote import place

if TYPE_CHECKING:
    from perfdiff.analysis.annotations.assertion import Assertion
    from perfdiff.analysis.annotations.sweep import Sweep
    from perfdiff.analysis.series import CheckedAssertions
    from perfdiff.analysis.trends.assertions import GrowthAssertion, SavedTrends
    from perfdiff.config import CompareConfig
    from perfdiff.models.annotation import Annotation
    from perfdiff.progress import Progress
    from perfdiff.records.recorded import RecordedExperiment
    from perfdiff.report.check import AnyChecked
    from perfdiff.request import Request


app = options.application()

_HELP = """
Check a revision against saved annotations or trends, without building or running the version that they were learnt from.

FILE is what `perfdiff annotate -o` wrote, or `perfdiff trends -o` as JSON. A revision (by default the working tree) is built and run;
annotations may be held against samples as well. An annotation is violated if calls cost more at equal inputs than it says; trends are
violated if a cluster of lines grows by a higher power than it did.

\b
  perfdiff annotate v1.2 -o perf/annotations
  perfdiff check perf/annotations
  perfdiff check perf/annotations v1.3 --format json -o check.json --plot check.svg
  perfdiff trends v1.2 -o perf/trends.json
  perfdiff check perf/trends.json
  perfdiff check perf/annotations --delay db=2ms
  perfdiff check perf/annotations --sweep db=0..10ms --plot sweep.svg

With --delay, --bandwidth or --failures, a service answers late, slowly or not at all while the workloads run. --sweep runs them at several
delays, and tells for how many of the service's answers each function waits.

\b
Exit codes:
  0    no assertion is violated
  1    an assertion is violated; in a sweep, at a delay of 0
  2    the command line, the configuration, FILE or a revision is wrong
  3    could not measure: a build or a workload failed, or no assertion could be judged
  4    with --strict: an assertion is inconclusive or could not be judged
"""


class CheckForm(StrEnum):
    """What the outcome is written in."""

    TEXT = "text"
    JSON = "json"
    SVG = "svg"


_SUFFIXES = {".json": CheckForm.JSON, ".svg": CheckForm.SVG}


@app.command(help=_HELP)
@groups.expanded
def check(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `perfdiff annotate` or `perfdiff trends` wrote.")],
    subjects: Annotated[
        list[str] | None,
        typer.Argument(metavar="REV | SAMPLES", autocompletion=suggestions.revisions, help="A revision, or recorded calls."),
    ] = None,
    output_file: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the outcome here; .json and .svg choose the format.")
    ] = None,
    form: Annotated[CheckForm | None, typer.Option("--format", help="Form of the outcome.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw how many functions and runs pass, as an SVG file.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 4 if an assertion is inconclusive or could not be judged.")] = False,
    delay: Annotated[
        list[str] | None,
        typer.Option("--delay", metavar="SERVICE=TIME", help="Delay a service's answers: db=2ms, db=2ms+-0.5ms (may be repeated)."),
    ] = None,
    bandwidth: Annotated[
        list[str] | None,
        typer.Option("--bandwidth", metavar="SERVICE=SIZE/s", help="Limit each connection to a service: db=1MB/s (may be repeated)."),
    ] = None,
    failures: Annotated[
        list[str] | None,
        typer.Option(
            "--failures",
            metavar="SERVICE=SHARE%",
            help="Lose answers of a service (db=1%), or reset connections (db=refused:1%, db=after:4kB) (may be repeated).",
        ),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option("--sweep", metavar="SERVICE=FROM..TO", help="Check at several delays of a service: db=0..10ms, or db=0,1,2,5,10ms."),
    ] = None,
    save: options.Save = None,
    *,
    workloads: groups.WorkloadOptions,
    repeats: groups.Repeats,
    project: groups.ProjectOptions,
) -> None:
    """Check a revision or samples against annotations, or a revision against trends."""
    with exits.exceptions_become_codes():
        chosen = form or _SUFFIXES.get(output_file.suffix.lower() if output_file else "", CheckForm.TEXT)
        rules = saved.load(file)
        for written in filter(None, (output_file, plot)):
            output.check(written)
        if save:
            samples.check(save)
        worse = Worse(tuple(delay or ()), tuple(bandwidth or ()), tuple(failures or ()), sweep)
        overrides = replace(requests.overridden(context, project, workloads, repeats), worse=worse)
        if not isinstance(rules, list):
            _refuse_of_trends(subjects or [], chosen, plot or save, worse)
        with project.progress() as progress:
            recorded: RecordedExperiment | None = None
            checked: AnyChecked | Sweep
            if isinstance(rules, list):
                if worse and any(samples.is_samples(place(subject)) for subject in subjects or []):
                    raise UsageError("samples are recorded already, at the delays of then; name a revision", slug="samples-apart")
                recorded = recordings.of_words(subjects or [], project, overrides, progress)
                checked = _held_against(rules, recorded, worse, options.configured(project.repository, overrides).compare, progress)
            else:
                asked = requests.request(tuple(subjects or ()), project, overrides, progress)
                checked = _trends_held_against(rules, asked, progress)
        if plot:
            output.write(_written(checked, CheckForm.SVG, None), plot)
        output.write(_written(checked, chosen, output_file), output_file)
        if save and recorded:
            samples.save(save, recorded)
        output.tell(str(_report(checked).answer(checked)), output_file, quiet=project.quiet)
        raise typer.Exit(exits.of_standing(checked.verdict, strict=strict))


def _held_against(
    rules: list[Annotation], recorded: RecordedExperiment, worse: Worse, limits: CompareConfig, progress: Progress
) -> CheckedAssertions[Assertion] | Sweep:
    from perfdiff.analysis.annotations.sweep import check_worse

    progress.stage("checking", None)
    return check_worse(rules, recorded, links(worse), limits)


def _trends_held_against(saved: SavedTrends, asked: Request, progress: Progress) -> CheckedAssertions[GrowthAssertion]:
    """Count the places of a revision and hold their trends against saved ones; raise PerfdiffError where that cannot be done."""
    from perfdiff import trending
    from perfdiff.analysis.trends.assertions import check_trends
    from perfdiff.models.clusters import ALPHA
    from perfdiff.report.trends.clean import clean

    counted = trending.trends(asked, progress, alpha=ALPHA, instances=saved.instances)
    progress.stage("checking", None)
    return check_trends(saved, clean(counted), asked.config.compare)


def _refuse_of_trends(subjects: list[str], form: CheckForm, other: Path | str | None, worse: Worse) -> None:
    """Raise UsageError where trends are held against what has none, or told in a form that they lack."""
    if len(subjects) > 1:
        raise UsageError(f"{' and '.join(subjects)} are several revisions; trends are held against one", slug="bad-specification")
    if worse:
        raise UsageError("trends are counts, which no service changes; hold annotations against a delay", slug="format-unknown")
    if form is CheckForm.SVG or other is not None:
        raise UsageError("a check of trends has no plot and records no calls; it is told as text or JSON", slug="format-unknown")


def _report(checked: AnyChecked | Sweep) -> Any:
    """Return the module that tells of it: `text`, `answer` and `json_document`."""
    from perfdiff.analysis.series import CheckedAssertions
    from perfdiff.report import check, sweep

    return check if isinstance(checked, CheckedAssertions) else sweep


def _written(checked: AnyChecked | Sweep, form: CheckForm, output_file: Path | None) -> str:
    from perfdiff.report import check_plot

    return check_plot.draw(checked) if form is CheckForm.SVG else output.told(_report(checked), checked, form, output_file)
