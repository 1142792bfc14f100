"""`perfdiff cache verify`: what is damaged is said, and removed where that is asked for."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from perfdiff import cli, locks, seals, storage
from perfdiff.build.cache import BuildCache, size_bytes
from perfdiff.build.holdings import HOLDINGS
from perfdiff.errors import StoreError
from perfdiff.progress import Silent
from perfdiff.records import store
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import Side
from test_log import recording

KEYS = ("a" * 32, "b" * 32)
RECORDINGS = ("1" * 32, "2" * 32)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache of two recordings and two builds."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    root = tmp_path / "cache"
    _, found = recording(np.random.default_rng(1), "v1")
    assert isinstance(found, RecordedExperiment)
    table = found.samples(1, Side.BASE)
    assert table is not None
    for name in RECORDINGS:
        store.save(root / "experiments" / name, found.experiment, [table])
    with BuildCache(root) as builds:
        for key in KEYS:
            builds.obtain(key, _build)
    return root


def _build(folder: Path) -> None:
    (folder / "source").mkdir()
    (folder / "build" / "calls").mkdir(parents=True)
    (folder / "outcome.json").write_text(json.dumps({"duration_s": 1.0, "notes": []}))
    (folder / "source" / "program").write_text("#!/bin/sh\n")
    (folder / "source" / "program").chmod(0o755)
    seals.close(folder)


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
        ("experiments/" + RECORDINGS[0] + "/totals.parquet", "no table"),
        ("experiments/" + RECORDINGS[0] + "/samples/1-base.parquet", None),
        ("experiments/" + RECORDINGS[0] + "/experiment.json", "{}"),
        ("experiments/" + RECORDINGS[0] + "/digests.json", "["),
        ("trees/" + KEYS[0] + "/outcome.json", "{"),
        ("trees/" + KEYS[0] + "/outcome.json", None),
        ("trees/" + KEYS[0] + "/source/program", "#!/bin/sh -e"),
        ("trees/" + KEYS[0] + "/source/program", None),
        ("trees/" + KEYS[0] + "/seal.json", "["),
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
    assert storage.verify(cache, Silent()).damaged == ()
    assert len([*(cache / "experiments").iterdir(), *(cache / "trees").iterdir()]) == 3


def test_a_build_that_is_in_use_is_not_looked_at_as_runs_change_its_tree(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cache / "trees" / KEYS[0] / "outcome.json").write_text("{")
    with BuildCache(cache) as user:
        user.obtain(KEYS[0], _build)
        assert code("verify", "--cache", str(cache), "--remove") == 0
        assert "builds in use, and not looked at: 1" in capsys.readouterr().out
    assert (cache / "trees" / KEYS[0]).exists()
    assert code("verify", "--cache", str(cache)) == 3


@pytest.mark.parametrize("forbidden", [os.O_RDWR, os.O_RDWR | os.O_CLOEXEC], ids=["written", "read"])
@pytest.mark.parametrize("is_used", [False, True])
def test_a_lock_of_another_user_keeps_nobody_from_looking_at_builds(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], forbidden: int, *, is_used: bool
) -> None:
    def opened(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if path == cache / "locks" / KEYS[0] and flags & forbidden:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return os_open(path, flags, mode)

    with BuildCache(cache) as user:
        if is_used:
            user.obtain(KEYS[0], _build)
        os_open = os.open
        monkeypatch.setattr(locks.os, "open", opened)
        assert code("verify", "--cache", str(cache)) == 0
    is_known = is_used and forbidden == os.O_RDWR
    assert ("builds in use, and not looked at: 1" in capsys.readouterr().out) is is_known


def _file(path: Path) -> None:
    path.write_text("somebody's")


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("somebody's")


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("kind", [_file, _folder, _dangling, _pipe])
@pytest.mark.parametrize("folder", ["", *HOLDINGS, f"units/{'c' * 32}", "stations/1/trees"])
def test_what_is_not_perfdiffs_is_named_and_left_alone(
    cache: Path, capsys: pytest.CaptureFixture[str], folder: str, kind: Callable[[Path], None]
) -> None:
    (cache / folder).mkdir(parents=True, exist_ok=True)
    stray = cache / folder / "stray.log.txt"
    kind(stray)
    os.utime(stray, (0, 0), follow_symlinks=False)
    with BuildCache(cache) as builds:
        assert builds.obtain(KEYS[0], _build).is_dir()
    assert code("verify", "--cache", str(cache), "--remove") == 0
    assert capsys.readouterr().out == f"{stray} is not perfdiff's, or cannot be read; it is left alone\nnothing is damaged in {cache}\n"
    assert code("prune", "--cache", str(cache), "--days", "0") == 0
    assert stray.is_symlink() or stray.exists()
    assert not any((cache / "trees" / key).exists() for key in KEYS)
    assert not any((cache / "experiments" / key).exists() for key in RECORDINGS)
    assert not any(path.name == stray.name for path in (cache / "locks").iterdir() if path != stray)


@pytest.mark.parametrize("kind", [_file, _dangling, _pipe])
def test_what_has_the_name_of_a_build_makes_room_for_it(cache: Path, kind: Callable[[Path], None]) -> None:
    kind(cache / "trees" / ("c" * 32))
    with BuildCache(cache) as builds:
        assert (builds.obtain("c" * 32, _build) / "source").is_dir()


def test_what_perfdiff_keeps_is_no_stranger(cache: Path) -> None:
    for file in (
        f"findings/{'c' * 32}.json", "findings/.tmp1a_b2", f"units/{'c' * 32}/{'d' * 32}.json", f"modules/{'c' * 32}/.abcd_123",
        f"classes/ab/{'c' * 30}.json", f"snapshots/objects/ab/{'c' * 38}", "snapshots/objects/pack/pack-1.idx", "snapshots/.gitignore",
        f"runtime/runtime-{'a' * 24}/libpd.so", f"python/{'a' * 24}/venv/x", f"python/{'a' * 24}.lock", "python/wheels/x",
        "python/pip-23.2.1-py3-none-any/x", f"bisects/{'a' * 32}.json", f"logs/{'a' * 32}.log", "logs/service-app.log", "locks/in-use",
        "stations/1/locks/station", f"last-{'a' * 32}", "room/x", f"experiments/.writing-{'a' * 8}/draft/x", ".gitignore",
    ):  # fmt: skip
        (cache / file).parent.mkdir(parents=True, exist_ok=True)
        (cache / file).touch()
    assert storage.strangers(cache) == ()


AS_NOBODY = """
import os, sys
from pathlib import Path
from perfdiff import storage
from perfdiff.build.cache import BuildCache, size_bytes
cache = Path(sys.argv[1])
os.setuid(65534)
with BuildCache(cache) as builds:
    print([entry.key for entry in builds.entries()])
