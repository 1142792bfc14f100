"""What calls are compared by: the feature that varies most where nothing is learnt."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import Made, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.compare.mix import Tables
from perfdiff.config import CompareConfig
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Change, Feature, Origin, SampleTable, Side


def table(side: Side, columns: dict[str, Floats]) -> SampleTable:
    n = len(next(iter(columns.values())))
    none, number = np.empty((n, 0)), np.arange(n)
    return SampleTable(
        function=1,
        side=side,
        metrics={"self_ns": np.ones(n), "wall_ns": np.ones(n)},
        features=tuple(Feature(name, Origin.ARGUMENT) for name in columns),
        values=np.column_stack([*columns.values()]),
        branches=(),
        executed=none,
        taken=none,
        run=number % 5,
        point=np.zeros(n, dtype=np.int64),
        thread=np.zeros(n, dtype=np.int64),
        call=number,
        weight=np.ones(n),
    )


@pytest.mark.parametrize("absent", [0, 20])
def test_values_that_are_absent_are_no_large_ones(absent: int) -> None:
    flag = np.ones(100)
    flag[:absent] = np.nan
    n = np.linspace(1, 50, 100)
    base, head = (table(side, {"flag": flag, "n": n}) for side in Side)
    spread = Tables(base, head).spread
    assert spread is not None
    for sizes in spread:
        assert np.array_equal(sizes, 1 + n)


def test_the_feature_that_varies_most_is_none_that_falls_below_zero() -> None:
    n, wild = np.linspace(10, 50, 100), np.linspace(-1, 1e6, 100)
    base, head = (table(side, {"wild": wild, "n": n}) for side in Side)
    spread = Tables(base, head).spread
    assert spread is not None
    assert np.array_equal(spread[0], 1 + n)


@pytest.mark.parametrize(("changed", "ranks"), [(2300.0, ["caller"]), (2000.0, [])])
def test_who_hands_on_another_constant_is_guilty_of_what_it_costs_however_little_it_moved(changed: float, ranks: list[str]) -> None:
    """An argument of 2,000 in all calls of base, and of 2,300 in head: 15 % are no noise where no value varies."""
    caller = Made("caller", same(lambda x: 2 * x["n"]), Change.CHANGED, calls=lambda side, n: {"main": 1})
    step = Made(
        "step",
        same(lambda x: x["rounds"]),
        calls=lambda side, n: {"caller": n},
        inputs=lambda side, n, count, rng: {"rounds": np.full(count, 2000.0 if side is Side.BASE else changed)},
    )
    world = World((Made("main", same(1e3)), caller, step), runs=10)
    found = analyse(world.experiment(), world.samples, CompareConfig())
    assert [each.info.name for each in found.functions if each.rank] == ranks
