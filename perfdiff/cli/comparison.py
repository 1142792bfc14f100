"""`perfdiff BASE HEAD [-- COMMAND…]`: compare two revisions."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from perfdiff import __version__, configuration
from perfdiff.cli import (
    COMMANDS,
    acceptances,
    consequences,
    destinations,
    exits,
    groups,
    inputs_found,
    options,
    output,
    samples,
    suggestions,
    ticket,
    waiting,
)
from perfdiff.cli.destinations import Destination
from perfdiff.cli.leaving import Answering
from perfdiff.config import PLACE, RUNS_FOR_TIME, Config
from perfdiff.configuration import Overrides
from perfdiff.deadline import Deadline
from perfdiff.errors import ConfigError, RevisionError
from perfdiff.languages.installed import installed
from perfdiff.progress import Progress

if TYPE_CHECKING:
    from perfdiff.outcome import Outcome
    from perfdiff.report.blocks import Block
    from perfdiff.request import Request

app = options.application()

_ELSEWHERE = frozenset(("run", "diff", "test", "bench", "benchmark", "measure"))  # what other tools call it
_NEAR_COMMAND = 0.75  # similarity of a word to a command's name: two letters of six swapped are 0.83

_HELP = """
Compare the performance of two git revisions of a C, C++, Python, Java or PHP program, function by function.

BASE and HEAD are anything git knows: branches, tags, commits. `A..B` is both in one word, `A...B` starts from their merge base, and one
revision alone is compared with the working tree. A COMMAND behind `--` is the workload; without it, perfdiff.toml says what to run, or
else it is found: benchmarks and tests that the project has.

\b
  perfdiff main HEAD
  perfdiff v1.2..v1.3 -o report.html -o report.json --ticket slow-sort
  perfdiff HEAD --build "make -j2" --param n=1000,3000,10000 -- ./bench/sort {n}
  perfdiff main HEAD --param n=1000,3000,10000 -- python bench/sort.py {n}
"""

_EPILOG = """
\b
Other commands:
  perfdiff init               write a perfdiff.toml for this project
  perfdiff doctor             say what can be measured on this machine
  perfdiff counters [EVENT…]  say which events this machine really counts
  perfdiff explain FUNCTION   show everything that the last comparison found out about a function
  perfdiff accept FUNCTION    accept a known cost, so that it is no longer a regression
  perfdiff annotate [REV]     learn how the cost of each function follows from its inputs
  perfdiff check FILE [REV]   check a revision or samples against saved annotations
  perfdiff predict FUNCTION   tell what it costs at inputs that were not measured
  perfdiff bisect GOOD BAD    find the commit that made a function slower
  perfdiff bisect-step        judge the checked-out commit for `git bisect run`
  perfdiff log FUNCTION       show what a function costs in each commit or tag, and where that changed
  perfdiff profile [REV]      show where a revision spends its time, or which functions grew over several
  perfdiff trends [REV…]      count how often lines run, how that grows, and where two revisions differ
  perfdiff search [REV…]      search inputs on which head does more than base, or work grows steeply
  perfdiff compare A B        compare two sets of samples without sources, or the recordings of a fleet
  perfdiff record [REV]       record a program in use: the times and inputs of its functions
  perfdiff cache              show, clear or verify the cache
  perfdiff completion SHELL   print a script that makes the shell complete commands, revisions and names
  perfdiff help [WORD]        explain a command, or the slug behind a message

\b
Exit codes:
  0    no regression
  1    regression
  2    the command line, the configuration or a revision is wrong
  3    could not measure: a build or a workload failed
  4    inconclusive, with --strict; or the time was over and nothing is decided
  130  interrupted: what is known by then is told all the same
  143  terminated, the same
"""


class _Comparison(TyperCommand):
    """Shows its usage with the part behind `--`, which never reaches the parser."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what stands behind the program's name in the line of usage."""
        return ["[OPTIONS]", "BASE [HEAD]", "[-- COMMAND…]"]


def _version(asked: bool) -> None:
    if asked:
        output.write(f"perfdiff {__version__}")
        raise typer.Exit


