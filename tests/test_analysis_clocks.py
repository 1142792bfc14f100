"""Features that tell when a call was made are no inputs: they rise from run to run, whatever is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfdiff.analysis.annotations.annotating import annotate
from perfdiff.analysis.compare.clocks import FEWEST_RUNS, clocks
from perfdiff.analysis.compare.tables import both_tables
from perfdiff.models.annotation import CostClass
from perfdiff.records.arrays import Ints
from perfdiff.records.recorded import TablesInMemory
from perfdiff.records.schema import SampleTable, Side
from sampled import table

Of = Callable[[Ints, Ints], Any]

BLOCKS, POINTS, CALLS = 5, 2, 20
RNG = np.random.default_rng(7)
SHUFFLED = np.stack([RNG.permutation(POINTS) for _ in range(BLOCKS)])  # the order of the points in each block


def calls(side: Side) -> tuple[Ints, Ints]:
    """Return runs and points of the calls of one side: pairs of base and head, points in another order in each block."""
    pairs = np.repeat(np.arange(BLOCKS * POINTS), CALLS)
    return 2 * pairs + (side is Side.HEAD), SHUFFLED.ravel()[pairs]


def both(features: Mapping[str, Of]) -> list[SampleTable]:
    """Return the calls of both sides, with features made of their runs and points."""
    found = []
    for side in Side:
        run, point = calls(side)
        columns = {name: np.asarray(of(run, point), dtype=np.float64) for name, of in features.items()}
        found.append(replace(table(columns, 100.0 + RNG.random(len(run)), run=run, point=point), side=side))
    return found


FEATURES: Mapping[str, Of] = {
    "started": lambda run, point: 1e6 + 10.0 * run + np.tile(np.arange(CALLS) / 100, len(run) // CALLS),
    "pid": lambda run, point: 4000 + run - 1.5 * (run % 2),  # the head of a pair was started first
    "n": lambda run, point: 100.0 * (1 + point),
    "random": lambda run, point: np.random.default_rng(1).permutation(1000)[run],
    "length": lambda run, point: np.tile(np.arange(CALLS), len(run) // CALLS),
    "level": lambda run, point: run // 8,  # rises, but not with each run
    "now and then": lambda run, point: np.where(run == 7, np.nan, run),
}


def test_what_rises_from_run_to_run_is_a_clock() -> None:
    assert clocks(both(FEATURES)) == {"started", "pid"}


def test_clocks_are_no_inputs_of_a_comparison() -> None:
    pair = both_tables(1, TablesInMemory(both(FEATURES)))
    assert pair is not None
    assert [[feature.name for feature in side.features] for side in pair] == [["n", "random", "length", "level", "now and then"]] * 2


def test_what_only_one_side_tells_by_a_clock_stays() -> None:
    base, head = both({"started": FEATURES["started"]})
    assert clocks([base, replace(head, values=head.values[::-1])]) == set()


def test_inputs_that_grow_over_runs_that_are_not_made_in_turns_are_none() -> None:
    base, head = both({"n": FEATURES["started"]})
    runs = BLOCKS * POINTS
    later = replace(head, run=head.run + 10 * runs)  # all of head's runs after base's, as of two folders of logs
    assert clocks([base, later]) == set()
    alone = replace(base, point=np.zeros_like(base.point))  # one log after the other, each of a larger input
    assert clocks([alone]) == set()
    assert clocks([base]) == {"n"}


@pytest.mark.parametrize("runs", [FEWEST_RUNS - 1, FEWEST_RUNS])
def test_of_few_runs_nothing_is_told(runs: int) -> None:
    found = [side.rows(np.flatnonzero(side.run < runs)) for side in both({"started": FEATURES["started"]})]
    assert bool(clocks(found)) is (runs == FEWEST_RUNS)
    assert clocks([]) == set()


def test_a_cost_that_drifts_is_not_told_as_growth_with_the_time() -> None:
    run, point = calls(Side.BASE)
    started = 1e6 + 10.0 * run
    drifts = table({"started": started}, 100.0 * (1 + run / run.max()) + RNG.random(len(run)), run=run, point=point)
    (found,) = annotate("f", drifts, ["wall_ns"], seed=1)
    assert "started" not in found.features
    assert found.cost_class in (CostClass.CONSTANT, CostClass.MIXTURE)
