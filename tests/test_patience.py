"""When pairs of whole runs end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfdiff.config import MeasureConfig
from perfdiff.measuring import patience
from perfdiff.measuring.patience import Patience
from perfdiff.statistics.pairs import FEWEST_PAIRS, FIRST_LOOK

BUDGET_S = 30.0


class Clock:
    """A clock that the test sets."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(patience, "time", made)
    return made


@pytest.mark.parametrize(
    ("spent_s", "has_too_few", "missing_s", "is_over"),
    [
        (29.0, False, 0.0, False),  # there is time
        (31.0, False, 0.0, True),  # nothing would decide
        (31.0, False, 20.0, False),  # so much more decides
        (31.0, False, 40.0, True),  # so much more is too much
        (31.0, True, 0.0, False),  # nothing could be said of some point
    ],
)
def test_more_time_than_the_budget_is_taken_where_it_decides(
    clock: Clock, spent_s: float, has_too_few: bool, missing_s: float, is_over: bool
) -> None:
    made = Patience(BUDGET_S)
    clock.now += spent_s
    made.decide(has_too_few, lambda: missing_s)
    assert made.is_over is is_over
    assert made.wants_fewest is (spent_s > BUDGET_S and missing_s != 20.0)


def test_what_was_granted_is_granted_once(clock: Clock) -> None:
    made = Patience(BUDGET_S)
    clock.now += 31
    made.decide(False, lambda: 20.0)
    clock.now += 21
    made.decide(False, lambda: 20.0)
    assert made.is_over


@pytest.mark.parametrize(("spent_s", "has_too_few", "is_over"), [(1.0, False, True), (1.0, True, False), (31.0, True, True)])
def test_once_a_point_is_slower_others_get_the_fewest_pairs_within_the_budget(
    clock: Clock, spent_s: float, has_too_few: bool, is_over: bool
) -> None:
    made = Patience(BUDGET_S)
    made.saw_slower()
    assert made.wants_fewest
    clock.now += spent_s
    made.decide(has_too_few, lambda: 0.0)
    assert made.is_over is is_over


@pytest.mark.parametrize(("spent_s", "look_s", "pairs"), [(40.0, 50.0, FIRST_LOOK), (40.0, 90.0, FEWEST_PAIRS)])
def test_long_runs_go_on_to_their_first_look_where_that_is_not_too_late(clock: Clock, spent_s: float, look_s: float, pairs: int) -> None:
    made = Patience(BUDGET_S, first_look_s=120.0)
    clock.now += spent_s
    assert made.fewest(look_s) == pairs
    made.saw_slower()
    assert made.fewest(look_s) == FEWEST_PAIRS


def test_who_sets_the_budget_gets_no_longer_runs() -> None:
    assert Patience(BUDGET_S, replace(MeasureConfig(), budget_s=BUDGET_S).first_look_s).fewest(1.0) == FEWEST_PAIRS
    assert Patience(BUDGET_S, MeasureConfig().first_look_s).fewest(1.0) == FIRST_LOOK
