"""What changed, as a sentence cites it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import findings as made
from differing import entities, reasons_of
from perfdiff.analysis.causes.citation import cited_lines, depends
from perfdiff.records.schema import Change, Source
from perfdiff.report.sentences.catalogue import say

BASE = "int f(void)\n\treturn g();\n"


@pytest.mark.parametrize(
    ("head", "cited"),
    [
        ("int f(void)\n{\n\tif (slow) {\n\t\tg();\n\t}\n\treturn g();\n}\n", "(a.c, line 9: `if (slow) {`; 10: `g();`)"),
        ("int f(void)\n{\n\treturn g();\n}\n", "(a.c, line 8: `{`; 10: `}`)"),
        (BASE, ""),
    ],
    ids=["brackets beside code", "brackets alone", "nothing"],
)
def test_changed_lines_are_cited_without_brackets_where_there_are_others(head: str, cited: str) -> None:
    info = replace(made.regressed().info, base=Source("a.c", 7, BASE), head=Source("a.c", 7, head))
    assert say(cited_lines(info)).strip() == cited


def test_only_lines_of_code_are_cited() -> None:
    base = Source("a.py", 3, 'def f(x):\n    """Old text."""\n    return x\n', ((4, 4),))
    head = Source("a.py", 3, 'def f(x):\n    """New text,\n    and more."""\n    return x + 1\n', ((4, 5),))
    info = replace(made.regressed().info, base=base, head=head)
    assert say(cited_lines(info)) == " (a.py, line 6: `return x + 1`)"


def test_lines_that_are_gone_are_cited_where_head_has_no_others() -> None:
    base = "int f(void)\n{\n\tif (known())\n\t\treturn 0;\n\treturn g();\n}\n"
    head = "int f(void)\n{\n\treturn g();\n}\n"
    info = replace(made.regressed().info, base=Source("a.c", 7, base), head=Source("a.c", 30, head))
    assert say(cited_lines(info)) == " (gone from a.c, line 9: `if (known())`; 10: `return 0;`)"


def test_what_a_text_newly_does_is_cited_before_its_lines() -> None:
    base, head = (Source("a.py", 1, f"import re\n{line}TABLE = {{}}\n") for line in ("", "import secrets\n"))
    info = replace(made.regressed().info, base=base, head=head, reasons=reasons_of(("body changed", "now imports `secrets`")))
    assert say(cited_lines(info)) == " (now imports `secrets`; a.py, line 2: `import secrets`)"


def test_of_many_reasons_the_first_are_cited_and_the_others_counted() -> None:
    reasons = reasons_of(f"uses function f{number}, which depends on macro M (a.c:1)" for number in range(5))
    info = replace(made.regressed().info, change=Change.AFFECTED, reasons=reasons, culprits=entities(("function f0",)))
    said = say(depends(info))
    assert [f"f{number}" in said for number in range(5)] == [True] * 3 + [False] * 2
    assert said.endswith("; and 2 more like that")
