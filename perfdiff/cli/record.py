"""`perfdiff record [REV] -- COMMAND…`: leave recordings of a program in use."""

from __future__ import annotations

import re
import shlex
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff.cli import exits, groups, options, output, requests, suggestions, waiting
from perfdiff.config import PLACE
from perfdiff.configuration import Overrides
from perfdiff.errors import UsageError
from perfdiff.progress import Silent

if TYPE_CHECKING:
    from collections.abc import Mapping

app = options.application()

_HELP = """
Build a revision (by default the working tree) with probes and run COMMAND in the built tree as long as it runs: a server, a job.

It writes parts: finished folders that contain only features and times. `perfdiff compare` reads thousands of them. The command gets the
input, output and signals of `perfdiff record`, which exits with the command's exit code.

\b
  perfdiff record v1.2 --to /var/lib/perfdiff --label site=lyon -- ./bin/server --port 8080
  perfdiff record --functions 'parse_*' --every 300 --size 1GB --to parts -- python -m service
"""

_DEFAULT_SIZE, _DEFAULT_EVERY_S = "100MB", 60.0
_LEAST_EVERY_S, _LEAST_BYTES = 1.0, 1_000_000
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|KB|MB|GB|TB)?")
_UNITS = {None: 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
LABEL = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]{0,63})=([^\x00-\x1f=]{1,200})")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@app.command(help=_HELP)
@groups.expanded
def record(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    context: typer.Context,
    revision: Annotated[
        str | None,
        typer.Argument(
            metavar="REV", autocompletion=suggestions.revisions, help="The revision to build and run; by default the working tree."
        ),
    ] = None,
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Write parts below this folder.")] = Path("perfdiff-parts"),
    host: Annotated[str | None, typer.Option("--host", metavar="NAME", help="Record this name for the host, not its own.")] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="Say what the program is used for (may be repeated).")
    ] = None,
    size: Annotated[
        str, typer.Option("--size", metavar="SIZE", help="How much room all parts of the folder may take; excess ones are removed.")
    ] = _DEFAULT_SIZE,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", help="How often to finish a part.")] = _DEFAULT_EVERY_S,
    overhead: Annotated[
        float | None,
        typer.Option("--overhead", metavar="SHARE", help="What probes may add to the CPU time, such as 0.02; by default as configured."),
    ] = None,
    functions: Annotated[
        list[str] | None,
        typer.Option("--functions", metavar="PATTERN", help="Record only functions whose name or file matches (may be repeated)."),
    ] = None,
    survey: Annotated[
        bool | None,
        typer.Option("--survey/--no-survey", help="Whether the configured workloads choose the probes first; by default if there are any."),
    ] = None,
    *,
    project: groups.ProjectOptions,
) -> None:
    """Record a command and exit with its code."""
    with exits.exceptions_become_codes(project.repository):
        words: list[str] = context.obj or []
        if not words:
            raise UsageError(
                "there is nothing to record: give the command behind `--`, as in `perfdiff record v1.2 -- ./server`", slug="no-command"
            )
        from perfdiff.recorder import RecordingOrder
        from perfdiff.recorder import record as recorded

        output.make_folder(to)
        command = words[0] if len(words) == 1 else shlex.join(words)
        overrides = Overrides(file=project.config, build=project.build)
        is_surveyed = _is_surveyed(survey, functions or [], project.repository, overrides)
        # The command may write to the terminal, too.
        progress = Silent() if project.quiet else waiting.LineProgress(sys.stderr, verbose=project.verbose)
        if not is_surveyed:
            overrides = replace(overrides, command=PLACE.sub("place", command))
        asked = requests.request((revision,) if revision else (), project, overrides, progress)
        ended = recorded(
            asked,
            RecordingOrder(
                command=command,
                to=to.absolute(),
                host=_host(host),
                labels=_labels(label or []),
                most_bytes=_bytes(size),
                every_s=_checked(every, _LEAST_EVERY_S, "--every"),
                overhead=asked.config.probes.overhead if overhead is None else _checked(overhead, 0.0, "--overhead"),
                functions=tuple(functions or ()),
                survey=is_surveyed,
            ),
            progress,
        )
        if not project.quiet:
            gone = f", {ended.removed} older ones removed to keep {size}" if ended.removed else ""
            progress.note(f"{ended.written} {'part' if ended.written == 1 else 'parts'} in {to}{gone}")
        raise typer.Exit(ended.code)


def _is_surveyed(asked: bool | None, functions: list[str], repository: Path, overrides: Overrides) -> bool:
    """Return whether workloads choose the probes: where there are any, unless functions are named or it is not wanted."""

    workloads = options.configured(repository, overrides).workloads
    if asked and not workloads:
        raise UsageError("a survey runs workloads, and none is configured; `perfdiff init` writes a file for them", slug="no-survey")
    return bool(workloads) and (not functions if asked is None else asked)


def _host(given: str | None) -> str:
    name = given if given is not None else socket.gethostname()
    if not _HOST.fullmatch(name):
        if given is None:
            return "host"
        raise UsageError(f"--host {given}: a host's name has letters, digits, dots and dashes", slug="bad-option")
    return name


def _labels(given: list[str]) -> Mapping[str, str]:
    labels: dict[str, str] = {}
    for text in given:
        match = LABEL.fullmatch(text)
        if match is None:
            raise UsageError(f"--label {text}: a label is NAME=VALUE", slug="bad-option")
        labels[match[1]] = match[2]
    return dict(sorted(labels.items()))


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    if size < _LEAST_BYTES:
        raise UsageError(f"--size {text}: give at least 1MB, as in 100MB or 2GB", slug="bad-option")
    return size


def _checked(value: float, least: float, option: str) -> float:
    if not least <= value < float("inf"):
        raise UsageError(f"{option} {value:g}: give {least:g} or more", slug="bad-option")
    return value