print([str(path.relative_to(cache)) for path in storage.strangers(cache)])
storage.prune(cache, max_age_s=-1)
print(sorted(path.name for path in (cache / "trees").iterdir()))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_what_cannot_be_read_or_removed_is_left_alone(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with BuildCache(cache) as builds:
        for key in (*KEYS, "c" * 32):
            builds.obtain(key, _build)
    (cache / "experiments" / ("4" * 32)).mkdir(parents=True)
    for path in (cache, *cache.rglob("*")):
        os.chown(path, 65534, 65534)
    for path in (cache / "trees" / KEYS[0], cache / "experiments" / ("4" * 32)):
        os.chown(path, 0, 0)
        path.chmod(0o700)
    os.chown(cache / "trees" / KEYS[1], 0, 0)  # it can be read, and not removed
    for above in (tmp_path, *tmp_path.parents):
        if not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o055)
    told = subprocess.run([sys.executable, "-c", AS_NOBODY, cache], capture_output=True, text=True, check=True).stdout.splitlines()
    assert told == [str([KEYS[1], "c" * 32]), str([f"experiments/{'4' * 32}", f"trees/{KEYS[0]}"]), str(list(KEYS))]


def test_a_cache_is_made_for_its_user_alone(tmp_path: Path) -> None:
    with BuildCache(tmp_path / "above" / "cache"):
        assert stat.S_IMODE((tmp_path / "above" / "cache").stat().st_mode) == 0o700
    with storage.in_use(tmp_path / "other", Silent()):
        assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o700
    (tmp_path / "readable").mkdir(mode=0o755)
    with storage.in_use(tmp_path / "readable", Silent()):  # the mode of a folder that was there is its owner's choice
        assert stat.S_IMODE((tmp_path / "readable").stat().st_mode) == 0o755


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_cache_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(mode)
    for use in (BuildCache, lambda cache: storage.in_use(cache, Silent()).__enter__()):
        with pytest.raises(StoreError, match="can be written by others") as error:
            use(tmp_path / "cache")
        assert error.value.slug == "cache-open"
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cache_of_somebody_else_is_refused_and_one_of_root_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir()
    owner = (tmp_path / "cache").stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    if owner:
        with pytest.raises(StoreError, match=f"belongs to user {owner}"):
            BuildCache(tmp_path / "cache")
    else:
        os.chown(tmp_path / "cache", 1234, -1)
        with pytest.raises(StoreError, match="belongs to user 1234"):
            BuildCache(tmp_path / "cache")
        os.chown(tmp_path / "cache", 0, -1)
        BuildCache(tmp_path / "cache").close()