@app.command(cls=_Comparison, help=_HELP, epilog=_EPILOG)
@groups.expanded
def compare(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    context: typer.Context,
    revisions: Annotated[list[str] | None, typer.Argument(metavar="BASE", autocompletion=suggestions.revisions, hidden=True)] = None,
    output_files: options.Outputs = None,
    report_format: options.ReportFormat = None,
    full: options.Full = False,
    strict: options.Strict = False,
    save: options.Save = None,
    ticket_folder: Annotated[
        Path | None,
        typer.Option(
            "--ticket", metavar="DIR", help="Write a folder to attach to a ticket: reports, plots, and commands to reproduce them."
        ),
    ] = None,
    fast: options.Fast = False,
    thorough: options.Thorough = False,
    time: options.Time = None,
    cluster: options.Cluster = None,
    production: options.Production = None,
    search_time: Annotated[
        str | None,
        typer.Option("--search", metavar="TIME", help="Where nothing is slower, search inputs on which head does more, so long: 60s, 5m."),
    ] = None,
    *,
    workloads: groups.Workload,
    repeats: groups.Repeats,
    project: groups.Project,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be built, probed and run, and how long it should take.")
    ] = False,
    _version_asked: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Compare two revisions and exit with the code of the verdict."""
    with exits.exceptions_become_codes(project.repository), _commands_suggested(words := _given(revisions)):
        places = destinations.chosen(report_format, output_files, full=full)
        if save:
            samples.check(save)
        if ticket_folder:
            ticket.check(ticket_folder)
        consequences.check(production)
        if search_time:
            inputs_found.seconds(search_time, "--search")
        overrides = overridden(context, project, workloads, repeats)
        overrides = replace(overrides, fast=fast, thorough=thorough, time=time, cluster=cluster)
        if dry_run:
            _rehearse(tuple(words), project.repository, project.cache_folder, overrides, quiet=project.quiet)
            raise typer.Exit
        deadline = Deadline()
        with Answering(deadline) as answering:
            with project.progress(deadline) as progress:
                asked = replace(request(tuple(words), project.repository, project.cache_folder, overrides, progress), deadline=deadline)
                deadline.time_s = asked.config.measure.time_s
                uncommitted = ticket.changes(asked, ticket_folder, progress) if ticket_folder else None
                outcome = answered(asked, project.repository, overrides, progress)
                outcome = consequences.drawn(outcome, project.repository, overrides, production, progress)
                if search_time:
                    outcome = inputs_found.added(outcome, asked, search_time, progress)
                if ticket_folder:
                    progress.stage("writing the ticket", None)
                    ticket.write(ticket_folder, outcome, asked, uncommitted)
            deliver(outcome, places)
            if save and outcome.recorded:
                samples.save(save, outcome.recorded)
            if project.verbose:
                output.tell_stages(outcome.findings.stages)
            output.tell(headline(outcome), *destinations.written(places), quiet=project.quiet, ticket=ticket_folder)
        code = exits.of_outcome(outcome, strict=strict or deadline.is_cut)
        raise typer.Exit(code if answering.code is None else answering.code)


def _given(revisions: list[str] | None) -> list[str]:
    """Return the words for revisions; raise RevisionError where there are none."""
    if revisions:
        return revisions
    raise RevisionError(
        "say what to compare: `perfdiff HEAD~1 HEAD` takes the last two commits, `perfdiff HEAD` the last one and your changes; "
        "`perfdiff help` says more",
        slug="bad-specification",
    )


@contextmanager
def _commands_suggested(words: Sequence[str]) -> Iterator[None]:
    """Where the words cannot be compared and the first is nearly a command's name, or one of other tools, let the message say so."""
    try:
        yield
    except (RevisionError, ConfigError) as error:
        near = difflib.get_close_matches(words[0], COMMANDS, n=1, cutoff=_NEAR_COMMAND)
        meant = f"did you mean the command `perfdiff {near[0]}`?" if near else ""
        if words[0] in _ELSEWHERE:
            meant = f"comparing needs no command's name: `perfdiff {' '.join(words[1:]) or 'BASE HEAD'}`"
        if not meant or error.slug not in ("unknown-revision", "bad-specification", "config-no-workload"):
            raise
        raise type(error)(f"{error}; {meant}", slug=error.slug, detail=error.detail) from error


def _rehearse(revisions: tuple[str, ...], directory: Path, cache: Path, overrides: Overrides, *, quiet: bool) -> None:
    """Print what the comparison would do."""
    from perfdiff.cli.rehearsal import rehearsed

    with waiting.progress(quiet=quiet, verbose=False) as progress:
        text = rehearsed(request(revisions, directory, cache, overrides, progress), progress, width=output.width(), colour=output.colour())
    output.write(text)


def compared(revisions: tuple[str, ...], directory: Path, cache: Path, overrides: Overrides, progress: Progress) -> Outcome:
    """Read the configuration that holds in `directory` and compare; known costs are no regression."""
    return answered(request(revisions, directory, cache, overrides, progress), directory, overrides, progress)


def answered(asked: Request, directory: Path, overrides: Overrides, progress: Progress) -> Outcome:
    """Compare as asked; the costs that are known in `directory` are no regression."""
    from perfdiff import pipeline

    warn_of_few_runs(asked, progress)
    outcome = pipeline.compare(asked, progress)
    return replace(outcome, findings=acceptances.honoured(outcome.findings, directory.absolute(), overrides.file))


