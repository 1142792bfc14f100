"""What a grammar suggests as inputs of a search, and what is said of a file that is none."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from lark import Lark

from perfdiff.config import WorkloadConfig
from perfdiff.errors import ConfigError, UsageError
from perfdiff.fuzzing import grammars
from perfdiff.fuzzing.families import InputFamily, plain
from perfdiff.fuzzing.search import InputSearch, SearchLimits
from perfdiff.measuring import seeds
from perfdiff.records.schema import Side
from test_fuzzing import Simulated

JSON = r"""
start: value
?value: object | array | ESCAPED_STRING | SIGNED_NUMBER | "true" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: ESCAPED_STRING ":" value
%import common (ESCAPED_STRING, SIGNED_NUMBER, WS)
%ignore WS
"""
LANGUAGE = """
start: statement+
statement: "if" sum "then" statement+ "end" | "let" NAME "=" sum ";" | "print" sum ";"
?sum: sum "+" term | term
?term: NAME | /[0-9]+/ | "(" sum ")" | "not" term | NAME "(" [sum ("," sum)*] ")"
NAME: /[a-z_][a-z0-9_]*/
%ignore " "
"""


def suggested(room: Path, text: str) -> list[InputFamily]:
    file = room / "inputs.lark"
    file.write_text(text)
    return [InputFamily("w", parts) for parts in grammars.suggested(file)]


@pytest.mark.parametrize("text", [JSON, LANGUAGE])
def test_all_that_is_suggested_follows_from_the_grammar_in_any_size(tmp_path: Path, text: str) -> None:
    parser = Lark(text, parser="lalr")
    families = suggested(tmp_path, text)
    assert len(families) > 30
    for family in families:
        for times in (1, 4):
            parser.parse(family.content(times).decode())


def test_what_may_stand_within_itself_or_after_another_does_so_many_times_alike_and_with_other_names(tmp_path: Path) -> None:
    contents = [family.content(3).decode() for family in suggested(tmp_path, JSON)]
    assert "[[[null]]]" in contents
    assert any(isinstance(json.loads(text), list) and len(json.loads(text)) > 3 for text in contents)
    assert any(text.startswith("{") and len(json.loads(text)) > 3 for text in contents), "no key twice"
    assert "true" in contents, "a sentence of each rule"
    contents = [family.content(3).decode() for family in suggested(tmp_path, LANGUAGE)]
    assert "print a+a10+a11+a12;" in contents
    assert "print not not not a;" in contents


def test_a_name_that_is_declared_and_has_no_text_is_left_out(tmp_path: Path) -> None:
    families = suggested(tmp_path, 'start: "a" start | block | "b"\nblock: DEEPER start\n%declare DEEPER\n')
    assert b"aaab" in [family.content(3) for family in families]


@pytest.mark.parametrize(
    "text",
    ['start: "a', 'other: "a"', 'start: "a" start', None],
    ids=["no grammar", "no start", "no end", "no file"],
)
def test_what_is_no_grammar_is_said(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "inputs.lark"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=r"inputs\.lark") as raised:
        grammars.suggested(file)
    assert raised.value.slug == "config-grammar"


def test_without_lark_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lark", None)
    with pytest.raises(ConfigError, match=r"pip install 'perfdiff\[search\]'") as raised:
        grammars.suggested(tmp_path / "inputs.lark")
    assert raised.value.slug == "config-grammar"


def test_what_only_a_sentence_reaches_is_found_from_a_seed_that_says_nothing_of_it(tmp_path: Path) -> None:
    """Head walks up from each list within another, of texts that are JSON and nothing else."""

    def depth(content: bytes, _: Mapping[str, float | str]) -> tuple[int, int]:
        try:
            json.loads(content)
        except (ValueError, RecursionError):
            return 10, 0
        return len(content) + 10, content.count(b'":[') ** 2

    oracle = Simulated(lambda content, _: (depth(content, {})[0], 0), depth)
    own, derived = (
        InputSearch(oracle, SearchLimits(1024, 1e9, 200), (), (), lambda _: None, 1.05, families).worst_inputs([plain("w", b"7", {})])
        for families in ((), suggested(tmp_path, JSON))
    )
    (entry,) = derived
    assert not own
    assert entry.family.content(2).count(b'":[') == 2
    assert np.sum(entry.trial.counts[Side.HEAD]) > 10 * np.sum(entry.trial.counts[Side.BASE])


def test_a_grammar_needs_a_file_as_input_and_has_all_values_of_parameters(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("7")
    parts = {"w": [plain("", b"x", {}).segments]}
    config = WorkloadConfig("w", "./read {input} {mode}", {"mode": ("fast", "safe")}, inputs=("a.json",), grammar="inputs.lark")
    derived = seeds.seeds([config], tmp_path, tmp_path, parts).derived
    assert [family.values for family in derived] == [{"mode": "fast"}, {"mode": "safe"}]
    with pytest.raises(UsageError, match="'w' has a grammar and no file"):
        seeds.seeds([WorkloadConfig("w", "./read {n}", {"n": (10,)}, grammar="inputs.lark")], tmp_path, tmp_path, parts)
