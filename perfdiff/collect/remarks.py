"""What processes tell of their probes beside what they record: that some of their calls are not seen, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from perfdiff.records.schema import Note

FILES = "*.remarks"  # a line each: a word, a tab, a text; behind "elsewhere" and its path another tab, and the file of the tree
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
_OF_TIME = ("probes-paused", "probes-loading", "probes-compiling", "probes-stopped")


def of_lost_calls(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes by which calls may have been made that nobody saw; others tell what takes time beside them."""
    return tuple(note for note in notes if note.slug not in _OF_TIME)


def of_other_code(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes on code that was loaded from another place than the tree; only probes in all functions are sure to see it."""
    return tuple(note for note in notes if note.slug == _KNOWN["elsewhere"].slug)


def read(folder: Path) -> list[Note]:
    """Return what the processes of a run told, as far as it is known what it means."""
    return [
        replace(known, text=known.text.format(text=text.partition("\t")[0])) for word, text in _told(folder) if (known := _KNOWN.get(word))
    ]


def misplaced(folder: Path) -> dict[str, str]:
    """Return the files of the tree whose code the processes of a run loaded from another place, each with that place."""
    places = (text.partition("\t") for word, text in _told(folder) if word == "elsewhere")
    return {file: place for place, _, file in places if file}


def _told(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the words of a run's processes with their texts."""
    for path in sorted(folder.glob(FILES)):
        with path.open("rb") as file:
            lines = file.read(MOST_BYTES).decode(errors="replace").splitlines()
        yield from ((word, text) for word, _, text in (line.partition("\t") for line in lines))
