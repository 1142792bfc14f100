"""Nothing of a command outlives its use, however it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from perfdiff import processes
from perfdiff.collect.execution.executor import Command, ProcessExecutor
from perfdiff.collect.runs import caveats


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


def programs_in(folder: Path) -> list[str]:
    """Return the same without the shells above them."""
    return [command for command in working_in(folder) if not command.startswith("/bin/sh\0")]


def test_daemons_end_with_the_command_that_started_them(tmp_path: Path) -> None:
    command = "setsid sh -c 'sleep 600 & (setsid sleep 601 &) ; touch there; sleep 602' & until [ -e there ]; do :; done"
    with processes.running(command, tmp_path, os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert process.wait() == 0
        assert len(working_in(tmp_path)) >= 3
    assert working_in(tmp_path) == []


def test_process_that_may_not_be_killed_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of another user, such as of `sudo`."""
    killed, refused = os.kill, list[int]()

    def kill(process: int, number: int) -> None:
        refused.append(process)
        raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    command = "(setsid sh -c 'exec sleep 600' &)"
    with processes.running(command, tmp_path, os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert process.wait() == 0
        assert processes.holds(lambda: working_in(tmp_path) == ["sleep\x00600\x00"], 30, 0.01)
    assert working_in(tmp_path) == ["sleep\x00600\x00"]
    (note,) = caveats.processes_stay(processes.staying())
    assert note.text.endswith(f": sleep ({refused[0]})")
    killed(refused[0], signal.SIGKILL)
    os.waitid(os.P_PID, refused[0], os.WEXITED | os.WNOWAIT)
    assert processes.staying() == ()
    os.waitpid(refused[0], 0)


def test_process_that_has_ended_is_no_process_that_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = list[int]()

    def kill(process: int, _: int) -> None:
        ended.append(process)
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)  # as it ends by itself at that moment
        raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    command = "(setsid sh -c 'touch there; until [ -e go ]; do :; done' &); until [ -e there ]; do :; done"
    with processes.running(command, tmp_path, os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert process.wait() == 0
        (tmp_path / "go").touch()
    assert processes.staying() == ()
    with pytest.raises(ChildProcessError):  # it was waited for
        os.waitpid(ended[0], os.WNOHANG)


KILLED = """
import os, subprocess, sys
from pathlib import Path
from perfdiff import processes

variables = {**os.environ, processes.MARK: f"{os.getpid()}-1-app"}
daemon = "(setsid sh -c 'cd /; exec sleep 600' &)"
command = f"{daemon}; sleep 601 & echo $$ > leader; exec sleep 602"
with processes.running(command, Path(sys.argv[1]), variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
    print("started", flush=True)
    sys.stdin.read()
"""


def marked(mark: str) -> list[int]:
    """Return the processes that bear a mark."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{processes.MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:  # it has ended
            continue
    return found


def test_commands_and_their_daemons_end_where_perfdiff_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        mark = f"{process.pid}-1-app"
        assert processes.holds(lambda: len(marked(mark)) >= 3, 20, 0.01)
        process.kill()
    assert processes.holds(lambda: not marked(mark) and not working_in(tmp_path), 20, 0.01)


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


@pytest.mark.parametrize("is_told", [True, False], ids=["by the kernel", "by looking"])
def test_commands_are_told_as_they_end_until_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool) -> None:
    def refuse(_: int) -> int:
        raise OSError

    if not is_told:
        monkeypatch.setattr(os, "pidfd_open", refuse)
    with ExitStack() as stack:
        texts = ("sleep 0.5", "true", "sleep 100")
        commands = [stack.enter_context(processes.running(text, tmp_path, os.environ, stdout=None, stderr=None)) for text in texts]
        assert list(processes.ends(commands, 2.0)) == [1, 0]
        assert [command.returncode for command in commands] == [0, 0, None]


KILLS_ITS_PARENT = """
import os, subprocess, sys
from pathlib import Path
from perfdiff import processes
from perfdiff.collect.execution.executor import Command, ProcessExecutor
from perfdiff.errors import WorkloadError

text, fixed_layout = sys.argv[1], sys.argv[2] == "fixed"
try:
    ProcessExecutor().execute(Command(text, Path("/"), dict(os.environ), 60, (0,), "here", fixed_layout=fixed_layout))
    print("succeeded")
except WorkloadError as error:
    print(error.slug)
with processes.running(text, Path("/"), dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
    print("killed" if process.wait() in (-9, 137) else "not killed")
"""


@pytest.mark.parametrize("layout", ["any", "fixed"])
@pytest.mark.parametrize("ahead", ["", "exec ", "A=1 ", "true && ", "true; ", "trap '' TERM\n"])
def test_a_program_that_kills_its_parent_does_not_kill_perfdiff(ahead: str, layout: str) -> None:
    text = f"{ahead}{sys.executable} -c 'import os; os.kill(os.getppid(), 9)'"
    ended = subprocess.run([sys.executable, "-c", KILLS_ITS_PARENT, text, layout], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert ended.stdout.splitlines() == ["workload-crashed", "killed"]


@pytest.mark.parametrize(
    "text",
    [
        "exit 3",
        "false",
        "kill -9 $$",
        "(exit 7)",
        "sh -c 'exit 5' # why",
        "echo 'open",
        "ulimit -c 0; kill -SEGV $$",
        "(exit 7) # (",
        "# none",
        "false \\",
        "cat <<E; exit 4\n$(\nE",
        "case a in a) exit 6;; esac",
    ],
)
def test_a_command_ends_below_the_shell_as_by_itself(tmp_path: Path, text: str) -> None:
    alone = subprocess.run(["/bin/sh", "-c", text], cwd=tmp_path, check=False, capture_output=True).returncode
    with processes.running(text, tmp_path, os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert process.wait() in (alone, 128 - alone)


def test_what_a_program_waits_for_a_cpu_is_no_time_of_its_own() -> None:
    """Two take turns on one CPU: each has half of the time that has passed."""
    command = Command(f"{sys.executable} -c 'for _ in range(5_000_000): pass'", Path("/"), dict(os.environ), 60, (0,), "here")
    cpu = min(os.sched_getaffinity(0))
    runs = ProcessExecutor().execute_together([command, command], [cpu])
    assert all(run.wall_ns < 1.4 * run.cpu_ns for run in runs)


def test_a_program_may_let_its_parent_go_on() -> None:
    text = f"{sys.executable} -c 'import os, signal; os.kill(os.getppid(), signal.SIGCONT); print(1)'"
    run = ProcessExecutor().execute(Command(text, Path("/"), dict(os.environ), 60, (0,), "here"))
    assert 0 < run.cpu_ns <= run.wall_ns * 1.5
