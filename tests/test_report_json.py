"""The JSON report keeps the contract of `perfdiff.report/1`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import findings as made
from perfdiff.analysis.findings import Findings, Ratio
from perfdiff.models.annotation import CostClass
from perfdiff.report import json_report
from perfdiff.report.document import build
from perfdiff.report.json_text import json_text


def refused(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")


def report(findings: Findings) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json_report.render(build(findings)), parse_constant=refused)
    return result


def test_every_key_of_the_contract_is_there() -> None:
    whole = report(made.findings())
    assert {"schema", "verdict", "base", "head", "environment", "workloads", "skipped", "functions"} <= whole.keys()
    assert whole["schema"] == "perfdiff.report/1"
    assert whole["verdict"] == "regression"
    assert whole["base"] == {"rev": "v1.4", "commit": "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334", "summary": "Release 1.4"}
    assert whole["skipped"][0] == {"name": "list_capacity", "file": "src/list.h", "reason": "constexpr functions cannot carry a probe"}
    for function in whole["functions"]:
        assert {
            "name",
            "file",
            "line",
            "language",
            "change",
            "verdict",
            "rank",
            "calls",
            "share",
            "metrics",
            "anomaly",
            "causes",
        } <= function.keys()
        assert function["anomaly"] is None
        for metric in function["metrics"].values():
            assert {"base", "head", "ratio", "ci", "q", "coefficients"} <= metric.keys()


def test_figures_of_the_guilty_function() -> None:
    function = report(made.findings())["functions"][0]
    wall = function["metrics"]["wall_ns"]
    assert (function["name"], function["rank"], function["share"], function["calls"]) == (
        "insert",
        1,
        0.97,
        {"base": 30_000.0, "head": 30_000.0},
    )
    assert (wall["ratio"], wall["ci"], wall["q"], wall["runs"]) == (331.4, [318.0, 346.2], 1.2e-9, {"base": 10, "head": 10})
    assert (wall["base"]["class"], wall["head"]["class"], wall["head"]["r2"], wall["head"]["n"]) == ("constant", "linear", 0.9931, 900)
    assert "Norm(38 + 0.912*size, 85);" in wall["head"]["annotation"]
    assert wall["coefficients"][1] == {"term": "list->size", "base": 0.0, "head": 0.912, "ci": [0.88, 0.94], "q": 1.2e-9}
    assert function["causes"][0]["name"] == "more-work"
    assert function["causes"][0]["evidence"][0] == {"counter": "branches taken", "base": 0.0, "head": 15_000.0}


def test_growth_says_whether_counts_tell_it() -> None:
    findings = made.findings()
    first = findings.functions[0]
    wall = first.metrics["wall_ns"]
    counted = replace(wall, head=replace(wall.head, by_counts=CostClass.QUADRATIC))
    for metric, growth in ((wall, ("linear", False)), (counted, ("quadratic", True))):
        told = report(replace(findings, functions=(replace(first, metrics={"wall_ns": metric}),)))
        head = told["functions"][0]["metrics"]["wall_ns"]["head"]
        assert (head["class"], head["growth"], head["by_counts"]) == ("linear", *growth)


def test_what_one_side_lacks_is_null() -> None:
    functions = {function["name"]: function for function in report(made.findings())["functions"]}
    added, removed = functions["table_check"], functions["table_cache"]
    assert (added["change"], added["calls"]["base"], added["metrics"]["wall_ns"]["base"]) == ("added", None, None)
    assert (removed["change"], removed["calls"]["head"], removed["metrics"]["wall_ns"]["head"]) == ("removed", None, None)
    assert added["metrics"]["wall_ns"]["ratio"] is None
    assert added["metrics"]["wall_ns"]["ci"] is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_no_number_is_not_finite(value: float) -> None:
    finding = made.regressed()
    wall = replace(finding.metrics["wall_ns"], ratio=Ratio(value, 1.2, value, 10, 10), q=value, floor=value)
    metric = report(made.findings(functions=(replace(finding, metrics={"wall_ns": wall}, share=value),)))["functions"][0]["metrics"][
        "wall_ns"
    ]
    assert (metric["ratio"], metric["ci"], metric["q"], metric["floor"]) == (None, [1.2, None], None, None)


def test_numbers_of_numpy_are_plain_numbers() -> None:
    wall = replace(made.regressed().metrics["wall_ns"], class_changed=np.bool_(True), q=np.float64(0.25))  # type: ignore[arg-type]
    metric = report(made.findings(functions=(replace(made.regressed(), metrics={"wall_ns": wall}),)))["functions"][0]["metrics"]["wall_ns"]
    assert (metric["class_changed"], metric["q"]) == (True, 0.25)


def test_hostile_names_are_printable_and_encodable() -> None:
    name = report(made.hostile())["functions"][0]["name"]
    assert name == "<script>alert(1)</script>\\x1b[31m|`[x](javascript:alert(2)) @everyone\\u202e"
    undecodable = replace(made.findings(), sentence=made.worded("caf\udce9.c"))
    assert report(undecodable)["sentence"] == "caf\\udce9.c"
    json_report.render(build(undecodable)).encode()


def test_the_same_findings_give_the_same_bytes() -> None:
    assert json_report.render(build(made.findings())) == json_report.render(build(made.findings()))


def test_lines_that_run_more_often_have_counts_and_growth() -> None:
    guilty, *others = report(made.findings())["functions"]
    new, more = guilty["lines"]
    assert new == {
        "function": "insert",
        "file": "src/list.c",
        "line": 49,
        "text": "while (*place)",
        "point": "lists n=30000",
        "base": 0.0,
        "head": 450_015_000.0,
        "feature": "n",
        "base_says": "",
        "head_says": "0.5·n²",
        "new": True,
        "steeper": True,
    }
    assert (more["base"], more["head"], more["base_says"], more["head_says"], more["new"]) == (30_000.0, 60_000.0, "n", "2·n", False)
    assert all(each["lines"] == [] for each in others)


def test_numbers_that_are_none_are_null_wherever_they_stand() -> None:
    text = json_text({"a": (1.0, float("nan"), [float("inf")]), "b": np.float64("nan")})
    assert json.loads(text, parse_constant=refused) == {"a": [1.0, None, [None]], "b": None}
