"""How long a survey may take: the longest points are left out where others of their workload stand for them."""

from __future__ import annotations

import pytest

from perfdiff.measuring.surveytime import LEAST_S, MOST_PLAIN_RUNS, SurveyTime
from perfdiff.records.schema import Point

POINTS = [Point(number, name, {}, name) for number, name in enumerate(["sort", "sort", "sort", "print"])]


@pytest.mark.parametrize(
    ("plain_s", "slower", "slowdown", "tallied", "timed"),
    [
        ((0.1, 0.2, 0.4, 0.1), (), 3.0, {0, 1, 2, 3}, {0, 1, 2, 3}),
        ((0.1, 1.0, 4.0, 0.1), (), 6.0, {0, 1, 3}, {0, 1, 3}),  # the third would take 24 of the 26 s for counting calls
        ((0.1, 1.0, 4.0, 0.1), (2,), 20.0, {0, 1, 2, 3}, {0, 2, 3}),  # it alone is slower
        ((0.1, 1.0, 4.0, 0.1), (0, 2), 6.0, {0, 1, 3}, {0, 1, 3}),
        ((0.1, 0.2, 0.4, 40.0), (), 20.0, {0, 1, 2, 3}, {0, 3}),  # no other point stands for the last
    ],
)
def test_points_are_asked_while_there_is_time_or_where_nothing_stands_for_them(
    plain_s: tuple[float, ...], slower: tuple[int, ...], slowdown: float, tallied: set[int], timed: set[int]
) -> None:
    time = SurveyTime.of(POINTS, dict(enumerate(plain_s)), slower)
    asked: list[Point] = []
    for point in time.points:
        if time.may_tally(point, asked):
            time.tallied(point, slowdown * plain_s[point.id])
            asked.append(point)
    chosen = time.timed(asked, {point.id: 1 for point in asked})
    assert ({point.id for point in asked}, {point.id for point in chosen}) == (tallied, timed)


def test_a_survey_has_as_much_time_as_some_plain_runs_of_all_points() -> None:
    assert [SurveyTime.of(POINTS, dict.fromkeys(range(4), seconds), ()).limit_s for seconds in (0.1, 10.0)] == [
        LEAST_S,
        MOST_PLAIN_RUNS * 40.0,
    ]


def test_the_longest_point_so_far_tells_how_much_longer_the_next_one_takes() -> None:
    time = SurveyTime.of(POINTS, {0: 0.01, 1: 1.0, 2: 3.0, 3: 0.01}, ())
    for point, seconds in ((0, 0.2), (1, 2.0)):
        time.tallied(POINTS[point], seconds)
    assert time.may_tally(POINTS[2], POINTS[:2])
