"""Cases of suites that hang on head, or fail when they are measured: they cost only themselves, and a hang is told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from findings import plain
from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import EndToEnd, PointStanding, Ratio, Rung, Verdict
from perfdiff.analysis.verdicts.conclusion import conclude
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.collect.execution.executor import Command, Execution
from perfdiff.config import CompareConfig, Suite
from perfdiff.deadline import Deadline
from perfdiff.errors import RunFailedError, RunTimeoutError
from perfdiff.measuring import stages
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.changes import site_of
from perfdiff.measuring.guesses import EarlyRuns
from perfdiff.measuring.site import Site
from perfdiff.progress import Silent
from perfdiff.records.endless import EndlessCase
from perfdiff.records.schema import Change, Point
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.request import Request
from test_measuring import Steady, sums

PROJECT = '[project]\nname = "x"\nversion = "1"\n'
MODULE = "def count(n):\n    while {goes_on}:\n        pass\n    return sum(1 for _ in range(n))\n\ndef other():\n    return {other}\n"
HANGING = "def test_hanging():\n    assert own.count(0) == 0\n"
OTHER = "def test_other():\n    assert own.other() == 1\n"
__all__ = ["sums"]
ONE = Point(0, "one", {}, "./one")


def compared(folder: Path, cache: Path, tests: str, head: Mapping[str, str]) -> pipeline.Outcome:
    """Return what is told of a project's tests, of which nothing is configured; `head` is what differs of its module."""

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=project, check=True)

    project, base = folder / "project", {"goes_on": "n < 0", "other": "1"}
    (project / "tests").mkdir(parents=True)
    git("init", "-q")
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "tests/test_own.py").write_text(f"import own\n\n\n{tests}")
    for values in (base, {**base, **head}):
        (project / "own.py").write_text(MODULE.format(**values))
        git("add", "-A")
        git("commit", "-qm", "one")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"]))
    config = configuration.load(project, environment={}, changed=lambda: ["own.py"])
    config = replace(config, measure=replace(config.measure, fast=True))
    request = Request(project, ("HEAD~1", "HEAD"), config, cache, environment)
    request = replace(request, deadline=Deadline(150.0))
    return pipeline.compare(request, Silent())


@pytest.mark.integration
def test_a_test_that_hangs_on_head_alone_is_a_regression_with_a_bound_and_others_are_compared(tmp_path: Path, shared_cache: Path) -> None:
    outcome = compared(tmp_path, shared_cache, HANGING + OTHER, {"goes_on": "n <= 0", "other": "0 + 1"})
    findings = outcome.findings
    said = say(findings.sentence)
    assert (findings.verdict, findings.rung) == (Verdict.REGRESSION, Rung.RUNS)
    assert said.startswith("Regression, not located: tests/test_own.py::test_hanging does not end on head within ")
    assert [case.name for case in findings.endless] == ["tests/test_own.py::test_hanging"]
    assert [end.point.workload for end in findings.end_to_end] == ["tests/test_own.py::test_other"]
    assert "case-does-not-end" in {note.slug for note in map(noted, findings.notes)}


class Failing(Steady):
    """Runs steadily, but for runs without probes at the first workload, which end by an error on one side."""

    def __init__(self, error: RunFailedError, side: str) -> None:
        super().__init__()
        self.error, self.side = error, side

    def execute(self, command: Command) -> Execution:
        if f"{self.side}, hanging" in command.where and " with " not in command.where:
            raise self.error
        return super().execute(command)


HANGS, FAILS = RunTimeoutError("it hangs", slug="workload-timeout"), RunFailedError("it fails", slug="workload-failed")


@pytest.mark.integration
@pytest.mark.parametrize(
    ("error", "side", "is_told"), [(HANGS, "head", True), (HANGS, "base", False), (FAILS, "head", False)], ids=["head", "base", "fails"]
)
def test_a_case_that_fails_when_it_is_measured_costs_only_itself(  # noqa: PLR0917 (what fails, where, and what is told)
    sums: Request, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: RunFailedError, side: str, is_told: bool
) -> None:
    workload = replace(sums.config.workloads[0], parameters={"n": (1000,)})
    listed = tuple(replace(workload, name=name, suite=Suite("make", "test")) for name in ("hanging", "other"))
    config = replace(sums.config, workloads=listed, measure=replace(sums.config.measure, fast=True))

    def cases(bench: Bench, _early: EarlyRuns) -> tuple[Bench, Site]:
        """Return the bench as suites leave it."""
        plain = tuple(replace(workload, suite=None) for workload in bench.request.config.workloads)
        bench = replace(bench, request=replace(bench.request, config=replace(bench.request.config, workloads=plain)))
        return bench, site_of(bench, bench.workshop.plain())

    monkeypatch.setattr(stages, "prepared", cases)
    monkeypatch.setattr(error, "point", None)
    request = replace(sums, config=config, cache=tmp_path / "cache")
    outcome = pipeline.compare(request, Silent(), executor=Failing(error, side))
    findings = outcome.findings
    assert outcome.experiment is not None
    assert outcome.experiment.build == sums.config.build.command
    assert [end.point.workload for end in findings.end_to_end] == ["other"]
    assert [case.name for case in findings.endless] == ["hanging n=1000"] * is_told
    assert (findings.verdict is Verdict.REGRESSION) == is_told
    assert ("case-does-not-end" if is_told else "benchmarks-left-out") in {note.slug for note in map(noted, findings.notes)}


def test_a_hang_is_told_before_all_else_and_with_the_function_that_is_slower() -> None:
    spared = EndToEnd(ONE, 1e8, 1e8, Ratio(1.0, 0.99, 1.01, 26, 26), None, PointStanding.NOT_SLOWER)
    slower = plain(9, "sift", Verdict.REGRESSION, Change.CHANGED, ratio=Ratio(1.5, 1.4, 1.6, 26, 26), reason="costs more")
    hanging = (EndlessCase("a", 0.1, 30.0), EndlessCase("b", 0.01, 30.0))
    found = conclude((slower,), Evidence(WholeRuns((spared,)), endless=hanging), CompareConfig())
    assert found.verdict is Verdict.REGRESSION
    assert say(found.sentence).startswith(
        "Regression, not located: b does not end on head within 30 s, nor does 1 more case; it takes 10 ms on base, so that head is "
        "slower by ×3,000 at least; "
    )
    assert "; sift: regression" in say(found.sentence)


@pytest.mark.parametrize(("base_s", "limit_s", "tells"), [(0.1, 30.0, True), (4.0, 30.0, False)])
def test_only_a_limit_far_beyond_what_base_takes_tells(base_s: float, limit_s: float, tells: bool) -> None:
    assert EndlessCase("a", base_s, limit_s).tells == tells
