"""Scheduling, running and choosing probes."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from differing import words
from perfdiff import languages
from perfdiff.collect.built.reach import reached
from perfdiff.collect.choosing import calling, census, folding, rates, survey, tally
from perfdiff.collect.choosing.rates import Rate
from perfdiff.collect.choosing.subjects import Subjects
from perfdiff.collect.choosing.survey import Budget, Fold, Priority, ProbeSelection, Survey
from perfdiff.collect.counts import counting
from perfdiff.collect.execution import kernel, printed
from perfdiff.collect.execution.executor import TAIL_BYTES, Command, Execution, ProcessExecutor
from perfdiff.collect.execution.outputs import shape_of
from perfdiff.collect.execution.terminals import Keyboard
from perfdiff.collect.recordings import assembly
from perfdiff.collect.runs import caveats, schedule, workloads
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.disturbance import Referee
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.targets import PADDING, Target
from perfdiff.config import WorkloadConfig
from perfdiff.errors import WorkloadError
from perfdiff.languages.protocol import Counterpart, FeaturePlan, FunctionDefinition, Load, ProbeCosts
from perfdiff.measuring import variants
from perfdiff.measuring.duets import APART
from perfdiff.measuring.making import OwnMachine
from perfdiff.progress import Silent
from perfdiff.records.reach import Reach
from perfdiff.records.recording import RecordedSamples
from perfdiff.records.schema import Change, Note, Origin, Phase, Point, Run, Side, Totals


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., Command]:
    def make(text: str, timeout_s: float = 30.0, exit_codes: tuple[int, ...] = (0,)) -> Command:
        return Command(text, tmp_path, {"PATH": os.environ["PATH"]}, timeout_s, exit_codes, "head, point")

    return make


def definition(name: str) -> FunctionDefinition:
    empty: frozenset[str] = frozenset()
    return FunctionDefinition(name, name, (name,), "a.c", 1, 0, 1, 2, "", "", "", empty, empty, empty, empty, (), (), None)


def pair(name: str, change: Change) -> Counterpart:
    return Counterpart(definition(name), definition(name), change, (), ())


COSTS = ProbeCosts(timed_ns=30.0, counted_ns=10.0, passed_ns=1.5)
BUDGET = Budget(overhead=0.02, keeping=0.02, samples=1000, costs={"c": COSTS})


def lengths(*classes: tuple[float, float]) -> np.ndarray:
    """Return lengths as a survey has them on two cells: in each class so many calls that take so many ns each."""
    found = np.zeros((2, 2, 32))
    for place, (calls, ns) in enumerate(classes):
        found[:, :, place] = calls, calls * ns
    return found


def surveyed(calls: dict[int, float], self_ns: dict[int, tuple[float, float]], edges: set[tuple[int, int]] = set()) -> Survey:  # noqa: B006
    return Survey(
        cells=((0, Side.BASE), (0, Side.HEAD)),
        cpu_ns=np.array([1e9, 1e9]),
        calls={function: np.array([count, count]) for function, count in calls.items()},
        self_ns={function: np.array(self_ns.get(function, (0.0, 0.0))) for function in calls},
        wall_ns={function: np.array(self_ns.get(function, (0.0, 0.0))) for function in calls},
        reading_ns=dict.fromkeys(calls, np.zeros(2)),
        lengths={function: lengths((count, max(self_ns.get(function, (0.0, 0.0))) / count)) for function, count in calls.items()},
        executions={},
        edges={(caller, callee): np.full(2, calls[callee]) for caller, callee in edges},
    )


def test_points_are_all_combinations_with_quoted_values() -> None:
    found = workloads.points([WorkloadConfig("w", "./p {n} {mode} {{x}} ${HOME} ${n}", {"n": (1, 2), "mode": ("a b",)})])
    assert [point.command for point in found] == ["./p 1 'a b' {{x}} ${HOME} ${n}", "./p 2 'a b' {{x}} ${HOME} ${n}"]
    assert [point.parameters for point in found] == [{"n": 1, "mode": "a b"}, {"n": 2, "mode": "a b"}]


def test_every_block_holds_every_point_on_both_sides_next_to_each_other() -> None:
    points = [Point(i, "w", {}, "") for i in range(5)]
    block = schedule.timed_block(points, 1, seed=3)
    assert Counter((slot.point.id, slot.side) for slot in block) == Counter({(i, side): 1 for i in range(5) for side in Side})
    assert all(block[i].point is block[i + 1].point for i in range(0, 10, 2))
    assert schedule.timed_block(points, 1, seed=3) == block
    orders = {tuple((slot.point.id, slot.side) for slot in schedule.timed_block(points, i, seed=3)) for i in (1, 2, 4, 5)}
    assert len(orders) == 4
    assert {slot.phase for slot in schedule.timed_block(points, 0, seed=3)} == {Phase.TIMED}
    assert {slot.phase for slot in schedule.timed_block(points, 0, 3, (Side.BASE,))} == {Phase.PLAIN, Phase.TIMED}


def test_whole_runs_are_pairs_in_one_layout_and_all_layouts_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Point(i, "w", {}, "") for i in range(3)]
    blocks = [schedule.pairs(schedule.whole_block(points, block, seed=3)) for block in range(8)]
    assert all(len(pairs) == 3 and {slot.phase for pair in pairs for slot in pair} == {Phase.PLAIN} for pairs in blocks)
    spread = SimpleNamespace(count=4, may_link=False, grow=lambda pairs, limit_s: None)
    monkeypatch.setattr(variants, "spread", lambda bench, site: spread)
    request = SimpleNamespace(config=SimpleNamespace(compare=None))
    bench = SimpleNamespace(request=request, progress=SimpleNamespace(stage=lambda *_: None, advance=lambda _: None))
    machine = OwnMachine(bench, None, None)  # type: ignore[arg-type]
    machine._duets = SimpleNamespace(collect=lambda pair, runs, advance: [(slot, []) for slot in pair])  # type: ignore[assignment]
    layouts = [{run.layout for made in machine.made([pairs]) for run, _ in made.runs} for pairs in blocks]
    assert layouts == [{0}, {0}, {0}, {1}, {2}, {3}, {0}, {1}]  # those that are made apart at first are of the builds themselves


@pytest.mark.parametrize(("may_link", "linked"), [(True, [8, 18, 38]), (False, [8])])
def test_pairs_for_which_none_may_be_linked_take_turns_in_the_layouts_that_there_are(
    may_link: bool, linked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    spread = SimpleNamespace(count=8, may_link=False, grow=lambda pairs, limit_s: asked.append(pairs))
    monkeypatch.setattr(variants, "spread", lambda bench, site: spread)
    bench = SimpleNamespace(request=SimpleNamespace(config=SimpleNamespace(compare=None)), progress=Silent())
    machine = OwnMachine(bench, None, None)  # type: ignore[arg-type]
    machine._duets = SimpleNamespace(collect=lambda pair, runs, advance: [(slot, []) for slot in pair])  # type: ignore[assignment]
    pairs = (schedule.whole_block([Point(0, "w", {}, "")], block, seed=3, may_link=block < 10 or may_link) for block in range(30))
    made = [*machine.made([pair] for pair in pairs)]
    assert asked == linked
    assert {made[-1].pair[0].layout, made[-2].pair[0].layout} == {(29 - APART) % 8, (28 - APART) % 8}


def test_what_is_counted_is_chosen_by_what_runs_take_as_a_rule() -> None:
    points = workloads.points([WorkloadConfig("w", "./p {n}", {"n": (1, 2)})])
    walls = {0: (1e7, 1.1e7, 4e9), 1: (4e9, 5e9, 6e9)}  # one run of the first waited for other work
    runs = [Run(0, Phase.PLAIN, point, Side.BASE, 0, wall, wall, 1e6, None, None, "") for point, of in walls.items() for wall in of]
    chosen = counting.affordable(points, runs, 30.0, 2, 40.0)
    assert chosen == points[:1]
    of_counts, of_time = (counting.left_out(points, chosen, 30.0, 20.0, is_of_time=is_of_time)[0].text for is_of_time in (False, True))
    assert "w n=2 was not counted" in of_counts
    assert of_counts.endswith("raise counters.budget_s to count them")
    assert of_time.endswith("give the comparison more with --time to count them")
    assert "2 of 2 workload points (w n=1, …) were" in counting.left_out(points, (), 0.1, 20.0, is_of_time=False)[0].text
    assert counting.affordable(points, runs, 0.1, 2, 40.0) == ()


@pytest.mark.parametrize(("metric", "repeats"), [("blocks", False), ("l1d_misses", False), ("collecting_ns", True), ("heap_bytes", True)])
def test_only_what_more_runs_could_settle_asks_for_them(metric: str, repeats: bool) -> None:
    sides = enumerate([*Side, *Side])
    runs = [Run(number, Phase.COUNTED, 0, side, number // 2, 1e6, 1e6, 1e6, None, None, "") for number, side in sides]
    same = np.ones(len(runs))
    moving = Totals(np.arange(len(runs)), np.ones(len(runs), np.int64), same, same, same, {metric: np.array([5.0, 7.0, 6.0, 7.0])})
    assert counting.repeats(moving, runs) is repeats
    assert counting.repeats(replace(moving, other={metric: np.array([5.0, 7.0, 5.0, 7.0])}), runs)


@pytest.mark.parametrize(
    ("sizes", "cpu_ms", "noted"),
    [((10, 1000), (100, 110), True), ((10, 1000), (100, 900), False), ((10, 20), (100, 110), False), (("a", "b"), (100, 110), False)],
    ids=["start is most of it", "size is felt", "sizes lie close", "no sizes"],
)
def test_sizes_that_runs_do_not_feel_are_told(sizes: tuple[float | str, ...], cpu_ms: tuple[float, ...], noted: bool) -> None:
    points = workloads.points([WorkloadConfig("read", "./p {n}", {"n": sizes})])
    runs = [
        Run(0, Phase.PLAIN, point.id, side, block, 2e8, milliseconds * 1e6, 1e6, None, None, "")
        for point, milliseconds in zip(points, cpu_ms, strict=True)
        for side in Side
        for block in range(3)
    ]
    found = caveats.sizes_not_felt(runs, points)
    assert bool(found) is noted
    assert not noted or "100 ms of CPU time at read n=10 and 110 ms at read n=1000: starting, and importing" in found[0].text
    assert caveats.sizes_not_felt([], points) == ()


@pytest.mark.parametrize(
    ("values", "noted"),
    [
        (("1k", "3k"), True),
        (("1000..3000",), True),
        (("2.5MB",), True),
        ((1000, 3000), False),
        (("fast", "1k"), False),
        (("1.2.3",), False),
    ],
)
def test_sizes_that_are_no_numbers_are_told(values: tuple[float | str, ...], noted: bool) -> None:
    points = [Point(number, "read", {"n": value}, "") for number, value in enumerate(values)]
    found = caveats.sizes_as_texts(points)
    assert [note.slug for note in found] == ["sizes-as-texts"] * noted
    assert not noted or f"values of n are handed on as texts ({', '.join(map(str, values))})" in found[0].text


def test_a_run_is_timed_and_its_output_digested(command: Callable[..., Command]) -> None:
    executor = ProcessExecutor()
    first = executor.execute(command("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done"))
    assert first.cpu_ns > 1e6
    assert first.wall_ns >= first.cpu_ns * 0.5  # kernels may count CPU time by ticks
    assert first.max_rss_bytes > 1e5
    assert executor.execute(command("echo done")).output == first.output
    assert executor.execute(command("echo other")).output != first.output


def test_a_run_that_failed_says_how_it_is_run_by_hand(command: Callable[..., Command], tmp_path: Path) -> None:
    place = tmp_path / "entry" / "source" / "project"
    place.mkdir(parents=True)
    for active, says in (
        (tmp_path / "entry" / "venv", f"with {tmp_path}/entry/venv/bin first on PATH"),
        (tmp_path / "mine", f"{place}, or"),
    ):
        failing = replace(command("exit 3"), directory=place, environment={"PATH": os.environ["PATH"], "VIRTUAL_ENV": str(active)})
        with pytest.raises(WorkloadError, match=re.escape(f"run it by hand in {place}")) as raised:
            ProcessExecutor().execute(failing)
        assert says in str(raised.value)


def test_a_run_tells_how_it_ended_and_what_it_printed(command: Callable[..., Command]) -> None:
    done = ProcessExecutor().execute(replace(command("echo a; echo b; echo c >&2; seq 2000 > out; exit 1"), exit_codes=(0, 1))).behaviour
    assert done is not None
    assert (done.exit_code, done.output, done.errors) == (1, shape_of(b"a\nb\n"), shape_of(b"c\n"))
    assert done.written_bytes in (None, 6 + len("".join(f"{number}\n" for number in range(1, 2001))))
    assert (done.left, done.left_cpu_ns) == ((), 0.0)


def test_the_memory_of_a_run_is_its_programs_and_not_that_of_who_starts_it(command: Callable[..., Command]) -> None:
    ours = bytearray(100_000_000)
    ours[::4096] = b"x" * len(ours[::4096])
    small, large = (command(f"{sys.executable} -c 'x = bytearray({size}); x[::4096] = x[:1] * len(x[::4096])'") for size in (1, 50_000_000))
    peaks = [execution.max_rss_bytes for execution in ProcessExecutor().execute_together([small, large], os.sched_getaffinity(0))]
    assert ProcessExecutor().execute(small).max_rss_bytes == pytest.approx(peaks[0], rel=0.1)
    assert peaks[1] - peaks[0] == pytest.approx(50e6, rel=0.05)


def test_a_run_on_a_terminal_prints_there_alone_and_all_of_it_is_read(command: Callable[..., Command]) -> None:
    on_both = command("test -t 1 && test -t 2 && stty size && cat && seq 2000 >&2")
    printed = ProcessExecutor().execute(replace(on_both, keyboard=Keyboard.ENDS)).behaviour
    assert printed is not None
    assert printed.output == shape_of(b"".join(f"{line}\r\n".encode() for line in ("24 80", *range(1, 2001))))
    assert printed.errors == shape_of(b"")
    with pytest.raises(WorkloadError):
        ProcessExecutor().execute(on_both)


WORKS_ON = "i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done"


@pytest.mark.parametrize("how", [f"({WORKS_ON}) & exit 0", f"(setsid sh -c '{WORKS_ON}' &) ; exit 0"])
def test_who_outlives_a_run_is_told_and_ended_and_its_cpu_time_counts(command: Callable[..., Command], how: str) -> None:
    found = ProcessExecutor().execute(command(how))
    assert found.behaviour is not None
    assert found.behaviour.left == ("sh",)
    assert 0 < found.behaviour.left_cpu_ns <= found.cpu_ns
    assert found.wall_ns < 10e9


def test_the_cpu_time_of_a_daemon_that_ends_with_the_run_counts_and_it_is_not_left(command: Callable[..., Command], tmp_path: Path) -> None:
    work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    daemon = f"(setsid sh -c '{work}; touch done' &) ; until [ -e done ]; do sleep 0.01; done"
    apart, itself = ProcessExecutor().execute(command(daemon)), ProcessExecutor().execute(command(work))
    assert (tmp_path / "done").exists()
    assert apart.behaviour is not None
    assert apart.behaviour.left == ()
    assert apart.cpu_ns > itself.cpu_ns / 2


def test_runs_at_the_same_time_are_told_apart_by_what_they_left(command: Callable[..., Command]) -> None:
    leaving, other = command(f"(setsid sh -c '{WORKS_ON}' &) ; exit 0"), command("sleep 0.3")
    found = ProcessExecutor().execute_together([leaving, other], {min(os.sched_getaffinity(0))})
    assert [each.behaviour.left for each in found if each.behaviour] == [("sh",), ()]


def test_a_workload_may_print_gigabytes(command: Callable[..., Command]) -> None:
    execution = ProcessExecutor().execute(command("head -c 1000000000 /dev/zero"))
    assert execution.wall_ns < 60e9


def test_numbers_that_a_run_prints_are_told_where_they_are_asked_for(command: Callable[..., Command]) -> None:
    text = "echo nodes: 1; echo edges: 7 >&2; echo nodes: 5 >&2; printf 'nodes: 20 nodes: 3.5e2'; echo depth: 9 >&2"
    features = printed.patterns({"nodes": r"nodes: (\S+)", "edges": "edges: ([0-9]+)", "depth": "^depth: (.*)$", "none": "(none)"})
    found = ProcessExecutor().execute(replace(command(text), features=features))
    assert found.printed == {"nodes": 350.0, "edges": 7.0, "depth": 9.0}  # of both streams standard output counts
    plain = ProcessExecutor().execute(command(text))
    assert (plain.printed, plain.output) == ({}, found.output)


def test_a_run_without_features_has_its_output_looked_at_by_nobody(
    command: Callable[..., Command], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(self: printed.PrintedNumbers, chunk: bytes) -> None:
        raise AssertionError("times would not be those of the program alone")

    monkeypatch.setattr(printed.PrintedNumbers, "read", read)
    assert ProcessExecutor().execute(command("echo nodes: 1")).printed == {}


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_numbers_are_found_wherever_output_is_cut_into_chunks(size: int) -> None:
    output = b"n = 1\nn = 22 of n\n\xff n = 1e3\nn = inf\nn = x\n\nn = 4" + b"0" * 3
    numbers = printed.PrintedNumbers(printed.patterns({"n": r"n = (\w+)", "all": r"^n = (\d+)$", "first": r"\An = (\d) *"}))
    for start in range(0, len(output), size):
        numbers.read(output[start : start + size])
    assert numbers.close() == {"n": 4000.0, "all": 4000.0, "first": 4.0}


def test_of_an_endless_line_the_beginning_alone_is_kept() -> None:
    numbers = printed.PrintedNumbers(printed.patterns({"n": "n=([0-9]+)"}))
    numbers.read(b"n=1 ")
    tracemalloc.start()
    try:
        for _ in range(200):
            numbers.read(b"n=2 " * 16384)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * printed.LINE_BYTES
    numbers.read(b"\n" + b"x" * printed.LINE_BYTES + b"n=3\nlast")
    assert numbers.close() == {"n": 2.0}


@pytest.mark.parametrize(
    ("text", "slug", "says"),
    [
        ("echo broken >&2; exit 3", "workload-failed", "exited 3"),
        ("exit 255", "workload-failed", "exited 255"),
        ("kill -SEGV $$", "workload-crashed", "SIGSEGV"),
        ("sh -c 'kill -ABRT $$'; exit 134", "workload-crashed", "SIGABRT"),
        ("kill -40 $$", "workload-crashed", "signal 40"),
    ],
)
def test_a_failing_workload_is_named(command: Callable[..., Command], text: str, slug: str, says: str) -> None:
    with pytest.raises(WorkloadError, match=says) as caught:
        ProcessExecutor().execute(command(text))
    assert caught.value.slug == slug
    assert "head, point" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("echo fine; echo broken >&2; exit 3", "broken\n"),
        ("echo 'no such file: a.php'; exit 1", "no such file: a.php\n"),
        ("yes | head -c 99999; echo last; exit 1", "last\n"),
    ],
)
def test_what_a_failing_workload_printed_last_is_told_that_of_its_output_where_it_printed_no_errors(
    command: Callable[..., Command], text: str, detail: str
) -> None:
    with pytest.raises(WorkloadError) as caught:
        ProcessExecutor().execute(command(text))
    assert caught.value.detail.endswith(detail)
    assert "fine" not in caught.value.detail
    assert len(caught.value.detail) <= TAIL_BYTES


@pytest.mark.parametrize(("text", "filled"), [("./program 10", False), ("./other 10", True)])
def test_a_workload_that_was_never_filled_in_is_told_so(command: Callable[..., Command], text: str, filled: bool) -> None:
    with pytest.raises(WorkloadError, match="exited 127") as caught:
        ProcessExecutor().execute(command(text))
    assert ("still the example of `perfdiff init`" in str(caught.value)) is not filled


def test_an_accepted_exit_code_is_no_failure(command: Callable[..., Command]) -> None:
    assert ProcessExecutor().execute(command("exit 3", exit_codes=(0, 3))).wall_ns > 0


def test_a_hanging_workload_is_ended_with_all_its_children(command: Callable[..., Command]) -> None:
    started = time.monotonic()
    with pytest.raises(WorkloadError, match=r"did not end within 0\.3 s") as caught:
        ProcessExecutor().execute(command("sleep 60 & sleep 60", timeout_s=0.3))
    assert caught.value.slug == "workload-timeout"
    assert time.monotonic() - started < 20


def test_a_workload_that_removes_its_folder_is_ended_when_its_time_is_over(command: Callable[..., Command]) -> None:
    with pytest.raises(WorkloadError) as caught:
        ProcessExecutor().execute(command('rmdir "$PWD"; sleep 10', timeout_s=0.5))
    assert caught.value.slug == "workload-timeout"
    with pytest.raises(WorkloadError, match="is gone") as caught:
        ProcessExecutor().execute(command("true"))
    assert caught.value.slug == "workload-removed-tree"


@pytest.mark.parametrize("left", ["sleep 60 & echo $! > pid", "setsid sh -c 'echo $$ > pid; exec sleep 60' & until [ -s pid ]; do :; done"])
def test_what_a_workload_leaves_running_is_ended(command: Callable[..., Command], tmp_path: Path, left: str) -> None:
    ProcessExecutor().execute(command(left))
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and Path(f"/proc/{pid}").exists():
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        if state == "Z":
            break
        time.sleep(0.01)
    else:
        assert not Path(f"/proc/{pid}").exists()


def test_calls_that_stand_for_many_outweigh_the_first_ones() -> None:
    n = 132
    weight = np.r_[np.ones(100), np.full(32, 200.0)]
    zeros = dict.fromkeys(RecordedSamples.__slots__, np.zeros(n)) | {"counters": {"blocks": np.arange(n) * 3.0}}
    samples = RecordedSamples(**zeros | {"weight": weight, "call": np.arange(n), "cells": np.zeros((n, 2)), "read": np.ones((n, 2))})
    evened = assembly._evened(samples, 1)
    assert set(range(100, 132)) <= set(evened.call.tolist())
    assert len(evened) <= 36
    assert evened.weight.sum() == pytest.approx(weight.sum())
    assert len(set(evened.weight.tolist())) == 1
    assert evened.counters["blocks"].tolist() == (evened.call * 3.0).tolist()
    assert assembly._evened(RecordedSamples(**zeros | {"weight": np.ones(n), "call": np.arange(n)}), 1).call.tolist() == list(range(n))


def test_floating_numbers_of_memory_that_nobody_wrote_to_are_absent() -> None:
    plan = FeaturePlan("this->scale", Origin.FIELD, Load.FLOATING, "")
    pointer, counter = np.array([0x7FFF12345678, 127], np.uint64).view(np.float64).tolist()
    single = 127 * 2.0**-149  # the same counter, widened from single precision
    read = np.array([0.0, -0.0, 2.5, -1e-30, pointer, counter, single, -single])
    feature, values = assembly._column(plan, read.view(np.uint64), np.ones(len(read), bool), {})
    assert feature.name == "this->scale"
    assert values[:4].tolist() == read[:4].tolist()
    assert np.isnan(values[4:]).all()


class CountingExecutor:
    """Runs nothing; keeps the commands."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def execute(self, command: Command) -> Execution:
        self.commands.append(command)
        return Execution(1e6, 1e6, 1e6, None, None, "digest")


