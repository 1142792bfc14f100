"""`perfdiff profile [REV]`: where a revision spends its time, and over several revisions, which functions grew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff.cli import exits, groups, options, output, recordings, requests, suggestions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfdiff.analysis.annotations.history import Recording
    from perfdiff.analysis.annotations.profiles import Profiles
    from perfdiff.config import CompareConfig
    from perfdiff.models.annotation import CostClass
    from perfdiff.progress import Progress

app = options.application()

_HELP = """
Show the functions of a revision (by default the working tree) by their own time, with their calls, their time with callees, and how the
cost of a call grows with its inputs.

With a range A..B, several revisions, --since or --tags, each revision is recorded, and the functions that grew are listed, with the
revisions where their own cost changed (`perfdiff log` says more about one function). With --cluster, several revisions are recorded at
the same time, as by `perfdiff log`.

\b
  perfdiff profile v1.2
  perfdiff profile --since v1.0 --tags -o growth.svg
"""


@app.command(help=_HELP)
@groups.expanded
def profile(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    context: typer.Context,
    revisions: Annotated[
        list[str] | None, typer.Argument(metavar="REV… | A..B", autocompletion=suggestions.revisions, help="The revision, or revisions.")
    ] = None,
    tags: options.Tags = False,
    since: options.Since = None,
    most: options.Most = options.MOST_REVISIONS,
    output_file: options.Drawn = None,
    form: Annotated[options.Drawable | None, typer.Option("--format", help="Form of the profile.")] = None,
    cluster: options.Cluster = None,
    *,
    workloads: groups.WorkloadOptions,
    repeats: groups.Repeats,
    project: groups.ProjectOptions,
) -> None:
    """Record one revision or several and show their profile."""
    with exits.exceptions_become_codes(project.repository):
        chosen = options.drawable(form, output_file)
        overrides = requests.overridden(context, project, workloads, repeats)
        overrides = replace(overrides, cluster=cluster)
        with project.progress() as progress:
            if since or tags or _are_several(revisions or (), project.repository):
                wanted = options.wanted(revisions, since=since, tags=tags, most=most)
                recorded = recordings.recorded(wanted, project, overrides, progress)
            else:
                recorded = recordings.alone(next(iter(revisions or ()), None), project, overrides, progress)
            limits = options.configured(project.repository, overrides).compare
            profiles = _profiles(recorded, limits, progress)
            has_classes = chosen is options.Drawable.JSON or (chosen is options.Drawable.TEXT and len(recorded.found) == 1)
            classes = _classes(recorded.found, limits) if has_classes else {}
        from perfdiff.report import history_page, profile_plot
        from perfdiff.report import profile as report

        output.deliver(report, profile_plot, profiles, chosen, output_file, quiet=project.quiet, page=history_page, classes=classes)


def _are_several(words: Sequence[str], directory: Path) -> bool:
    from perfdiff.revisions.pins import split_range
    from perfdiff.revisions.repository import find_repository

    return len(words) > 1 or any(split_range(find_repository(directory), word) for word in words)


def _profiles(recorded: recordings.Recordings, limits: CompareConfig, progress: Progress) -> Profiles:
    from perfdiff.analysis.annotations.profiles import profiles
    from perfdiff.report.printable import printable

    progress.stage("annotating", None)
    return profiles(recorded.found, limits, lambda name: progress.advance(printable(name)), relay=recorded.relay)


def _classes(recorded: Sequence[Recording], limits: CompareConfig) -> dict[int, CostClass]:
    """Return how the material functions of the last revision grow with their inputs."""
    from perfdiff.analysis.annotations.profiles import classes, material
    from perfdiff.analysis.sums.profile import profile as profile_of

    _, last = recorded[-1]
    return {} if isinstance(last, str) else classes(last, material(profile_of(last)), limits)
