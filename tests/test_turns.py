"""Which point's turn it is where several machines make pairs at the same time."""

from __future__ import annotations

from perfdiff.collect.runs.turns import Turns
from perfdiff.records.schema import Point


def test_pairs_that_are_under_way_count_as_long_as_the_points_others() -> None:
    short, long = (Point(id_, "sort", {"n": id_}, "./sort") for id_ in (0, 1))
    turns = Turns((short, long))
    begun = []
    for _ in range(2):  # two machines, of which neither is done
        point = turns.next
        begun.append((point.id, turns.begin(point)))
    assert begun == [(0, 0), (1, 0)]
    turns.took(short, 1.0)
    turns.took(long, 3.5)
    for _ in range(3):
        turns.begin(turns.next)
    assert turns.next is long  # 4 s are expected of the short one: 1 s is over, three more are under way
    assert turns.pairs == {0: 1, 1: 1}


def test_where_time_is_over_points_with_too_few_begun_pairs_come_first() -> None:
    few, many = (Point(id_, "sort", {"n": id_}, "./sort") for id_ in (0, 1))
    turns = Turns((few, many))
    for point, seconds in ((many, 1.0), (many, 1.0), (few, 9.0)):
        turns.begin(point)
        turns.took(point, seconds)
    assert turns.next is many
    assert turns.next_short_of(2) is few
    assert turns.begin(few) == 1
    assert turns.next_short_of(2) is many


def test_a_point_that_is_open_again_has_turns_again() -> None:
    short, long = (Point(id_, "sort", {"n": id_}, "./sort") for id_ in (0, 1))
    turns = Turns((short, long))
    turns.close(short, long)
    turns.open_again(long)
    assert turns.open == (long,)
