"""How often lines ran, as the processes of a run leave it: a file each, whose lock tells that its process still runs."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfdiff.errors import RecordingError
from perfdiff.records.arrays import Ints
from perfdiff.records.places import Place

FOLDER = "PERFDIFF_PLACES"  # tells what counts in a process where to
HEAD = np.dtype([("magic", "S8"), ("places", "<u8"), ("flags", "<u8")])  # what every file begins with
_MAGIC = b"PDLINES1"
_DISTURBED = 1  # of the flags


def of_process(content: bytes, places: int) -> Ints | None:
    """Return the counts in a file that `interpreted/lines/counts.c` wrote."""
    if len(content) != HEAD.itemsize + 8 * places or not content.startswith(_MAGIC):
        return None
    return np.frombuffer(content, "<u8", offset=HEAD.itemsize).astype(np.int64)


@dataclass(frozen=True, slots=True)
class InterpretedPlaces:
    """The counted lines of a tree, in order; with `variables` in its environment a process counts them, by `sheet`.

    The sheet has `counted` numbers, of which `numbers` (places,) are the places' own; `counts_in` takes them out of a process's file.
    """

    places: tuple[Place, ...]
    sources: Mapping[str, tuple[str, ...]]
    variables: Mapping[str, str]
    sheet: Path
    numbers: Ints
    counted: int
    counts_in: Callable[[bytes, int], Ints | None] = of_process

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables that make a run leave its counts in `folder`, which is there and empty."""
        return {**self.variables, FOLDER: str(folder)}

    def read(self, folder: Path) -> Ints:
        """Return how often each place ran in the run that wrote to `folder`, (places,), over all its processes; raise RecordingError.

        Files of processes that cannot have written them are damaged.
        """
        counts = np.zeros(self.counted, dtype=np.int64)
        for path in _files(folder):
            content = path.read_bytes()
            if _has_begun(content):  # else its process had no room to count in, or was killed before it did, and is lost
                process_counts = self.counts_in(content, self.counted)
                if process_counts is None:
                    raise RecordingError(
                        f"the counts of lines in {path.name} are damaged: {len(content)} bytes for {self.counted} lines; run it again",
                        slug="places-damaged",
                    )
                counts += process_counts
        return counts[self.numbers]

    def lost(self, folder: Path) -> int:
        """Return of how many processes of the run not all is counted: they still run, had no room, or were disturbed."""
        return sum(1 for path in _files(folder) if _is_lost(path))


def text_of(lines: Sequence[str], number: int) -> str:
    """Return a line of a file by its number, from 1 on; nothing of one that it does not have."""
    return lines[number - 1].strip() if number <= len(lines) else ""


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.lines"))


def _has_begun(content: bytes) -> bool:
    """Return whether a process wrote how its file begins."""
    return any(content[: len(_MAGIC)])


def _is_lost(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        content = file.read(HEAD.itemsize)
    return not _has_begun(content) or len(content) < HEAD.itemsize or bool(np.frombuffer(content, HEAD)["flags"][0] & _DISTURBED)
