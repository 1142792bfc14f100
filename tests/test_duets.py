"""Runs of base and head at the same time: how they share a CPU, which points may, and what happens where they disturb each other."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from perfdiff import configuration
from perfdiff.collect.execution.executor import Command, Execution, ProcessExecutor
from perfdiff.collect.hosts import machine
from perfdiff.collect.runs import schedule
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.targets import Target
from perfdiff.collect.serving.services import Services
from perfdiff.config import WorkloadConfig
from perfdiff.errors import DiskFilledError, StraysError, WorkloadError
from perfdiff.measuring import duets
from perfdiff.measuring.duets import APART, SIGNS, Duets
from perfdiff.records.behaviour import Concurrency
from perfdiff.records.schema import Phase, Point, Run, Side

LOOPS = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done; echo done"
CALM = {"CALM": "1"}
WHERE = f"{sys.executable} -c 'import os; print(*os.sched_getaffinity(0))'"


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., Command]:
    return lambda text, timeout_s=30.0: Command(text, tmp_path, {"PATH": os.environ["PATH"]}, timeout_s, (0,), "head, point")


def test_runs_together_take_turns_on_the_cpu_that_is_named_and_leave_the_others_to_this_process(command: Callable[..., Command]) -> None:
    allowed = os.sched_getaffinity(0)
    for cpu in sorted(allowed):
        found = ProcessExecutor().execute_together([command(WHERE), command(WHERE)], {cpu})
        alone = ProcessExecutor().execute(command(f"echo {cpu}"))
        assert [each.output for each in found] == [alone.output] * 2
    assert os.sched_getaffinity(0) == allowed


def test_runs_together_have_their_own_cpu_time_and_wait_for_each_other(command: Callable[..., Command]) -> None:
    executor = ProcessExecutor()
    cpus = {min(os.sched_getaffinity(0))}
    short, long = executor.execute_together([command(LOOPS.format(200_000)), command(LOOPS.format(400_000))], cpus)
    assert 1.5 < long.cpu_ns / short.cpu_ns < 2.7
    assert max(each.wall_ns / each.cpu_ns for each in (short, long)) < 1.5  # the other's turns are not its own time
    assert short.output == long.output
    assert short.waited is None  # by intent


@pytest.mark.parametrize(
    ("text", "slug"), [("exit 3", "workload-failed"), ("kill -SEGV $$", "workload-crashed"), ("sleep 60", "workload-timeout")]
)
def test_a_run_that_fails_beside_another_is_told_as_ever(command: Callable[..., Command], text: str, slug: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        ProcessExecutor().execute_together([command("true"), command(text, timeout_s=0.5)], {min(os.sched_getaffinity(0))})
    assert caught.value.slug == slug


@pytest.mark.parametrize("text", ["(setsid sh -c 'exit 0' &) ; sleep 0.2", "(env -i setsid sleep 60 &) ; sleep 0.2"])
def test_runs_whose_processes_nobody_can_tell_apart_are_not_made_together(command: Callable[..., Command], text: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        ProcessExecutor().execute_together([command("true"), command(text)], {min(os.sched_getaffinity(0))})
    assert caught.value.slug == "processes-left"


def test_nothing_of_runs_together_outlives_them(command: Callable[..., Command], tmp_path: Path) -> None:
    left = f"(setsid sh -c 'sleep 0.5; touch {tmp_path}/left') & exit 0"
    ProcessExecutor().execute_together([command(left), command(left)], {min(os.sched_getaffinity(0))})
    time.sleep(1)
    assert not (tmp_path / "left").exists()


@dataclass
class Scripted:
    """Runs nothing: every run takes what is said, alone or beside another, and prints its side; together it may fail or do less."""

    wall_ns: float = 1e7
    cpu_ns: float = 1e7
    rss: float = 1e6
    fails: Exception | None = None
    prints: str = ""
    does: float = 1.0  # part of the CPU time that it takes alone
    calmed: Execution | Exception | None = None  # where the runtime's own threads have nothing to do
    together: list[int] = field(default_factory=list)
    timeouts: set[float] = field(default_factory=set)

    def execute(self, command: Command) -> Execution:
        if CALM.items() <= dict(command.environment).items():
            if isinstance(self.calmed, Exception):
                raise self.calmed
            assert self.calmed is not None
            return self.calmed
        return Execution(self.wall_ns, self.cpu_ns, self.rss, None, None, command.where)

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        self.together += cpus
        self.timeouts |= {command.timeout_s for command in commands}
        if self.fails:
            raise self.fails
        return [replace(self.execute(each), cpu_ns=self.does * self.cpu_ns, output=each.where + self.prints) for each in commands]


@dataclass
class Changing(Scripted):
    """Does another part of its work in each pair made together, or as much alone from a pair on as it did beside another run."""

    later: list[float] = field(default_factory=list)
    faster_from: int | None = None
    alone: int = 0

    def execute(self, command: Command) -> Execution:
        self.alone += 1
        is_faster = self.faster_from is not None and self.alone > 2 * self.faster_from
        return replace(super().execute(command), cpu_ns=(self.does if is_faster else 1.0) * self.cpu_ns)

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        self.does = self.later.pop(0) if self.later else self.does
        alone = self.alone
        made = super().execute_together(commands, cpus)
        self.alone = alone
        return made


@dataclass
class Parallel(Scripted):
    """Is seen to have two tasks at work in some of its runs, in the order in which they are made."""

    several_from: int = 0
    several_to: int = 1000
    made: int = 0

    def execute(self, command: Command) -> Execution:
        self.made += 1
        is_seen = self.several_from < self.made <= self.several_to
        return replace(super().execute(command), concurrency=Concurrency(0.9 * is_seen, 1.0 + is_seen, 1.0))


POINT = Point(0, "w", {"n": 1}, "x")


def made(
    tmp_path: Path,
    executor: Scripted,
    *,
    pairs: int = 6,
    alone: bool = False,
    same_tree: bool = False,
    calm: Mapping[str, str] | None = None,
) -> tuple[list[Run], Duets]:
    """Return the runs of so many pairs of a point, and what made them."""
    config = {"w": WorkloadConfig("w", "x", timeout_s=10, alone=alone)}
    trees = {side: tmp_path / ("tree" if same_tree else side) for side in Side}
    targets = {(Phase.PLAIN, side): Target(trees[side], None, calm=calm or {}) for side in Side}
    room = tmp_path / "room"
    room.mkdir()
    of = Duets(Collector(targets, config, {}, executor, room, 1))
    runs: list[Run] = []
    for block in range(pairs):
        runs += [run for run, _ in of.collect(schedule.whole_block([POINT], block, 1), runs, lambda _: None)]
    assert [run.id for run in runs] == sorted({run.id for run in runs})
    assert [run.block for run in runs] == [block for block in range(pairs) for _ in Side]
    assert not list(room.iterdir())
    return runs, of


SERVER = """
import http.server, os, sys, time
STEPS, WAIT_S = map(float, open("work").read().split())

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        sum(range(int(STEPS)))
        time.sleep(WAIT_S)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the same")
        with open(sys.argv[2], "a") as cpus:
            print(*os.sched_getaffinity(0), file=cpus)

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
CONFIG = """
{services}
[[service]]
name = "app"
command = "exec {python} server.py {{port}} {log}"

[[workload]]
name = "w"
requests = "requests.toml"
{more}
"""
REQUESTS = 'url = "http://127.0.0.1:{app.port}"\ncount = 20\n[[request]]\nname = "all"\npath = "/"\n'


