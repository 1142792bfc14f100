"""Logs stay small whatever is printed, and show what matters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from perfdiff import logs, processes
from perfdiff.build.failures import read_failure

MOST_BYTES = logs.HEAD_BYTES + 2 * logs.TAIL_BYTES
LINE = b"src/long.c:12:3: warning: unused variable 'it' [-Wunused-variable]\n"
ERROR = b"src/broken.c:7:9: error: 'x' undeclared (first use in this function)\n    7 |   return x;\n      |          ^\n"


def kept(tmp_path: Path, *parts: bytes) -> bytes:
    with logs.bounded(tmp_path / "log") as output:
        for part in parts:
            assert os.write(output, part) == len(part)
    return (tmp_path / "log").read_bytes()


@pytest.mark.parametrize("step", [50, 61, 130])
def test_error_is_found_wherever_what_is_read_at_once_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Reads are as long as the pipe happens to be full."""
    monkeypatch.setattr(logs, "HEAD_BYTES", 100)
    monkeypatch.setattr(logs, "TAIL_BYTES", 500)
    monkeypatch.setattr(logs, "_READ_BYTES", step)
    monkeypatch.setattr(logs, "_AHEAD_BYTES", 80)
    for behind in range(370, 500 + step):
        kept(tmp_path, b"." * 900 + b"\n" + ERROR + b"." * behind)
        assert read_failure(tmp_path / "log", tmp_path).cause == "src/broken.c:7:9: error: 'x' undeclared (first use in this function)"


def test_short_log_is_kept_as_it_is(tmp_path: Path) -> None:
    text = LINE * ((logs.HEAD_BYTES + logs.TAIL_BYTES) // len(LINE))
    assert kept(tmp_path, text) == text
    assert kept(tmp_path) == b""


@pytest.mark.parametrize("size", [1, 70_000, 10_000_000])
def test_beginning_and_end_of_a_long_log_are_kept_and_what_is_left_out_is_told(tmp_path: Path, size: int) -> None:
    whole = b"begin\n" + b"." * (logs.HEAD_BYTES + logs.TAIL_BYTES - 10 + size) + b"end\n"
    text = kept(tmp_path, whole)
    assert text[: logs.HEAD_BYTES] == whole[: logs.HEAD_BYTES]
    assert text[-logs.TAIL_BYTES :] == whole[-logs.TAIL_BYTES :]
    assert len(text) < MOST_BYTES
    told = re.search(r"\n… ([\d,]+) bytes are left out here …\n".encode(), text)
    left_out = int(told[1].replace(b",", b"")) if told else 0
    assert len(text) - (len(told[0]) if told else 0) + left_out == len(whole)


@pytest.mark.parametrize("before", [0, logs.HEAD_BYTES - 20, logs.HEAD_BYTES + 100_000, 5_000_000])
@pytest.mark.parametrize("after", [0, logs.TAIL_BYTES - 40, 5_000_000])
def test_first_error_of_a_long_log_is_shown_with_its_lines(tmp_path: Path, before: int, after: int) -> None:
    lines = b"x" * (before % len(LINE) - 1) + b"\n" if before % len(LINE) else b""
    kept(tmp_path, LINE * (before // len(LINE)), lines, ERROR, LINE * (after // len(LINE)), b"x" * (after % len(LINE)))
    failure = read_failure(tmp_path / "log", tmp_path)
    assert failure.cause == "src/broken.c:7:9: error: 'x' undeclared (first use in this function)"
    assert "return x;" in failure.excerpt
    assert failure.excerpt.count("\n") < 20


def test_log_is_bounded_while_it_is_written(tmp_path: Path) -> None:
    """The biggest file that was seen is held against the bound while a command prints without end."""
    sizes: list[int] = []
    with (
        logs.bounded(tmp_path / "log") as output,
        processes.running("exec yes", tmp_path, os.environ, stdout=output, stderr=output) as command,
    ):
        ended = threading.Timer(1.0, processes.kill_group, (command.pid,))
        ended.start()
        while command.poll() is None:
            sizes.append((tmp_path / "log").stat().st_size)
    ended.join()
    assert max(sizes) == logs.HEAD_BYTES + logs.TAIL_BYTES
    assert (tmp_path / "log").stat().st_size < MOST_BYTES


def test_what_is_printed_shows_at_once(tmp_path: Path) -> None:
    with logs.bounded(tmp_path / "log") as output:
        os.write(output, b"configuring\n")
        assert processes.holds(lambda: (tmp_path / "log").read_bytes() == b"configuring\n", 20, 0.01)


def test_process_that_keeps_the_log_open_is_not_waited_for(tmp_path: Path) -> None:
    """As one that may not be killed; what it prints later goes nowhere."""
    with logs.bounded(tmp_path / "log") as output:
        late = subprocess.Popen([sys.executable, "-c", "input(); print('late', flush=True)"], stdin=subprocess.PIPE, stdout=output)
        os.write(output, b"done\n")
    assert late.stdin is not None
    late.stdin.write(b"\n")
    late.stdin.close()
    late.wait()
    assert (tmp_path / "log").read_bytes() == b"done\n"
