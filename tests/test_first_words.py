"""Whole runs that are made before a build with probes that takes long, which is made of head alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfdiff import configuration, pipeline
from perfdiff.collect.runs.suitecases import SuiteCase, joined
from perfdiff.config import BuildConfig, Config, Suite, WorkloadConfig
from perfdiff.deadline import Deadline, Ending
from perfdiff.languages.listing import Batch, Benchmark
from perfdiff.measuring import firstwords, guesses
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.firstwords import FirstRuns
from perfdiff.progress import Silent, Stopwatch
from perfdiff.records.schema import Side
from perfdiff.report import document
from perfdiff.report.sentences.catalogue import noted
from perfdiff.request import Request

CMAKE = "cmake_minimum_required(VERSION 3.13)\nproject(x C)\nenable_testing()\nadd_executable(t t.c sum.c)\nadd_test(NAME t COMMAND t)\n"
MAIN = "long sum(long n);\nint main(void) { return sum(20000000) < 0; }\n"
SUM = "long sum(long n) { volatile long all = 0; for (long i = 0; i < n; i += %d) all += i; return all; }\n"


class Interrupting(Silent):
    """Keeps the notes, and the stages with their numbers of steps, and ends measuring when a stage begins."""

    def __init__(self, last: str = "building (survey)") -> None:
        self.last = last
        self.notes: list[str] = []
        self.stages: list[tuple[str, int | None]] = []
        self.deadline = Deadline()

    def stage(self, name: str, total: int | None) -> None:
        self.stages.append((name, total))
        if name == self.last:
            self.deadline.end(Ending.INTERRUPTED)

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def asked(tmp_path: Path) -> Request:
    """Return a comparison of a project whose second commit takes twice as long."""
    folder, cache = tmp_path / "project", tmp_path / "cache"
    for path in (folder, cache):
        path.mkdir()
    (folder / "CMakeLists.txt").write_text(CMAKE)
    (folder / "t.c").write_text(MAIN)
    for steps in (2, 1):
        (folder / "sum.c").write_text(SUM % steps)
        for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x"]):
            subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    config = configuration.load(folder, environment={}, changed=lambda: ["sum.c"])
    return Request(folder, ("HEAD~1", "HEAD"), config, cache, dict(os.environ))


@pytest.mark.integration
@pytest.mark.parametrize("is_written", [False, True])
def test_whole_runs_are_made_before_functions_are_found_where_time_is_limited(
    asked: Request, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    monkeypatch.setattr(guesses, "LONG_SHARE", 0.0)
    progress = Interrupting("finding functions")
    progress.deadline.time_s = 60.0
    command = (WorkloadConfig("by-hand", "./build/t"),)
    config = replace(asked.config, workloads=command) if is_written else asked.config
    outcome = pipeline.compare(replace(asked, config=config, deadline=progress.deadline), progress)
    assert progress.stages[-2][0] == "finding functions"
    where = "by-hand" if is_written else "t"
    assert document.headline(outcome.findings).startswith(f"So far: regression, not located: whole runs at {where} take ×")
    (cut,) = (note.text for note in map(noted, outcome.findings.notes) if note.slug == "cut-short")
    assert "functions were not found yet; work was not counted" in cut


@pytest.mark.integration
def test_whole_runs_of_all_cases_are_judged_before_a_build_that_takes_long_and_are_the_answer_where_it_is_ended(
    asked: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firstwords, "LATE_S", 0.0)
    progress = Interrupting()
    outcome = pipeline.compare(replace(asked, deadline=progress.deadline), progress)
    assert ["preliminary of all cases: slower, ×" in note for note in progress.notes if "preliminary" in note] == [True]
    assert progress.stages[-2][0] == "building (survey)"
    assert progress.stages[-3][0] == "comparing whole runs of all cases"
    assert progress.stages[-2][1] == 1, "of head alone: counts may answer, for which base needs no probes"
    assert document.headline(outcome.findings).startswith("So far: regression, not located: whole runs at t take ×")
    (chosen,) = (note.text for note in map(noted, outcome.findings.notes) if note.slug == "cases-chosen")
    assert chosen == "it was not known yet which cases reach the change: these are runs of all cases"


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
) -> None:
    request = Request(Path(), (), Config(BuildConfig(""), ()), Path(), {}, deadline=Deadline(time_s))
    unused: Any = SimpleNamespace()
    bench = Bench(request, *[unused] * 5, Stopwatch(Silent()))
    site: Any = SimpleNamespace(plain=dict.fromkeys(Side, SimpleNamespace(duration_s=built_s)), targets={})
    first = FirstRuns.planned(bench, site, cases(seconds))
    assert (first and (first.of, [workload.name for workload in first.bench.request.config.workloads])) == ran