WORK = {Side.BASE: "100000 0", Side.HEAD: "400000 0"}


def asked(
    tmp_path: Path,
    *,
    pairs: int = 6,
    more: str = "",
    requests: str = REQUESTS,
    services: str = "",
    work: Mapping[Side, str] = WORK,
) -> tuple[list[Run], Duets]:
    """Return the runs of so many pairs whose servers are asked, and what made them; `work` are the steps and seconds of an answer."""
    (tmp_path / "perfdiff.toml").write_text(CONFIG.format(python=sys.executable, log=tmp_path / "cpus", more=more, services=services))
    (tmp_path / "requests.toml").write_text(requests)
    config = configuration.load(tmp_path, environment={})
    targets = {}
    for side in Side:
        tree = tmp_path / side
        tree.mkdir()
        (tree / "server.py").write_text(SERVER)
        (tree / "work").write_text(work[side])
        targets[Phase.PLAIN, side] = Target(tree, None)
    room = tmp_path / "room"
    room.mkdir()
    up, workloads = Services(config.services), {each.name: each for each in config.workloads}
    of = Duets(Collector(targets, workloads, {"PATH": os.environ["PATH"]}, ProcessExecutor(), room, 1, services=up))
    runs: list[Run] = []
    try:
        for block in range(pairs):
            runs += [run for run, _ in of.collect(schedule.whole_block([POINT], block, 1), runs, lambda _: None)]
    finally:
        up.close()
    return runs, of