def test_probed_runs_are_steered_and_plain_runs_are_not(tmp_path: Path) -> None:
    executor = CountingExecutor()
    plan = tmp_path / "x.plan"
    targets = {(phase, side): Target(tmp_path, None if phase is Phase.PLAIN else plan) for phase in Phase for side in Side}
    room = tmp_path / "room"
    room.mkdir()
    collector = Collector(targets, {"w": WorkloadConfig("w", "x")}, {"HOME": "/h"}, executor, room, 1)
    points = [Point(0, "w", {}, "x")]
    slots = [*schedule.whole_block(points, 0, seed=1), *schedule.timed_block(points, 0, seed=1)]
    runs = [run for run, recordings in collector.collect(slots, lambda text: None) if recordings == []]
    assert [run.id for run in runs] == [0, 1, 2, 3]
    for run, made in zip(runs, executor.commands, strict=True):
        steered = {name for name in made.environment if name.startswith("PERFDIFF_")} - {PADDING}
        assert steered == (set() if run.phase is Phase.PLAIN else {"PERFDIFF_OUT", "PERFDIFF_PLAN", "PERFDIFF_SEED"})
        assert made.environment["HOME"] == "/h"
    assert list(room.iterdir()) == []


def test_environments_of_timed_runs_alone_have_sizes_of_their_own(tmp_path: Path) -> None:
    def sizes(phase: Phase, seed: int) -> list[int | None]:
        executor = CountingExecutor()
        collector = Collector({(phase, Side.BASE): Target(tmp_path, None)}, {"w": WorkloadConfig("w", "x")}, {}, executor, tmp_path, seed)
        slots = [Slot(phase, Point(0, "w", {}, "x"), Side.BASE, block) for block in range(40)]
        assert len(list(collector.collect(slots, lambda text: None))) == len(slots)
        return [len(made.environment[PADDING]) if PADDING in made.environment else None for made in executor.commands]

    assert sizes(Phase.COUNTED, 1) == sizes(Phase.SURVEY, 1) == [None] * 40
    for phase in (Phase.PLAIN, Phase.TIMED):
        drawn = [size for size in sizes(phase, 1) if size is not None]
        assert len(drawn) == 40
        assert {size % 16 for size in drawn} == {0}
        assert len(set(drawn)) > 20
        assert 0 <= min(drawn) < 1024
        assert 3072 < max(drawn) < 4096
        assert sizes(phase, 1) == drawn != sizes(phase, 2)