def test_a_folder_is_whole_until_what_it_executes_changes(tmp_path: Path) -> None:
    program, library, text = tmp_path / "bin" / "program", tmp_path / "libx.so.1", tmp_path / "notes.txt"
    program.parent.mkdir()
    for path, mode in ((program, 0o755), (library, 0o644), (text, 0o644)):
        path.write_bytes(b"one")
        path.chmod(mode)
    (tmp_path / "link").symlink_to("bin/program")
    seals.close(tmp_path)
    assert seals.broken(tmp_path) is None
    text.write_bytes(b"two")
    (tmp_path / "new").touch(0o755)
    assert seals.broken(tmp_path) is None
    program.write_bytes(b"one")  # another time and the same content, as in a copy
    assert seals.broken(tmp_path) is None
    found = program.stat()
    program.write_bytes(b"two")
    os.utime(program, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert seals.broken(tmp_path) == "bin/program is not as it was built"
    program.write_bytes(b"one")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("/bin/true")
    assert seals.broken(tmp_path) == "link is not as it was built"
    (tmp_path / "link").unlink()
    assert seals.broken(tmp_path) == "link is not as it was built"
    (tmp_path / "seal.json").unlink()
    assert seals.broken(tmp_path) == "its seal cannot be read"


@pytest.mark.parametrize("name", ["tmpnotes", "tmp", ".DS_Store", ".htaccess", ".tmp_of_mine", ".writing-notes"])
def test_files_that_only_resemble_drafts_are_strangers(cache: Path, name: str) -> None:
    (cache / "findings").mkdir(exist_ok=True)
    (cache / "findings" / name).write_text("mine")
    assert cache / "findings" / name in storage.strangers(cache)
    storage.prune(cache, max_age_s=-1)
    assert (cache / "findings" / name).read_text() == "mine"


def test_what_was_not_used_for_longest_goes_until_the_cache_is_no_larger_than_it_may_be(cache: Path) -> None:
    """Builds and recordings alike, but for what somebody uses."""
    ages = {"trees/" + KEYS[0]: 40, "experiments/" + RECORDINGS[0]: 30, "trees/" + KEYS[1]: 20, "experiments/" + RECORDINGS[1]: 10}
    for name, age in ages.items():
        path = cache / name / "finished" if name.startswith("trees") else cache / name
        os.utime(path, (1e9 - age, 1e9 - age))
    sizes = {name: size_bytes(cache / name) for name in ages}
    whole = sum(sizes.values())

    def left() -> list[str]:
        return [name for name in ages if (cache / name).exists()]

    storage.limit(cache, whole + 100)
    assert left() == list(ages)
    with BuildCache(cache) as builds:
        builds.obtain(KEYS[0], _build)  # in use, and used last from now on
        storage.limit(cache, whole - sizes["experiments/" + RECORDINGS[0]] - 100)
        assert left() == ["trees/" + KEYS[0], "experiments/" + RECORDINGS[1]]
        storage.limit(cache, 0)
        assert left() == ["trees/" + KEYS[0]]
    storage.limit(cache, 0)
    assert not left()
