"""What was recorded of one version, or of two, as the analysis takes it: an experiment with its sample tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import RecordingError
from perfdiff.records import store
from perfdiff.records.schema import Experiment, Note, SampleTable, Side

RECORDED_APART = Note(
    "recorded-apart",
    "base and head were not recorded in turn: what differs between the two recordings, such as the machine's load, counts as head's",
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An experiment, and `samples`, which loads a function's table of one side, or None where it has none."""

    experiment: Experiment
    samples: Callable[[int, Side], SampleTable | None]

    @property
    def sides(self) -> tuple[Side, ...]:
        """Return the sides that have runs."""
        found = {run.side for run in self.experiment.runs}
        return tuple(side for side in Side if side in found)


def load(folder: Path) -> Recorded:
    """Return the experiment in a folder; raise RecordingError where it is damaged, of another version or without runs."""
    found = Recorded(store.load(folder), lambda function, side: store.samples(folder, function, side))
    if not found.sides:
        raise RecordingError(f"{folder} holds no runs; save samples of a whole measurement", slug="samples-empty")
    return found
