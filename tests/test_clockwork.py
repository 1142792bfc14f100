"""Whole runs that a clock ends: how long they last does not follow what they get of a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from perfdiff.analysis.findings import PointStanding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.clockwork import points_ended_by_a_clock
from perfdiff.analysis.verdicts.wholeruns import whole_runs
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Phase, Point, Run, Side

LASTS_NS = 1e8
FEWEST_RUNS = POLICY.clockwork_runs


def runs(cpu_ns: np.ndarray, delay_ns: np.ndarray, asleep_ns: float = 0.0) -> list[Run]:
    """Return runs of both sides (2, n) that computed, waited for a CPU, and slept."""
    return [
        Run(0, Phase.PLAIN, 0, side, block, cpu + asleep_ns, cpu, 1e6, None, None, "", layout=block, delay_ns=delay)
        for computed, delayed, side in zip(cpu_ns, delay_ns, Side, strict=True)
        for block, (cpu, delay) in enumerate(zip(computed, delayed, strict=True))
    ]


def of_a_busy_machine(n: int, seed: int = 0) -> np.ndarray:
    """Return how long runs (2, n) wait for a CPU."""
    return np.random.default_rng(seed).uniform(0.2, 0.7, (2, n)) * LASTS_NS


def clocked(n: int, **options: float) -> list[Run]:
    delays = of_a_busy_machine(n)
    return runs(LASTS_NS + np.random.default_rng(1).uniform(0, 0.01, (2, n)) * LASTS_NS - delays, delays, **options)


def test_runs_that_last_as_long_whatever_they_get_of_a_cpu_exclude_nothing() -> None:
    made = clocked(20)
    (end,) = whole_runs([Point(0, "w", {}, "")], made, CompareConfig()).ends
    assert end.standing is PointStanding.CLOCKED
    assert points_ended_by_a_clock(made) == {0}


def test_few_runs_are_chance() -> None:
    assert not points_ended_by_a_clock(clocked(FEWEST_RUNS - 1))


def test_runs_that_sleep_for_most_of_their_time_may_last_as_long_by_that() -> None:
    assert not points_ended_by_a_clock(clocked(20, asleep_ns=LASTS_NS))


@pytest.mark.parametrize("deviation", [0.01, 0.1, 0.4])
def test_runs_of_given_work_are_never_taken_for_it(deviation: float) -> None:
    rng = np.random.default_rng(2)
    for seed in range(2000):
        cpu = LASTS_NS * np.exp(rng.normal(0, deviation, (2, FEWEST_RUNS)))
        assert not points_ended_by_a_clock(runs(cpu, of_a_busy_machine(FEWEST_RUNS, seed) * rng.uniform(0, 2)))
