"""Where the reports of a comparison go, each in its form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.cli import options, output
from perfdiff.cli.options import Format


@dataclass(frozen=True)
class Destination:
    """A file that gets a report, None for standard output, and the form of it; a text that is not for a file fits a page unless `full`."""

    form: Format
    file: Path | None
    full: bool = False


def chosen(form: Format | None, files: Sequence[Path] | None, *, full: bool = False) -> tuple[Destination, ...]:
    """Return where reports go: `form` holds for each of the files, else the suffix of each; raise `UsageError` where that cannot be."""
    forms = [(options.report_format(form, file, options.SUFFIXES), file) for file in files or (None,)]
    found = tuple(Destination(form, file, full or file is not None) for form, file in forms)
    for destination in found:
        summary = output.step_summary() if destination.form is Format.GITHUB else None
        for written in filter(None, (destination.file, summary)):
            output.check(written)
    return found


def written(destinations: Sequence[Destination]) -> tuple[Path, ...]:
    """Return the files that get reports."""
    return tuple(destination.file for destination in destinations if destination.file)
