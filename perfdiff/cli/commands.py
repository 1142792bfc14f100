"""`perfdiff -- A --- B`: compare two commands where the user stands, without git."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from perfdiff.cli import BETWEEN, destinations, exits, options, output, requests, waiting
from perfdiff.cli.leaving import Answering
from perfdiff.configuration import Overrides, settings
from perfdiff.configuration.checking import COMMAND_LINE, checked
from perfdiff.deadline import Deadline
from perfdiff.errors import UsageError

if TYPE_CHECKING:
    from perfdiff.request import Request

app = options.application()

_PAIR = 2
_NAME = "commands"  # of their workload
_HELP = """
Compare two commands by whole runs, where you stand: no git, no build, no functions. The name of this command may be left out.

The commands behind `--`, parted by `---`, are base and head. Their runs take turns in random order until every point is decided, and are
judged as those of two revisions are: by their time, exit codes, outputs and peak memory. Programs start without a shell, unless a single
word holds a command as a shell reads it. {NAME} in a command stands for each of the values of -p NAME=….

\b
  perfdiff -- ./sort-v1 data --- ./sort-v2 data
  perfdiff -p n=1000,100000 -- ./sort-v1 {n} --- ./sort-v2 {n}
  perfdiff --command 'gzip -9 <log >/dev/null' --command 'zstd -9 <log >/dev/null' --prepare sync -o report.html
"""


class _TwoCommands(TyperCommand):
    """Shows its usage with the part behind `--`, which never reaches the parser."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what stands behind the program's name in the line of usage."""
        return ["[OPTIONS]", "-- COMMAND… --- COMMAND…"]


@app.command(cls=_TwoCommands, help=_HELP)
def commands(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    context: typer.Context,
    revisions: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--command", metavar="COMMAND", help="Compare this shell command; given twice, in place of those behind `--`."),
    ] = None,
    param: options.Parameters = None,
    prepare: options.Prepare = None,
    warmup: options.Warmup = None,
    exit_code: Annotated[
        list[int] | None, typer.Option("--exit-code", metavar="N", help="Take this exit code for success as well (may be repeated).")
    ] = None,
    outputs: Annotated[
        str | None, typer.Option("--outputs", metavar="HOW", help="Take outputs that are the `same`, `unordered`, or that `differ`.")
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="End as soon as runs show that head is slower at some point.")] = False,
    time: options.Time = None,
    output_files: options.Outputs = None,
    report_format: options.ReportFormat = None,
    full: options.Full = False,
    strict: options.Strict = False,
    config: options.ConfigFile = None,
    cache: options.Cache = None,
    seed: options.Seed = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Compare two commands and exit with the code of the verdict."""
    with exits.exceptions_become_codes():
        base, head = _pair(revisions or [], given or [], context.obj or [])
        places = destinations.chosen(report_format, output_files, full=full)
        overrides = Overrides(
            file=config,
            command=f"{base} {BETWEEN} {head}",
            parameters=options.parameters(param),
            prepare=prepare,
            warmup=warmup,
            fast=fast,
            time=time,
            seed=seed,
        )
        if outputs:
            checked(outputs, settings.SECTIONS["compare"]["outputs"], COMMAND_LINE, "--outputs")
        asked = _request(overrides, (0, *(exit_code or ())), outputs, options.cache_folder(cache))
        with Answering(asked.deadline) as answering:
            with waiting.progress(quiet=quiet, verbose=verbose, deadline=asked.deadline) as progress:
                from perfdiff import pipeline
                from perfdiff.records.schema import Side

                outcome = pipeline.compare_commands(asked, {Side.BASE: base, Side.HEAD: head}, progress)
            destinations.deliver(outcome, places)
            output.tell(destinations.headline(outcome), *destinations.written(places), quiet=quiet)
        code = exits.of_verdict(outcome.findings.verdict, strict=strict or asked.deadline.is_cut)
        raise typer.Exit(code if answering.code is None else answering.code)


def _pair(revisions: list[str], given: list[str], words: list[str]) -> tuple[str, str]:
    """Return both commands; raise UsageError where there are not two of them."""
    if revisions:
        raise UsageError(
            f"two commands are compared without revisions, and '{revisions[0]}' was given: leave it out, or give one command behind `--` "
            "to compare revisions",
            slug="commands-apart",
        )
    parted = [requests.command_text(part) for part in _parts(words)]
    texts = [text for text in (*given, *parted) if text]
    if len(texts) != _PAIR or (given and words):
        raise UsageError(
            f"two commands are compared, and {len(texts)} {'was' if len(texts) == 1 else 'were'} given: write `perfdiff -- A --- B`, or "
            "give --command twice",
            slug="commands-apart",
        )
    return texts[0], texts[1]


def _parts(words: list[str]) -> list[list[str]]:
    """Return the words of each command."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == BETWEEN:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _request(overrides: Overrides, exit_codes: tuple[int, ...], outputs: str | None, cache: Path) -> Request:
    """Return what is asked: a workload at the points of the parameters, by the thresholds that hold where the user stands."""
    from perfdiff.config import HOUR_S
    from perfdiff.request import Request

    deadline, place = Deadline(), Path.cwd()
    config = options.configured(place, overrides)
    (workload,) = config.workloads
    workload = replace(workload, name=_NAME, exit_codes=exit_codes, timeout_s=HOUR_S, services=None)
    deadline.time_s = config.measure.time_s
    compare = replace(config.compare, outputs=outputs or config.compare.outputs)
    config = replace(config, workloads=(workload,), services=(), links=(), compare=compare)
    return Request(place, (), config, cache, requests.users_environment(), deadline=deadline)
