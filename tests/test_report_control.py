"""Control characters in texts of strangers: visible and harmless in every format, and names of files that still lead there."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest

import findings as made
import pprof_reader
from perfdiff import reproduction
from perfdiff.analysis.findings import Findings
from perfdiff.analysis.telling.minimal import cheapest
from perfdiff.configuration import tomlfile
from perfdiff.records.differences import SkippedFunction
from perfdiff.report import document, markdown, ticket
from perfdiff.report.json_text import json_text
from perfdiff.report.renderers import RENDERERS
from perfdiff.report.ticket import Ticket
from test_ticket import nothing, with_points

BAD = "a\x1b[31m\x07\x9b0m\x7f\u202e\u2028\udce9b"
FILES = ["src/a\x1b[31m.c", "src/a\nb.c", "src/\x9bü \t%1B.c", "src/x\udce9,y:z.c", "src/\u202e.c", "src/" + "d/" * 600 + "f.c"]


def of_file(file: str, says: str = "slower") -> Findings:
    """Return findings of one regressed function in a file, everything else of which says something as well."""
    first = made.regressed()
    info = replace(first.info, file=file, name=says, base=replace(first.info.base, file=file), head=replace(first.info.head, file=file))
    lines = tuple(replace(line, file=file) for line in first.lines)
    finding = replace(first, info=info, happened=made.worded(says), reason=made.worded(says), lines=lines)
    return replace(made.hostile(), sentence=made.worded(says), functions=(finding,), skipped=(SkippedFunction(says, file, says),))


def shown_controls(text: str) -> set[str]:
    """Return the characters of a text that would steer what it is shown in."""
    return {letter for letter in text if not letter.isprintable()} - {"\n"}


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("file", [*FILES, BAD])
def test_no_format_holds_a_control_character(form: str, file: str) -> None:
    rendered = RENDERERS[form](document.build(of_file(file, BAD)))
    text = rendered if isinstance(rendered, str) else "\n".join(pprof_reader.read(rendered).strings)
    allowed = {"\t"} if form == "github" else set()
    assert shown_controls(text) <= allowed
    text.encode()


@pytest.mark.parametrize("file", FILES)
def test_names_of_files_in_json_are_those_of_the_files(file: str) -> None:
    report = json.loads(RENDERERS["json"](document.build(of_file(file, BAD))))
    (function,) = report["functions"]
    assert function["file"] == file
    assert report["skipped"][0]["file"] == file
    assert "\\x1b[31m" in function["name"]
    assert "\\x1b[31m" in report["sentence"]


@pytest.mark.parametrize("file", FILES)
def test_addresses_in_sarif_lead_to_the_files(file: str) -> None:
    (result,) = json.loads(RENDERERS["sarif"](document.build(of_file(file))))["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote_to_bytes(uri) == file.encode(errors="surrogateescape")


@pytest.mark.parametrize(("file", "is_carried"), list(zip(FILES, [False, True, False, False, False, True], strict=True)))
def test_github_is_led_to_files_whose_names_it_can_be_told(file: str, is_carried: bool) -> None:
    warning = RENDERERS["github"](document.build(of_file(file))).splitlines()[1]
    properties = dict(part.split("=", 1) for part in warning.removeprefix("::warning ").partition("::")[0].split(","))
    if is_carried:
        assert properties["file"].replace("%0A", "\n").replace("%3A", ":").replace("%2C", ",").replace("%25", "%") == file
    else:
        assert properties.keys() == {"title"}
        assert ".c:44)" in warning


def test_a_tab_or_line_end_is_told_to_github_as_it_is() -> None:
    warning = RENDERERS["github"](document.build(of_file("a\tb\r\n%0A,c:.c"))).split("\n")[1]
    assert "file=a\tb%0D%0A%250A%2Cc%3A.c,line=44" in warning


def test_a_ticket_holds_no_control_character() -> None:
    findings = with_points(made.findings())
    points = tuple(replace(point, command=f"./a {BAD}\t{point.id}", workload=f"sort{BAD}") for point in findings.points)
    findings = replace(findings, points=points, sentence=made.worded(BAD))
    about = Ticket(findings, nothing, f"#!/bin/sh\n./a {BAD}\n", {"CFLAGS": BAD}, cheapest(findings), f"perfdiff {BAD}")
    files = dict(ticket.files(about))
    assert {"ticket.md", "report.html", "report.json"} <= files.keys()
    for name in ("ticket.md", "report.html", "report.json"):
        assert shown_controls(files[name].decode()) == set(), name
    assert "\\x1b[31m" in files["ticket.md"].decode()


def test_code_in_markdown_shows_control_characters() -> None:
    assert markdown.code("a\x1bb") == "`a\\x1bb`"
    assert markdown.fenced(["a\tb\x1b"], "sh") == "```sh\na       b\\x1b\n```"


@pytest.mark.parametrize("text", ["a", BAD, "\x7f\x00\U000e0001\ud800ü関"])
def test_json_is_the_same_and_shows_what_it_holds(text: str) -> None:
    written = json_text({text: [text, float("nan")]})
    assert shown_controls(written) == set()
    assert json.loads(written) == {text: [text, None]}
    written.encode()


def test_a_script_shows_control_characters_and_means_them(tmp_path: Path) -> None:
    text = "it's \x1b[31m\x9b\u202e~/x $HOME"
    word = reproduction._word(text)
    assert shown_controls(word) == set()
    said = subprocess.run(["sh", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout
    assert said.decode() == text
    comment = reproduction._comment("one \x1b\ntwo")
    assert comment == "# one ?\n# two"


def test_toml_shows_control_characters_and_means_them(tmp_path: Path) -> None:
    text = "a\x1b\x7f\x9b\u202e\U000e0001\n"
    written = f"a = {tomlfile.written(text)}"
    assert written.isprintable()
    assert tomlfile.tomllib.loads(written) == {"a": text}
