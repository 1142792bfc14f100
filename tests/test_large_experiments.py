"""Experiments in parts, here or behind a URL: the same answers, whole or chosen from, and damage that is told."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import Columns, Made, World
from perfdiff import cli
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Verdict
from perfdiff.condensing import condensed
from perfdiff.config import CompareConfig
from perfdiff.engines.processes import Processes
from perfdiff.engines.serial import Serial
from perfdiff.errors import RecordingError, StoreError, UsageError
from perfdiff.records import recorded, remote, store
from perfdiff.records.recorded import TablesInMemory
from perfdiff.records.remote import Remote, place
from perfdiff.records.schema import Change, SampleTable, Side

CONFIG = CompareConfig()
FACTORS = {1: 1.3, 2: 1.0, 3: 0.8}


def _cost(factor: float, side: Side, inputs: Columns) -> np.ndarray:
    return np.asarray((500 + 20 * inputs["n"]) * (factor if side is Side.HEAD else 1.0))


@functools.cache
def world(kept: int) -> World:
    """Return runs of a function that got slower, one that did not and one that got faster, of which all calls are recorded."""
    functions = [
        Made(
            f"f{number}",
            cost=functools.partial(_cost, factor),
            change=Change.CHANGED,
            calls=lambda side, n: {"": kept},
            inputs=lambda side, n, count, rng: {"n": rng.uniform(n / 2, n, count)},
        )
        for number, factor in FACTORS.items()
    ]
    return World(tuple(functions), sizes=(1000, 3000), kept=kept)


def tables(made: World) -> list[SampleTable]:
    found = [made.samples(number, side) for number in made.ids.values() for side in Side]
    return [table for table in found if table is not None]


def saved(folder: Path | Remote, kept: int, part_rows: int | None) -> World:
    made = world(kept)
    store.save(folder, made.experiment(), tables(made), part_rows=part_rows)
    return made


@pytest.fixture
def bucket() -> Iterator[str]:
    """Return the URL of a store in memory that is empty afterwards."""
    fsspec = pytest.importorskip("fsspec")
    yield "memory://lab/v1"
    fsspec.filesystem("memory").rm("/lab", recursive=True)


def equal(one: SampleTable | None, other: SampleTable | None) -> bool:
    assert one is not None
    assert other is not None
    same = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("run", "call", "weight", "values"))
    return same and all(np.array_equal(values, other.metrics[name], equal_nan=True) for name, values in one.metrics.items())


def perfdiff(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["perfdiff", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_a_table_of_one_part_is_read_as_it_is(tmp_path: Path) -> None:
    made = saved(tmp_path / "parts", kept=100, part_rows=10_000)
    found = recorded.load(tmp_path / "parts")
    assert all(equal(found.samples(number, side), made.samples(number, side)) for number in made.ids.values() for side in Side)
    assert [*store.sample_parts(tmp_path / "parts", 1, Side.BASE)] == ["samples/function=1/side=base/part-000000.parquet"]
    assert json.loads((tmp_path / "parts" / "experiment.json").read_text())["schema"] == "perfdiff.experiment/2"


def test_other_tools_read_the_parts_as_one_table_with_function_and_side(tmp_path: Path) -> None:
    import pyarrow.dataset

    made = saved(tmp_path / "parts", kept=100, part_rows=500)
    found = pyarrow.dataset.dataset(tmp_path / "parts" / "samples", partitioning="hive").to_table()
    assert found.num_rows == sum(map(len, tables(made)))
    assert set(found.column("side").to_pylist()) == {"base", "head"}


def test_the_calls_chosen_of_many_parts_stand_for_all_of_their_run(tmp_path: Path) -> None:
    made = saved(tmp_path / "parts", kept=2000, part_rows=1500)
    assert len(store.sample_parts(tmp_path / "parts", 1, Side.BASE)) == 16
    table, everything = recorded.load(tmp_path / "parts").samples(1, Side.BASE), made.samples(1, Side.BASE)
    assert table is not None
    assert everything is not None
    assert len(table) < 10_000 < len(everything) == 24_000
    for run in np.unique(everything.run):
        assert table.weight[table.run == run].sum() == 2000
    assert set(zip(table.run, table.metrics["self_ns"], strict=True)) <= set(
        zip(everything.run, everything.metrics["self_ns"], strict=True)
    )


def test_verdicts_on_chosen_calls_are_those_on_all_calls(tmp_path: Path) -> None:
    made = saved(tmp_path / "parts", kept=2000, part_rows=1500)
    whole = analyse(made.experiment(), TablesInMemory(tables(made)), CONFIG)
    found = condensed(tmp_path / "parts")
    chosen = analyse(found.experiment, found.samples, CONFIG)
    verdicts = {each.info.id: each.verdict for each in whole.functions}
    assert (verdicts[1], verdicts[3]) == (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    assert {each.info.id: each.verdict for each in chosen.functions} == verdicts
    of_all = {each.info.id: each for each in whole.functions}
    for each in chosen.functions:
        # Sums are of all calls, whichever are looked at one by one.
        assert each.metrics["self_ns"].total == of_all[each.info.id].metrics["self_ns"].total
        ratio, other = each.metrics["self_ns"].overall, of_all[each.info.id].metrics["self_ns"].overall
        assert ratio is not None
        assert other is not None
        assert ratio.value == pytest.approx(other.value, rel=0.01)


def test_the_same_calls_are_chosen_whoever_reads_the_parts(tmp_path: Path) -> None:
    saved(tmp_path / "parts", kept=2000, part_rows=900)
    alone, side_by_side = condensed(tmp_path / "parts", Serial()), condensed(tmp_path / "parts", Processes(least=0, processes=2))
    streamed = recorded.load(tmp_path / "parts")
    for function in FACTORS:
        for side in Side:
            assert equal(alone.samples(function, side), side_by_side.samples(function, side))
            assert equal(alone.samples(function, side), streamed.samples(function, side))


def test_the_folder_of_chosen_calls_goes_with_who_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path / "parts", kept=2000, part_rows=900)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = condensed(tmp_path / "parts", Serial())
    assert found.samples(1, Side.BASE) is not None
    assert [*tmp_path.glob("perfdiff-*")]
    del found
    assert not [*tmp_path.glob("perfdiff-*")]


def test_a_damaged_part_is_told(tmp_path: Path) -> None:
    saved(tmp_path / "parts", kept=2000, part_rows=900)
    name = store.sample_parts(tmp_path / "parts", 1, Side.BASE)[7]
    content = bytearray((tmp_path / "parts" / name).read_bytes())
    content[100] ^= 1
    (tmp_path / "parts" / name).write_bytes(content)
    with pytest.raises(RecordingError, match=f"{name} is damaged: it is not as it was written"):
        condensed(tmp_path / "parts")


def test_an_experiment_is_saved_to_a_url_and_compared_from_there_as_from_a_folder(
    tmp_path: Path, bucket: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "here", kept=200, part_rows=None)
    assert perfdiff(monkeypatch, "annotate", "-q", "here", "--side", "base", "--save", bucket, "-o", "a.txt") == 0
    told = []
    for where in (bucket, "here"):
        assert perfdiff(monkeypatch, "compare", "-q", where, where, "--format", "json") == 1
        told.append({**json.loads(capsys.readouterr().out), "stages": None})
    assert told[0] == told[1]


def test_a_url_is_written_anew_by_the_next_save_and_nothing_else_is(bucket: str) -> None:
    import fsspec

    saved(place(bucket), kept=100, part_rows=100)
    before = len(fsspec.filesystem("memory").find("/lab/v1"))
    saved(place(bucket), kept=100, part_rows=10_000)
    assert 10 == len(fsspec.filesystem("memory").find("/lab/v1")) < before
    assert recorded.load(place(bucket)).samples(2, Side.HEAD) is not None


def test_what_is_in_the_way_behind_a_url_is_left_there(bucket: str) -> None:
    import fsspec

    from perfdiff.cli import samples

    fsspec.filesystem("memory").pipe("/lab/v1/letters.txt", b"mine")
    with pytest.raises(UsageError) as raised:
        samples.check(bucket)
    assert raised.value.slug == "samples-in-the-way"


def test_what_was_saved_to_a_url_only_in_part_is_never_read_and_may_be_saved_again(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store goes away after every number of files in turn, while an experiment is written anew, too."""
    from perfdiff.cli import samples

    saved(tmp_path / "here", kept=100, part_rows=None)
    found = recorded.load(tmp_path / "here")
    write, files = Remote.write_file, 10
    for count in (*range(files), *range(files)):
        left = iter(range(count))

        def failing(file: Remote, source: Path, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise OSError(None, "the store is gone")
            write(file, source)

        with monkeypatch.context() as patched:
            patched.setattr(Remote, "write_file", failing)
            with pytest.raises(UsageError, match="the store is gone") as raised:
                samples.save(bucket, found)
        assert raised.value.slug == "url-failed"
        with pytest.raises((UsageError, RecordingError), match=r"holds no samples|not written to its end"):
            samples.load([place(bucket)])
        if count == files - 1:
            samples.save(bucket, found)
            assert samples.load([place(bucket)]).samples(2, Side.HEAD) is not None


def test_a_store_that_does_not_answer_or_refuses_is_told_as_that_and_not_as_damage(
    bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import fsspec

    saved(place(bucket), kept=100, part_rows=10_000)
    store_class = type(fsspec.filesystem("memory"))

    def refusing(store: object, path: str, *_: object, **__: object) -> None:
        raise PermissionError("Access Denied")

    for operation, code in (("info", 2), ("cat_file", 3)):
        with monkeypatch.context() as patched:
            patched.setattr(store_class, operation, refusing)
            assert perfdiff(monkeypatch, "compare", "-q", bucket, bucket) == code
        told = capsys.readouterr().err
        assert "cannot be read: Access Denied [url-failed]" in told
    monkeypatch.setattr(store_class, "put_file", refusing)
    assert perfdiff(monkeypatch, "compare", "-q", bucket, bucket, "--save", "memory://lab/v2") == 2
    told = capsys.readouterr()
    assert "f1" in told.out  # the report, which took what was measured, is not lost with it
    assert "samples cannot be saved to 'memory://lab/v2': Access Denied [url-failed]" in told.err
    monkeypatch.setattr(store_class, "pipe_file", refusing)
    assert perfdiff(monkeypatch, "compare", "-q", bucket, bucket, "--save", bucket) == 2
    assert f"samples cannot be saved to '{bucket}': Access Denied [url-failed]" in capsys.readouterr().err


def test_a_bucket_that_is_not_there_is_not_made() -> None:
    fsspec = pytest.importorskip("fsspec")
    from perfdiff.cli import samples

    memory = type(fsspec.filesystem("memory"))

    class Buckets(memory):  # type: ignore[misc, valid-type]
        """A store whose paths begin with a bucket, as S3's do."""

        protocol, root_marker, store, pseudo_dirs = "buckets", "", {}, [""]

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return str(path).removeprefix("buckets://").rstrip("/")

        def makedirs(self, path: str, exist_ok: bool = False) -> None:
            del exist_ok
            raise AssertionError(f"{path} is made")

        def pipe_file(self, path: str, value: bytes, **_: object) -> None:
            raise FileNotFoundError("The specified bucket does not exist")

        put_file = pipe_file

    fsspec.register_implementation("buckets", Buckets, clobber=True)
    with pytest.raises(UsageError, match="The specified bucket does not exist"):
        samples.check("buckets://nobody/v1")
    with pytest.raises(StoreError, match="The specified bucket does not exist"):
        saved(place("buckets://nobody/v1"), kept=100, part_rows=10_000)


@pytest.mark.parametrize(("url", "says"), [("s3://bucket/v1", "s3fs"), ("nowhere://v1", "no place that fsspec knows")])
def test_a_url_that_no_library_knows_is_refused_by_name(url: str, says: str) -> None:
    pytest.importorskip("fsspec")
    try:
        import s3fs  # noqa: F401
    except ImportError:
        with pytest.raises(UsageError, match=says) as raised:
            place(url).exists()
        assert raised.value.slug == "url-unsupported"


def test_files_by_url_are_those_of_this_machine(tmp_path: Path) -> None:
    assert place(f"file://{tmp_path}/v1") == tmp_path / "v1"
    assert place("lab/v1") == Path("lab/v1")
    assert isinstance(place("memory://lab"), remote.Remote)


def test_parts_of_other_columns_are_told(tmp_path: Path) -> None:
    made = world(100)
    first, *others = tables(made)
    other = replace(first, features=tuple(replace(each, name=f"{each.name}2") for each in first.features))
    store.save(tmp_path / "parts", made.experiment(), [first, other, *others], part_rows=10_000)
    with pytest.raises(RecordingError) as raised:
        condensed(tmp_path / "parts")
    assert raised.value.slug == "parts-differ"
