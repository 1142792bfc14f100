"""`perfdiff log FUNCTION [REV…]`: what a function cost over commits or tags, and where that changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff import configuration
from perfdiff.cli import exits, groups, options, output, recordings, requests, suggestions
from perfdiff.config import CompareConfig
from perfdiff.errors import MeasurementError, UsageError
from perfdiff.records.function_names import is_named

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from perfdiff.analysis.annotations.history import Recording
    from perfdiff.analysis.series import FunctionHistory
    from perfdiff.analysis.trends.growth_history import Counted
    from perfdiff.records.relay import Relay

app = options.application()

_HELP = """
Show, revision by revision, how the cost of a function follows from its inputs, what a call costs at typical inputs, how often it is
called, and where that changed.

REVs are revisions by name, or one range A..B along first parents; by default the last ten commits. Each is recorded only once. Times count
as changed from 15 % on, as revisions are recorded one after the other; exact counts from the smallest effect of interest.

With --metric growth, nothing is timed: how often the function's lines run is counted, as by `perfdiff trends`. With --cluster, workers
record several revisions at the same time.

\b
  perfdiff log insert --tags
  perfdiff log insert v1.2..HEAD -o insert.svg
  perfdiff log insert v1.0 v1.1 HEAD --metric alloc_bytes --format json
  perfdiff log insert --tags --metric growth
"""


@app.command(help=_HELP)
@groups.expanded
def log(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    context: typer.Context,
    function: Annotated[
        str,
        typer.Argument(metavar="FUNCTION", autocompletion=suggestions.functions, help="Its name, or FILE:NAME if several share the name."),
    ],
    revisions: Annotated[
        list[str] | None, typer.Argument(metavar="REV… | A..B", autocompletion=suggestions.revisions, help="The revisions.")
    ] = None,
    tags: options.Tags = False,
    since: options.Since = None,
    most: options.Most = options.MOST_REVISIONS,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", metavar="NAME", help="Follow this metric (may be repeated), or `all`; or `growth`.")
    ] = None,
    output_file: options.Drawn = None,
    form: Annotated[options.Drawable | None, typer.Option("--format", help="Form of the history.")] = None,
    cluster: options.Cluster = None,
    *,
    workloads: groups.WorkloadOptions,
    repeats: groups.Repeats,
    project: groups.ProjectOptions,
) -> None:
    """Record revisions and tell the history of a function."""
    with exits.exceptions_become_codes(project.repository):
        by_growth = _is_growth(metric or [])
        metrics = () if by_growth else options.chosen_metrics(metric or [])
        chosen = options.drawable(form, output_file)
        overrides = requests.overridden(context, project, workloads, repeats)
        overrides = replace(overrides, cluster=cluster)
        with project.progress() as progress:
            wanted = options.wanted(revisions, since=since, tags=tags, most=most)
            limits = options.configured(project.repository, overrides).compare
            if by_growth:
                counted = recordings.counted(wanted, project, overrides, progress)
                function_history = growth_of(function, counted, limits)
            else:
                recorded = recordings.recorded(wanted, project, overrides, progress)
                progress.stage("annotating", None)
                function_history = history_of(function, recorded.found, metrics, limits, recorded.relay)
        from perfdiff.report import history, history_page, history_plot

        output.deliver(history, history_plot, function_history, chosen, output_file, quiet=project.quiet, page=history_page)


def _is_growth(metrics: Sequence[str]) -> bool:
    """Return whether growth is followed; raise UsageError where a metric of calls is, too."""
    if options.GROWTH in metrics and len(set(metrics)) > 1:
        raise UsageError("growth is counted, other metrics are recorded: follow it alone", slug="growth-alone")
    return options.GROWTH in metrics


def history_of(
    function: str, recordings: Sequence[Recording], metrics: Sequence[str], config: CompareConfig, relay: Relay | None = None
) -> FunctionHistory:
    """Return the history of the one function that is meant; raise UsageError where no revision has it, or the newest several."""
    from perfdiff.analysis.annotations.history import history

    by_revision = (() if isinstance(recorded, str) else recorded.experiment.functions for _, recorded in reversed(recordings))
    name, file = _meant(function, ([(info.name, info.file) for info in functions] for functions in by_revision))
    return history(name, file, recordings, metrics, config, relay=relay)


def growth_of(function: str, counted: Sequence[Counted], config: CompareConfig) -> FunctionHistory:
    """Return how what the one function that is meant executes grew; raise as `history_of`, or MeasurementError: `no-feature`."""
    from perfdiff.analysis.trends.growth_history import growth_history

    by_revision = (() if isinstance(places, str) else places.places for _, places in reversed(counted))
    name, file = _meant(function, (dict.fromkeys((place.function, place.file) for place in places) for places in by_revision))
    grown = growth_history(name, file, counted, config)
    if grown is None:
        raise MeasurementError(f"no feature varies over the runs of '{function}'; give inputs of several sizes", slug="no-feature")
    return grown


def _meant(function: str, by_revision: Iterable[Collection[tuple[str, str]]]) -> tuple[str, str]:
    """Return name and file of the function that is meant among those of each revision, the newest first."""
    names: set[str] = set()
    for functions in by_revision:
        named = [(name, file) for name, file in functions if is_named(function, name, file)]
        if len(named) > 1:
            which = ", ".join(f"{file}:{name}" for name, file in named)
            raise UsageError(f"several functions are named '{function}': {which}; name the file as well", slug="ambiguous-function")
        if named:
            return named[0]
        names |= {name for name, _ in functions}
    raise UsageError(
        f"'{function}' is no function that ran in any of these revisions{configuration.nearest(function, names)}", slug="unknown-function"
    )
