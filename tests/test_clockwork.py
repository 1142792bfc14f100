"""Whole runs that a clock ends: how long they last does not follow what they get of a CPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perfdiff.analysis.findings import PointStanding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.clockwork import points_ended_by_a_clock
from perfdiff.analysis.verdicts.volume import repeating
from perfdiff.analysis.verdicts.wholeruns import whole_runs
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Phase, Point, Run, Side

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


def told(base: list[int], head: list[int], *, wall_ns: float = 0.4 * LASTS_NS) -> tuple[str, ...]:
    """Return at which points calls of an unchanged function, so many in each run, leave open whether it is slower."""
    info = SimpleNamespace(change=Change.CHANGED)
    books = [
        SimpleNamespace(
            runs=[SimpleNamespace(cpu_ns=LASTS_NS) for _ in calls],
            calls=np.array([calls], dtype=float).T,
            wall_ns=np.full((len(calls), 1), wall_ns),
        )
        for calls in (base, head)
    ]
    web = SimpleNamespace(functions={1: info}, ran={1})
    attribution: Any = SimpleNamespace(points=(0,), workload=np.zeros(1), run_ns=np.full(1, LASTS_NS), web=web)
    config = CompareConfig()
    ledger: Any = SimpleNamespace(points=(0,), clocked=frozenset(), labels={0: "w"}, pair=lambda _: books, judging=lambda *_: config)
    return repeating(attribution, ledger, config)


def test_fewer_calls_of_a_number_that_varies_may_be_why_runs_take_no_longer() -> None:
    assert told([195, 243, 260, 325], [110, 131, 153, 201]) == ("w",)


@pytest.mark.parametrize(
    ("base", "head", "wall_ns"),
    [
        ([200, 200, 200, 200], [100, 100, 100, 100], 4e7),  # another batch of given work
        ([195, 243, 260, 325], [190, 240, 262, 320], 4e7),
        ([110, 131, 153, 201], [195, 243, 260, 325], 4e7),
        ([195, 243, 260, 325], [110, 131, 153, 201], 1e7),  # a small part of the run
    ],
)
def test_calls_of_a_given_number_or_no_fewer_or_of_little_leave_nothing_open(base: list[int], head: list[int], wall_ns: float) -> None:
    assert told(base, head, wall_ns=wall_ns) == ()


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