def warn_of_few_runs(asked: Request, progress: Progress) -> None:
    """Say it before anything is measured where no workload has the runs that a verdict on the time of calls needs."""
    runs = max(workload.runs for workload in asked.config.workloads)
    if runs < RUNS_FOR_TIME:
        others = "whole runs and counts are" if asked.config.counters.software else "whole runs are"
        needed = f"are too few for a verdict on the time of single calls, which needs at least {RUNS_FOR_TIME}"
        progress.note(f"{runs} runs with probes a side {needed}; {others} compared all the same")


def request(revisions: tuple[str, ...], directory: Path, cache: Path, overrides: Overrides, progress: Progress) -> Request:
    """Return what is asked of the pipeline, by the configuration that holds in `directory`."""
    from perfdiff.revisions.repository import find_repository

    repository = find_repository(directory)  # outside of one, no configuration is worth mending
    changed = partial(repository.changed, revisions)
    config = configuration.load(directory.absolute(), overrides=overrides, environment=os.environ, changed=changed)
    if config.build_guessed_from:
        progress.note(_guess(config))
    from perfdiff.request import Request

    project = configuration.project(directory.absolute(), overrides.file)
    return Request(project, revisions, config, cache, _users_environment())


def _users_environment() -> dict[str, str]:
    """Return the environment that builds and workloads get: without the variable that threadpoolctl sets where it is imported."""
    environment = dict(os.environ)
    import_module("threadpoolctl")
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    return environment


def _guess(config: Config) -> str:
    """Say what no file says, and where it may be said; `perfdiff init` writes no file where one is there."""
    told, has_file = config.build_guessed_from, config.source is not None
    change = "[build] and [{}] say otherwise" if has_file else "`perfdiff init` writes down what can be changed"
    unbuilt = (traits for traits in installed() if traits.name in config.languages and traits.unbuilt)
    if not config.build.command and (language := next(unbuilt, None)):
        return f"a {language.title} project, as {told} tells: {language.unbuilt}; {change.format(language.name)}"
    how = "[build] command says otherwise" if has_file else "`perfdiff init` writes it down to be changed"
    return f"building with '{config.build.command}', guessed from {told}; {how}"


def overridden(
    context: typer.Context, project: groups.Project, workloads: groups.Workload, repeats: groups.Repeats | None = None
) -> Overrides:
    """Return what the command line of a measuring command says over its configuration."""
    return Overrides(
        file=project.config,
        build=project.build,
        command=command_text(context.obj or []),
        workloads=tuple(workloads.workload or ()),
        parameters=options.parameters(workloads.param),
        setup=workloads.setup,
        prepare=workloads.prepare,
        warmup=repeats.warmup if repeats else None,
        runs=repeats.runs if repeats else None,
        seed=workloads.seed,
    )


def command_text(words: list[str]) -> str | None:
    """Return the words behind `--` as one shell command whose `{parameter}` places stay bare; a single word is a command already."""
    if len(words) < 2:
        return words[0] if words else None
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    parts = PLACE.split(word)
    # Every second part is the name of a place.
    return "".join(f"{{{part}}}" if index % 2 else part and shlex.quote(part) for index, part in enumerate(parts)) or "''"


def deliver(outcome: Outcome, places: Iterable[Destination], search: tuple[Block, ...] = ()) -> None:
    """Write the report to each of its places; for GitHub also append its Markdown to the summary of the step that runs."""
    for place in places:
        output.write(rendered(outcome, place, search), place.file)
        if place.form is options.Format.GITHUB and (summary := output.step_summary()):
            output.append(rendered(outcome, Destination(options.Format.MARKDOWN, summary), search), summary)


def headline(outcome: Outcome) -> str:
    """Return the answer of a comparison in one sentence."""
    from perfdiff.report import document

    return document.headline(outcome.findings, outcome.consequences, outcome.inputs)


def rendered(outcome: Outcome, place: Destination, search: tuple[Block, ...] = ()) -> str:
    """Return the report of a comparison, with the `search` that led to it; in colour where it is text for a terminal that wants it."""
    from perfdiff.report import document, renderers, terminal

    samples = outcome.drawn if place.form in renderers.DRAWING else None
    report = replace(document.build(outcome.findings, samples, outcome.consequences, outcome.inputs), search=search)
    if place.form is options.Format.TEXT:
        lines = None if place.full else terminal.PAGE
        return terminal.render(report, width=output.width(place.file), colour=output.colour(place.file), lines=lines)
    return renderers.RENDERERS[place.form](report)
