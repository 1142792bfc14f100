"""The OpenMetrics report: read by the parser of the format's own project, whatever names it holds."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from prometheus_client import parser as plain_parser
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import findings as made
import hostile_texts
from perfdiff.analysis.findings import CountFinding, Findings, Ratio
from perfdiff.records.schema import Point
from perfdiff.report import openmetrics
from perfdiff.report.document import build
from perfdiff.report.printable import printable, shortened

Labels = frozenset[tuple[str, str]]


def samples(findings: Findings) -> dict[str, dict[Labels, float]]:
    """Return the samples of each family by their labels, once the parser has read them and none is there twice."""
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(openmetrics.render(build(findings))):
        assert family.type == "gauge"
        assert family.documentation
        assert family.name.endswith(family.unit)
        for sample in family.samples:
            given = frozenset(sample.labels.items())
            assert given not in found.setdefault(sample.name, {})
            found[sample.name][given] = sample.value
    return found


def insert(metric: str | None = None, side: str | None = None) -> Labels:
    named = {"function": "insert", "file": "src/list.c", "metric": metric, "side": side}
    return frozenset((key, value) for key, value in named.items() if value is not None)


def test_cost_of_both_sides_and_ratio_with_its_bounds() -> None:
    found = samples(made.findings())
    assert found["perfdiff_cost_seconds"][insert("wall_ns", "base")] == pytest.approx(41e-9)
    assert found["perfdiff_cost_seconds"][insert("wall_ns", "head")] == pytest.approx(26_030e-9)
    assert found["perfdiff_cost_bytes"][insert("alloc_bytes", "head")] == 32
    bounds = [found[name][insert("wall_ns")] for name in ("perfdiff_ratio_low", "perfdiff_ratio", "perfdiff_ratio_high")]
    assert bounds == [318.0, 331.4, 346.2]


def test_what_was_compared_and_the_verdict() -> None:
    ((labels, value),) = samples(made.findings())["perfdiff_comparison"].items()
    given = dict(labels)
    assert value == 1
    assert (given["base"], given["head"], given["verdict"]) == ("v1.4", "HEAD", "regression")


def test_an_inconclusive_function_is_neither_regressed_nor_not() -> None:
    regressed = {dict(labels)["function"]: value for labels, value in samples(made.findings())["perfdiff_regressed"].items()}
    assert regressed == {"insert": 1, "table_find": 0, "table_hash": 0, "table_check": 0, "table_cache": 0}


def test_what_is_absent_has_no_sample() -> None:
    found = samples(made.findings())
    sides = [dict(labels)["side"] for labels in found["perfdiff_calls"] if ("function", "table_check") in labels]
    assert sides == ["head"]
    assert not any(("function", "table_check") in labels for labels in found["perfdiff_ratio"])


def test_open_ends_of_intervals_are_infinite_and_unknown_values_absent() -> None:
    finding = made.regressed()
    wall = replace(finding.metrics["wall_ns"], ratio=Ratio(math.nan, 1.2, math.inf, 10, 10))
    found = samples(made.findings(functions=(replace(finding, metrics={"wall_ns": wall}),)))
    assert found["perfdiff_ratio_high"][insert("wall_ns")] == math.inf
    assert "perfdiff_ratio" not in found


def test_counts_stand_beside_metrics() -> None:
    count = CountFinding("blocks", Point(0, "sort", {}, "./sort"), 10.0, 30.0, Ratio(3.0, 3.0, 3.0, 2, 2), True, True, False, 1.0, math.nan)
    found = samples(made.findings(functions=(replace(made.regressed(), counts={"blocks": count}),)))
    assert found["perfdiff_cost_events"][insert("blocks", "head")] == 30
    assert found["perfdiff_ratio"][insert("blocks")] == 3


@hostile_texts.few
@given(hostile_texts.findings())
def test_any_text_is_kept_and_no_two_samples_are_alike(findings: Findings) -> None:
    found = samples(findings)
    names = {dict(labels)["function"] for labels in found["perfdiff_regressed"]}
    for finding in findings.functions[:3]:
        assert shortened(printable(finding.info.name), 250) in names


def test_readers_of_the_older_format_read_it_too() -> None:
    families = list(plain_parser.text_string_to_metric_families(openmetrics.render(build(made.hostile()))))
    assert {family.type for family in families} == {"gauge"}
