"""What could not happen was not excluded: threads and processes that other work kept from running at the same time."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from findings import worded
from perfdiff import processes
from perfdiff.analysis.counts.work import WorkDifference
from perfdiff.analysis.findings import EndToEnd, PointStanding, Ratio, Rung, Verdict
from perfdiff.analysis.verdicts.conclusion import conclude
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.parallel import allowed, apart_in_time, apart_note, average
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.analysis.verdicts.waiting import has_several
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.analysis.witnessed import Amount, OutputAmounts, PointBehaviour, SideBehaviour
from perfdiff.collect.execution import tasks
from perfdiff.collect.execution.executor import Command, ProcessExecutor
from perfdiff.config import CompareConfig
from perfdiff.records.behaviour import Concurrency
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.report.sentences.catalogue import noted, say

MET, HELD_BACK = Concurrency(0.9, 1.9, 1.8), Concurrency(0.9, 1.9, 0.6)
ALONE = Concurrency(0.0, 1.0, 0.4)
NOTHING = OutputAmounts(0, Amount(0, 0), Amount(0, 0))
UNCHANGED = Conclusion(Verdict.UNCHANGED, worded("No regression: slow-downs of more than 4.7 % are excluded"), Rung.RUNS, 1.047)
SAME_WORK = WorkDifference(0.0, 0.0, 0.0, 0.0, repeats=False, is_bounded=True)


def points(base: Concurrency | None, head: Concurrency | None) -> tuple[PointBehaviour, ...]:
    sides = [SideBehaviour(5, {0: 5}, NOTHING, NOTHING, concurrency=concurrency) for concurrency in (base, head)]
    return (PointBehaviour(Point(0, "w", {}, "./w"), *sides),)


def run(concurrency: Concurrency | None, phase: Phase = Phase.PLAIN, *, side: Side = Side.HEAD, together: bool = False) -> Run:
    return Run(0, phase, 0, side, 0, 1e8, 1e8, 1e6, None, None, "", together=together, concurrency=concurrency)


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        (MET, MET, Verdict.UNCHANGED),
        (HELD_BACK, HELD_BACK, Verdict.INCONCLUSIVE),
        (MET, HELD_BACK, Verdict.INCONCLUSIVE),
        (ALONE, ALONE, Verdict.UNCHANGED),  # one task alone waits for nobody of its own, however busy the machine is
        (None, None, Verdict.UNCHANGED),
    ],
)
def test_equal_times_of_tasks_that_hardly_met_are_no_answer(base: Concurrency | None, head: Concurrency | None, verdict: Verdict) -> None:
    apart = apart_in_time(points(base, head))
    found = allowed(UNCHANGED, apart, None, ())
    assert found.verdict is verdict
    if verdict is Verdict.INCONCLUSIVE:
        says = "threads or processes of w could have used 1.9 CPUs at the same time and got 0.6"
        assert say(found.sentence).startswith(f"Inconclusive: {says}")
        assert say(found.sentence).endswith("by time alone: no regression: slow-downs of more than 4.7 % are excluded")
        assert found.excluded is None
        assert [(note.slug, note.text.startswith(says)) for note in map(noted, apart_note(apart))] == [("tasks-hardly-met", True)]


@pytest.mark.parametrize("conclusion", [replace(UNCHANGED, rung=Rung.CODE), replace(UNCHANGED, verdict=Verdict.IMPROVEMENT)])
def test_what_does_not_rest_on_equal_times_stays(conclusion: Conclusion) -> None:
    assert allowed(conclusion, apart_in_time(points(HELD_BACK, HELD_BACK)), None, ()) == conclusion


@pytest.mark.parametrize(
    ("work", "base", "head", "verdict"),
    [
        (SAME_WORK, MET, MET, Verdict.UNCHANGED),
        (SAME_WORK, MET, HELD_BACK, Verdict.INCONCLUSIVE),
        (SAME_WORK, HELD_BACK, MET, Verdict.INCONCLUSIVE),
        (SAME_WORK, None, MET, Verdict.INCONCLUSIVE),
        (SAME_WORK, HELD_BACK, HELD_BACK, Verdict.INCONCLUSIVE),
        (SAME_WORK, None, None, Verdict.INCONCLUSIVE),
        (replace(SAME_WORK, waiting=0.3), MET, MET, Verdict.INCONCLUSIVE),
    ],
)
def test_counts_answer_where_threads_of_both_sides_met_as_they_were_made(
    work: WorkDifference, base: Concurrency | None, head: Concurrency | None, verdict: Verdict
) -> None:
    apart = apart_in_time(points(HELD_BACK, HELD_BACK))
    runs = [run(counted, Phase.COUNTED, side=side) for side, counted in zip(Side, (base, head), strict=True)]
    assert allowed(UNCHANGED, apart, work, runs).verdict is verdict


@pytest.mark.parametrize(
    ("base", "head", "ratio", "by", "verdict"),
    [
        (HELD_BACK, ALONE, 0.7, "cpu_ns", Verdict.INCONCLUSIVE),
        (HELD_BACK, None, 0.7, "cpu_ns", Verdict.INCONCLUSIVE),  # it took turns with the other side's, as one task does
        (HELD_BACK, ALONE, 0.4, "cpu_ns", Verdict.IMPROVEMENT),  # less than base takes by two CPUs
        (HELD_BACK, ALONE, 0.4, "wall_ns", Verdict.INCONCLUSIVE),
        (HELD_BACK, HELD_BACK, 0.7, "cpu_ns", Verdict.IMPROVEMENT),
        (MET, ALONE, 0.7, "cpu_ns", Verdict.IMPROVEMENT),  # the clock tells
        (ALONE, HELD_BACK, 0.7, "cpu_ns", Verdict.IMPROVEMENT),
    ],
)
def test_a_head_of_fewer_tasks_is_faster_only_where_bases_met_or_it_saves_more_than_they_would(
    base: Concurrency, head: Concurrency | None, ratio: float, by: str, verdict: Verdict
) -> None:
    witnessed = points(base, head)
    end = EndToEnd(witnessed[0].point, 1e8, 1e8 * ratio, Ratio(ratio, ratio, ratio, 9, 9), None, PointStanding.FASTER, by=by)
    found = conclude((), Evidence(WholeRuns((end,)), witnessed=witnessed), CompareConfig())
    assert found.verdict is verdict
    if verdict is Verdict.INCONCLUSIVE:
        assert say(found.sentence).startswith(
            "Inconclusive: of the tasks that w has, 1 could work at a time in head and 1.9 in base, where other work"
        )


def test_only_sides_whose_tasks_were_kept_apart_are_told_of() -> None:
    wide = Concurrency(0.9, 32.0, 30.0)
    [note] = map(noted, apart_note(apart_in_time(points(wide, HELD_BACK))))
    assert "could have used 1.9 CPUs at the same time and got 0.6" in note.text


def test_runs_that_took_turns_on_one_cpu_have_one_task() -> None:
    assert average([run(HELD_BACK, together=True)] * 6) is None
    assert average([run(MET), run(HELD_BACK), run(None)]) == Concurrency(0.9, 1.9, 1.2)
    assert average([run(None)]) is None


@pytest.fixture
def observed(tmp_path: Path) -> Callable[[str], Concurrency | None]:
    def run_once(text: str) -> Concurrency | None:
        one_cpu = {min(os.sched_getaffinity(0))}
        command = Command(text, tmp_path, {"PATH": os.environ["PATH"]}, 60.0, (0,), "head, point", cpus=one_cpu)
        return ProcessExecutor().execute(command).concurrency

    return run_once


COUNT = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done"
THREADS = "import hashlib, threading; work = lambda: hashlib.sha256(bytes(60_000_000)).digest()"
OF_A_RUNTIME = (
    "import ctypes, hashlib, threading; has_name = threading.Event(); name = ctypes.CDLL(None).prctl; much = bytes(60_000_000);"
    'work = lambda: (name(15, b"C2 CompilerThre"), has_name.set(), hashlib.sha256(much));'
    "threading.Thread(target=work).start(); has_name.wait(); hashlib.sha256(much)"
)
IDLE = (
    "import threading; e = threading.Event(); [threading.Thread(target=e.wait).start() for _ in range(8)]; sum(range(16_000_000)); e.set()"
)


@pytest.mark.parametrize(
    ("text", "is_parallel"),
    [
        (f"({COUNT.format(150_000)}) & ({COUNT.format(150_000)}) & wait", True),
        (f"{sys.executable} -c '{THREADS}; t = [threading.Thread(target=work) for _ in range(2)]; [each.start() for each in t]'", True),
        (f"{sys.executable} -c '{OF_A_RUNTIME}'", False),
        (COUNT.format(300_000), False),
        (f"{sys.executable} -c '{IDLE}'", False),
        ("sleep 0.2 & sleep 0.2 & wait", False),
    ],
    ids=["processes", "threads", "a thread that compiles", "one process", "idle threads", "sleeping processes"],
)
def test_tasks_that_could_work_at_the_same_time_are_seen_though_they_share_a_cpu(
    observed: Callable[[str], Concurrency | None], text: str, *, is_parallel: bool
) -> None:
    seen = observed(text)
    assert seen is not None
    assert has_several(seen) is is_parallel
    assert seen.wanted <= 1  # of the CPUs that it may use


def test_what_a_run_used_of_the_cpus_is_its_cpu_time_by_the_clock(observed: Callable[[str], Concurrency | None]) -> None:
    seen = observed("sleep 0.3")
    assert seen is not None
    assert seen.ran < 0.2
    assert seen.wanted < 0.5


def test_no_more_tasks_are_looked_at_than_a_look_has_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of one process are bounded like processes."""
    done, read = threading.Event(), []
    threads = [threading.Thread(target=done.wait) for _ in range(40)]
    for thread in threads:
        thread.start()
    read_text = Path.read_text
    monkeypatch.setattr(tasks, "MOST_TASKS", 10)
    monkeypatch.setattr(processes, "is_stopped", lambda _process: True)  # as the shell above a program
    monkeypatch.setattr(Path, "read_text", lambda path: read.append(path.parent) or read_text(path))
    tasks.TaskCounter(os.getpid(), 1).look(0.1)
    done.set()
    assert len(set(read)) == 10
