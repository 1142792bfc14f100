"""`perfdiff cache verify`: what is damaged is said, and removed where that is asked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from perfdiff import cli, storage
from perfdiff.build.cache import BuildCache
from perfdiff.records import store
from perfdiff.records.recorded import Recorded
from perfdiff.records.schema import Side
from test_log import recording

KEYS = ("a" * 32, "b" * 32)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache of two recordings and two builds."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    root = tmp_path / "cache"
    _, found = recording(np.random.default_rng(1), "v1")
    assert isinstance(found, Recorded)
    table = found.samples(1, Side.BASE)
    assert table is not None
    for name in ("one", "two"):
        store.save(root / "experiments" / name, found.experiment, [table])
    with BuildCache(root) as builds:
        for key in KEYS:
            builds.obtain(key, _build)
    return root


def _build(folder: Path) -> None:
    (folder / "source").mkdir()
    (folder / "build" / "calls").mkdir(parents=True)
    (folder / "outcome.json").write_text(json.dumps({"duration_s": 1.0, "notes": []}))


def code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["cache", *arguments])
    return int(left.value.code or 0)


def test_a_whole_cache_has_nothing_damaged(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code("verify", "--cache", str(cache)) == 0
    assert capsys.readouterr().out == f"nothing is damaged in {cache}\n"


def test_a_cache_that_is_not_there_has_nothing_damaged_and_is_not_made(tmp_path: Path) -> None:
    assert code("verify", "--cache", str(tmp_path / "none")) == 0
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("experiments/one/totals.parquet", "no table"),
        ("experiments/one/samples/1-base.parquet", None),
        ("experiments/one/experiment.json", "{}"),
        ("experiments/one/digests.json", "["),
        ("trees/" + KEYS[0] + "/outcome.json", "{"),
        ("trees/" + KEYS[0] + "/outcome.json", None),
    ],
)
def test_what_is_damaged_is_said_and_removed_alone(cache: Path, capsys: pytest.CaptureFixture[str], file: str, content: str | None) -> None:
    damaged = cache / file
    damaged.unlink() if content is None else damaged.write_text(content)
    assert code("verify", "--cache", str(cache)) == 3
    out = capsys.readouterr().out
    folder = cache.joinpath(*Path(file).parts[:2])
    assert str(folder) in out
    assert f"1 damaged in {cache}" in out
    assert code("verify", "--cache", str(cache), "--remove") == 0
    assert "(removed)" in capsys.readouterr().out
    assert not folder.exists()
    assert storage.verify(cache) == ()
    assert len([*(cache / "experiments").iterdir(), *(cache / "trees").iterdir()]) == 3


def test_a_damaged_build_that_is_in_use_stays(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cache / "trees" / KEYS[0] / "outcome.json").write_text("{")
    with BuildCache(cache) as user:
        user.obtain(KEYS[0], _build)
        assert code("verify", "--cache", str(cache), "--remove") == 3
    assert (cache / "trees" / KEYS[0]).exists()
    assert "(removed)" not in capsys.readouterr().out
