"""What a run of a Python, Java or PHP program with probes did, and the values that its calls were given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfdiff.languages.protocol import Load, Probe
from perfdiff.records import recording
from perfdiff.records.recording import Recording

ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did: exit status, output, recordings of its processes, and what these noted."""

    status: int
    output: str
    errors: str
    recordings: tuple[Recording, ...]
    notes: tuple[tuple[str, ...], ...]

    @property
    def only(self) -> Recording:
        """Return the recording of the only process."""
        (found,) = self.recordings
        return found

    @property
    def said(self) -> str:
        """Return what the program wrote to its standard error, without what a JVM says of the variable."""
        return "".join(line for line in self.errors.splitlines(keepends=True) if not line.startswith("Picked up JAVA_TOOL_OPTIONS"))


def outcome(out: Path, status: int, output: bytes = b"", errors: bytes = b"") -> Outcome:
    """Return what a run did that left its recordings in a folder."""
    notes = tuple(tuple(line.split("\t", 1)) for path in sorted(out.glob("*.remarks")) for line in path.read_text().splitlines())
    recordings = tuple(recording.read(path) for path in sorted(out.glob("*.pdrec")))
    return Outcome(status, output.decode(), errors.decode(), recordings, notes)


def undisturbed(run: Callable[[], Outcome]) -> Outcome:
    """Run until each call that ended was timed: one that other work kept waiting all the time has no time, and no record."""
    found = run()
    for _ in range(ATTEMPTS - 1):
        totals = found.only.totals
        if (totals.timed + totals.unfinished == totals.calls).all():
            break
        found = run()
    return found


def totals(record: Recording, name: str) -> dict[int, float]:
    """Return one of the totals of each probe."""
    return dict(zip(record.totals.probe.tolist(), getattr(record.totals, name).tolist(), strict=True))


def calls(record: Recording) -> dict[int, float]:
    """Return how often each probe was called."""
    return totals(record, "calls")


def edges(record: Recording) -> dict[tuple[int, int], float]:
    """Return how often each probe, by number, called each other; 0 is the start of a thread."""
    pairs = zip(record.edges.caller.tolist(), record.edges.callee.tolist(), strict=True)
    return dict(zip(pairs, record.edges.calls.tolist(), strict=True))


def values(record: Recording, probes: Sequence[Probe], name: str) -> list[tuple[float | str | None, ...]]:
    """Return what each call of a function read, in the order of the calls; None where nothing was."""
    (probe,) = [each for each in probes if each.definition.name == name]
    samples = record.samples[probe.id]
    return [tuple(_value(record, probe, samples.cells[row], samples.read[row])) for row in np.argsort(samples.call)]


def _value(record: Recording, probe: Probe, cells: np.ndarray, read: np.ndarray) -> list[float | str | None]:
    values: list[float | str | None] = []
    for place, feature in enumerate(probe.definition.features):
        cell = cells[place : place + 1]
        if not read[place]:
            values.append(None)
        elif feature.load is Load.TYPE:
            values.append(record.types[int(cell[0])])
        else:
            values.append(float(cell.view(np.float64 if feature.load is Load.FLOATING else np.uint64)[0]))
    return values
