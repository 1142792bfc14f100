"""Quantities and lists as people write them."""

from __future__ import annotations

import pytest

from perfdiff import units


@pytest.mark.parametrize(
    ("texts", "joint", "said"),
    [
        ([], ",", ""),
        (["a"], ",", "a"),
        (["a", "b"], ",", "a, b"),
        (["a", "b", "c"], ",", "a, b and 1 more"),
        (["a; x", "b", *("c" * 1500)], ";", "a; x; b; and 1,500 more"),
    ],
)
def test_a_long_list_is_its_beginning_and_how_many_more_there_are(texts: list[str], joint: str, said: str) -> None:
    assert units.listed(texts, 2, joint) == said


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (units.count(9_999.7), "10,000"),
        (units.count(9_999.4), "9999"),
        (units.ratio(999.7), "×1,000"),
        (units.significant(99.7, 2), "100"),
        (units.duration(999.7e9), "1,000 s"),
    ],
)
def test_numbers_that_round_to_one_digit_more_have_no_exponent(said: str, text: str) -> None:
    assert said == text
