"""Files from elsewhere: what they claim is held against bounds before anything is allocated, and refused with a typed error."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import random
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stored_experiments
from perfdiff import accepted, configuration
from perfdiff.configuration import tomlfile
from perfdiff.errors import ConfigError, RecordingError
from perfdiff.records import bounds, recorded, recording, store
from perfdiff.records.plan import Mode
from perfdiff.records.schema import Side
from perfdiff.searches import state
from test_log import recording as measured
from test_recording import block, extent, file, totals

Change = Callable[[dict[str, Any]], object]
DIGITS = "9" * 400


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a stored experiment of one function with its samples."""
    place = tmp_path_factory.mktemp("stored") / "one"
    _, found = measured(np.random.default_rng(1), "v1", calls=2)
    assert isinstance(found, recorded.RecordedExperiment)
    table = found.samples(1, Side.BASE)
    assert table is not None
    store.save(place, found.experiment, [table])
    return place


@pytest.fixture
def folder(stored: Path, tmp_path: Path) -> Path:
    """Return a copy of it."""
    return Path(shutil.copytree(stored, tmp_path / "one"))


def put(folder: Path, name: str, content: bytes) -> None:
    """Write a file of an experiment with a digest that fits, as its sender would."""
    (folder / name).write_bytes(content)
    digests = json.loads((folder / "digests.json").read_text())
    digests[name] = hashlib.blake2b(content, digest_size=16).hexdigest()
    (folder / "digests.json").write_text(json.dumps(digests))


