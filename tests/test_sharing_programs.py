"""Programs whose defect is where data lies or who writes it, from git to cause: what was counted tells, however noisy the machine is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import runtimes
import sharing
from differing import words
from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import noted, say
from sharing import Program

pytestmark = pytest.mark.integration

THREADS = (2,)  # as many as any machine runs at once
RUNS = 6  # the fewest that detectors judge by
MORE_RUNS = 4  # times as many halve the noise


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one folder for all comparisons, so that each base is built once."""
    room = tmp_path_factory.mktemp("sharing")
    runtimes.lent_to(room / "cache")
    return room


def findings(program: Program, head: str, room: Path, runs: int = RUNS) -> Findings:
    asked = sharing.request(program, room, "base", head)
    sizes = asked.config.workloads[0].parameters["n"][:1]
    config = sharing.with_workload(asked.config, threads=THREADS, sizes=sizes, runs=runs)
    return pipeline.compare(replace(asked, config=config), Silent()).findings


def summary(found: Findings) -> str:
    rows = [say(found.sentence), *(note.text for note in map(noted, found.notes))]
    for function in found.functions:
        causes = [f"{cause.name}: {say(cause.says)}" for cause in function.causes]
        rows.append(f"{function.rank} {function.info.name} {function.info.change} {function.verdict} {say(function.reason)!r} {causes}")
    return "\n".join(rows)


def judge(expected: Mapping[str, Any], found: Findings) -> None:
    assert found.verdict is Verdict.REGRESSION, summary(found)
    first = next(function for function in found.functions if function.rank == 1)
    assert sharing.plain_name(first.info.name) in expected["guilty"], summary(found)
    guilty = [function for function in found.functions if sharing.plain_name(function.info.name) in expected["guilty"]]
    assert expected["cause"] in {cause.name for function in guilty for cause in function.causes}, summary(found)
    if "culprit" in expected:
        assert expected["culprit"] in words(first.info.culprits), summary(found)


# Two of the six whose functions take some nanoseconds, in C and C++, with a line that is shared falsely and one that is truly;
# `scripts/bench counters --part tiny` runs all.
TINY = {program.name: program for program in sharing.programs(sharing.TINY)}


@pytest.mark.parametrize(("name", "head"), [("thread-counters", "false"), ("reference-counts", "true")])
def test_tiny_functions_are_told_with_the_lines_that_their_threads_take_first(name: str, head: str, room: Path) -> None:
    """Not with the misses that these lines are, nor with the type whose size brought them together."""
    program = TINY[name]
    expected, seen = program.expected[head], findings(program, head, room)
    if seen.verdict is not Verdict.REGRESSION:
        seen = findings(program, head, room, runs=MORE_RUNS * RUNS)
    judge(expected, seen)
    first = next(function for function in seen.functions if function.rank == 1)
    assert first.causes[0].name == expected["cause"], summary(seen)
    assert "the hottest line holds" in say(first.causes[0].says), summary(seen)


def test_tiny_functions_laid_out_in_another_way_are_no_regression(room: Path) -> None:
    seen = findings(TINY["thread-counters"], "harmless", room)
    assert seen.verdict is not Verdict.REGRESSION, summary(seen)


# One a cause, true sharing with a lock; `scripts/bench counters` runs all nine.
PROGRAMS = [program for program in sharing.programs() if program.name in ("k-medoids", "stats-lock")]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_defect_is_found_and_its_cause_named(program: Program, room: Path) -> None:
    """With few runs, or where the machine was disturbed, with more: threads that wait for others may look guilty by their time."""
    try:
        judge(program.expected["defective"], findings(program, "defective", room))
    except AssertionError:
        judge(program.expected["defective"], findings(program, "defective", room, runs=MORE_RUNS * RUNS))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_change_that_only_looks_alike_is_no_regression(program: Program, room: Path) -> None:
    found = findings(program, "harmless", room)
    assert found.verdict is not Verdict.REGRESSION, summary(found)
    anomalous = [function.info.name for function in found.functions if function.anomaly and function.anomaly.is_anomalous]
    assert not anomalous, summary(found)