def test_missing_layouts_are_told_once_where_both_sides_lack_them() -> None:
    both, own = Note("one-layout", "for this reason"), Note("layout-kept", "for that reason")
    assert caveats.layouts_missing({Side.BASE: (both, own), Side.HEAD: (both,)}) == (both, Note("layout-kept", "base: for that reason"))


@pytest.mark.parametrize(("is_long", "told"), [(True, 1), (False, 0)])
def test_a_run_that_takes_long_is_told_while_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_long: bool, told: int) -> None:
    heard: list[str] = []
    hears = threading.Event()

    class Waiting(CountingExecutor):
        def execute(self, command: Command) -> Execution:
            assert not is_long or hears.wait(30)
            return super().execute(command)

    def slow(text: str) -> None:
        heard.append(text)
        hears.set()

    monkeypatch.setattr("perfdiff.collect.runs.collector.LONG_S", 0.01 if is_long else 30.0)
    targets = {(phase, side): Target(tmp_path, None) for phase in Phase for side in Side}
    collector = Collector(targets, {"w": WorkloadConfig("w", "x", timeout_s=70)}, {}, Waiting(), tmp_path / "room", 1, slow)
    (tmp_path / "room").mkdir()
    points = [Point(0, "w", {"n": 9}, "x")]
    slots = [*schedule.whole_block(points, 0, seed=1), *schedule.timed_block(points, 0, seed=1)]
    assert len(list(collector.collect(slots, lambda text: None))) == 4
    assert len(heard) == told
    assert all("one run of w n=9 on " in text and "hanging after 70 s (timeout_s" in text for text in heard)


