"""The formats that the command line offers are those that can be rendered, and are told by the suffixes of files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import findings as made
from perfdiff.analysis.findings import Acceptance, Verdict
from perfdiff.cli import options
from perfdiff.report.document import build
from perfdiff.report.renderers import DRAWING, RENDERERS


def test_every_format_of_the_command_line_has_a_renderer() -> None:
    assert {each.value for each in options.Format} == set(RENDERERS)
    assert set(RENDERERS) >= DRAWING


@pytest.mark.parametrize(
    ("name", "expected"),
    [("perf.sarif", "sarif"), ("perf.xml", "junit"), ("perf.prom", "openmetrics"), ("perf.sarif.json", "json"), ("PERF.XML", "junit")],
)
def test_the_suffix_chooses_the_format_that_machines_read(name: str, expected: str) -> None:
    assert options.report_format(None, Path(name)) == expected


def test_the_format_given_wins_over_the_suffix() -> None:
    assert options.report_format(options.Format.SARIF, Path("perf.json")) is options.Format.SARIF


@pytest.mark.parametrize("name", sorted(RENDERERS))
def test_the_same_findings_give_the_same_text(name: str) -> None:
    assert RENDERERS[name](build(made.findings())) == RENDERERS[name](build(made.findings()))


@pytest.mark.parametrize("name", sorted(RENDERERS))
def test_every_format_takes_findings_without_functions(name: str) -> None:
    assert RENDERERS[name](build(made.findings(functions=())))


def test_an_accepted_regression_raises_no_alarm_anywhere() -> None:
    entry = Acceptance("insert", "src/list.c", "wall_ns", 331.4, 318.0, 346.2, "lists are short")
    known = build(made.findings(Verdict.UNCHANGED, (replace(made.regressed(), accepted=(entry,)),)))
    assert '"results": []' in RENDERERS["sarif"](known)
    assert 'failures="0"' in RENDERERS["junit"](known)
    assert "accepted: lists are short" in RENDERERS["junit"](known)
    assert "::warning" not in RENDERERS["github"](known)
    assert 'perfdiff_regressed{function="insert",file="src/list.c"} 0.0' in RENDERERS["openmetrics"](known)
