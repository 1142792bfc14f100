"""Fixture programs in PHP, from git to verdict: the right answer, the guilty function first, the class on both sides."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.config import MeasureConfig
from perfdiff.progress import Silent
from programs import PHP, Case, cases, repository
from test_programs import judge, longer, summary

pytestmark = pytest.mark.integration
BUDGET_S = 8.0
CASES = cases(PHP)
# Growth; and a query for each element, over PDO. `test_hidden_programs` has code that differs in its text alone, `scripts/bench php` all.
HERE = frozenset({"in-array-for-hash", "query-per-element"})


def requested(case: Case, folder: Path, cache: Path) -> pipeline.Request:
    checkout = repository(case, folder)
    config = configuration.load(checkout, environment={})
    config = replace(config, counters=replace(config.counters, software=False), measure=MeasureConfig(budget_s=BUDGET_S))
    return pipeline.Request(checkout, ("base", "head"), config, cache, dict(os.environ))


@pytest.mark.parametrize("case", [case for case in CASES if case.name in HERE], ids=lambda case: case.name)
def test_a_known_change_is_judged_right(case: Case, tmp_path: Path, shared_cache: Path) -> None:
    """With the runs that are configured, or where the machine was disturbed meanwhile, with four times as many; but never a false alarm."""
    request = requested(case, tmp_path / "program", shared_cache)
    findings = pipeline.compare(request, Silent()).findings
    assert findings.verdict is not Verdict.REGRESSION or case.expected["verdict"] == findings.verdict, summary(findings)
    try:
        judge(case, findings)
    except AssertionError:
        judge(case, pipeline.compare(longer(request), Silent()).findings)


def test_every_program_is_there_with_one_known_change() -> None:
    assert len(CASES) == 13
    assert sum(case.expected["verdict"] == "unchanged" for case in CASES) == 3  # without an effect
