"""Counts of places on disk: one folder a revision.

places.json       points, notes, features, the texts of files, the names of functions
places.parquet    one row a place: numbers of its file and function, its line, and a column `point:i` for each point
digests.json      of both, so that damage is told and not analysed
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfdiff.errors import RecordingError
from perfdiff.records import bounds, codec, tables
from perfdiff.records.places import Place, PlaceCounts
from perfdiff.records.schema import Note, Point

SCHEMA = "perfdiff.places/1"
_DOCUMENT, _TABLE = "places.json", "places.parquet"


@dataclass(frozen=True, slots=True)
class _Document:
    """What stands beside the table. `features` are None where absent; `functions` and the keys of `sources` are numbered from 0."""

    points: tuple[Point, ...]
    notes: tuple[Note, ...]
    features: Mapping[str, tuple[float | None, ...]]
    functions: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]
    unsteady: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


def save(folder: Path, found: PlaceCounts) -> None:
    """Write counts to `folder`, which appears whole or not at all; raise StoreError."""
    functions = {name: number for number, name in enumerate(dict.fromkeys(place.function for place in found.places))}
    files = {name: number for number, name in enumerate(found.sources)}
    columns = {
        "file": np.array([files[place.file] for place in found.places], dtype=np.int64),
        "function": np.array([functions[place.function] for place in found.places], dtype=np.int64),
        "line": np.array([place.line for place in found.places], dtype=np.int64),
        **{f"point:{i}": found.counts[:, i] for i in range(len(found.points))},
    }
    features = {name: tuple(None if math.isnan(value) else value for value in values.tolist()) for name, values in found.features.items()}
    document = {
        "schema": SCHEMA,
        "places": codec.encode(_Document(found.points, found.notes, features, tuple(functions), found.sources, found.unsteady, found.lost)),
    }
    with tables.written(folder) as draft:
        (draft / _DOCUMENT).write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")
        tables.write_columns(draft / _TABLE, columns)


def exists(folder: Path) -> bool:
    """Return whether `folder` holds counts; it appears whole or not at all."""
    return (folder / _DOCUMENT).exists()


def verify(folder: Path) -> None:
    """Raise RecordingError where a file is missing, or is not as it was written."""
    tables.verify(folder, _DOCUMENT, _TABLE)


def load(folder: Path) -> PlaceCounts:
    """Return the counts in `folder`; raise RecordingError where they are damaged or of another version."""
    try:
        found = bounds.parsed(tables.content(folder, _DOCUMENT).decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise RecordingError(f"{folder} holds no readable counts: {error}", slug="damaged-recording") from error
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != SCHEMA:
        raise RecordingError(f"{folder} is of format {schema!r}; this perfdiff reads {SCHEMA}", slug="format-version")
    document = codec.decode(_Document, found.get("places"))
    columns = tables.read_columns(folder, _TABLE)
    try:
        places = _places(document, *(columns[name].tolist() for name in ("file", "function", "line")))
        counts = np.column_stack([columns[f"point:{i}"] for i in range(len(document.points))]).astype(np.float64)
    except (KeyError, IndexError, ValueError) as error:
        raise RecordingError(f"{folder} is damaged: its table does not fit what stands beside it", slug="damaged-recording") from error
    features = {name: np.array([math.nan if v is None else v for v in values]) for name, values in document.features.items()}
    if any(len(values) != len(document.points) for values in features.values()):
        raise RecordingError(f"{folder} is damaged: a feature has not one value a point", slug="damaged-recording")
    return PlaceCounts(document.points, places, counts, features, document.sources, document.notes, document.unsteady, document.lost)


def _places(document: _Document, files: list[int], functions: list[int], lines: list[int]) -> tuple[Place, ...]:
    """Return the places of a table's rows; raise IndexError where one is in no file or function that there is."""
    names = tuple(document.sources)
    found = []
    for file, function, line in zip(files, functions, lines, strict=True):
        if min(file, function, line - 1) < 0:
            raise IndexError
        text = document.sources[names[file]]  # which may have been gone, or shorter, when it was read
        found.append(Place(document.functions[function], names[file], line, text[line - 1].strip() if line <= len(text) else ""))
    return tuple(found)
