"""The cheapest workload point that shows a difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import findings as made
from experiments import HEAD, Made, World
from perfdiff.analysis.acceptances import Acceptance
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Findings, Ratio, Verdict
from perfdiff.analysis.telling.minimal import cheapest
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Side

KNOWN = Acceptance("callee", "", "wall_ns", 2.5, 2.0, 3.0, "wanted")


def with_points(points: Mapping[int, Ratio], verdict: Verdict = Verdict.REGRESSION) -> Findings:
    """Return findings whose foremost function has these ratios; runs at points 0, 1 and 2 take ever longer."""
    first = made.regressed()
    wall = replace(first.metrics["wall_ns"], points=points)
    return made.findings(verdict, (replace(first, verdict=verdict, metrics={**first.metrics, "wall_ns": wall}),))


def ratio(low: float, high: float) -> Ratio:
    return Ratio((low * high) ** 0.5, low, high, 10, 10)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ({0: ratio(1.2, 1.4), 1: ratio(2, 3), 2: ratio(5, 6)}, 0),
        ({0: ratio(1.01, 1.4), 1: ratio(2, 3), 2: ratio(5, 6)}, 1),
        ({0: ratio(1.05, 1.4), 2: ratio(1.06, 6)}, 2),
        ({0: ratio(0.9, 1.1), 1: ratio(1.02, 1.2)}, None),
        ({}, None),
    ],
)
def test_the_shortest_runs_that_show_it_beyond_the_threshold(points: Mapping[int, Ratio], expected: int | None) -> None:
    found = cheapest(with_points(points))
    assert (found.point.id if found else None) == expected


def test_an_improvement_is_shown_where_its_interval_lies_below() -> None:
    found = cheapest(with_points({0: ratio(0.94, 0.99), 1: ratio(0.5, 0.9), 2: ratio(1.2, 1.4)}, Verdict.IMPROVEMENT))
    assert found is not None
    assert (found.point.id, found.ratio.high) == (1, 0.9)


def test_a_point_whose_runs_were_not_timed_comes_last() -> None:
    findings = with_points({0: ratio(2, 3), 2: ratio(2, 3)})
    found = cheapest(replace(findings, end_to_end=findings.end_to_end[1:]))
    assert found is not None
    assert found.point.id == 2


@pytest.mark.parametrize("verdict", [Verdict.UNCHANGED, Verdict.INCONCLUSIVE])
def test_without_a_difference_there_is_no_point(verdict: Verdict) -> None:
    assert cheapest(made.findings(verdict)) is None


def test_where_the_foremost_function_shows_it_nowhere_the_next_that_does_is_told() -> None:
    findings = with_points({0: ratio(0.9, 1.1)})
    first = findings.functions[0]
    wall = replace(first.metrics["wall_ns"], points={1: ratio(2, 3)})
    second = replace(first, info=replace(first.info, id=77, name="callee"), metrics={**first.metrics, "wall_ns": wall})
    found = cheapest(replace(findings, functions=(first, second)))
    assert found is not None
    assert (found.function.info.name, found.point.id) == ("callee", 1)
    assert cheapest(replace(findings, functions=(first, replace(second, accepted=(KNOWN,))))) is None


def analysed(sizes: tuple[float, ...]) -> Findings:
    """Return findings on a function that got a quadratic part, which is small at small inputs."""

    def cost(side: Side, inputs: Any) -> np.ndarray:
        n = inputs["n"]
        return np.asarray(1_000 * n + (n**2 if side is HEAD else 0 * n))

    world = World((Made("slow", cost, Change.CHANGED, calls=lambda side, n: {"": 20}),), sizes=sizes, runs=10)
    return analyse(world.experiment(), world.samples, CompareConfig())


def test_the_analysis_tells_the_ratio_at_each_point() -> None:
    findings = analysed((10, 1_000, 3_000))
    points = findings.functions[0].metrics["wall_ns"].points
    for point, truth in ((0, 1.01), (1, 2.0), (2, 4.0)):
        assert points[point].low <= truth <= points[point].high
        assert points[point].value == pytest.approx(truth, rel=0.1)
    found = cheapest(findings)
    assert found is not None
    assert found.point.parameters == {"n": 1_000}


def test_a_single_point_has_its_ratio_too() -> None:
    findings = analysed((1_000,))
    assert findings.verdict is Verdict.REGRESSION
    found = cheapest(findings)
    assert found is not None
    assert (found.point.id, found.metric) == (0, "wall_ns")
