"""A regression that really happened in a Python package with an extension in C, between two of its releases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import releases
from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.config import MeasureConfig
from perfdiff.models.annotation import CostClass
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import say
from programs import environment

pytestmark = pytest.mark.integration
BUDGET_S = 8.0  # for whole runs, each of which starts an interpreter
PAIRS = {pair.name: pair for pair in releases.pairs()}  # all of them are compared by `scripts/bench releases`


def test_a_quadratic_function_of_a_package_with_an_extension_comes_first(tmp_path: Path, shared_cache: Path) -> None:
    checkout = releases.repository(PAIRS["markupsafe"], tmp_path)
    config = configuration.load(checkout, environment={})
    config = replace(config, counters=replace(config.counters, software=False), measure=MeasureConfig(budget_s=BUDGET_S))
    request = pipeline.Request(checkout, ("base", "head"), config, shared_cache, environment())
    findings = pipeline.compare(request, Silent()).findings
    assert findings.verdict is Verdict.REGRESSION, say(findings.sentence)
    guilty = next(function for function in findings.functions if function.rank == 1)
    assert (guilty.info.name,) == PAIRS["markupsafe"].guilty, say(findings.sentence)
    cost = guilty.metrics["wall_ns"]
    assert cost.base is not None
    assert cost.head is not None
    assert (cost.base.cost_class, cost.head.cost_class) == (CostClass.LINEAR, CostClass.QUADRATIC), say(findings.sentence)
