"""Nothing of a command outlives its use, however it is left."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfdiff import processes


class LeaveError(Exception):
    """What a signal's handler raises."""


@pytest.fixture
def leaving() -> Iterator[None]:
    """Let SIGTERM raise, for the length of a test."""

    def leave(*_: object) -> None:
        raise LeaveError

    before = signal.signal(signal.SIGTERM, leave)
    yield
    signal.signal(signal.SIGTERM, before)


def working_in(folder: Path) -> list[str]:
    """Return the commands of the processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                found.append((process / "cmdline").read_text())
        except OSError:  # it has ended
            continue
    return found


def test_daemons_end_with_the_command_that_started_them(tmp_path: Path) -> None:
    command = "setsid sh -c 'sleep 600 & (setsid sleep 601 &) ; touch there; sleep 602' & until [ -e there ]; do :; done"
    with processes.running(command, tmp_path, os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert process.wait() == 0
        assert len(working_in(tmp_path)) >= 3
    assert working_in(tmp_path) == []


def test_signal_while_a_command_is_started_ends_it(tmp_path: Path, leaving: None, monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen
    started: list[int] = []

    def signalled(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        process = start(*arguments, **options)  # type: ignore[call-overload]
        started.append(process.pid)
        signal.raise_signal(signal.SIGTERM)
        return process  # type: ignore[no-any-return]

    monkeypatch.setattr(subprocess, "Popen", signalled)
    with (
        pytest.raises(LeaveError),
        processes.running("sleep 600", tmp_path, os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
    ):
        pytest.fail("the signal is raised before the block begins")
    assert len(started) == 1
    assert working_in(tmp_path) == []


def test_handlers_are_as_before_when_nothing_came(leaving: None) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with processes.signals_held():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with processes.signals_held():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
