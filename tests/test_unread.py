"""Runs whose output nobody reads, and interpreters that are kept ready and fork for each of their runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from perfdiff.collect.execution import forking
from perfdiff.collect.execution.executor import Command, Execution
from perfdiff.collect.execution.unread import UnreadExecutor
from perfdiff.collect.runs.collector import PlacesOfRun, Target
from perfdiff.config import WorkloadConfig
from perfdiff.errors import RunFailedError, RunTimeoutError, StraysError
from perfdiff.fuzzing.families import plain
from perfdiff.measuring.inputruns import InputRuns
from perfdiff.records.places import Place
from perfdiff.records.schema import Phase, Side

PROGRAM = """
import helper, os, sys
def main():
    told = [__name__, __file__, sys.argv, sys.stdin.read(), os.getppid(), os.environ["TOLD"], helper.AT]
    open(os.environ["TOLD"], "w").write(repr(told))
    return len(sys.argv) - 1
sys.exit(main())
"""

FAILING = """
import os, signal, sys, time
match sys.argv[1]:
    case "throw":
        raise ValueError
    case "hang":
        time.sleep(30)
    case "abort":
        os.abort()
    case "daemon":
        if not os.fork():
            os.setsid()
            time.sleep(60)
    case "orphan" if not os.path.exists("once"):
        os.mkdir("once")
        os.kill(os.getppid(), signal.SIGKILL)
