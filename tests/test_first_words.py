"""What is said of whole runs before a build with probes that takes long, which is made of head alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfdiff import configuration
from perfdiff.build.cache import BuildCache
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs.suitecases import SuiteCase, joined
from perfdiff.config import BuildConfig, Config, Suite, WorkloadConfig
from perfdiff.deadline import Deadline
from perfdiff.languages.listing import Batch, Benchmark
from perfdiff.measuring import firstwords
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.guesses import prepared
from perfdiff.progress import Silent, Stopwatch
from perfdiff.records.schema import Side
from perfdiff.request import Request
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository

CMAKE = "cmake_minimum_required(VERSION 3.13)\nproject(x C)\nenable_testing()\nadd_executable(t t.c sum.c)\nadd_test(NAME t COMMAND t)\n"
MAIN = "long sum(long n);\nint main(void) { return sum(20000000) < 0; }\n"
SUM = "long sum(long n) { volatile long all = 0; for (long i = 0; i < n; i += %d) all += i; return all; }\n"


class Heard(Silent):
    """Keeps the notes, and the stages with their numbers of steps, in their order."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.stages: list[tuple[str, int | None]] = []

    def stage(self, name: str, total: int | None) -> None:
        self.stages.append((name, total))

    def note(self, text: str) -> None:
        self.notes.append(text)


def heard(folder: Path, cache: Path) -> Heard:
    """Return what is said until cases are chosen, of a project whose second commit takes twice as long."""
    (folder / "CMakeLists.txt").write_text(CMAKE)
    (folder / "t.c").write_text(MAIN)
    for steps in (2, 1):
        (folder / "sum.c").write_text(SUM % steps)
        for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x"]):
            subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    config, repository, progress = configuration.load(folder, environment={}, changed=lambda: ["sum.c"]), find_repository(folder), Heard()
    request = Request(folder, ("HEAD~1", "HEAD"), config, cache, dict(os.environ))
    pins = resolve(repository, request.revisions, snapshots=cache / "snapshots")
    (cache / "room").mkdir()
    with BuildCache(cache) as builds:
        bench = Bench(request, pins, builds, cache / "room", request.packs, ProcessExecutor(), Stopwatch(progress))
        with closing(bench.upkeep):
            prepared(bench)
    return progress


@pytest.mark.integration
def test_whole_runs_of_all_cases_are_judged_before_a_build_of_head_that_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firstwords, "LATE_S", 0.0)
    for name in ("project", "cache"):
        (tmp_path / name).mkdir()
    progress = heard(tmp_path / "project", tmp_path / "cache")
    assert ["preliminary of all cases: slower, ×" in note for note in progress.notes if "preliminary" in note] == [True]
    assert ("building (survey)", 1) in progress.stages, "counts may answer, for which base needs no probes"
    assert ("comparing whole runs of all cases", None) in progress.stages[: progress.stages.index(("building (survey)", 1))]


def cases(seconds: Mapping[str, float]) -> list[SuiteCase]:
    """Return tests that may run in one process, by the seconds that they take."""
    suite = WorkloadConfig("unit", suite=Suite("any", ""))
    sides = [Benchmark(name, name, points={(): (took, True)}, batch=Batch("run {cases}", name, " ")) for name, took in seconds.items()]
    return [SuiteCase(suite, [side, side], 0.01) for side in sides]


def test_short_tests_of_one_process_are_joined_and_longer_ones_are_not() -> None:
    assert [case.name for case in joined(cases({"a": 0.001, "long": 0.1, "b": 0.001}))] == ["long", "unit: 2 tests"]


@pytest.mark.parametrize(
    ("seconds", "built_s", "time_s", "ran"),
    [
        ({"a": 0.1, "b": 0.2}, 60.0, None, (" of all cases", ["a", "b"])),
        ({"a": 0.1, "b": 30.0}, 60.0, None, (" of the shortest cases", ["a"])),
        ({"b": 30.0}, 60.0, None, None),
        ({"a": 0.1}, 10.0, None, None),
        ({"a": 0.1}, 60.0, 100.0, None),
    ],
)
def test_as_many_of_the_shortest_cases_run_first_as_fit_where_the_next_build_takes_long(
    seconds: Mapping[str, float],
    built_s: float,
    time_s: float | None,
    ran: tuple[str, list[str]] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[str, list[str]]] = []

    def pairs(bench: Bench, maker: object, budget_s: float, which: str) -> SimpleNamespace:
        made.append((which, [workload.name for workload in bench.request.config.workloads]))
        return SimpleNamespace(make=lambda runs: None)

    request = Request(Path(), (), Config(BuildConfig(""), ()), Path(), {}, deadline=Deadline(time_s))
    unused: Any = SimpleNamespace()
    bench = Bench(request, *[unused] * 5, Stopwatch(Silent()))
    site: Any = SimpleNamespace(plain=dict.fromkeys(Side, SimpleNamespace(duration_s=built_s)), targets={})
    monkeypatch.setattr(firstwords, "WholePairs", pairs)
    firstwords.say(bench, site, cases(seconds))
    assert made == ([ran] if ran else [])