def test_of_runs_at_the_same_time_that_take_long_both_sides_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    hears = threading.Event()

    class Waiting(CountingExecutor):
        def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
            assert hears.wait(30)
            return [self.execute(command) for command in commands]

    def slow(text: str) -> None:
        heard.append(text)
        hears.set()

    monkeypatch.setattr("perfdiff.collect.runs.collector.LONG_S", 0.01)
    targets = {(Phase.PLAIN, side): Target(tmp_path / side, None) for side in Side}
    collector = Collector(targets, {"w": WorkloadConfig("w", "x")}, {}, Waiting(), tmp_path / "room", 1, slow)
    (tmp_path / "room").mkdir()
    pair = [Slot(Phase.PLAIN, Point(0, "w", {"n": 9}, "x"), side, 0) for side in (Side.HEAD, Side.BASE)]
    assert len(collector.collect_together(pair, {0}, lambda _: None)) == 2
    (text,) = heard
    assert text.startswith("one run of w n=9 on base or head has taken ")


def test_the_nearest_functions_are_found_past_others_and_around_circles() -> None:
    calls = {1: {2, 3}, 2: {4}, 3: {3, 5}, 4: {2, 6}, 5: {6}, 6: {1}}
    assert calling.callers(calls)[6] == {4, 5}
    assert calling.nearest(1, calls, {5, 6}) == {5, 6}
    assert calling.nearest(6, calling.callers(calls), {1, 2}) == {1, 2}
    assert calling.nearest(3, calls, {3}) == {3}, "a way leads back to it"
    assert calling.nearest(1, calls, set()) == set()


def test_unchanged_functions_that_are_called_too_often_count_as_part_of_their_callers() -> None:
    calls = {1: 1.0, 2: 1e9, 3: 10.0, 4: 1e9, 5: 1e9, 6: 100.0}
    fit = 10.0 * census.OWN_NS / census.SHARE  # what function 3 takes beside nothing else
    assert census.counted_apart(calls, starts={1, 4}, changed={2}, cpu_ns=fit) == {1, 2, 3, 4}
    assert census.counted_apart(calls, starts={1, 4}, changed={2}, cpu_ns=11 * fit) == {1, 2, 3, 4, 6}


def test_suspects_are_probed_first_and_beyond_the_budget() -> None:
    pairs = {1: pair("hot", Change.CHANGED), 2: pair("caller", Change.CALLER), 3: pair("idle", Change.UNCHANGED)}
    chosen = survey.choose(surveyed({1: 6e7, 2: 10.0, 3: 5.0}, {1: (5e8, 5e8)}), pairs, {}, BUDGET).choices
    by_id = {choice.id: choice for choice in chosen}
    assert by_id[1].priority is Priority.SUSPECT
    assert by_id[1].rate == rates.PASSING_RATES[-1]
    assert 3 not in by_id


def test_callers_that_do_not_fit_the_budget_are_told_with_who_holds_their_time() -> None:
    pairs = {
        1: pair("hash", Change.CHANGED),
        2: pair("find", Change.CALLER),
        3: pair("count", Change.CALLER),
        4: pair("rest", Change.UNCHANGED),
    }
    seen = surveyed({1: 1e8, 2: 1e8, 3: 1.0, 4: 1e9}, {1: (5e8, 5e8)}, {(0, 3), (3, 2), (2, 1), (3, 4)})
    selection = survey.choose(seen, pairs, {}, BUDGET)
    assert 2 not in {choice.id for choice in selection.choices}
    assert selection.left_out == {2: (3,)}


def test_where_probes_cost_more_fewer_calls_are_timed() -> None:
    changed = pair("parse", Change.CHANGED)
    interpreted = replace(changed, head=replace(definition("parse"), language="python"))
    costs = {**BUDGET.costs, "python": ProbeCosts(timed_ns=90.0, counted_ns=35.0, passed_ns=4.0)}
    seen = surveyed({1: 4e5}, {1: (5e8, 5e8)})
    found = [survey.choose(seen, {1: each}, {}, replace(BUDGET, costs=costs)).choices[0].rate for each in (changed, interpreted)]
    assert found == [Rate(1), Rate(64)]


