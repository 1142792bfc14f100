"""What commands that search for inputs have in common: for how long, where inputs are kept, and that a comparison does so as well."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff.configuration import settings
from perfdiff.configuration.checking import COMMAND_LINE, checked
from perfdiff.errors import PerfdiffError

if TYPE_CHECKING:
    from perfdiff.outcome import Outcome
    from perfdiff.progress import Progress
    from perfdiff.request import Request

KEEP = Path("perfdiff-inputs")
SIZE = "64k"


def seconds(text: str, option: str) -> float:
    """Return the seconds that a text of an option says; raise ConfigError where it is no time."""
    time_s: float = checked(settings.parse(settings.TIME, text), settings.TIME, COMMAND_LINE, option)
    return time_s


def size(text: str, option: str) -> int:
    """Return the bytes that a text of an option says; raise ConfigError where it is no size."""
    largest: int = checked(settings.parse(settings.SIZE, text), settings.SIZE, COMMAND_LINE, option)
    return largest


def added(outcome: Outcome, asked: Request, time: str, progress: Progress) -> Outcome:
    """Return an outcome with the inputs that a search finds where nothing is slower, or with a note on why none was made."""
    if outcome.findings.verdict == "regression" or asked.deadline.is_cut:
        return outcome
    from perfdiff import searching
    from perfdiff.fuzzing.search import SearchLimits
    from perfdiff.records.schema import Note

    limits = SearchLimits(size(SIZE, "--size"), seconds(time, "--search"), seed=asked.config.compare.seed)
    try:
        return replace(outcome, inputs=searching.search(asked, progress, limits, KEEP))
    except PerfdiffError as error:
        note = Note("not-searched", f"no inputs were searched: {error}")
        return replace(outcome, findings=replace(outcome.findings, notes=(*outcome.findings.notes, note)))
