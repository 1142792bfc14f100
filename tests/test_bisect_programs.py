"""Bisecting real histories: built, run, counted and timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import runtimes
from histories import Plan, make
from perfdiff import configuration
from perfdiff.analysis.search.symptom import Figure
from perfdiff.configuration import Overrides
from perfdiff.errors import UsageError
from perfdiff.progress import Silent
from perfdiff.request import Request
from perfdiff.searches import bisecting
from perfdiff.searches.question import SearchQuestion
from programs import git

pytestmark = pytest.mark.integration
SMALL = {"n": (500.0, 1500.0, 4500.0)}
BUDGET_S = 4.0  # for the comparison that ends a search
ENVIRONMENT = dict(os.environ)  # once, as a command does: libraries that learn set variables of their own when they are first used


def question(folder: Path, cache: Path, function: str | None = None) -> SearchQuestion:
    config = configuration.load(folder, overrides=Overrides(parameters=SMALL), environment={"PERFDIFF_MEASURE_BUDGET_S": str(BUDGET_S)})
    request = Request(folder, ("good", "bad"), config, cache, ENVIRONMENT)
    return SearchQuestion(request, function, (lambda name, _file: name == function) if function else None)


def builds(cache: Path) -> set[str]:
    return {entry.name for entry in (cache / "trees").iterdir()}


def test_a_culprit_among_harmless_and_broken_commits_is_found_by_counts_and_another_bisect_builds_nothing(tmp_path: Path) -> None:
    folder, cache = tmp_path / "history", runtimes.lent_to(tmp_path / "cache")
    commits = make(Plan(6, 4, "10 %", broken=(3,), kinds=(3, 1, 2, 0)), folder)
    found, outcome = bisecting.bisect(question(folder, cache, "checksum"), Silent())
    assert found.symptom.figure is Figure.COUNT
    assert [each.commit for each in found.suspects] in ([commits[4]], commits[3:5])
    assert found.certain
    assert {each.info.name for each in outcome.findings.functions} >= {"checksum"}
    assert outcome.findings.head.commit == commits[4]
    assert len(found.measured) <= 2 + 4
    # README and a function that never runs: by their files, or by their functions, the same as a neighbour.
    assert found.alike

    before = builds(cache)
    with pytest.raises(UsageError) as told:
        bisecting.bisect(replace(question(folder, cache, "scramble"), metric="blocks"), Silent())  # what time says, noise decides
    assert told.value.slug in ("ends-alike", "unknown-function")  # a call of it may be too short to be looked at
    again, _ = bisecting.bisect(replace(question(folder, cache, "checksum"), metric="loads"), Silent())
    assert [each.commit for each in again.suspects] == [each.commit for each in found.suspects]
    assert builds(cache) == before


def test_git_bisect_run_finds_the_culprit_by_steps(tmp_path: Path) -> None:
    folder, cache = tmp_path / "history", runtimes.lent_to(tmp_path / "cache")
    commits = make(Plan(3, 2, "class", broken=(1,)), folder)
    git(folder, "bisect", "start", "bad", "good")
    step = [sys.executable, "-m", "perfdiff", "bisect-step", "-q", "--cache", str(cache), "--param", "n=500,1500,4500"]
    environment = {
        **ENVIRONMENT,
        "PYTHONPATH": str(Path(__file__).parent.parent),
        "PERFDIFF_COUNTERS_SOFTWARE": "false",
        "PERFDIFF_MEASURE_BUDGET_S": str(BUDGET_S),
    }

    def stepped(commit: str) -> subprocess.CompletedProcess[str]:
        git(folder, "checkout", "-q", commit)
        return subprocess.run([*step, "--", "./words", "{n}"], cwd=folder, env=environment, capture_output=True, text=True, check=False)

    bad = stepped(commits[2])
    assert (bad.returncode, bad.stdout.partition(":")[0]) == (1, "bad"), bad.stderr
    broken = stepped(commits[1])
    assert broken.returncode == 125, broken.stderr
    assert "[build-failed]" in broken.stderr


def test_steps_abort_where_the_commit_is_not_at_fault(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    make(Plan(2, 2, broken=()), folder)
    environment = {**ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parent.parent)}
    for asked in (["--no-such-option"], [], ["--good", "no-such-revision"], ["--good", "good", "--build", "false"]):
        command = [sys.executable, "-m", "perfdiff", "bisect-step", "-q", "--cache", str(tmp_path / "cache"), *asked]
        assert subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode == 128, asked


def test_the_command_writes_json_and_exits_as_for_a_regression(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    commits = make(Plan(2, 2, "class"), folder)
    environment = {
        **ENVIRONMENT,
        "PYTHONPATH": str(Path(__file__).parent.parent),
        "PERFDIFF_COUNTERS_SOFTWARE": "false",
        "PERFDIFF_MEASURE_BUDGET_S": str(BUDGET_S),
    }
    command = [
        sys.executable,
        "-m",
        "perfdiff",
        "bisect",
        "good",
        "bad",
        "--format",
        "json",
        "--cache",
        str(runtimes.lent_to(tmp_path / "cache")),
    ]
    done = subprocess.run(
        [*command, "--param", "n=500,1500,4500", "--", "./words", "{n}"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    written = json.loads(done.stdout)
    assert (written["schema"], written["culprit"]) == ("perfdiff.bisect/1", commits[2])
    assert written["followed"]["function"] == "checksum"
    assert "likeliest" in done.stderr