def test_the_budget_is_kept_by_sampling_and_leaving_out() -> None:
    pairs = {i: pair(f"f{i}", Change.CALLER) for i in range(1, 6)}
    seen = surveyed({1: 1e3, 2: 3e5, 3: 4e5, 4: 1e7, 5: 1e9}, {})
    chosen = {choice.id: choice.rate for choice in survey.choose(seen, pairs, {}, BUDGET).choices}
    assert sum(seen.calls[i][0] * rate.ns(COSTS) for i, rate in chosen.items()) <= 0.02 * 1e9
    assert chosen[1].period == 1
    assert chosen[3].period > 1
    assert not chosen[3].passing
    assert 5 not in chosen


def test_of_texts_that_take_long_to_read_fewer_calls_are_kept_and_none_is_read_where_these_still_take_too_long() -> None:
    pairs = {i: pair(f"f{i}", Change.CHANGED) for i in (1, 2, 3, 4)}
    reading_ns = {1: np.full(2, 10.0), 2: np.array([20.0, 3e4]), 3: np.full(2, 5e4), 4: np.full(2, 2e5)}
    seen = replace(surveyed(dict.fromkeys(pairs, 1e5), dict.fromkeys(pairs, (2e7, 2e7))), reading_ns=reading_ns)

    def kept(budget: Budget) -> dict[int, tuple[int, bool]]:
        return {choice.id: (choice.samples, choice.far) for choice in survey.choose(seen, pairs, {}, budget).choices}

    # A reservoir of 1000 takes in 5605 of 100,000 calls; one of 31 281, 8 ms of the second's; one of 15 147, 7 ms of the third's; one of
    # 10 102, 20 ms of the fourth's, which is all that the budget allows.
    assert kept(BUDGET) == {1: (1000, True), 2: (31, True), 3: (15, True), 4: (1000, False)}
    assert kept(replace(BUDGET, keeping=0.06)) == {1: (1000, True), 2: (62, True), 3: (31, True), 4: (10, True)}
    assert kept(replace(BUDGET, samples=10)) == {1: (10, True), 2: (10, True), 3: (10, True), 4: (10, False)}


def test_of_many_functions_fewer_calls_are_kept_than_of_few_but_not_in_runs_as_short_as_the_start_of_the_runtime() -> None:
    found = {}
    for cpu_ns in (1e9, 1e6):
        for functions in (5, 50):
            pairs = {i: pair(f"f{i}", Change.CHANGED) for i in range(1, functions + 1)}
            seen = replace(surveyed(dict.fromkeys(pairs, cpu_ns / 1.2e5), {}), cpu_ns=np.full(2, cpu_ns))
            found[cpu_ns, functions] = [choice.samples for choice in survey.choose(seen, pairs, {}, BUDGET).choices]
    # Of 8333 calls 3120 are taken in, and 300 ns each are 0.9 ms: 5 ms of five, 47 ms of fifty, where a run may take 20 ms more.
    assert found[1e9, 5] == [1000] * 5
    assert set(found[1e9, 50]) == {250, 500}
    assert found[1e6, 5] == [1000] * 5
    assert found[1e6, 50] == [1000] * 50


def test_of_hundreds_of_functions_in_a_short_run_those_that_cost_little_of_any_keep_the_fewest_calls() -> None:
    pairs = {i: pair(f"f{i}", Change.CHANGED) for i in range(1, 301)}
    costly = {1: (1e5, 0.0), 2: (0.0, 1e5), 3: (9e4, 9e4)}  # the first two cost 1 % of a run, one of them on one side each
    seen = replace(surveyed(dict.fromkeys(pairs, 100.0), costly), cpu_ns=np.full(2, 1e7))
    kept = {choice.id: choice.samples for choice in survey.choose(seen, pairs, {}, replace(BUDGET, overhead=1.0)).choices}
    # Ten of a hundred calls are what 33 are taken in for, 3 ms for all functions of a run of 10 ms; two are what ten are taken in for.
    assert (kept[1], kept[2], kept[3]) == (10, 10, 2)
    assert sum(kept.values()) == 2 * 10 + 298 * 2
    longer = replace(seen, wall_ns={**seen.wall_ns, 300: np.full(2, 5e7)})  # the survey's probes made a run five times as long
    assert [choice.samples for choice in survey.choose(longer, pairs, {}, replace(BUDGET, overhead=1.0)).choices] == [2] * 299 + [10]


def test_what_is_timed_below_kept_calls_for_their_own_time_counts_as_theirs() -> None:
    pairs = {1: pair("caller", Change.CHANGED), 2: pair("callee", Change.CHANGED)}
    seen = surveyed({1: 1e5, 2: 2e7}, {1: (5e8, 5e8), 2: (1e8, 1e8)}, {(0, 1), (1, 2)})
    caller, callee = survey.choose(seen, pairs, {}, BUDGET).choices
    assert callee.rate.period > 1
    assert (caller.samples, callee.samples) == (1000, 1000)
    caller, callee = survey.choose(seen, pairs, {}, replace(BUDGET, overhead=0.005, keeping=0.005)).choices
    assert caller.samples < callee.samples


def test_the_runtime_times_as_many_callees_of_a_kept_call_as_the_survey_reckons_with() -> None:
    header = Path(languages.__path__[0], "c", "runtime", "runtime.h").read_text(encoding="utf-8")
    assert f"#define PD_CLOSE_PASSING {survey.CLOSE}u\n" in header


@pytest.mark.parametrize(
    ("expensive", "period"),
    [
        ((0, 0.0), 256),  # none: all calls are alike
        ((10, 1e6), 256),  # 1 % of the run, missed in most runs
        ((200, 1e6), 4),  # a fifth of the run, which one call in 16 tells to 5.5 % of it
        ((1, 5e8), 1),  # half of the run in a single call
        ((10_000, 5e5), 16),  # five times the run, as probes of callees made them as long: a fifth of that holds the time
    ],
)
def test_where_few_calls_hold_the_time_more_are_timed_beyond_the_budget(expensive: tuple[float, float], period: int) -> None:
    seen = replace(surveyed({1: 3e6}, {1: (5e8, 5e8)}), lengths={1: lengths((3e6, 100.0), expensive)})
    (choice,) = survey.choose(seen, {1: pair("compare", Change.CHANGED)}, {}, replace(BUDGET, overhead=0.001)).choices
    assert choice.rate.period == period


@pytest.mark.parametrize(("expensive", "periods"), [((0, 0.0), [64]), ((1, 5e8), [])])
def test_who_is_no_suspect_is_left_out_where_what_tells_its_time_exceeds_the_budget(
    expensive: tuple[float, float], periods: list[int]
) -> None:
    seen = replace(surveyed({1: 5e6}, {1: (5e8, 5e8)}), lengths={1: lengths((5e6, 100.0), expensive)})
    chosen = survey.choose(seen, {1: pair("scan", Change.CALLER)}, {}, BUDGET).choices
    assert [choice.rate.period for choice in chosen] == periods


@pytest.mark.parametrize(("share", "period"), [(0.9, rates.PASSING_RATES[-1].period), (0.05, None)])
def test_what_takes_most_of_a_run_that_a_clock_ends_is_measured_beyond_the_budget(share: float, period: int | None) -> None:
    pairs = {1: pair("repeated", Change.UNCHANGED), 2: pair("main", Change.CALLER)}
    seen = surveyed({1: 1e8, 2: 1.0}, {1: (share * 1e9, share * 1e9), 2: (1e8, 1e8)}, {(0, 2), (2, 1)})
    found = []
    for clocked in (False, True):
        selection = survey.choose(replace(seen, clocked=clocked), pairs, {}, BUDGET)
        found.append({choice.id: choice.rate.period for choice in selection.choices}.get(1))
        assert not selection.folds
    assert found == [None, period]


def recursive(calls: float, outermost: float) -> Survey:
    """Return a function that calls itself, whose outermost calls hold its time."""
    seen = surveyed({1: calls, 2: 1.0}, {1: (9e8, 9e8)}, {(0, 2)})
    edges = {(2, 1): np.full(2, outermost), (1, 1): np.full(2, calls - outermost)}
    return replace(seen, lengths={**seen.lengths, 1: lengths((calls, 1.0), (1, 9e8))}, edges={**seen.edges, **edges})


