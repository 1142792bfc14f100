"""The formats that the command line offers are those that can be rendered, and are told by the suffixes of files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import findings as made
import pprof_reader
from perfdiff.analysis.acceptances import Acceptance
from perfdiff.analysis.findings import Verdict
from perfdiff.cli import destinations, options, output
from perfdiff.errors import UsageError
from perfdiff.outcome import Outcome
from perfdiff.records.schema import Note
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
    assert options.report_format(None, Path(name), options.SUFFIXES) == expected


def test_the_format_given_wins_over_the_suffix() -> None:
    assert options.report_format(options.Format.SARIF, Path("perf.json"), options.SUFFIXES) is options.Format.SARIF


def test_each_of_several_files_gets_its_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / name for name in ("report.html", "report.json", "comment.md")]
    places = destinations.chosen(None, files)
    destinations.deliver(Outcome(made.findings(), lambda function, side: None), places)
    html, data, comment = (file.read_text() for file in files)
    assert html.startswith("<!DOCTYPE html>")
    assert json.loads(data)["verdict"] == "regression"
    assert comment.startswith("## Regression")
    output.tell("Regression.", *destinations.written(places), quiet=False)
    said = capsys.readouterr()
    assert (said.out, said.err.splitlines()) == ("", ["perfdiff: Regression.", *(f"perfdiff: written to {file}" for file in files)])


def test_one_of_several_files_that_says_no_format_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"report\.pdf.*format"):
        destinations.chosen(None, [tmp_path / "report.html", tmp_path / "report.pdf"])


# Lines of stacks and numbers alone: the answer stands on standard error, as where any file is written.
WORDLESS = {"folded", "folded-base", "folded-head"}


def text_of(rendered: str | bytes) -> str:
    return rendered if isinstance(rendered, str) else "\n".join(pprof_reader.read(rendered).strings)


@pytest.mark.parametrize("verdict", [Verdict.REGRESSION, Verdict.UNCHANGED])
@pytest.mark.parametrize("name", sorted(set(RENDERERS) - WORDLESS))
def test_an_answer_so_far_is_told_as_that_in_all_formats(name: str, verdict: Verdict) -> None:
    whole = made.findings(verdict) if verdict is Verdict.REGRESSION else made.findings(verdict, ())
    cut = replace(whole, notes=(*whole.notes, Note("cut-short", "this run was interrupted in the stage 'measuring'")))
    sign = "perfdiff_cut_short{" if name == "openmetrics" else "So far: "
    assert sign in text_of(RENDERERS[name](build(cut)))
    assert sign not in text_of(RENDERERS[name](build(whole)))


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
    assert 'perfdiff_regressed{file="src/list.c",function="insert"} 0.0' in RENDERERS["openmetrics"](known)
