"""A small stored experiment that has every file an experiment may have, and damage to any of them."""

from __future__ import annotations

import hashlib
import io
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import test_log
from perfdiff.records import recorded, store
from perfdiff.records.places import Place, PlaceCounts, PlaceExperiment
from perfdiff.records.schema import Experiment, LibraryCalls, Side


def saved(folder: Path, *, part_rows: int | None = None) -> Path:
    """Store an experiment with single calls, counted runs, calls into libraries and counts of lines; return its folder."""
    _, one = test_log.recording(np.random.default_rng(1), "v1", calls=2)
    assert isinstance(one, recorded.RecordedExperiment)
    table = one.samples(1, Side.BASE)
    assert table is not None
    run = one.experiment.runs[0].id
    ones = np.ones(2)
    calls = LibraryCalls(np.array([run, run]), np.array([1, 1]), np.array([0, 1]), ones, ("strlen", "memcpy"), ones, ones)
    experiment = replace(one.experiment, counts=one.experiment.totals, library=calls)
    store.save(folder, experiment, [table], [table], _lines(experiment), part_rows=part_rows)
    return folder


def read(folder: Path) -> None:
    """Read all that an experiment holds."""
    whole = recorded.load(folder)
    for side in Side:
        for function in whole.experiment.functions:
            whole.samples(function.id, side)
            whole.counts(function.id, side)
    whole.lines()


def put(folder: Path, name: str, content: bytes) -> None:
    """Write a file of an experiment with digests that fit, as its sender would; lines have digests of their own."""
    (folder / name).write_bytes(content)
    if name.endswith("digests.json"):
        return
    for place in ([folder / name, *(folder / name).parents])[1:]:
        if (place / "digests.json").exists():
            file = (folder / name).relative_to(place).as_posix()
            digests = json.loads((place / "digests.json").read_text(encoding="utf-8"))
            digests[file] = hashlib.blake2b((folder / name).read_bytes(), digest_size=16).hexdigest()
            (place / "digests.json").write_text(json.dumps(digests), encoding="utf-8")
            name = (place / "digests.json").relative_to(folder).as_posix()
        if place == folder:
            return


def other_columns(rng: random.Random, seed: bytes) -> bytes:
    """Return a table with one column dropped, doubled, of another type or with other values, or with another header."""
    table = pq.read_table(io.BytesIO(seed))
    place = rng.randrange(table.num_columns)
    name, rows = table.column_names[place], table.num_rows
    values: Sequence[object] = rng.choice(
        (
            pa.array([rng.choice((-1, 2**20, 2**62, -(2**63)))] * rows),
            pa.array([float("nan")] * rows),
            pa.array([None] * rows, pa.int64()),
            pa.array(["x"] * rows),
            pa.array([[1]] * rows),
            pa.array([True] * rows),
            pa.array(np.zeros(rows, np.uint64)),
            pa.array(np.zeros(rows, np.int8)),
            pa.array(["x"] * rows).dictionary_encode(),
            pa.array([0] * rows, pa.timestamp("ns")),
        )
    )
    headers = ("{}", "[" * 5000, "1", "[1]", '["x"]', '"x"', "\xff", '{"schema": "perfdiff.samples/1"}', "null", "{" * 9)
    match rng.randrange(5):
        case 0:
            table = table.remove_column(place)
        case 1:
            table = table.append_column(rng.choice((name, "other", "feature:7")), values)
        case 2:
            header = rng.choice((None, *headers))
            table = table.replace_schema_metadata(None if header is None else {"perfdiff": header.encode("latin-1")})
        case 3:
            table = table.slice(0, rng.randrange(rows + 1))
        case _:
            table = table.set_column(place, name, values)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression=rng.choice(("zstd", "none", "snappy")))
    return sink.getvalue()


def _lines(experiment: Experiment) -> PlaceExperiment:
    source = ("int f;", "int g;")
    places = tuple(Place("f", "a.c", number, text) for number, text in enumerate(source, 1))
    counts = np.ones((2, len(experiment.points)))
    counted = PlaceCounts(experiment.points, places, counts, {"n": np.ones(len(experiment.points))}, {"a.c": source})
    return PlaceExperiment({Side.BASE: experiment.base, Side.HEAD: experiment.head}, dict.fromkeys(Side, counted), np.array([0, 1]))
