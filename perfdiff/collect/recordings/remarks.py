"""What processes tell of their probes beside what they record: that some of their calls are not seen, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from perfdiff.records.schema import Note

FILES = "*.remarks"  # a line each: a word, a tab, a text; behind "elsewhere" and its path another tab, and the file of the tree
_OWN = f"{Path(__file__).parents[2]}/"
MOST_BYTES = 65_536  # of a file that is read: processes tell little, and anybody may write there
_KNOWN = {
    "elsewhere": Note(
        "probes-elsewhere",
        "what is imported from {text} is not the built tree's: calls of it are not measured, as they are not the revision's code",
    ),
    "taken": Note("probes-taken", "{text}: calls made meanwhile are not measured"),
    "interpreter": Note("probes-interpreter", "{text}"),
    "failed": Note("probes-failed", "{text}: nothing is known of the calls of that process"),
    "deep": Note("probes-deep", "{text}"),
    "traced": Note("probes-traced", "{text}"),
    "unwoven": Note("probes-unwoven", "{text}"),
    "altered": Note("probes-altered", "{text} was loaded with other bytes than the built tree's: calls of its methods are not measured"),
    "virtual": Note("probes-virtual", "{text}"),
    "paused": Note("probes-paused", "{text}"),
    "loading": Note("probes-loading", "{text}"),
    "compiling": Note("probes-compiling", "{text}"),
    "stopped": Note("probes-stopped", "{text}"),
}


def of_other_code(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes on code that was loaded from another place than the tree; only probes in all functions are sure to see it."""
    return tuple(note for note in notes if note.slug == _KNOWN["elsewhere"].slug)


@dataclass(frozen=True, slots=True)
class ProcessRemarks:
    """The remarks that the probed processes of a run left, as notes.

    `misplaced` are the files of the tree whose code they loaded from another place, each with that place.
    """

    notes: tuple[Note, ...]
    misplaced: Mapping[str, str]


def read(folder: Path) -> ProcessRemarks:
    """Return the remarks that the processes of a run left in a folder."""
    notes, misplaced = [], {}
    for path in sorted(folder.glob(FILES)):
        with path.open("rb") as file:
            lines = file.read(MOST_BYTES).decode(errors="replace").splitlines()
        for word, _, rest in (line.partition("\t") for line in lines):
            text, _, file_of_tree = rest.partition("\t")
            if text.startswith(_OWN):  # a driver of ours, which has the name of a file of the project's
                continue
            if note := _KNOWN.get(word):
                notes.append(replace(note, text=note.text.format(text=text)))
            if word == "elsewhere" and file_of_tree:
                misplaced[file_of_tree] = text
    return ProcessRemarks(tuple(notes), misplaced)