def test_of_a_recursion_the_outermost_calls_are_all_timed_and_most_of_those_inside_pass() -> None:
    pairs = {1: pair("fibonacci", Change.CHANGED), 2: pair("main", Change.CALLER)}
    found = {}
    for calls in (1e5, 1e7, 5e7, 1e9):
        selection = survey.choose(recursive(calls, 20), pairs, {}, BUDGET)
        found[calls] = {choice.id: choice.rate for choice in selection.choices}.get(1), [fold.id for fold in selection.folds]
    assert found == {1e5: (Rate(1), []), 1e7: (Rate(1, inner=256), []), 5e7: (Rate(1, inner=256), []), 1e9: (None, [1])}


def test_functions_that_call_each_other_in_a_circle_are_each_looked_at_unless_only_one_has_a_probe() -> None:
    pairs = {1: pair("value", Change.CHANGED), 2: pair("array", Change.UNCHANGED), 3: pair("main", Change.CALLER)}
    found = []
    for calls in (1e5, 4e6):
        seen = replace(surveyed({1: calls, 2: calls, 3: 1.0}, {}), edges={pair: np.full(2, calls) for pair in ((3, 1), (1, 2), (2, 1))})
        found.append({choice.id: choice.rate for choice in survey.choose(seen, pairs, {}, BUDGET).choices})
    assert set(found[0]) == {1, 2, 3}
    assert not any(rate.inner or rate.passing for rate in found[0].values())
    assert set(found[1]) == {1, 3}  # the other one exceeds what is left of the budget
    assert found[1][1].inner


def test_calls_between_timed_ones_leave_marks_where_they_have_frames_and_no_recursion() -> None:
    pairs = {
        1: pair("value", Change.CHANGED),
        2: pair("array", Change.CHANGED),
        3: pair("parse", Change.CHANGED),
        4: pair("leaf", Change.CHANGED),
    }
    edges = {calls: np.full(2, 4e6) for calls in ((3, 1), (1, 2), (2, 1), (3, 4))}
    seen = replace(surveyed(dict.fromkeys(pairs, 4e6), {}), edges=edges)
    framed = replace(COSTS, marked_ns=6.0)

    def rates_by(costs: dict[str, ProbeCosts]) -> dict[int, Rate]:
        return {choice.id: choice.rate for choice in survey.choose(seen, pairs, {}, replace(BUDGET, costs=costs, folds=False)).choices}

    found = rates_by({"c": framed})
    assert {function for function, rate in found.items() if rate.marked} == {3}  # 1 and 2 call each other, calls of 4 pass
    assert found[3].ns(framed) == pytest.approx(framed.timed_ns / found[3].period + 6.0)
    assert not any(rate.marked for rate in rates_by({"c": framed, "python": COSTS}).values())  # whose frames lie elsewhere


def test_suspects_that_would_exceed_the_budget_by_far_are_folded_the_most_expensive_first() -> None:
    pairs = {
        1: pair("pop", Change.CHANGED),
        2: pair("step", Change.CHANGED),
        3: pair("run", Change.CALLER),
        4: pair("push", Change.CHANGED),
    }
    seen = surveyed({1: 9e8, 2: 5e6, 3: 1.0, 4: 3e8}, {1: (2e9, 2e9), 2: (5e8, 5e8)}, {(0, 3), (3, 2), (2, 1), (2, 4)})
    selection = survey.choose(seen, pairs, {}, BUDGET)
    # As nothing that it calls has a probe, calls of `step` can pass the gate.
    assert {choice.id: choice.rate for choice in selection.choices} == {2: rates.PASSING_RATES[1], 3: Rate(1)}
    assert [(fold.id, fold.hosts) for fold in selection.folds] == [(1, (2,)), (4, (2,))]
    assert [fold.overhead for fold in selection.folds] == pytest.approx([9e8 * 1.62e-9, 3e8 * 1.62e-9], rel=0.01)
    followed = {**pairs, 1: replace(pairs[1], followed=True)}
    selection = survey.choose(seen, followed, {}, BUDGET)
    assert ({choice.id for choice in selection.choices}, [fold.id for fold in selection.folds]) == ({1, 2, 3}, [4])
    alone = survey.choose(seen, pairs, {}, replace(BUDGET, folds=False))
    assert ({choice.id for choice in alone.choices}, alone.folds) == ({1, 2, 3, 4}, ())


@pytest.mark.parametrize(
    ("calls", "long", "folds"),
    [
        (1e8, (0.0, 0.0), [1]),  # 17 % of a run, for calls of some ns
        (1e8, (3e5, 3e3), []),  # as much, but two thirds of the time lie in calls of 3 µs
        (2e8, (3e5, 3e3), [1]),  # more than a quarter
    ],
)
def test_suspects_whose_calls_are_long_anywhere_are_folded_where_they_would_exceed_a_quarter_of_a_run(
    calls: float, long: tuple[float, float], folds: list[int]
) -> None:
    pairs = {1: pair("find", Change.CHANGED), 2: pair("main", Change.CALLER)}
    seen = surveyed({1: calls, 2: 1.0}, {}, {(0, 2), (2, 1)})
    found = lengths((calls, 5.0), long)
    found[0, :, 1] = 0.0  # none on base
    selection = survey.choose(replace(seen, lengths={**seen.lengths, 1: found}), pairs, {}, BUDGET)
    assert [fold.id for fold in selection.folds] == folds


@pytest.mark.parametrize(("cpu_ns", "folds"), [(1.5e6, []), (6e6, [1])])
def test_in_runs_as_short_as_the_start_of_the_runtime_nothing_is_folded(cpu_ns: float, folds: list[int]) -> None:
    pairs = {1: pair("pop", Change.CHANGED), 2: pair("main", Change.CALLER)}
    seen = surveyed({1: cpu_ns / 5, 2: 1.0}, {}, {(0, 2), (2, 1)})
    selection = survey.choose(replace(seen, cpu_ns=np.full(2, cpu_ns)), pairs, {}, BUDGET)
    assert [fold.id for fold in selection.folds] == folds


def test_functions_of_files_that_nothing_ran_of_come_last_of_those_not_called() -> None:
    pairs = {number: pair(name, Change.CHANGED) for number, name in enumerate(("test_one", "used", "idle", "test_two"), start=1)}
    files = {1: "test_program.py", 4: "test_program.py"}
    placed = {id_: replace(each, head=replace(each.head, file=files.get(id_, "program.py"))) for id_, each in pairs.items() if each.head}
    found = Subjects({id_: replace(each, base=None) for id_, each in placed.items()}, {}).untouched({2}, set(pairs))
    assert [(each.name, each.reason) for each in found] == [
        ("idle", "never called by any workload"),
        ("test_one", "no workload runs anything of its file"),
        ("test_two", "no workload runs anything of its file"),
    ]


def test_what_is_excluded_is_told_last_and_of_its_whole_file() -> None:
    pairs = {number: pair(name, Change.CHANGED) for number, name in enumerate(("vendored", "generated"), start=1)}
    first, second = (each.head for each in pairs.values())
    assert first is not None
    assert second is not None
    pairs[1] = replace(pairs[1], base=None, head=replace(first, file="third_party/a.c"))
    pairs[2] = replace(pairs[2], base=None, head=replace(second, obstacle="its text stands in a macro"))
    found = Subjects(pairs, {}).obstacles(["third_party/*"])
    assert [(each.name, each.reason, each.whole) for each in found] == [
        ("generated", "its text stands in a macro", False),
        ("vendored", "excluded by third_party/*", True),
    ]


