"""Points share the time of whole runs, not their number."""

from __future__ import annotations

import pytest

from perfdiff.collect.turns import Turns
from perfdiff.records.schema import Point

SHORT, LONG = (Point(id_, "w", {}, "") for id_ in (1, 2))
SECONDS = {SHORT.id: 0.01, LONG.id: 0.13}


def run(turns: Turns, seconds: float) -> None:
    """Give turns until so many seconds are over."""
    spent = 0.0
    while spent < seconds:
        point = turns.next
        turns.took(point, SECONDS[point.id])
        spent += SECONDS[point.id]


def test_each_open_point_gets_the_same_time() -> None:
    turns = Turns((SHORT, LONG))
    run(turns, 2.6)
    assert turns.pairs[SHORT.id] == pytest.approx(130, abs=14)
    assert turns.pairs[LONG.id] == pytest.approx(10, abs=1)
    assert turns.fewest == turns.pairs[LONG.id]


def test_once_time_is_over_only_points_that_still_need_pairs_have_turns() -> None:
    turns = Turns((SHORT, LONG))
    run(turns, 0.3)
    had = turns.pairs[SHORT.id]
    assert turns.pairs[LONG.id] < 5 <= had
    while turns.fewest < 5:
        point = turns.next_short_of(5)
        turns.took(point, SECONDS[point.id])
    assert (turns.pairs[SHORT.id], turns.pairs[LONG.id]) == (had, 5)
    assert turns.next_short_of(5) is turns.next


def test_closed_points_leave_their_time_to_the_others() -> None:
    turns = Turns((SHORT, LONG))
    turns.close(SHORT)
    run(turns, 1.3)
    assert turns.open == (LONG,)
    assert turns.pairs[SHORT.id] == 0
    assert turns.pairs[LONG.id] >= 10


def test_what_is_missing_is_told_in_seconds_of_the_open_points() -> None:
    turns = Turns((SHORT, LONG))
    run(turns, 2.6)
    needed = {SHORT.id: 1000, LONG.id: turns.pairs[LONG.id] + 4}
    short = (1000 - turns.pairs[SHORT.id]) * 0.01
    assert turns.missing_s(needed) == pytest.approx(short + 4 * 0.13)
    turns.close(SHORT)
    assert turns.missing_s(needed) == pytest.approx(4 * 0.13)
    assert turns.missing_s({SHORT.id: 0, LONG.id: 0}) == 0
