"""Where the reports of a comparison go, each in its form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff.cli import options, output
from perfdiff.cli.options import Format
from perfdiff.errors import UsageError

if TYPE_CHECKING:
    from perfdiff.outcome import Outcome
    from perfdiff.report.blocks import Block


@dataclass(frozen=True)
class Destination:
    """A file that gets a report, None for standard output, and the form of it; a text that is not for a file fits a page unless `full`."""

    form: Format
    file: Path | None
    full: bool = False


def chosen(form: Format | None, files: Sequence[Path] | None, *, full: bool = False) -> tuple[Destination, ...]:
    """Return where reports go: `form` holds for each of the files, else the suffix of each; raise `UsageError` where that cannot be."""
    forms = [(options.report_format(form, file, options.SUFFIXES), file) for file in files or (None,)]
    destinations = tuple(Destination(form, file, full or file is not None) for form, file in forms)
    for destination in destinations:
        if destination.form is Format.PPROF and destination.file is None:
            raise UsageError("a profile for pprof is no text; name a file with -o, such as perf.pb.gz", slug="format-unknown")
        summary = output.step_summary() if destination.form is Format.GITHUB else None
        for written in filter(None, (destination.file, summary)):
            output.check(written)
    return destinations


def written(destinations: Sequence[Destination]) -> tuple[Path, ...]:
    """Return the files that get reports."""
    return tuple(destination.file for destination in destinations if destination.file)


def deliver(outcome: Outcome, places: Iterable[Destination], search: tuple[Block, ...] = ()) -> None:
    """Write the report to each of its places; for GitHub also append its Markdown to the summary of the step that runs."""
    for place in places:
        output.write(rendered(outcome, place, search), place.file)
        if place.form is Format.GITHUB and (summary := output.step_summary()):
            output.append(str(rendered(outcome, Destination(Format.MARKDOWN, summary), search)), summary)


def headline(outcome: Outcome) -> str:
    """Return the answer of a comparison in one sentence."""
    from perfdiff.report import document

    return document.headline(outcome.findings, outcome.consequences, outcome.inputs)


def rendered(outcome: Outcome, place: Destination, search: tuple[Block, ...] = ()) -> str | bytes:
    """Return the report of a comparison, with the `search` that led to it; in colour where it is text for a terminal that wants it."""
    from perfdiff.report import document, renderers, terminal

    samples = outcome.drawn if place.form in renderers.DRAWING else None
    report = replace(document.build(outcome.findings, samples, outcome.consequences, outcome.inputs), search=search)
    if place.form is Format.TEXT:
        lines = None if place.full else terminal.PAGE
        return terminal.render(report, width=output.width(place.file), colour=output.colour(place.file), lines=lines)
    return renderers.RENDERERS[place.form](report)
