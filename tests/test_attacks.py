"""Patterns that sources have, and inputs on which these try much."""

from __future__ import annotations

import re
import time

import pytest

from perfdiff.fuzzing import attacks, patterns
from perfdiff.fuzzing.families import InputFamily

PYTHON = (
    r"""
# it doesn't end here
ESCAPED = r"\\[" + MARKS + "]"
MARKS = r"""
    + "'''"
    + r"""!"#*"""
    + "'''"
    + r'''
class Scanner:
    EMPHASIS = (
        r'(\*{1,2})('  # opens
        r'(?:' + ESCAPED + r'|[^*])*'
        r')\1'
    )
    LINE = re.compile(r"""
        ^(.*\S+.*\n)*   # any number of lines
        """, re.X)
    def said(self):
        return "It isn't one" + str(self)
'''
)
JAVA = 'Pattern WORDS = Pattern.compile("^(\\\\w+\\\\s?)*" + // words\n    "\\"$");'
PHP = "<?php return preg_match('~^(?<name>\\w+[ \\t]*)+:~', $line);"


def texts(source: str) -> list[str]:
    return patterns._patterns({"a": tuple(source.split("\n"))})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (PYTHON, [r"""(\*{1,2})((?:\\[!"#*]|[^*])*)\1""", "\n        ^(.*\\S+.*\\n)*   # any number of lines\n        "]),
        (JAVA, [r'^(\w+\s?)*"$']),
        (PHP, ["~^(?<name>\\w+[ \t]*)+:~"]),
        ("puts(\"a + b\"); /* it's */ char c = '*';", []),
    ],
    ids=["Python", "Java", "PHP", "C, without any"],
)
def test_texts_are_put_together_as_the_program_does_it(source: str, expected: list[str]) -> None:
    said = texts(source)
    assert [text for text in said if text in expected] == expected
    assert all("it" not in text for text in said), "a text begins in a comment"
    assert all(patterns.parsed(text) is not None for text in expected)


def test_patterns_that_both_sides_have_are_left_out() -> None:
    base, head = {"a.py": ('A = r"a+b"', 'B = r"(?:c|d)*e"')}, {"b.py": ('A = r"a+b"', 'B = r"(?:c|c)*e"')}
    assert [str(tree) for tree in patterns.changed([base, head])] == [str(patterns.parsed(text)) for text in ("(?:c|c)*e", "(?:c|d)*e")]
    assert len(patterns.changed([head])) == 2


@pytest.mark.parametrize(
    ("pattern", "harmless"),
    [
        (r"(a|aa)+$", r"a+$"),
        (r"(\w+\s?)*:", r"(\w+\s)*\w*:"),
        (r"""<\w+(?:\s+\w+=(?:".*?"|'.*?'))*\s*>""", r"""<\w+(?:\s+\w+=(?:"[^"]*"|'[^']*'))*\s*>"""),
        (r"\*((?:\\[\\*]|[^*])*(?:\\\*|[^\s*]))\*", r"\*([^*]*)\*"),
        (r"(\s*;)?\s*\s*\s*$", r"(\s*;)?\s*$"),
        (r"(?:<!--[\s\S]*?-->)+$", None),
        (r"(['\"])(?=\S)(?:[^'\"]|\\.|.)*?\1#", None),
    ],
)
def test_a_pattern_that_backtracks_takes_long_with_one_of_its_attacks(pattern: str, harmless: str | None) -> None:
    slow, fast = re.compile(pattern), harmless and re.compile(harmless)
    tree = patterns.parsed(pattern)
    assert tree is not None

    def seconds(compiled: re.Pattern[str], text: str) -> float:
        begun = time.process_time()
        compiled.search(text)
        return time.process_time() - begun

    for segments in attacks.attacks(tree):
        family = InputFamily("w", segments)
        for times in (*range(4, 30), *(int(30 * 1.3**step) for step in range(13))):
            took = seconds(slow, family.content(times).decode())
            if took > 0.02:
                assert fast is None or seconds(fast, family.content(times).decode()) < took / 5
                return
    pytest.fail("no attack shows it")


def test_attacks_on_any_pattern_are_few_and_grow() -> None:
    tree = patterns.parsed(r"(?P<a>x{2,3}|\d+)(?(a)y|z)(?>b+)c*+(?<!d)(?=e)[^\W_]+\b$")
    families = set(attacks.attacks(tree))
    assert 0 < len(families) < 200
    assert all(InputFamily("w", segments).grows for segments in families)
