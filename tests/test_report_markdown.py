"""The Markdown report: small enough for a comment, folded, and inert whatever names it holds."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import findings as made
from perfdiff.analysis.findings import Verdict
from perfdiff.records.differences import SkippedFunction
from perfdiff.report import markdown
from perfdiff.report.blocks import Cell, Column, Sentence, Table, Tone
from perfdiff.report.document import build


def test_answer_table_and_folded_evidence() -> None:
    said = markdown.render(build(made.findings()))
    assert said.startswith("## Regression: insert (src/list.c:42) costs ×331 a call at list-&gt;size = 28,500; ")
    assert "- **cost**: 41 ns → 26 µs a call at list-&gt;size = 28,500 (time, callees included)" in said
    assert "|1|`insert`|`src/list.c:42`|**regression**|changed|30,000|41 ns → 26 µs|**×331 \\[318, 346\\]**|constant → linear|" in said
    assert "<details><summary>#1 <code>insert</code> <code>src/list.c:42</code> regression: ×331 [318, 346]</summary>" in said
    assert "\n-    if (!list->tail)\n" in said
    assert "\n+    while (*place)\n" in said
    assert said.count("<details>") == said.count("</details>") == 9
    assert "Left out" not in said


@pytest.mark.parametrize("count", [50, 500])
def test_a_large_report_is_cut_with_a_sentence_that_says_what_is_missing(count: int) -> None:
    said = markdown.render(build(made.many(count)))
    assert len(said.encode()) <= 60_000
    assert said.count("<details>") == said.count("</details>")
    shown = said.count("<details><summary>#")
    last = said.strip().splitlines()[-1]
    assert last.startswith("Left out to keep this under 60,000 bytes: ")
    assert f"the sections of {count - shown} functions" in last
    assert shown >= 2


def test_names_longer_than_the_limit_do_not_break_the_limit() -> None:
    long = "é" * 100_000
    function = replace(
        made.regressed(),
        happened=made.worded(long),
        info=replace(made.regressed().info, name=long, file=long),
        chain=(made.worded(long),) * 5,
    )
    skipped = tuple(SkippedFunction(long, f"{folder}/{long}", f"{folder}: {long}") for folder in range(12))
    findings = replace(made.findings(functions=(function,)), sentence=made.worded(long), skipped=skipped)
    said = markdown.render(build(findings))
    assert len(said.encode()) <= 60_000
    assert said.startswith("## Regression: é")
    assert "the list of 12 functions that were not measured" in said


def test_lines_that_run_more_often_stand_behind_the_cause() -> None:
    said = markdown.render(build(made.findings()))
    assert "- **line**: src/list.c:49, `while (*place)`, new: 0.5·n²; 450,015,000 times at lists n=30000\n" in said


@pytest.mark.parametrize("verdict", list(Verdict))
def test_whole_runs_stand_in_the_report_of_every_verdict(verdict: Verdict) -> None:
    document = build(replace(made.findings(), verdict=verdict))
    said = markdown.render(document)
    assert document.end_to_end
    assert said.count("<details><summary>What was measured</summary>") == 1
    assert all(f"|{markdown.code(row[0].text)}|" in said for row in document.end_to_end.rows)


def test_whatever_does_not_fit_is_named() -> None:
    """A table of points beside a full overview, and blocks of a report of its own, are left out with a word, titles and all."""
    whole = build(made.many(500))
    (point, *_) = whole.end_to_end.rows
    long = replace(whole, end_to_end=replace(whole.end_to_end, rows=(point,) * 3_000), notes=replace(whole.notes, texts=("x" * 900,) * 60))
    last = markdown.render(long).strip().splitlines()[-1]
    assert "what was measured" in last
    assert f"“{long.notes.title}”" in last
    tables = [Table(f"table {number}", (Column("text"),), ((Cell("x" * 900),),) * 15) for number in range(9)]
    said = markdown.render_blocks(Sentence("Found.", Tone.STRONG), "a..b", tables)
    shown = re.findall(r"^\*\*(table \d)\*\*\n\n\|text\|", said, re.MULTILINE)
    assert 0 < len(shown) < len(tables)
    assert said.count("**table") == len(shown)
    assert all(f"15 rows of “table {number}”" in said for number in range(len(shown), len(tables)))


def test_hostile_names_are_neither_markup_nor_mentions() -> None:
    said = markdown.render(build(made.hostile()))
    # A line of HTML is no Markdown until the next empty line.
    prose = re.sub(r"^(`{3,}).*?^\1$|<code>.*?</code>", "", said, flags=re.MULTILINE | re.DOTALL)
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", prose)
    assert "<script" not in outside
    assert "\x1b" not in said
    assert not re.search(r"(?<!\\)\[x(?<!\\)\]\(", outside)
    assert not re.search(r"@(?!<!-- -->)\w", outside)
    rows = [line for line in said.splitlines() if line.startswith("|1|")]
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 10


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# heading", "\\# heading"),
        ("1. item", "1\\. item"),
        ("- item", "\\- item"),
        ("-9 ns to 3 ns", "-9 ns to 3 ns"),
        ("2.1 ms", "2.1 ms"),
        ("a*b_c", "a\\*b\\_c"),
        ("fixes #12", "fixes #<!-- -->12"),
        ("https://example.org", "https:<!-- -->//example.org"),
        ("&lt;", "&amp;lt;"),
    ],
)
def test_text_is_escaped_where_it_would_be_markup_and_only_there(text: str, says: str) -> None:
    assert markdown.escaped(text) == says


@given(st.text(st.characters(blacklist_categories=("C", "Zl", "Zp", "Zs"), whitelist_characters=" "), min_size=1, max_size=100))
def test_a_code_span_holds_its_text_whatever_backticks_are_in_it(text: str) -> None:
    span = markdown.code(text)
    fence = re.match("`+", span)
    assert fence is not None
    length = len(fence[0]) if text[0] != "`" else len(fence[0].split(" ")[0])
    inner = span[length:-length]
    assert inner in (text, f" {text} ")
    assert all(len(run) < length for run in re.findall("`+", text))


def test_code_that_a_sentence_quotes_becomes_a_code_span() -> None:
    assert markdown.prose("calls `a_b(*p)` twice") == "calls `a_b(*p)` twice"
    assert markdown.prose("an `odd name") == "an \\`odd name"
    assert markdown.prose("`a|b`", in_table=True) == "`a\\|b`"


def test_no_regression_has_coverage_in_front() -> None:
    said = markdown.render(
        build(replace(made.findings(Verdict.UNCHANGED, made.others()[1:2]), sentence=made.worded("no function got slower")))
    )
    assert said.splitlines()[0] == "## No regression: no function got slower"
    assert said.index("**not measured**") < said.index("<details>")
