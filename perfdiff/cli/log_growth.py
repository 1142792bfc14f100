"""`perfdiff log FUNCTION --metric growth`: the exponent of what a function executes over revisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff import configuration
from perfdiff.cli import output
from perfdiff.cli.explain import is_named
from perfdiff.errors import MeasurementError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfdiff.analysis.trends.growth_history import Counted, GrowthHistory


def history_of(function: str, counted: Sequence[Counted], *, seed: int) -> GrowthHistory:
    """Return the history of the one function that is meant; raise UsageError where no revision has it, or the newest several.

    MeasurementError: `no-feature`.
    """
    from perfdiff.analysis.trends.growth_history import growth_history

    names: set[str] = set()
    for _, found in reversed(counted):
        functions = () if isinstance(found, str) else tuple(dict.fromkeys((place.function, place.file) for place in found.places))
        named = [each for each in functions if is_named(function, *each)]
        if len(named) > 1:
            which = ", ".join(f"{file}:{name}" for name, file in named)
            raise UsageError(f"several functions are named '{function}': {which}; name the file as well", slug="ambiguous-function")
        if named:
            told = growth_history(*named[0], counted, seed=seed)
            if told is None:
                raise MeasurementError(f"no feature varies over the runs of '{function}'; give inputs of several sizes", slug="no-feature")
            return told
        names |= {name for name, _ in functions}
    raise UsageError(
        f"'{function}' is no function that ran in any of these revisions{configuration.nearest(function, names)}", slug="unknown-function"
    )


def write(told: GrowthHistory, form: str, output_file: Path | None) -> None:
    """Write a history in a form of text or as a picture."""
    from perfdiff.report.json_text import json_text
    from perfdiff.report.trends import history as report

    match form:
        case "json":
            output.write(json_text(report.json_document(told)), output_file)
        case "svg" | "png":
            from perfdiff.report.trends import history_plot

            output.write_picture(history_plot.draw(told, form), output_file)
        case _:
            output.write(report.text(told, width=output.width(output_file), colour=output.colour(output_file)), output_file)


def answer(told: GrowthHistory) -> str:
    """Return where the growth changed, in a sentence."""
    from perfdiff.report.trends import history as report

    return report.answer(told)
