"""Every fixture program, from git to verdict: the right answer, the guilty function first, the class on both sides."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from differing import words
from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Findings, FunctionFinding, Verdict
from perfdiff.config import MeasureConfig
from perfdiff.progress import Silent
from perfdiff.records.schema import Change
from perfdiff.report.sentences.catalogue import say
from programs import Case, cases, repository

pytestmark = pytest.mark.integration
MORE_RUNS = 4  # halves the noise
BUDGET_S = 8.0  # for whole runs: most programs need a part of it
# Judged elsewhere, or like another: `list-append` by `test_counted_lines`; `cost-in-libc` as `strlen-in-condition`, `removed-cache` as
# `removed-cache-alloc`, the two without an effect as `same-library-calls`; a macro as a header, two that call and write more as
# `strlen-in-condition`, a template as `macro-made`, methods that throw as `recursion`, locks and shared lines as `test_sharing_programs`.
# `scripts/bench accuracy` and `bench null` have all of them.
ELSEWHERE = frozenset(
    {"list-append", "cost-in-libc", "removed-cache", "same-error-path", "same-rewritten"}
    | {
        "costly-macro",
        "unbuffered-write",
        "modulo-for-mask",
        "header-template",
        "hash-collisions",
        "throwing-method",
        "flag-mode",
        "mutex",
        "padding-removed",
    }
    | {
        "hash-locality",
        "bitwise-decode",
        "same-step",
        "coefficient",
        "callee-per-element",
        "same-take",
    }  # which take longest beside their like
)


def requested(case: Case, folder: Path, cache: Path, *revisions: str) -> pipeline.Request:
    checkout = repository(case, folder)
    config = configuration.load(checkout, environment={})
    config = replace(config, counters=replace(config.counters, software=case.is_counted), measure=MeasureConfig(budget_s=BUDGET_S))
    return pipeline.Request(checkout, revisions, config, cache, dict(os.environ))


def longer(request: pipeline.Request) -> pipeline.Request:
    """Return the same with so many more runs that noise is halved."""
    workloads = tuple(replace(workload, runs=MORE_RUNS * workload.runs) for workload in request.config.workloads)
    measure = MeasureConfig(budget_s=MORE_RUNS * BUDGET_S)
    return replace(request, config=replace(request.config, workloads=workloads, measure=measure))


def named(findings: Findings, name: str) -> FunctionFinding:
    plain = {function.info.name: function.info.name.split("(")[0].split("<")[0] for function in findings.functions}
    found = [one for one in findings.functions if name in (plain[one.info.name], plain[one.info.name].split("::")[-1])]
    assert len(found) == 1, [function.info.name for function in findings.functions]
    return found[0]


def summary(findings: Findings) -> str:
    rows = [say(findings.sentence)]
    for function in findings.functions:
        metric = function.metrics.get("wall_ns")
        ratio = metric.ratio if metric else None
        rows.append(f"{function.rank} {function.info.name} {function.info.change} {function.verdict} {say(function.reason)!r} {ratio}")
    return "\n".join(rows)


@pytest.mark.parametrize("case", [case for case in cases() if case.name not in ELSEWHERE], ids=lambda case: case.name)
def test_a_known_change_is_judged_right(case: Case, tmp_path: Path, shared_cache: Path) -> None:
    """With the runs that are configured, or where the machine was disturbed meanwhile, with four times as many; but never a false alarm."""
    request = requested(case, tmp_path / "program", shared_cache, "base", "head")
    findings = pipeline.compare(request, Silent()).findings
    assert findings.verdict is not Verdict.REGRESSION or case.expected.get("verdict", findings.verdict) == findings.verdict, summary(
        findings
    )
    assert findings.verdict != case.expected.get("never"), summary(findings)
    try:
        judge(case, findings)
    except AssertionError:
        judge(case, pipeline.compare(longer(request), Silent()).findings)


def judge(case: Case, findings: Findings) -> None:
    expected = case.expected
    if "verdict" in expected:
        assert findings.verdict == expected["verdict"], summary(findings)
    if "met" in expected:
        assert expected["met"] in say(findings.sentence), summary(findings)
        assert [each.info.name for each in findings.functions if each.verdict is Verdict.REGRESSION] == []
    if "affected" in expected:
        affected = named(findings, expected["affected"])
        assert (affected.info.change, expected["culprit"] in words(affected.info.culprits)) == (Change.AFFECTED, True), affected.info
    if "guilty" in expected:
        names = [expected["guilty"]] if isinstance(expected["guilty"], str) else expected["guilty"]
        guilty = min((named(findings, name) for name in names), key=lambda each: each.rank or len(findings.functions))
        assert guilty.rank == 1, summary(findings)
        assert expected.get("cause") in (None, *(cause.name for cause in guilty.causes)), guilty.causes
        told = [say(cause.says) for cause in guilty.causes if cause.name == expected.get("cause")]
        assert "says" not in expected or any(expected["says"] in says for says in told), guilty.causes
        assert guilty.info.change == expected.get("change", guilty.info.change)
        assert "line" not in expected or expected["line"] in [line.text for line in guilty.lines], guilty.lines
    judged = expected.get("function") or expected.get("guilty")
    for side, cost_class in expected.get("class", {}).items():
        annotation = getattr(named(findings, judged).metrics["wall_ns"], side)
        assert annotation.growth == cost_class, (side, annotation)  # as it is told: several speeds of one growth are that growth
