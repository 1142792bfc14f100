"""Exit codes: the one place where verdicts and exceptions become numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from perfdiff.deadline import CutShortError, Ending
from perfdiff.errors import OutOfTimeError, PerfdiffError, UsageError

if TYPE_CHECKING:
    from perfdiff.analysis.findings import Verdict
    from perfdiff.analysis.series import Standing


class ExitCode(IntEnum):
    """What the command says to the shell. 130 and 143 are the shell's own for Ctrl-C and SIGTERM."""

    FINE = 0
    REGRESSION = 1
    USAGE = 2
    NOT_MEASURED = 3
    INCONCLUSIVE = 4
    INTERRUPTED = 130
    TERMINATED = 143


def of_verdict(verdict: Verdict | str, *, strict: bool) -> ExitCode:
    """Return the exit code of a comparison."""
    if verdict == "regression":
        return ExitCode.REGRESSION
    if verdict == "inconclusive" and strict:
        return ExitCode.INCONCLUSIVE
    return ExitCode.FINE


def of_standing(standing: Standing, *, strict: bool) -> ExitCode:
    """Return the exit code of a check."""
    if standing == "not judged":
        return ExitCode.NOT_MEASURED
    return of_verdict("regression" if standing == "violated" else standing, strict=strict)


@contextmanager
def exceptions_become_codes(within: Path | None = None) -> Iterator[None]:
    """Run the body of a command: tell expected failures on standard error and exit with their codes.

    A command that works `within` a repository fails first where there is none: outside of one, nothing else is worth mending.
    """
    try:
        if within is not None:
            from perfdiff.revisions.repository import find_repository

            find_repository(within)
        yield
    except PerfdiffError as error:
        _tell(error)
        raise typer.Exit(_of_error(error)) from error
    except CutShortError as cut:
        typer.echo("perfdiff: nothing is known yet, as base and head had not run", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED if cut.ending is Ending.INTERRUPTED else ExitCode.TERMINATED) from cut
    except KeyboardInterrupt as interrupt:
        typer.echo("perfdiff: interrupted", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from interrupt


def _of_error(error: PerfdiffError) -> ExitCode:
    if isinstance(error, OutOfTimeError):
        return ExitCode.INCONCLUSIVE
    return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.NOT_MEASURED


def _tell(error: PerfdiffError) -> None:
    from perfdiff.report.printable import printable, printable_lines

    sys.stdout.flush()
    typer.echo(f"perfdiff: {printable(str(error))} [{error.slug}]", err=True)
    for line in printable_lines(error.detail.removesuffix("\n")) if error.detail else ():
        typer.echo(f"  | {line}", err=True)