def refused(read: Callable[[], object], says: str) -> None:
    """Assert that reading ends in a RecordingError that says so, and takes little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(RecordingError, match=says) as error:
            read()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.value.slug in ("damaged-recording", "recording-damaged", "recording-unreadable")
    assert peak < 8 * 2**20


def test_a_recording_s_record_of_four_billion_cells_is_refused_though_there_is_none(tmp_path: Path) -> None:
    one = totals(1, mode=Mode.SAMPLE, calls=1, finished=1, timed=1, wall=1, self_time=1)
    (tmp_path / "one.pdrec").write_bytes(file(extent(1, one, block(3, struct.pack("<IIII", 1, 0, 0, 2**32 - 1)))))
    refused(lambda: recording.read(tmp_path / "one.pdrec"), "do not fit")


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path, folder: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdrec")
    refused(lambda: recording.read(tmp_path / "pipe.pdrec"), "no regular file")
    (folder / "totals.parquet").unlink()
    os.mkfifo(folder / "totals.parquet")
    refused(lambda: store.load(folder), "no regular file")


def test_a_file_larger_than_memory_is_refused_by_its_size(tmp_path: Path) -> None:
    with (tmp_path / "sparse.pdrec").open("wb") as sparse:
        sparse.truncate(bounds.LARGEST_BYTES + 1)
    refused(lambda: recording.read(tmp_path / "sparse.pdrec"), "at most are read")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda found: found["functions"][0].update(id=2**40), "number 1,099,511,627,776 of functions"),
        (lambda found: found["functions"][0].update(id=-1), "number -1 of functions"),
        (lambda found: found["runs"][0].update(id=2**20), "number 1,048,576 of runs"),
        (lambda found: found["runs"].append(found["runs"][0]), "two runs of one number"),
        (lambda found: found["runs"][0].update(point=77), "point 77 is used"),
        (lambda found: found["runs"].pop(), "run .* is used, and not described"),
        (lambda found: found["functions"].clear(), "function 1 is used, and not described"),
        (lambda found: found["runs"][0].update(wall_ns=10**400), "too large"),
        (lambda found: found["functions"][0].update(change="x" * 10_000), "is damaged: '?x{1,200}"),
    ],
)
def test_numbers_that_name_nothing_or_too_much_are_refused(folder: Path, change: Change, says: str) -> None:
    document = json.loads((folder / "experiment.json").read_text(encoding="utf-8"))
    change(document["experiment"])
    put(folder, "experiment.json", json.dumps(document).encode())
    refused(lambda: store.load(folder), says)


@pytest.mark.parametrize("name", ["experiment.json", "digests.json"])
def test_json_nested_too_deeply_is_damage(folder: Path, name: str) -> None:
    (folder / name).write_text("[" * 200_000)
    refused(lambda: store.load(folder), "nested too deeply")


def rewritten(folder: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    sink = io.BytesIO()
    pq.write_table(change(pq.read_table(folder / name)), sink, compression="zstd")
    put(folder, name, sink.getvalue())


def many_rows(table: pa.Table) -> pa.Table:
    none = pa.array(np.zeros(2_000_000, np.int64))
    return pa.table(dict.fromkeys(table.column_names, none))


def set_column(name: str, values: Callable[[int], pa.Array], table: pa.Table) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values(table.num_rows))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (many_rows, "2,000,000 rows of"),
        (functools.partial(set_column, "wall_ns", lambda n: pa.array(["x"] * n)), "no numbers"),
        (functools.partial(set_column, "wall_ns", lambda n: pa.array([[1]] * n)), "no numbers"),
        (functools.partial(set_column, "run", lambda n: pa.array([0.5] * n)), "fractions where"),
        (functools.partial(set_column, "run", lambda n: pa.array([None] * n, pa.int64())), "gaps"),
        (functools.partial(set_column, "run", lambda n: pa.array([2**62] * n)), "run 4611686018427387904 is used"),
        (lambda table: table.append_column("run", table.column("run")), "two of one name"),
        (lambda table: table.drop_columns(["calls"]), "lacks the column 'calls'"),
    ],
)
def test_tables_that_claim_much_or_hold_no_numbers_are_refused(folder: Path, change: Callable[[pa.Table], pa.Table], says: str) -> None:
    rewritten(folder, "totals.parquet", change)
    assert (folder / "totals.parquet").stat().st_size < 50_000
    refused(lambda: store.load(folder), says)


def test_calls_of_runs_that_there_are_not_are_refused(folder: Path) -> None:
    rewritten(folder, "samples/1-base.parquet", functools.partial(set_column, "run", lambda n: pa.array([2**40] * n)))
    refused(lambda: recorded.load(folder).samples(1, Side.BASE), "runs or points that their experiment does not have")


def test_a_table_s_header_nested_too_deeply_is_damage(folder: Path) -> None:
    rewritten(folder, "samples/1-base.parquet", lambda table: table.replace_schema_metadata({"perfdiff": "[" * 200_000}))
    refused(lambda: store.samples(folder, 1, Side.BASE), "nested too deeply")


def test_whole_experiments_are_still_read(folder: Path) -> None:
    found = recorded.load(folder)
    assert found.samples(1, Side.BASE) is not None
    store.verify(folder)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"good": "a", "bad": "b", "spent_s": 1' + "0" * 400 + "}"])
def test_a_search_s_state_beyond_numbers_and_stacks_is_damage(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    refused(lambda: state.load(tmp_path / "state.json"), "damaged")


@pytest.mark.parametrize(
    "text",
    [
        f"[build]\ntimeout_s = {DIGITS}",
        f"[counters]\nbudget_s = {DIGITS}",
        f'[counters]\nl1d = "{DIGITS} KiB/8"',
        f'[counters]\nl1d = "32 KiB/{"9" * 5000}"',
        f"[[workload]]\nname = 'a'\ncommand = './a {{n}}'\nparameters.n = [{DIGITS}]",
    ],
)
def test_a_configured_number_that_no_float_holds_is_refused_by_its_key(tmp_path: Path, text: str) -> None:
    (tmp_path / "perfdiff.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"line [24]") as error:
        configuration.load(tmp_path, overrides=configuration.Overrides(build="make"), environment={}, measuring=False)
    assert error.value.slug == "config-value"


@pytest.mark.parametrize("key", ["ratio = {}", "ratio = 2\ninterval = [1.5, {}]"])
def test_a_known_cost_that_no_float_holds_is_refused(tmp_path: Path, key: str) -> None:
    file = tmp_path / "perfdiff-accepted.toml"
    file.write_text(f"[[accepted]]\nfunction = 'f'\nmetric = 'wall_ns'\nreason = 'x'\n{key.format(DIGITS)}")
    with pytest.raises(ConfigError, match=r"line [56]"):
        accepted.read(file)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = " + "[" * 200_000, "nested too deeply"),
        ("a = " + "1" * 5000, "not valid TOML"),
        ("a = [\n" + "1,\n" * 5000 + "]\n", "more than 1,000 lines"),
        ("#" * (2**20 + 1), "1,048,577 characters"),
    ],
)
def test_configurations_that_would_take_for_ever_or_too_much_are_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "perfdiff.toml").write_text(text)
    with pytest.raises(ConfigError, match=says) as error:
        tomlfile.read(tmp_path / "perfdiff.toml")
    assert error.value.slug == "config-syntax"


FILES = [
    "experiment.json",
    "digests.json",
    "totals.parquet",
    "edges.parquet",
    "counts.parquet",
    "library.parquet",
    "samples/1-base.parquet",
    "counts/1-base.parquet",
    "lines/heads.parquet",
    *(f"lines/{side}/{name}" for side in Side for name in ("digests.json", "places.json", "places.parquet", "instances.parquet")),
]


@pytest.fixture(scope="module")
def every_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a stored experiment that has every file that one may have."""
    place = stored_experiments.saved(tmp_path_factory.mktemp("every") / "one")
    assert sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()) == sorted(FILES)
    stored_experiments.read(place)
    return place


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    """Return bytes that are cut short, repeated, or changed in some places."""
    place = rng.randrange(len(content))
    match rng.randrange(4):
        case 0:
            return content[:place]
        case 1:
            return content[:place] + content[place // 2 :]
        case 2:
            return rng.randbytes(place % 100)
        case _:
            changed = bytearray(content)
            for _ in range(rng.randrange(1, 4)):
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            return bytes(changed)


def is_refused(folder: Path) -> bool:
    """Return whether an experiment is told to be damaged, or of another version."""
    try:
        stored_experiments.read(folder)
    except RecordingError as error:
        return error.slug in ("damaged-recording", "format-version")
    return False


@pytest.mark.parametrize("name", FILES)
def test_whatever_is_damaged_in_any_file_of_an_experiment_is_told_as_damage(every_file: Path, tmp_path: Path, name: str) -> None:
    rng, content = random.Random(name), (every_file / name).read_bytes()
    folder = Path(shutil.copytree(every_file, tmp_path / "one"))
    digests = {path: path.read_bytes() for path in folder.rglob("digests.json")}
    refusals = 0
    for _ in range(60):
        is_table = name.endswith(".parquet") and rng.random() < 0.5
        changed = stored_experiments.other_columns(rng, content) if is_table else damaged_bytes(rng, content)
        stored_experiments.put(folder, name, changed)
        refusals += is_refused(folder)
        for path, whole in digests.items():
            path.write_bytes(whole)
    assert refusals >= 20


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_an_experiment_that_is_missing_is_damage(every_file: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(every_file, tmp_path / "one"))
    (folder / name).unlink()
    with pytest.raises(RecordingError) as error:
        stored_experiments.read(folder)
    assert error.value.slug == "damaged-recording"


def test_parts_of_a_table_that_do_not_fit_each_other_are_damage(tmp_path: Path) -> None:
    folder = stored_experiments.saved(tmp_path / "one", part_rows=200)
    parts = sorted(path.relative_to(folder).as_posix() for path in (folder / "counts").rglob("part-*"))
    assert len(parts) > 1
    rng = random.Random(1)
    content = (folder / parts[-1]).read_bytes()
    assert sum(refused_part(folder, parts[-1], stored_experiments.other_columns(rng, content)) for _ in range(30)) >= 10


def refused_part(folder: Path, name: str, content: bytes) -> bool:
    stored_experiments.put(folder, name, content)
    return is_refused(folder)