"""


@pytest.fixture
def unread() -> Iterator[UnreadExecutor]:
    with closing(UnreadExecutor()) as executor:
        yield executor


def command(room: Path, text: str, *, number: int = 0, timeout_s: float = 20.0, exit_codes: tuple[int, ...] = (0, 1, 2)) -> Command:
    folder = room / f"run-{number}"
    folder.mkdir(exist_ok=True)
    variables = {"PATH": os.environ["PATH"], forking.FOLDER: str(folder), "TOLD": str(folder / "told")}
    return Command(text, room, variables, timeout_s, exit_codes, "here")


def ran(unread: UnreadExecutor, given: Command) -> tuple[list[Any], Execution]:
    execution = unread.execute(given)
    return eval(Path(given.environment["TOLD"]).read_text()), execution


def test_a_command_ends_with_its_code_and_its_time_and_prints_into_nothing(tmp_path: Path, unread: UnreadExecutor) -> None:
    execution = unread.execute(command(tmp_path, "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); echo $i; done; exit 2"))
    assert execution.behaviour is not None
    assert (execution.behaviour.exit_code, execution.output) == (2, "")
    assert execution.cpu_ns > 1e6
    with pytest.raises(RunFailedError):
        unread.execute(command(tmp_path, "exit 3"))


def test_what_takes_too_long_is_ended_alone(tmp_path: Path, unread: UnreadExecutor) -> None:
    with pytest.raises(RunTimeoutError):
        unread.execute(command(tmp_path, "sleep 30", timeout_s=0.2))


def test_processes_that_runs_leave_are_ended_and_told_where_there_are_two_runs(tmp_path: Path, unread: UnreadExecutor) -> None:
    leaving = [command(tmp_path, f"setsid sleep 30 & echo $! > left-{number}", number=number) for number in range(2)]
    unread.execute(leaving[0])
    with pytest.raises(StraysError):
        unread.execute_together(leaving, os.sched_getaffinity(0))
    for number in range(2):
        assert not Path(f"/proc/{(tmp_path / f'left-{number}').read_text().strip()}").exists()


@pytest.mark.parametrize("start", ["program.py", "-m program"])
def test_a_forked_run_meets_what_a_process_of_its_own_meets(tmp_path: Path, unread: UnreadExecutor, start: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text("import os\nAT = os.getpid()\n")
    (tmp_path / "read").write_text("some text")
    text = f"{sys.executable} {start} a < read"
    with unread.as_processes():
        own, of_process = ran(unread, command(tmp_path, text))
    forked = [ran(unread, command(tmp_path, text, number=number)) for number in (1, 2, 3)]
    for number, (told, execution) in enumerate(forked, 1):
        assert told[:4] == own[:4]
        assert told[5].endswith(f"run-{number}/told")
        assert execution.behaviour == of_process.behaviour
    server = forked[0][0][4]
    assert [told[4] for told, _ in forked] == [server] * 3
    assert [told[6] == server for told, _ in forked] == [False, True, True]  # imported once, for all runs but the first


def test_a_forked_run_that_fails_hangs_or_leaves_no_server_is_told_as_any_other(tmp_path: Path, unread: UnreadExecutor) -> None:
    (tmp_path / "program.py").write_text(FAILING)
    start = f"{sys.executable} program.py"
    assert unread.execute(command(tmp_path, f"{start} throw")).behaviour.exit_code == 1  # type: ignore[union-attr]
    with pytest.raises(RunTimeoutError):
        unread.execute(command(tmp_path, f"{start} hang", timeout_s=0.5))
    with pytest.raises(RunFailedError):
        unread.execute(command(tmp_path, f"{start} abort"))
    assert not unread.distrusted
    unread.execute(command(tmp_path, f"{start} daemon"))
    unread.execute(command(tmp_path, f"{start} orphan"))
    assert unread.distrusted == {tmp_path}


@pytest.mark.parametrize(
    ("text", "words", "read"),
    [
        ("python -u run.py a 'b c'", ("run.py", "a", "b c"), os.devnull),
        ("/usr/bin/python3.11 -m json.tool < in.json", ("-m", "json.tool"), "in.json"),
        ("python -c 'print(1)'", None, ""),
        ("python run.py 'a | $b \\' \"it's < [x]\" < 'in 1'", ("run.py", "a | $b \\", "it's < [x]"), "in 1"),
        ('python run.py "a $HOME"', None, ""),
        ("python run.py a\\ b", None, ""),
        ("python run.py 'a' | cat", None, ""),
        ("python run.py | cat", None, ""),
        ("python run.py *.md", None, ""),
        ("python", None, ""),
        ("./prog a", None, ""),
    ],
)
def test_only_plain_commands_of_a_runtime_with_a_server_are_forked(
    tmp_path: Path, text: str, words: tuple[str, ...] | None, read: str
) -> None:
    program = forking.program_of(command(tmp_path, text))
    assert (program and (program.words, program.input)) == (words and (words, read))


def test_what_a_server_counted_itself_is_part_of_each_run_once(tmp_path: Path, unread: UnreadExecutor) -> None:
    counting = 'import os\nopen(f"{os.environ[\'PERFDIFF_PLACES\']}/{os.getpid()}-0.lines", "a").write("x")\n'
    (tmp_path / "helper.py").write_text(counting)
    (tmp_path / "program.py").write_text(
        "import helper, os, signal, sys\n" + counting + "sys.argv[1:] and os.kill(os.getppid(), signal.SIGKILL)\n"
    )
    for number in range(3):
        given = command(tmp_path, f"{sys.executable} program.py", number=number)
        unread.execute(given)
        folder = Path(given.environment[forking.FOLDER])
        left = sorted(path.read_text() for path in folder.glob("*.lines"))
        assert left == (["x", "x"] if number else ["xx"])


@pytest.mark.parametrize(("others", "is_distrusted"), [(0, False), (1, False), (3, True)])
def test_servers_whose_runs_count_something_else_are_not_asked_again(tmp_path: Path, others: int, *, is_distrusted: bool) -> None:
    unread = UnreadExecutor()
    places = tuple(Place("read", "a.c", line, "for (;;)") for line in range(100))
    target = Target(tmp_path, None, places=cast(Any, SimpleNamespace(places=places, sources={})))

    def count_places(_slots: object) -> list[PlacesOfRun]:
        counts = np.full(100, 5)
        counts[:others] += not unread._are_whole
        return [PlacesOfRun(counts, {}, 0, 1.0, 0)]

    collector = SimpleNamespace(targets={(Phase.PLACED, Side.BASE): target}, count_places=count_places)
    workload = WorkloadConfig("w", command="read {input}")
    runs = InputRuns(cast(Any, collector), cast(Any, None), {"w": workload}, {"w": ""}, tmp_path, unread)
    assert runs.require_steady([plain("w", b"text", {})]) == 0.0
    assert (unread.distrusted == {tmp_path}) is is_distrusted
    assert (~runs.comparison.steady[Side.BASE]).sum() == (0 if is_distrusted else others), "what differs is left out"
