"""Texts from strangers are made harmless once, wherever they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import findings as made
from perfdiff.analysis.claims import claim
from perfdiff.analysis.findings import Verdict
from perfdiff.records.schema import Source
from perfdiff.report.printable import printable, printable_lines, printable_values, shortened, with_texts
from perfdiff.report.sentences.catalogue import say


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("std::vector<int>::push_back(int&&)", "std::vector<int>::push_back(int&&)"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("a\r\nb\tc", "a  b c"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("caf\udce9", "caf\\udce9"),
        ("x\u202ey\u2066z\u200b", "x\\u202ey\\u2066z\\u200b"),
        ("Größe µ 関数 ×", "Größe µ 関数 ×"),
    ],
)
def test_only_what_is_not_printable_is_escaped(text: str, says: str) -> None:
    assert printable(text) == says


@given(st.text())
def test_whatever_comes_is_one_printable_line(text: str) -> None:
    assert printable(text).isprintable()
    printable(text).encode()


def test_source_keeps_its_lines_and_indentation() -> None:
    assert printable_lines("{\n\treturn 1;\r\n}\x1b") == ("{", "        return 1;", "}\\x1b")
    assert printable_values(Source("a\nb.c", 3, "{\n\treturn;\n}\n")).text == "{\n        return;\n}\n"


def test_every_text_inside_a_value_is_reached() -> None:
    assert "\x1b" not in repr(printable_values(made.hostile())).replace("\\\\x1b", "")
    assert "\\x1b[31m" in printable_values(made.hostile()).functions[0].info.name


def test_values_without_hostile_text_are_equal() -> None:
    assert printable_values(made.findings()) == made.findings()
    assert printable_values(made.findings()).verdict is Verdict.REGRESSION


def test_shortened_names_keep_both_ends() -> None:
    assert shortened("src/very/long/path/list.c:42", 15) == "src/ver…st.c:42"
    assert shortened("short", 15) == "short"


def test_facts_of_claims_are_made_printable_and_their_kinds_stay() -> None:
    nested = claim("function-differs", name="f\x1b", machines=claim("rated", name="waits\n", ratio=1.5))
    assert say(printable_values(nested)) == "`f\\x1b` is waits  (×1.5)"
    assert (
        say(with_texts(nested, lambda text: text.replace("rated", "…").replace("name", "…").replace("f\x1b", "g")))
        == "`g` is waits\n (×1.5)"
    )