def test_what_was_not_seen_to_be_called_is_part_of_nobody() -> None:
    """A name that many classes share leads to all of their methods by the text; of those that no run called nothing is written.

    Of functions without a probe nobody sees what they call: their texts count, as far as what these may call ran.
    """

    def writing(name: str) -> Counterpart:
        known = replace(definition(name), writes=frozenset((f"Class.{name}",)))
        return Counterpart(known, known, Change.CHANGED, (), ())

    names = ("load", "ran", "other", "below", "macro", "callback", "hook")
    none = frozenset[int]()
    calls = {1: frozenset((2, 3, 5)), 2: none, 3: frozenset((4,)), 4: none, 5: frozenset((4, 6)), 6: none, 7: none}
    subjects = Subjects({id_: writing(name) for id_, name in enumerate(names, start=1)}, calls)
    seen = subjects.as_seen({1, 2, 3, 4, 6, 7}, [(0, 1), (1, 2), (1, 6), (1, 7)])
    assert subjects.infos({1})[0].writes == {f"Class.{name}" for name in names} - {"Class.hook"}
    assert seen.infos({1})[0].writes == {f"Class.{name}" for name in names} - {"Class.other", "Class.below"}
    assert seen.calls == {1: {2, 5, 6, 7}, 2: none, 3: none, 4: none, 5: {6}, 6: none, 7: none}


def test_callers_of_folded_functions_are_affected_by_them() -> None:
    pairs = {1: pair("pop", Change.CHANGED), 2: pair("step", Change.CALLER), 3: pair("run", Change.CHANGED), 4: pair("new", Change.ADDED)}
    subjects = Subjects(pairs, {})
    fold = Fold(1, (2, 3, 4), np.full(2, 9e8), 2.5, 1.4)
    found = folding.stood_in_for(subjects, [fold]).pairs
    assert {id_: found[id_].change for id_ in (2, 3, 4)} == {2: Change.AFFECTED, 3: Change.CHANGED, 4: Change.ADDED}
    assert (words(found[2].reasons), words(found[2].culprits)) == (("holds function pop, which changed (a.c:1)",), ("function pop",))
    skipped = folding.untimed(subjects, ProbeSelection((), (fold,), {2: (3,)}))
    why = "called, but too often for what a call takes to be timed by itself: its time counts as that of"
    assert {each.name: each.reason for each in skipped} == {"pop": f"{why} `step`, `run`, `new`", "step": f"{why} `run`"}
    (note,) = folding.note(subjects, [fold])
    assert note.text.startswith("no times are told of `pop` alone, as probes would take up to 140 % of a run")


def excluded(name: str, change: Change) -> Counterpart:
    known = replace(definition(name), file="lib/b.c")
    return Counterpart(known, known, change, (), ())


def test_who_calls_excluded_functions_that_changed_holds_what_they_cost() -> None:
    pairs = {1: pair("main", Change.UNCHANGED), 2: excluded("digest", Change.CALLER), 3: excluded("mix", Change.CHANGED)}
    subjects = Subjects(pairs, {1: frozenset((2,)), 2: frozenset((3,)), 3: frozenset[int]()})
    found = folding.affected_by_unprobed(subjects, ["lib/*"])
    assert (found.pairs[1].change, words(found.pairs[1].culprits)) == (Change.AFFECTED, ("function mix",))
    assert [each.hosts for each in folding.unprobed(found, ["lib/*"], {1})] == [(1,)]
    assert folding.affected_by_unprobed(found, ["lib/*"]) == found


@pytest.mark.parametrize(
    ("ran", "probed", "reach"),
    [
        ({1}, {1, 3, 4, 5}, Reach(2, 0, 0, ("mix", "read", "test_mix"))),
        ({1, 3}, {1, 3, 4, 5}, Reach(2, 1, 0, ("read", "test_mix"))),
        ({1, 5}, {1, 3, 4, 5}, Reach(3, 1, 0, ("mix", "read"))),
        ({1}, {1, 4, 5}, Reach(2, 0, 1, ("read", "test_mix"))),
    ],
    ids=["none", "one of two", "a test that runs counts", "nobody knows whether one without a probe ran"],
)
def test_how_many_of_the_changed_functions_ran_leaves_out_tests_that_did_not(ran: set[int], probed: set[int], reach: Reach) -> None:
    test = replace(definition("test_mix"), file="tests/test_a.c")
    pairs = {1: pair("main", Change.UNCHANGED), 5: Counterpart(test, test, Change.CHANGED, (), ())}
    pairs |= {3: pair("mix", Change.CHANGED), 4: pair("read", Change.ADDED)}
    assert reached(Subjects(pairs, {}), ran, probed) == reach


def test_what_loads_a_file_counts_as_changed_only_where_nothing_else_changed() -> None:
    module = replace(definition("<module>"), loads=True)
    loading = Counterpart(module, module, Change.CHANGED, (), ())
    assert reached(Subjects({1: loading, 3: pair("mix", Change.ADDED)}, {}), {1}, {1, 3}) == Reach(1, 0, 0, ("mix",))
    assert reached(Subjects({1: loading}, {}), {1}, {1}) == Reach(1, 1)


def test_what_folded_functions_counted_is_their_hosts_as_well_by_calls() -> None:
    counted = assembly.Assembly({}, {}, counted=True)
    own = {1: (8.0, 80.0), 2: (4.0, 100.0), 3: (1.0, 7.0), 4: (1.0, 9.0)}
    counted._totals = [(0, function, {"calls": calls, "blocks": blocks, "absent": np.nan}) for function, (calls, blocks) in own.items()]
    # 1 and 2 are folded and call each other; 1 is also called by 3 and 4, once and three times.
    counted._edges = [(0, 3, 1, 1.0, 0.0), (0, 4, 1, 3.0, 0.0), (0, 2, 1, 4.0, 0.0), (0, 1, 2, 4.0, 0.0)]
    found = folding.with_folded(counted, [Fold(number, (3, 4), np.zeros(1), 1.0, 1.0) for number in (1, 2)])
    assert found.other["blocks"].tolist() == pytest.approx([80, 100, 7 + 180 / 4, 9 + 180 * 3 / 4])
    assert found.calls.tolist() == [8, 4, 1, 1]
    assert np.isnan(found.other["absent"]).all()


def test_calls_pass_only_in_functions_that_call_no_candidate() -> None:
    pairs = {1: pair("leaf", Change.CHANGED), 2: pair("walk", Change.CHANGED), 3: pair("other", Change.UNCHANGED)}
    seen = surveyed({1: 4e6, 2: 4e6, 3: 1.0}, {}, {(0, 2), (2, 1), (1, 3)})
    chosen = {choice.id: choice.rate for choice in survey.choose(seen, pairs, {}, BUDGET).choices}
    assert chosen == {1: rates.PASSING_RATES[0], 2: rates.COUNTED_RATES[-1]}


def test_an_unchanged_function_is_probed_when_its_time_moved_and_so_is_who_calls_it() -> None:
    pairs = {1: pair("moved", Change.UNCHANGED), 2: pair("main", Change.UNCHANGED), 3: pair("same", Change.UNCHANGED)}
    seen = surveyed({1: 10.0, 2: 1.0, 3: 10.0}, {1: (1e7, 9e7), 3: (5e7, 5e7)}, {(0, 2), (2, 1), (2, 3)})
    chosen = {choice.id: choice.priority for choice in survey.choose(seen, pairs, {}, BUDGET).choices}
    assert chosen == {1: Priority.MOVED, 2: Priority.ANCESTOR}


def test_rare_conditions_are_watched_and_hot_ones_are_not() -> None:
    pairs = {1: pair("f", Change.CHANGED)}
    seen = surveyed({1: 4e3}, {1: (5e8, 5e8)})
    executions = {(side, 1): np.array([1.0, 1e5]) for side in Side}
    seen = replace(seen, executions=executions)
    (choice,) = survey.choose(seen, pairs, {(side, 1): ("a", "b") for side in Side}, BUDGET).choices
    assert choice.branches == {Side.BASE: (0,), Side.HEAD: (0,)}
    assert choice.detail


