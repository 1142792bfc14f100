"""Who waits for another perfdiff is told for whom, waits no longer than asked for, and can leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfdiff import locks, storage
from perfdiff.build.cache import BuildCache
from perfdiff.errors import BusyError
from perfdiff.progress import Silent

HOLDS = """
import sys
from pathlib import Path
from perfdiff import locks
with locks.opened(Path(sys.argv[1])) as lock:
    locks.take(lock, alone=True)
    print("held", flush=True)
    sys.stdin.read()
"""


class Notes(Silent):
    """Keeps what is noted."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        """Keep the note."""
        self.texts.append(text)


@contextmanager
def held(file: Path) -> Iterator[int]:
    """Have another process hold a lock alone, and yield its number."""
    file.parent.mkdir(parents=True, exist_ok=True)
    program = file.with_name("perfdiff")
    program.write_text(HOLDS)
    command = [sys.executable, program, file, "base..head"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.kill()


def test_who_is_waited_for_is_told_at_once_and_not_for_longer_than_asked(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    notes, started = Notes(), time.monotonic()
    with (
        held(tmp_path / "locks" / "at-work") as process,
        pytest.raises(BusyError, match=f"process {process}, since 20.*: perfdiff .* base..head; .*wait_s") as error,
        storage.at_work(tmp_path, notes, wait_s=0.5),
    ):
        pytest.fail("it is held")
    assert error.value.slug == "cache-busy"
    assert time.monotonic() - started < 30
    (text,) = notes.texts
    assert f"(process {process}, since " in text
    assert "base..head)" in text


def test_who_holds_a_lock_no_more_or_shares_it_is_not_named(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with locks.opened(file) as lock, locks.opened(file) as other:
        locks.take(lock, alone=True)
        assert f"process {os.getpid()}" in locks.holder(other)
        locks.take(lock, alone=False)
        assert locks.holder(other) == "its process is not known"
        with pytest.raises(BusyError, match="its process is not known"):
            locks.take(other, alone=True, most_s=0.0)


@pytest.mark.parametrize(
    "text", ['{"process": 1, "host": "a", "command": "b", "since": 1e300}', "[" * 4000, "[]", '{"process": 1}', "no JSON", ""]
)
def test_a_lock_with_anything_in_its_file_has_a_holder_that_is_not_known(tmp_path: Path, text: str) -> None:
    (tmp_path / "lock").write_text(text)
    with locks.opened(tmp_path / "lock") as lock:
        assert locks.holder(lock) == "its process is not known"


def test_who_waited_is_at_work_once_the_other_has_ended(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with held(tmp_path / "locks" / "at-work") as process:
        ending = threading.Timer(0.3, os.kill, (process, signal.SIGKILL))
        ending.start()
        with storage.at_work(tmp_path, Silent(), wait_s=60) as room:
            assert room.is_dir()
        ending.join()


def test_readers_do_not_wait_for_who_measures(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with held(tmp_path / "locks" / "at-work"):
        notes = Notes()
        with storage.in_use(tmp_path, notes):
            assert storage.verify(tmp_path, notes).damaged == ()
            assert storage.prune(tmp_path, max_age_s=0) == 0
        assert notes.texts == []


def test_readers_are_told_who_clears_the_cache_and_do_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(storage, "_CLEARING_S", 0.3)
    notes = Notes()
    with held(tmp_path / "locks" / "in-use") as process, pytest.raises(BusyError, match=f"process {process}"):
        storage.verify(tmp_path, notes)
    assert len(notes.texts) == 1


def test_who_clears_recordings_does_not_wait_for_readers(tmp_path: Path) -> None:
    damaged = tmp_path / "experiments" / ("a" * 32)
    damaged.mkdir(parents=True)
    tmp_path.chmod(0o700)
    with storage.in_use(tmp_path, Silent()):
        storage.clear(tmp_path, storage.verify(tmp_path, Silent()).damaged)
        assert damaged.is_dir()
    storage.clear(tmp_path, storage.verify(tmp_path, Silent()).damaged)
    assert not damaged.exists()


def test_cache_is_held_for_no_longer_than_renaming_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers come in while what was cleared is being removed."""
    old = tmp_path / "experiments" / ("a" * 32)
    old.mkdir(parents=True)
    tmp_path.chmod(0o700)
    monkeypatch.setattr(storage, "_CLEARING_S", 0.0)
    removed: list[bool] = []

    def remove(folder: Path) -> None:
        with storage.in_use(tmp_path, Silent()):
            removed.append(not old.exists())

    monkeypatch.setattr(storage, "remove_folder", remove)
    storage.prune(tmp_path, max_age_s=-1)
    assert removed == [True]


def test_build_that_another_process_makes_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    take = locks.take
    monkeypatch.setattr(locks, "take", lambda lock, *, alone: take(lock, alone=alone, most_s=0.2))
    with (
        held(tmp_path / "locks" / ("a" * 32)) as process,
        BuildCache(tmp_path) as builds,
        pytest.raises(BusyError, match=f"process {process}"),
    ):
        builds.obtain("a" * 32, Path.touch)


WAITS = """
import sys
from pathlib import Path
from perfdiff import cli, storage
from perfdiff.cli import exits, waiting
with exits.exceptions_become_codes(), waiting.progress(quiet=False, verbose=False) as progress:
    with storage.at_work(Path(sys.argv[1]), progress, wait_s=600):
        print("at work")
"""


def test_interrupt_ends_waiting(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    command = [sys.executable, "-c", WAITS, tmp_path]
    with (
        held(tmp_path / "locks" / "at-work"),
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting,
    ):
        assert waiting.stderr is not None
        assert "Ctrl-C" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        out, errors = waiting.communicate(timeout=60)
        assert out == ""
        assert errors.splitlines()[0] == "perfdiff: interrupted"
    assert not (tmp_path / "room").exists()