def test_what_one_of_them_waits_is_in_its_own_time(tmp_path: Path) -> None:
    runs, _ = asked(tmp_path, work={Side.BASE: "100000 0", Side.HEAD: "100000 0.01"})
    base, head = (np.median([run.took_ns for run in runs if run.together and run.side is side]) for side in Side)
    assert head - base > 1e8, "20 requests with 10 ms each"


def test_servers_of_both_sides_are_asked_in_turns_on_one_cpu(tmp_path: Path) -> None:
    runs, of = asked(tmp_path)
    assert [run.together for run in runs] == [False] * 2 * APART + [True] * 2 * (6 - APART)
    assert {run.output for run in runs if run.together} == {runs[0].output}, "the same was answered"
    together = {side: [run for run in runs if run.together and run.side is side] for side in Side}
    ratio = np.median([head.took_ns / base.took_ns for base, head in zip(together[Side.BASE], together[Side.HEAD], strict=True)])
    assert 1.5 < ratio < 6, "each is timed by itself, not with the turns of the other one"
    cpus = (tmp_path / "cpus").read_text().splitlines()
    assert [len(each.split()) for each in cpus[2 * APART * 20 :]] == [1] * 2 * (6 - APART) * 20
    assert not of.notes


DATABASE = """
[[service]]
name = "db"
outside = true
command = "exec {python} -m http.server {port} --bind 127.0.0.1"
setup = "echo {port} $(basename $PWD) >> {seen}"
"""


@pytest.mark.integration
def test_what_stays_from_run_to_run_is_there_once_for_each_of_two_servers_and_serves_both_revisions(tmp_path: Path) -> None:
    database = DATABASE.replace("{python}", sys.executable).replace("{seen}", str(tmp_path / "seen"))
    runs, _ = asked(tmp_path, services=database)
    assert sum(run.together for run in runs) == 2 * (6 - APART)
    seen = [tuple(line.split()) for line in (tmp_path / "seen").read_text().splitlines()]
    apart, together = seen[: 2 * APART], seen[2 * APART :]
    assert len({port for port, _ in apart}) == 1
    pairs = list(zip(together[::2], together[1::2], strict=True))
    assert all(first[0] != second[0] and first[1] != second[1] for first, second in pairs)
    assert len({port for port, _ in together}) == 2
    assert len(set(together)) == 4, "neither side always has the same one"


def test_what_is_somewhere_for_all_is_asked_by_one_side_at_a_time(tmp_path: Path) -> None:
    somewhere = '[[service]]\nname = "db"\noutside = true\ncommand = "sleep 60"\nready_command = "true"\nsetup = "true"\n'
    runs, _ = asked(tmp_path, pairs=APART + 1, services=somewhere)
    assert not any(run.together for run in runs)


@pytest.mark.parametrize(
    ("more", "requests"),
    [
        ("alone = true", REQUESTS),
        ("", REQUESTS.replace("count", "concurrency = 2\ncount")),
        ("", REQUESTS.replace("count", "rate = 100\ncount")),
    ],
    ids=["by configuration", "concurrency", "rate"],
)
def test_servers_that_answer_several_at_once_are_asked_one_after_the_other(tmp_path: Path, more: str, requests: str) -> None:
    runs, _ = asked(tmp_path, pairs=APART + 1, more=more, requests=requests)
    assert not any(run.together for run in runs)


def test_the_first_pairs_are_made_apart_and_all_others_together_on_cpus_in_turn(tmp_path: Path) -> None:
    executor = Scripted()
    runs, of = made(tmp_path, executor, pairs=40)
    assert [run.together for run in runs] == [False] * 2 * APART + [True] * 2 * (40 - APART)
    assert set(executor.together) == os.sched_getaffinity(0)
    assert executor.timeouts == {20.0}  # they share a CPU
    assert not of.notes