def test_counters_of_calls_within_each_other_are_read_of_suspects_and_the_longest_until_that_takes_too_much() -> None:
    pairs = {
        1: pair("main", Change.CALLER),
        2: pair("request", Change.CALLER),
        3: pair("query", Change.CHANGED),
        4: pair("row", Change.CALLER),
    }
    seen = surveyed({1: 1.0, 2: 3e3, 3: 5e3, 4: 4e3}, {}, {(0, 1), (1, 2), (2, 3), (2, 4)})
    seen = replace(seen, wall_ns={function: np.full(2, 9e8) for function in pairs})
    chosen = {choice.id: choice.detail for choice in survey.choose(seen, pairs, {}, replace(BUDGET, overhead=0.1, samples=10_000)).choices}
    assert chosen == {1: True, 2: True, 3: True, 4: False}, "10,000 reads in a run of a second"


def test_conditions_are_watched_on_both_sides_or_on_none() -> None:
    pairs = {1: pair("f", Change.CHANGED)}
    seen = surveyed({1: 1e4}, {1: (5e8, 5e8)})
    often = {(Side.BASE, 1): np.array([1.0, 0.5, 1.0, 0.0]), (Side.HEAD, 1): np.array([0.5, 1.0, 0.0, 1e6])}
    seen = replace(seen, executions=often)
    texts = {(Side.BASE, 1): ("n > 0", "n > 0", "gone", "hot in head"), (Side.HEAD, 1): ("n > 0", "new", "n > 0", "hot in head")}
    (choice,) = survey.choose(seen, pairs, texts, BUDGET).choices
    assert choice.branches == {Side.BASE: (0, 1), Side.HEAD: (0, 2)}


def made_run(waited: float | None, number: int = 0, point: int = 0) -> Run:
    return Run(number, Phase.TIMED, point, Side.BASE, 0, 1e6, 1e6, 1e6, None, None, "", waited)


def test_pairs_that_other_work_disturbed_are_made_again_a_few_times() -> None:
    referee = Referee(planned=20)
    assert not referee.repeats([made_run(0.01), made_run(0.30)]), "nothing is known yet of what is usual"
    assert referee.repeats([made_run(0.02), made_run(0.15)])
    assert not referee.repeats([made_run(0.05), made_run(0.10)])
    assert referee.repeats([made_run(0.90), made_run(0.90)])
    assert not referee.repeats([made_run(0.90), made_run(0.90)]), "a machine that stays busy is taken as it is"
    assert not referee.repeats([made_run(None), made_run(None)])
    assert referee.repeated == 4
    (note,) = referee.notes([made_run(0.90)] * 3 + [made_run(0.01)] * 7)
    assert "3 of 10 runs" in note.text
    assert not referee.notes([made_run(0.90)] + [made_run(0.01)] * 9)


def test_threads_that_wait_for_each_other_in_every_run_are_no_disturbance() -> None:
    referee = Referee(planned=20)
    assert not any(referee.repeats([made_run(0.5 + 0.02 * i), made_run(0.55)]) for i in range(4))


def test_pairs_of_a_block_follow_each_other() -> None:
    points = [Point(i, "w", {"n": i}, "x") for i in range(5)]
    slots = [*schedule.whole_block(points, 0, seed=3), *schedule.timed_block(points, 0, seed=3)]
    pairs = schedule.pairs(slots)
    assert [slot for pair in pairs for slot in pair] == slots
    assert len(pairs) == 10
    assert all({slot.side for slot in pair} == set(Side) and len({(slot.phase, slot.point.id) for slot in pair}) == 1 for pair in pairs)


def test_a_run_that_shares_its_cpus_is_seen_to_wait(tmp_path: Path) -> None:
    if not Path("/proc/pressure/cpu").exists():
        pytest.skip("this kernel does not count pressure stalls")
    loops = "import time, os; end = time.time() + 0.5\nwhile time.time() < end: pass"
    busy = " & ".join([f"{sys.executable} -c '{loops}'"] * (2 * (os.cpu_count() or 1))) + " & wait"
    shared = ProcessExecutor().execute(Command(busy, tmp_path, dict(os.environ), 30.0, (0,), "here"))
    assert shared.waited is not None
    assert shared.waited > 0.5


def test_what_this_process_waits_for_a_cpu_to_see_the_end_is_no_time_of_the_program(
    command: Callable[..., Command], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_ns = iter((0.0, 2e8))
    monkeypatch.setattr(kernel, "delay_ns", lambda process: next(waits_ns) if process == "thread-self" else 0.0)
    started = time.perf_counter_ns()
    wall_ns = ProcessExecutor().execute(command("sleep 0.3")).wall_ns
    assert wall_ns < time.perf_counter_ns() - started - 1.9e8


PROGRAM = f"{sys.executable} -S -c 'sum(i for i in range(2000000))'"


@pytest.mark.integration
@pytest.mark.parametrize("loops", ["i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done", PROGRAM, f"SIZE=1 NAME= {PROGRAM} a 'b;c'"])
def test_what_a_run_waits_for_a_cpu_is_not_its_own_time(command: Callable[..., Command], loops: str) -> None:
    cpu = min(os.sched_getaffinity(0))
    others = [command(f"exec taskset -c {cpu} sh -c 'timeout 1 sh -c \"while :; do :; done\"'", exit_codes=(124,))] * 2
    made = ProcessExecutor().execute_together([command(loops), *others, command("sleep 0.2")], {cpu})
    assert made[0].wall_ns < 2 * made[0].cpu_ns  # of three that share the CPU it would be 3, and some of it is for files that are read
    assert made[-1].wall_ns > 10 * made[-1].cpu_ns


@pytest.mark.parametrize(
    "text",
    [
        "env | sort | grep SIZE; exit 0",
        "SIZE=1 NAME='a b' env | grep -e SIZE -e NAME",
        "SIZE=1 env -u PWD -u OLDPWD -u _",
        "cd / && pwd",
        "(exit 0)",
        "if true; then ls /; fi",
        "ls / # and; no more",
        "ls /\nls /usr",
        "echo 'a\\nb'",
        ": nothing",
        "sort < /etc/passwd | tail -n 1",
        'printf %s "$(basename /usr/bin)"',
    ],
)
def test_a_workload_is_what_the_shell_makes_of_it(command: Callable[..., Command], text: str, tmp_path: Path) -> None:
    shell = subprocess.run(["/bin/sh", "-c", text], cwd=tmp_path, env={"PATH": os.environ["PATH"]}, capture_output=True, check=True)
    for fixed in (False, True):
        made = ProcessExecutor().execute(replace(command(text), fixed_layout=fixed))
        assert made.output == hashlib.blake2b(shell.stdout, digest_size=16).hexdigest()


def test_the_survey_times_as_many_calls_as_fit_and_lets_the_others_pass_where_no_callee_has_to_find_them() -> None:
    cell = (0, Side.BASE)
    calls = {1: 2e7, 2: 2e7, 3: 2e7, 4: 2e7, 5: 1e5, 6: 1.0}
    callees = {6: frozenset({1, 2, 3, 5}), 2: frozenset({2}), 3: frozenset({4}), 4: frozenset({3})}
    counted = tally.Tally({cell: 1e8}, {cell: calls}, {cell: {2: 2e7 - 10}}, callees)
    found = counted.rates(0, [COSTS])
    period = found[1].period
    assert found == {1: Rate(period, passing=True), 2: Rate(1, inner=period), 3: Rate(period), 4: Rate(period)}
    framed = [replace(COSTS, marked_ns=6.0)]
    assert counted.rates(0, framed) == found  # calls of 3 and 4 are told by their entries alone
    beside = replace(counted, callees={**callees, 3: frozenset({1}), 4: frozenset({3})})
    assert [beside.rates(0, costs)[3].marked for costs in (framed, [COSTS], [*framed, COSTS])] == [True, False, False]
    timed_ns = (4 * 2e7 / period + 1e5 + 1) * COSTS.timed_ns
    assert 0.9 * tally.STAMPS_NS < timed_ns <= tally.STAMPS_NS
    assert replace(counted, calls={cell: {1: 1e6, 2: 1e5}}).rates(0, [COSTS]) == {}
    assert (counted.unsteady(), replace(counted, cpu_ns={cell: 1e9}).unsteady()) == ({0}, frozenset())
