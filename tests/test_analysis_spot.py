"""Which calls a ratio is told of."""

from __future__ import annotations

from dataclasses import replace

import pytest

import findings as made
from perfdiff.analysis.compare.compared import Comparison, StratumContrast, Typical
from perfdiff.analysis.stats.runs import Contrast
from perfdiff.analysis.telling.metric import spot


@pytest.mark.parametrize(
    ("calls", "told"),
    [("len(s) = 63 at eval n=50", None), ("len(s) = 63", 50.0), ("len(s) = 63 at eval n=500", 50.0)],
    ids=["by the point", "by nothing", "by another number"],
)
def test_an_input_that_the_point_of_some_calls_says_is_told_once(calls: str, told: float | None) -> None:
    worst = StratumContrast(calls, True, Contrast(1.0, 0.1, 8.0, 1.0, 0.1, 5, 5), material=True)
    seen = Comparison(1, "self_ns", None, (worst,), worst, Typical(14.4, {"n": 50.0}), None, 0.0, 0.0, {}, None, (), disjoint=False)
    at = spot(seen, replace(made.regressed().metrics["wall_ns"], feature="n"))
    assert at is not None
    assert (at.switch, at.x) == (calls, told)