@dataclass
class ManyCpus(Scripted):
    """Head takes so many times as long where it may use several CPUs."""

    alone: float = 2.0

    def execute(self, command: Command) -> Execution:
        longer = self.alone if command.where.startswith("head") and command.cpus is None else 1.0
        return replace(super().execute(command), cpu_ns=longer * self.cpu_ns, wall_ns=longer * self.wall_ns)

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        return [replace(run, wall_ns=self.wall_ns) for run in super().execute_together(commands, cpus)]


def test_as_many_pairs_are_made_alone_as_together_where_these_seem_to_differ(tmp_path: Path) -> None:
    runs, _ = made(tmp_path, ManyCpus(), pairs=12)
    assert [run.together for run in runs[::2]] == [False] * APART + [True] * 3 + [False, True] * 3 + [False]


@pytest.mark.parametrize(("executor", "is_together"), [(ManyCpus(), False), (Scripted(), True)], ids=["differ", "alike"])
def test_calls_are_timed_alone_where_runs_made_alone_seem_to_differ(tmp_path: Path, executor: Scripted, is_together: bool) -> None:
    runs, of = made(tmp_path, executor, pairs=6)
    of.collector.targets = {(Phase.TIMED, side): Target(tmp_path / side, None) for side in Side}
    timed = of.collect([Slot(Phase.TIMED, POINT, side, 0) for side in Side], runs, lambda _: None)
    assert [run.together for run, _ in timed] == [is_together] * 2


@pytest.mark.parametrize(
    ("executor", "options"),
    [
        (Scripted(wall_ns=2e7), {}),  # it waits
        (Scripted(cpu_ns=2e7), {}),  # several threads
        (Scripted(rss=1e18), {}),
        (Scripted(), {"alone": True}),
        (Scripted(), {"same_tree": True}),
    ],
    ids=["waits", "threads", "memory", "by configuration", "one tree"],
)
def test_runs_that_would_not_be_the_same_beside_another_are_made_apart(
    tmp_path: Path, executor: Scripted, options: dict[str, bool]
) -> None:
    runs, of = made(tmp_path, executor, **options)
    assert not any(run.together for run in runs)
    assert not executor.together
    assert not of.notes


@dataclass
class Hesitant(Scripted):
    """Waits for a tenth of its work in head's runs."""

    def execute(self, command: Command) -> Execution:
        return replace(super().execute(command), wall_ns=self.wall_ns * (1.1 if command.where.startswith("head") else 1.0))


def test_runs_are_made_apart_once_heads_wait_more_than_bases(tmp_path: Path) -> None:
    runs, of = made(tmp_path, Hesitant(), pairs=10)
    assert [run.together for run in runs] == [*[False] * 2 * APART, *[True] * 2 * (5 - APART), *[False] * 2 * 5], "five pairs tell"
    assert not of.notes


@pytest.mark.parametrize(
    ("calm", "is_together"),
    [
        (Execution(1e7, 1e7, 1e6, None, None, ""), True),  # what was parallel was its runtime
        (Execution(1e7, 2e7, 1e6, None, None, ""), False),  # threads of its own
        (Execution(2e7, 1e7, 1e6, None, None, ""), False),  # it waits
        (Execution(2e7, 1e7, 1e6, None, None, "", waited=0.5), True),  # for other work on the machine alone
        (WorkloadError("conflicting options", slug="workload-failed"), False),
    ],
    ids=["one thread", "threads", "waits", "busy machine", "refused"],
)
def test_threads_of_a_runtime_keep_no_runs_apart(tmp_path: Path, calm: Execution | Exception, *, is_together: bool) -> None:
    runs, of = made(tmp_path, Scripted(cpu_ns=2e7, calmed=calm), calm=CALM)
    assert [run.together for run in runs] == [False] * 2 * APART + [is_together] * 2 * (6 - APART)
    assert not of.notes


@pytest.mark.parametrize("seen", ["before", "meanwhile"])
def test_a_program_of_several_tasks_is_not_run_in_turns_though_a_busy_machine_gives_it_one_cpu(tmp_path: Path, seen: str) -> None:
    executor = Parallel(several_from=0 if seen == "before" else 2 * APART)
    runs, of = made(tmp_path, executor)
    assert not any(run.together for run in runs)
    assert len(executor.together) == (0 if seen == "before" else 1)
    assert not of.notes


