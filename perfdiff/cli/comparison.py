"""`perfdiff BASE HEAD [-- COMMAND…]`: compare two revisions."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from perfdiff import __version__
from perfdiff.cli import (
    COMMANDS,
    acceptances,
    consequences,
    destinations,
    exits,
    groups,
    options,
    output,
    requests,
    samples,
    suggestions,
    ticket,
    waiting,
)
from perfdiff.cli.leaving import Answering
from perfdiff.configuration import Overrides
from perfdiff.deadline import Deadline
from perfdiff.errors import ConfigError, PerfdiffError, RevisionError

if TYPE_CHECKING:
    from perfdiff.outcome import Outcome
    from perfdiff.progress import Progress
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
  perfdiff commands           compare two commands, without git: `perfdiff -- A --- B`
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


class _ComparisonCommand(TyperCommand):
    """Shows its usage with the part behind `--`, which never reaches the parser."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what stands behind the program's name in the line of usage."""
        return ["[OPTIONS]", "BASE [HEAD]", "[-- COMMAND…]"]


def _version(asked: bool) -> None:
    if asked:
        output.write(f"perfdiff {__version__}")
        raise typer.Exit


@app.command(cls=_ComparisonCommand, help=_HELP, epilog=_EPILOG)
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
    workloads: groups.WorkloadOptions,
    repeats: groups.Repeats,
    project: groups.ProjectOptions,
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
            options.seconds(search_time, "--search")
        overrides = requests.overridden(context, project, workloads, repeats)
        overrides = replace(overrides, fast=fast, thorough=thorough, time=time, cluster=cluster)
        if dry_run:
            _rehearse(tuple(words), project, overrides)
            raise typer.Exit
        deadline = Deadline()
        with Answering(deadline) as answering:
            with project.progress(deadline) as progress:
                asked = replace(requests.request(tuple(words), project, overrides, progress), deadline=deadline)
                deadline.time_s = asked.config.measure.time_s
                uncommitted = ticket.changes(asked, ticket_folder, progress) if ticket_folder else None
                outcome = acceptances.compared(asked, project.repository, overrides, progress)
                outcome = consequences.drawn(outcome, project.repository, overrides, production, progress)
                if search_time:
                    outcome = _searched(outcome, asked, search_time, progress)
                if ticket_folder:
                    progress.stage("writing the ticket", None)
                    ticket.write(ticket_folder, outcome, asked, uncommitted)
            destinations.deliver(outcome, places)
            if save and outcome.recorded:
                samples.save(save, outcome.recorded)
            if project.verbose:
                output.tell_stages(outcome.findings.stages)
            output.tell(destinations.headline(outcome), *destinations.written(places), quiet=project.quiet, ticket=ticket_folder)
        code = consequences.exit_code(outcome, strict=strict or deadline.is_cut)
        raise typer.Exit(code if answering.code is None else answering.code)


def _searched(outcome: Outcome, asked: Request, time: str, progress: Progress) -> Outcome:
    """Return an outcome with the inputs that a search finds where nothing is slower, or with a note on why none was made."""
    if outcome.findings.verdict == "regression" or asked.deadline.is_cut:
        return outcome
    from perfdiff import searching
    from perfdiff.fuzzing.search import SearchLimits
    from perfdiff.records.schema import Note

    limits = SearchLimits(options.size(options.LARGEST_INPUT, "--size"), options.seconds(time, "--search"), seed=asked.config.compare.seed)
    try:
        return replace(outcome, inputs=searching.search(asked, progress, limits, options.KEEP))
    except PerfdiffError as error:
        note = Note("not-searched", f"no inputs were searched: {error}")
        return replace(outcome, findings=replace(outcome.findings, notes=(*outcome.findings.notes, note)))


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


def _rehearse(revisions: tuple[str, ...], project: groups.ProjectOptions, overrides: Overrides) -> None:
    """Print what the comparison would do."""
    from perfdiff.cli.rehearsal import rehearsed

    with waiting.progress(quiet=project.quiet, verbose=False) as progress:
        asked = requests.request(revisions, project, overrides, progress)
        text = rehearsed(asked, progress, width=output.width(), colour=output.colour())
    output.write(text)
