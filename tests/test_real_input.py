"""A regression that really happened: cmark's quadratic handling of `![l`, between two source releases of the package cmarkgfm."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import cmark
import runtimes
from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import CompareConfig, Config, CountersConfig, MeasureConfig, WorkloadConfig
from perfdiff.models.annotation import CostClass
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import say

pytestmark = pytest.mark.integration
BUDGET_S = 8.0  # a part of what such runs are given: the slow-down is large
BUILD = replace(cmark.BUILD, command=f"{cmark.BUILD.command} LEVEL=-O1")  # compiled in less time, and as quadratic


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    releases = cmark.repository(tmp_path_factory.mktemp("cmark"))
    runtimes.lent_to(releases.parent / "cache")
    return releases


def compare(releases: Path, workload: WorkloadConfig) -> Findings:
    compared, counters, measure = replace(CompareConfig(), seed=7), CountersConfig(software=False), MeasureConfig(budget_s=BUDGET_S)
    config = Config(BUILD, (workload,), compare=compared, counters=counters, measure=measure)
    request = pipeline.Request(releases, ("base", "head"), config, releases.parent / "cache", dict(os.environ))
    return pipeline.compare(request, Silent()).findings


def test_the_guilty_function_of_cmark_comes_first_and_became_quadratic(releases: Path) -> None:
    findings = compare(releases, cmark.ATTACK)
    assert findings.verdict is Verdict.REGRESSION, say(findings.sentence)
    guilty = next(function for function in findings.functions if function.rank == 1)
    assert "inlines.c" in guilty.info.file or "autolink.c" in guilty.info.file
    cost = guilty.metrics["run_ns"]
    assert cost.base is not None
    assert cost.head is not None
    assert (cost.base.cost_class, cost.head.cost_class) == (CostClass.LINEAR, CostClass.QUADRATIC), say(findings.sentence)