def test_a_single_look_at_two_tasks_keeps_no_runs_apart(tmp_path: Path) -> None:
    runs, _ = made(tmp_path, Parallel(several_from=0, several_to=1))
    assert [run.together for run in runs] == [False] * 2 * APART + [True] * 2 * (6 - APART)


@pytest.mark.parametrize(
    ("executor", "attempts", "says"),
    [
        (Scripted(fails=WorkloadError("the port is taken", slug="workload-failed")), 1, "fails (the port is taken) where base and head"),
        (
            Scripted(fails=StraysError("worker")),
            1,
            "leaves processes (worker) where base and head run at the same time: nobody can tell which",
        ),
        (Scripted(prints="of both"), 1, "prints something else where base and head"),
        (Scripted(does=0.55, prints="fewer"), 1, "takes much less CPU time where base and head run at the same time"),
        (Scripted(does=0.55), SIGNS, "takes much less CPU time where base and head run at the same time: it seems to end by the clock"),
    ],
    ids=["fails", "leaves processes", "prints", "prints how little it does", "does less"],
)
def test_runs_that_disturb_each_other_are_made_apart_from_then_on_and_told_once(
    tmp_path: Path, executor: Scripted, attempts: int, says: str
) -> None:
    runs, of = made(tmp_path, executor)
    assert not any(run.together for run in runs)
    assert any(run.clocked for run in runs) is ("CPU time" in says)
    assert len(executor.together) == attempts
    (note,) = of.notes
    assert note.slug == "runs-disturb-each-other"
    assert says in note.text


def test_runs_of_a_workload_that_a_clock_ends_are_marked_once_that_is_sure(tmp_path: Path) -> None:
    pairs = APART + SIGNS + 2
    runs, _ = made(tmp_path, Scripted(does=0.55), pairs=pairs)
    unsure = 2 * (APART + SIGNS - 1)
    assert [run.clocked for run in runs] == [False] * unsure + [True] * (2 * pairs - unsure)


@pytest.mark.parametrize(
    "does",
    [(0.55, 1.0), (0.55, 0.55, 1.0), (0.8, 0.55, 0.55, 0.95), (1.0, 0.55, 0.55, 0.55, 0.55)],
    ids=["once", "twice", "more or less", "later"],
)
def test_a_machine_that_is_faster_for_a_while_is_no_clock(tmp_path: Path, does: tuple[float, ...]) -> None:
    runs, of = made(tmp_path, Changing(does=1.0, later=list(does)), pairs=APART + 8)
    assert not any(run.clocked for run in runs)
    assert any(run.together for run in runs)
    assert not of.notes


def test_a_pair_that_does_not_tell_hides_no_clock(tmp_path: Path) -> None:
    """As where other work had the machine while the runs before it were made alone, so that a clock left them less."""
    runs, of = made(tmp_path, Changing(later=[0.55, 0.8, 0.55, 0.85, 0.55]), pairs=APART + 8)
    assert runs[-1].clocked
    assert len(of.notes) == 1


def test_runs_that_are_as_fast_again_alone_are_not_ended_by_a_clock(tmp_path: Path) -> None:
    """As those before were made while other work had the machine half as fast."""
    executor = Changing(does=0.55, faster_from=APART)
    runs, of = made(tmp_path, executor, pairs=APART + SIGNS + 2)
    assert not any(run.clocked for run in runs)
    assert not of.notes


def test_a_disk_that_fills_is_no_reason_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(DiskFilledError):
        made(tmp_path, Scripted(fails=DiskFilledError("full", slug="workload-filled-disk")))


def test_where_nothing_may_be_bound_to_a_cpu_runs_are_made_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(1, "not permitted")

    duets._may_bind.cache_clear()
    monkeypatch.setattr(os, "sched_setaffinity", forbidden)
    try:
        assert not any(run.together for run in made(tmp_path, Scripted())[0])
    finally:
        duets._may_bind.cache_clear()


def test_where_the_system_tells_nothing_of_its_memory_runs_are_made_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_available_bytes", lambda: 0.0)
    assert not any(run.together for run in made(tmp_path, Scripted())[0])
