"""Fixture programs in Java, from git to verdict: the right answer, the guilty method first, the class on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import MeasureConfig
from perfdiff.progress import Silent
from programs import JAVA, Case, cases, environment, repository
from test_programs import judge, longer, named, summary

pytestmark = pytest.mark.integration
BUDGET_S = 12.0  # for whole runs, each of which starts a JVM
CASES = cases(JAVA)
# Growth, from a jar that ant makes; `test_hidden_programs` has code that differs in its text alone. `scripts/bench java` compares all.
HERE = frozenset({"linked-list-get"})


def requested(case: Case, folder: Path, cache: Path) -> pipeline.Request:
    checkout = repository(case, folder)
    config = configuration.load(checkout, environment={})
    config = replace(config, counters=replace(config.counters, software=False), measure=MeasureConfig(budget_s=BUDGET_S))
    return pipeline.Request(checkout, ("base", "head"), config, cache, environment())


def problems(case: Case, findings: Findings) -> Iterator[str]:
    """Yield what the expectations that the judge does not know say of a finding that does not meet them."""
    expected = case.expected
    if "mix" in expected and named(findings, expected["mix"]).verdict is Verdict.REGRESSION:
        yield f"{expected['mix']} is said to be slower at equal inputs"


@pytest.mark.parametrize("case", [case for case in CASES if case.name in HERE], ids=lambda case: case.name)
def test_a_known_change_is_judged_right(case: Case, shared_cache: Path, tmp_path: Path) -> None:
    """With the runs that are configured, or where the machine was disturbed meanwhile, with four times as many; but never a false alarm."""
    request = requested(case, tmp_path / "program", shared_cache)
    findings = pipeline.compare(request, Silent()).findings
    assert findings.verdict is not Verdict.REGRESSION or case.expected["verdict"] == findings.verdict, summary(findings)
    try:
        judge(case, findings)
    except AssertionError:
        findings = pipeline.compare(longer(request), Silent()).findings
        judge(case, findings)
    assert not list(problems(case, findings)), summary(findings)


def test_every_program_is_there_with_one_known_change() -> None:
    assert len(CASES) == 17
    assert sum(case.expected["verdict"] == "unchanged" for case in CASES) == 3  # without an effect
