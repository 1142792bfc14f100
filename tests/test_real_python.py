"""Regressions that really happened in Python packages, between two of their releases: of Python alone, and with an extension in C."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import releases
import runtimes
from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import MeasureConfig
from perfdiff.models.annotation import CostClass
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import say
from programs import environment

pytestmark = pytest.mark.integration
BUDGET_S = 8.0  # for whole runs, each of which starts an interpreter
PAIRS = {pair.name: pair for pair in releases.pairs()}  # all of them are compared by `scripts/bench releases`


def compared(name: str, room: Path) -> Findings:
    checkout = releases.repository(PAIRS[name], room)
    config = configuration.load(checkout, environment={})
    config = replace(config, counters=replace(config.counters, software=False), measure=MeasureConfig(budget_s=BUDGET_S))
    request = pipeline.Request(checkout, ("base", "head"), config, runtimes.lent_to(room / "cache"), environment())
    return pipeline.compare(request, Silent()).findings


def test_a_flaw_that_a_release_mended_is_found_from_there_back_to_the_one_before(tmp_path: Path) -> None:
    findings = compared("multipart", tmp_path)
    assert findings.verdict is Verdict.REGRESSION, say(findings.sentence)
    guilty = next(function for function in findings.functions if function.rank == 1)
    assert guilty.info.name in PAIRS["multipart"].guilty, say(findings.sentence)


def test_a_quadratic_function_of_a_package_with_an_extension_comes_first(tmp_path: Path) -> None:
    findings = compared("markupsafe", tmp_path)
    assert findings.verdict is Verdict.REGRESSION, say(findings.sentence)
    guilty = next(function for function in findings.functions if function.rank == 1)
    assert (guilty.info.name,) == PAIRS["markupsafe"].guilty, say(findings.sentence)
    cost = guilty.metrics["wall_ns"]
    assert cost.base is not None
    assert cost.head is not None
    assert (cost.base.cost_class, cost.head.cost_class) == (CostClass.LINEAR, CostClass.QUADRATIC), say(findings.sentence)
