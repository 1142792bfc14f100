"""Counts of places on disk: one folder a revision.

places.json         points, notes, features, the texts of files, the names of functions
places.parquet      one row a place: numbers of its file and function, its line, and a column `point:i` for each point
instances.parquet   one row an instance of a template's place: numbers of the place and of its own function, and the same columns
digests.json        of all, so that damage is told and not analysed
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfdiff.errors import RecordingError
from perfdiff.records import bounds, codec, tables
from perfdiff.records.arrays import Floats
from perfdiff.records.places import Instances, Place, PlaceCounts
from perfdiff.records.remote import Folder
from perfdiff.records.schema import Note, Point

SCHEMA = "perfdiff.places/2"
_DOCUMENT, _TABLE, _INSTANCES = "places.json", "places.parquet", "instances.parquet"


@dataclass(frozen=True, slots=True)
class _PlaceDocument:
    """What stands beside the table. `features` are None where absent; `functions` and the keys of `sources` are numbered from 0."""

    points: tuple[Point, ...]
    notes: tuple[Note, ...]
    features: Mapping[str, tuple[float | None, ...]]
    functions: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]
    unsteady: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


def save(folder: Path, counted: PlaceCounts) -> None:
    """Write counts to `folder`, which appears whole or not at all; raise StoreError."""
    names = dict.fromkeys([*(place.function for place in counted.places), *counted.instances.names])
    functions = {name: number for number, name in enumerate(names)}
    files = {name: number for number, name in enumerate(counted.sources)}
    columns = {
        "file": np.array([files[place.file] for place in counted.places], dtype=np.int64),
        "function": np.array([functions[place.function] for place in counted.places], dtype=np.int64),
        "line": np.array([place.line for place in counted.places], dtype=np.int64),
        **_by_point(counted.counts),
    }
    instances = {
        "place": counted.instances.places,
        "function": np.array([functions[name] for name in counted.instances.names], dtype=np.int64),
        **_by_point(counted.instances.counts),
    }
    features = {name: tuple(None if math.isnan(value) else value for value in values.tolist()) for name, values in counted.features.items()}
    document = {
        "schema": SCHEMA,
        "places": codec.encode(
            _PlaceDocument(counted.points, counted.notes, features, tuple(functions), counted.sources, counted.unsteady, counted.lost)
        ),
    }
    with tables.written(folder) as draft:
        (draft / _DOCUMENT).write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")
        tables.write_columns(draft / _TABLE, columns)
        tables.write_columns(draft / _INSTANCES, instances)


def exists(folder: Path) -> bool:
    """Return whether `folder` holds counts; it appears whole or not at all."""
    return (folder / _DOCUMENT).exists()


def verify(folder: Path) -> None:
    """Raise RecordingError where a file is missing, or is not as it was written."""
    tables.verify(folder, _DOCUMENT, _TABLE, _INSTANCES)


def load(folder: Folder) -> PlaceCounts:
    """Return the counts in `folder`; raise RecordingError where they are damaged or of another version."""
    try:
        data = bounds.parsed(tables.content(folder, _DOCUMENT).decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise RecordingError(f"{folder} holds no readable counts: {error}", slug="damaged-recording") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise RecordingError(f"{folder} is of format {schema!r}; this perfdiff reads {SCHEMA}", slug="format-version")
    document = codec.decode(_PlaceDocument, data.get("places"))
    columns, instances = tables.read_columns(folder, _TABLE), tables.read_columns(folder, _INSTANCES)
    try:
        places = _places(document, *(columns[name].tolist() for name in ("file", "function", "line")))
        counts = _counts(columns, len(document.points))
        apart = _instances(document, len(places), instances)
    except (KeyError, IndexError, ValueError) as error:
        raise RecordingError(f"{folder} is damaged: its table does not fit what stands beside it", slug="damaged-recording") from error
    features = {name: np.array([math.nan if v is None else v for v in values]) for name, values in document.features.items()}
    if any(len(values) != len(document.points) for values in features.values()):
        raise RecordingError(f"{folder} is damaged: a feature has not one value a point", slug="damaged-recording")
    return PlaceCounts(document.points, places, counts, features, document.sources, document.notes, document.unsteady, document.lost, apart)


def _by_point(counts: Floats) -> dict[str, Floats]:
    return {f"point:{i}": counts[:, i] for i in range(counts.shape[1])}


def _counts(columns: Mapping[str, Any], points: int) -> Floats:
    return np.column_stack([columns[f"point:{i}"] for i in range(points)]).astype(np.float64)


def _instances(document: _PlaceDocument, places: int, columns: Mapping[str, Any]) -> Instances:
    """Return the instances of a table's rows; raise IndexError where one is of no place or function that there is."""
    of, functions = columns["place"], columns["function"].tolist()
    if not len(of):
        return Instances.none()
    if of.min() < 0 or of.max() >= places or (np.diff(of) < 0).any() or min(functions) < 0:
        raise IndexError
    return Instances(of, tuple(document.functions[number] for number in functions), _counts(columns, len(document.points)))


def _places(document: _PlaceDocument, files: list[int], functions: list[int], lines: list[int]) -> tuple[Place, ...]:
    """Return the places of a table's rows; raise IndexError where one is in no file or function that there is."""
    names = tuple(document.sources)
    places = []
    for file, function, line in zip(files, functions, lines, strict=True):
        if min(file, function, line - 1) < 0:
            raise IndexError
        text = document.sources[names[file]]  # which may have been gone, or shorter, when it was read
        places.append(Place(document.functions[function], names[file], line, text[line - 1].strip() if line <= len(text) else ""))
    return tuple(places)
