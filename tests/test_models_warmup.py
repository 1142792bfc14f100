"""Warm-up told from steady calls, on simulated calls with known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfdiff.models.warmup import WarmUp, joined, warm_up
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import SampleTable
from sampled import noisy, table

RUNS, CALLS = 10, 400


def calls_of(factor: Floats, rng: np.random.Generator, *, order: str = "shuffled") -> SampleTable:
    """Return calls of `RUNS` runs whose cost over an input is multiplied by a factor for each call number."""
    sizes = np.tile(np.linspace(10, 1000, CALLS), RUNS)
    if order == "shuffled":
        sizes = np.concatenate([rng.permutation(part) for part in sizes.reshape(RUNS, CALLS)])
    elif order == "falling":
        sizes = sizes[::-1]
    cost = noisy(rng, (500 + 20 * sizes) * np.tile(factor, RUNS))
    found = table({"n": sizes}, cost, run=np.repeat(np.arange(RUNS), CALLS))
    return replace(found, call=np.tile(np.arange(1, CALLS + 1), RUNS))


@pytest.mark.parametrize("length", [20, 80, 200, 300])
def test_first_calls_that_cost_three_times_as_much_are_warm_up(length: int) -> None:
    rng = np.random.default_rng(length)
    found = warm_up(calls_of(np.where(np.arange(CALLS) < length, 3.0, 1.0), rng), "wall_ns")
    assert found is not None
    assert found.calls == pytest.approx(length, abs=2 + 0.02 * length)
    assert found.factor == pytest.approx(3.0, rel=0.1)


def test_of_several_phases_the_last_change_begins_what_is_steady() -> None:
    factor = np.where(np.arange(CALLS) < 40, 20.0, np.where(np.arange(CALLS) < 160, 2.0, 1.0))
    found = warm_up(calls_of(factor, np.random.default_rng(1)), "wall_ns")
    assert found is not None
    assert found.calls == pytest.approx(160, abs=5)


def test_a_change_that_hardly_any_call_follows_begins_nothing_steady() -> None:
    """As of a program that ends with its cheapest calls; the change before it stands."""
    ends = np.where(np.arange(CALLS) < 380, 3.0, 1.0)
    assert warm_up(calls_of(ends, np.random.default_rng(5)), "wall_ns") is None
    found = warm_up(calls_of(np.where(np.arange(CALLS) < 100, 5.0, 1.0) * ends, np.random.default_rng(5)), "wall_ns")
    assert found is not None
    assert found.calls == pytest.approx(100, abs=5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("order", ["shuffled", "falling", "rising"])
def test_calls_whose_cost_follows_their_inputs_alone_have_no_warm_up(seed: int, order: str) -> None:
    assert warm_up(calls_of(np.ones(CALLS), np.random.default_rng(seed), order=order), "wall_ns") is None


def test_first_calls_of_one_run_of_ten_are_no_warm_up() -> None:
    rng = np.random.default_rng(3)
    found = calls_of(np.ones(CALLS), rng)
    slow = (found.run == 4) & (found.call <= 100)
    assert warm_up(replace(found, metrics={"wall_ns": np.where(slow, 5.0, 1.0) * found.metrics["wall_ns"]}), "wall_ns") is None


def test_calls_that_get_dearer_have_no_warm_up() -> None:
    assert warm_up(calls_of(np.where(np.arange(CALLS) < 200, 1.0, 3.0), np.random.default_rng(4)), "wall_ns") is None


def test_few_calls_show_nothing() -> None:
    rng = np.random.default_rng(5)
    few = calls_of(np.where(np.arange(CALLS) < 100, 3.0, 1.0), rng)
    assert warm_up(few.rows(np.arange(40)), "wall_ns") is None


def test_both_sides_are_steady_behind_the_longer_warm_up() -> None:
    assert joined([None, None]) is None
    assert joined([WarmUp(300, 2.0), None, WarmUp(500, 1.5)]) == WarmUp(500, 1.5)


def test_calls_of_sizes_that_no_later_call_had_show_nothing() -> None:
    rng = np.random.default_rng(6)
    made = calls_of(np.ones(CALLS), rng)
    early = made.call <= CALLS // 2
    hardly = np.where(early, rng.integers(1, 900, len(made)), 1000 + (rng.random(len(made)) < 0.002))
    cost = made.metrics["wall_ns"] * np.where(hardly == 1001, 3.0, 1.0)
    slower = np.where(early, 4.0, 1.0) * cost
    assert warm_up(replace(made, values=hardly[:, None].astype(float), metrics={"wall_ns": slower}), "wall_ns") is None


def test_a_count_of_calls_among_the_inputs_hides_no_warm_up() -> None:
    made = calls_of(np.where(np.arange(CALLS) < 80, 3.0, 1.0), np.random.default_rng(7))
    counted = replace(
        made, features=(*made.features, replace(made.features[0], name="i")), values=np.column_stack([made.values, made.call])
    )
    found = warm_up(counted, "wall_ns")
    assert found is not None
    assert found.calls == pytest.approx(80, abs=5)


def test_sizes_that_later_hardly_varied_beside_each_other_show_nothing() -> None:
    """Else calls where they did would be expected to cost e^1,000 and more, which is no number."""
    rng = np.random.default_rng(1)
    first = np.arange(400) < 100
    n = rng.uniform(1e3, 1e4, 400)
    other = np.where(first, n * rng.uniform(0.8, 0.9, 400), n * np.exp(1e-6 * rng.standard_normal(400)))
    other = np.clip(other, n[100:].min(), n[100:].max())
    assert warm_up(table({"n": n, "other": other}, noisy(rng, 20 * n)), "wall_ns") is None
