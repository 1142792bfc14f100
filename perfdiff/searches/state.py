"""What a search for a culprit has found out so far, kept in the cache after every measurement, so that it can be gone on with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff.analysis.search.posterior import Reading
from perfdiff.analysis.search.symptom import FunctionStart
from perfdiff.errors import (
    DiskFilledError,
    InputChangedError,
    PerfdiffError,
    RecordingError,
    RevisionError,
    StoreError,
    store_errors,
)
from perfdiff.records import bounds, codec

_NO_SPACE = "No space left on device"
_MOST_BYTES = 64 * 1024 * 1024  # of a state: far more than a range of commits needs


@dataclass(frozen=True, slots=True)
class CommitReading:
    """What was measured of a commit: all its readings together, how many they are, and where the function begins in it."""

    reading: Reading
    times: int
    place: FunctionStart | None


@dataclass(frozen=True, slots=True)
class StepReading:
    """A reading that compares suspects with the commit before them, to confirm that the culprit is among them."""

    suspects: frozenset[str]
    reading: Reading


@dataclass(frozen=True, slots=True)
class SearchRecords:
    """The state of a search; commits by their ids. `skipped` have their reasons, `alike` lead to a commit that is the same."""

    good: str
    bad: str
    taken: Mapping[str, CommitReading] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    alike: Mapping[str, str] = field(default_factory=dict)
    tried: tuple[StepReading, ...] = ()
    spent_s: float = 0.0

    @property
    def measurements(self) -> int:
        """Return how many measurements were made."""
        return sum(measured.times for measured in self.taken.values())


def load(file: Path) -> SearchRecords | None:
    """Return a state, None where there is none; raise RecordingError where it is damaged."""
    try:
        return codec.decode(SearchRecords, bounds.parsed(bounds.content(file, _MOST_BYTES)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RecordingError(f"the state of the search in {file} is damaged: {error}", slug="damaged-recording") from error


def save(file: Path, state: SearchRecords) -> None:
    """Keep a state; it appears whole or not at all. StoreError: `cache-unwritable`, `disk-full`."""
    with store_errors(file.parent.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".writing")
        draft.write_text(json.dumps(codec.encode(state)), encoding="utf-8")
        draft.replace(file)


def reason_of(error: PerfdiffError) -> str:
    """Return why a commit cannot be measured; raise again what is not the commit's fault."""
    lost = isinstance(error, RevisionError) and error.slug not in ("submodule-missing", "overlay-outside")
    if (
        isinstance(error, DiskFilledError | InputChangedError | StoreError | RecordingError)
        or lost
        or _NO_SPACE in f"{error} {error.detail}"
    ):
        raise error
    return f"{error} [{error.slug}]"
