"""A change of cost that really happened in a Java library, between two of its releases, compared from the later one to the earlier."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import releases
from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.config import MeasureConfig
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import say
from programs import environment

pytestmark = pytest.mark.integration
BUDGET_S = 5.0  # for whole runs, each of which starts a JVM
PAIRS = {pair.name: pair for pair in releases.pairs()}


def test_a_release_that_asks_edge_by_edge_what_flags_tell_is_slower_and_nobody_else_comes_first(tmp_path: Path, shared_cache: Path) -> None:
    """So few runs beside other work may leave open which method it is, never that the program is slower; then the answer says so."""
    pair = PAIRS["css-layout"]
    checkout = releases.repository(pair, tmp_path)
    config = configuration.load(checkout, environment={})
    config = replace(config, counters=replace(config.counters, software=False), measure=MeasureConfig(budget_s=BUDGET_S))
    request = pipeline.Request(checkout, ("base", "head"), config, shared_cache, environment())
    findings = pipeline.compare(request, Silent()).findings
    assert findings.verdict is Verdict.REGRESSION, say(findings.sentence)
    first = [function.info.name for function in findings.functions if function.rank == 1]
    assert first == [pair.guilty[0]] or (not first and "not located" in say(findings.sentence)), say(findings.sentence)
