"""Workflow commands of GitHub Actions: one line each, of which no text can make more."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

import findings as made
import hostile_texts
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.cli import destinations, options
from perfdiff.errors import UsageError
from perfdiff.outcome import Outcome
from perfdiff.records.differences import SkippedFunction
from perfdiff.report import github
from perfdiff.report.document import build
from perfdiff.report.printable import printable, shortened
from perfdiff.report.sentences.catalogue import say

COMMAND = re.compile(r"::(notice|warning) ([^:]*)::(.*)")


def commands(findings: Findings) -> list[tuple[str, dict[str, str], str]]:
    """Return name, properties and message of each command, read as the runner of GitHub Actions does."""
    text = github.render(build(findings))
    found = []
    for line in re.split("\r\n|\n|\r", text.removesuffix("\n")):
        match = COMMAND.fullmatch(line)
        assert match is not None, line
        given = dict(part.split("=", 1) for part in match[2].split(","))
        properties = {key: unescaped(value).replace("%3A", ":").replace("%2C", ",").replace("%25", "%") for key, value in given.items()}
        found.append((match[1], properties, unescaped(match[3]).replace("%25", "%")))
    return found


def unescaped(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n")


def test_the_answer_is_a_notice_and_each_regressed_function_a_warning_at_its_line() -> None:
    notice, warning = commands(made.findings())
    assert notice == ("notice", {"title": "perfdiff"}, f"Regression: {say(made.findings().sentence)}")
    assert warning[:2] == ("warning", {"file": "src/list.c", "line": "44", "title": "perfdiff: insert got slower"})
    assert warning[2].startswith("insert costs ×331 at list->size = 28,500: constant became linear; The new loop")


def test_a_cause_that_the_headline_tells_is_not_told_twice() -> None:
    first = made.regressed()
    finding = replace(first, happened=made.worded("insert costs ×331"), tells_cause=True)
    assert commands(made.findings(functions=(finding,)))[1][2] == f"insert costs ×331; cause: {say(first.causes[0].says)}".rstrip(".")


@pytest.mark.parametrize("verdict", [Verdict.UNCHANGED, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE])
def test_without_a_regression_there_is_no_warning(verdict: Verdict) -> None:
    assert [name for name, _, _ in commands(made.findings(verdict, made.others()))] == ["notice"]


def test_what_github_would_drop_is_counted() -> None:
    notice, *warnings = commands(made.many(14))
    assert len(warnings) == 10
    assert notice[2].endswith(" 4 more regressed functions are in the summary.")


def test_samples_without_sources_have_no_place() -> None:
    first = made.regressed()
    info = replace(first.info, file="", line=0, base=None, head=None)
    assert commands(made.findings(functions=(replace(first, info=info),)))[1][1].keys() == {"title"}


@pytest.mark.parametrize(
    ("text", "data", "value"),
    [
        ("50 %", "50 %25", "50 %25"),
        ("a\r\n::error::b", "a%0D%0A::error::b", "a%0D%0A%3A%3Aerror%3A%3Ab"),
        ("f(a, b)", "f(a, b)", "f(a%2C b)"),
        ("%0A", "%250A", "%250A"),
    ],
)
def test_texts_are_escaped_as_the_runner_reads_them(text: str, data: str, value: str) -> None:
    assert github.command("warning", text, title=text) == f"::warning title={value}::{data}"


@hostile_texts.few
@given(hostile_texts.findings())
def test_any_text_stays_in_its_command(findings: Findings) -> None:
    found = commands(findings)
    assert [name for name, _, _ in found] == ["notice", "warning", "warning", "warning"]
    for (_, properties, _), finding in zip(found[1:], findings.functions, strict=False):
        file = finding.info.file
        is_carried = len(file) <= 4_096 and all(letter.isprintable() or letter in "\t\r\n" for letter in file)
        assert properties.get("file", "") == (file if is_carried else "")
        assert properties["title"] == f"perfdiff: {shortened(printable(finding.info.name), 1_000)} got slower"


def outcome() -> Outcome:
    return Outcome(replace(made.findings(), skipped=(SkippedFunction("f", "f.c", "why"),)), lambda function, side: None)


def test_the_summary_of_the_step_gets_the_markdown_behind_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary"
    summary.write_text("# tests\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    destinations.deliver(outcome(), destinations.chosen(options.Format.GITHUB, None))
    assert capsys.readouterr().out.startswith("::notice title=perfdiff::Regression")
    assert summary.read_text().startswith("# tests\n## Regression: insert")


@pytest.mark.parametrize("chosen", [each for each in options.Format if each is not options.Format.GITHUB])
def test_other_formats_leave_the_summary_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], chosen: options.Format
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    destinations.deliver(outcome(), destinations.chosen(chosen, [tmp_path / "report"]))
    assert not (tmp_path / "summary").exists()


def test_a_summary_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere" / "summary"))
    with pytest.raises(UsageError, match="cannot be written"):
        destinations.chosen(options.Format.GITHUB, None)
