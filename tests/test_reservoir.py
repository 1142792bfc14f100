"""What is kept of more calls than memory holds is the same in whatever parts and order they come, and stands for all of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import sampled
from perfdiff.errors import RecordingError
from perfdiff.records.arrays import Floats
from perfdiff.records.exact import exact_sums, rounded, shares, whole
from perfdiff.records.reservoir import ROWS, Reservoir, quota
from perfdiff.records.schema import SampleTable

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64)
COSTS = arrays.arrays(np.float64, st.integers(0, 60), elements=FLOATS)
SETTINGS = settings(max_examples=60, deadline=None)


def calls(count: int, seed: int = 1, runs: int = 5) -> SampleTable:
    """Return calls of a linear cost over `runs` runs, some of which stand for several."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 1000, count).astype(float)
    cost = (500 + 20 * n) * rng.lognormal(0, 0.05, count)
    found = sampled.table({"n": n, "mode": rng.integers(0, 3, count).astype(float)}, cost, labels={"mode": {0: "A", 1: "B", 2: "C"}})
    return replace(found, run=rng.integers(0, runs, count), weight=rng.choice([1.0, 2.5, 1 / 3], count))


def dealt(table: SampleTable, parts: int, seed: int) -> list[SampleTable]:
    """Return the rows of a table in random order, dealt to parts at random."""
    rng = np.random.default_rng(seed)
    order, part = rng.permutation(len(table)), rng.integers(0, parts, len(table))
    return [table.rows(order[part == each]) for each in range(parts)]


def plain(found: Reservoir) -> object:
    table = found.table()
    assert table is not None
    columns = {name: getattr(table, name).tolist() for name in ("run", "call", "weight", "values")}
    metrics = {name: values.tolist() for name, values in table.metrics.items()}
    return columns, metrics, found.offered, found.weight


@SETTINGS
@given(COSTS, st.integers(1, 4), st.randoms(use_true_random=False))
def test_sums_have_no_rounding_whatever_the_values(values: Floats, groups: int, random: object) -> None:
    place = np.random.default_rng(len(values)).integers(0, groups, len(values))
    truth = [sum((Fraction(value) for value in values[place == group].tolist()), Fraction(0)) for group in range(groups)]
    assert [Fraction(total, 1 << 1074) for total in exact_sums(values, place, groups)] == truth


def test_an_exact_sum_is_told_as_the_nearest_float() -> None:
    values = np.array([1e300, 1.0, 2.0**-1074, -1e300])
    (total,) = exact_sums(values, np.zeros(4, np.int64), 1)
    assert rounded(total) == 1.0
    assert total - whole(1.0) == 1


@SETTINGS
@given(st.floats(0.001, 1e12), st.integers(1, 2000), st.integers(0, 2**32))
def test_shares_of_a_sum_add_up_to_it_in_any_order(total: float, count: int, seed: int) -> None:
    found = shares(whole(total), count)
    assert math.fsum(found) == float(np.random.default_rng(seed).permutation(found).sum()) == total
    assert found.max() - found.min() <= found.max() * 2.0**-20


@SETTINGS
@given(st.integers(1, 400), st.integers(1, 6), st.integers(1, 60), st.integers(0, 2**32))
def test_a_reservoir_is_the_same_in_whatever_parts_and_order_the_calls_come(count: int, parts: int, size: int, seed: int) -> None:
    table = calls(count, seed=count)
    once = Reservoir(size, 7).added(table)
    apart = [Reservoir(size, 7).added(part) for part in dealt(table, parts, seed)]
    assert plain(functools.reduce(Reservoir.merged, apart)) == plain(once)
    assert plain(functools.reduce(Reservoir.merged, reversed(apart))) == plain(once)
    assert plain(functools.reduce(lambda made, part: made.added(part), dealt(table, parts, seed + 1), Reservoir(size, 7))) == plain(once)


@SETTINGS
@given(st.integers(1, 400), st.integers(1, 60))
def test_weights_of_a_reservoir_add_up_to_all_calls_exactly(count: int, size: int) -> None:
    table = replace(calls(count, seed=count), weight=np.ones(count))
    found = Reservoir(size, 1).added(table).table()
    assert found is not None
    for run in np.unique(table.run):
        assert found.weight[found.run == run].sum() == (table.run == run).sum()
        assert (found.run == run).sum() == min(size, (table.run == run).sum())


def test_a_reservoir_that_was_never_full_is_every_call_as_it_was() -> None:
    table = calls(300)
    found = Reservoir(300, 1).added(table).table()
    assert found is not None
    order = np.lexsort((table.call, table.run))
    np.testing.assert_array_equal(found.weight, table.weight[order])
    np.testing.assert_array_equal(found.metrics["wall_ns"], table.metrics["wall_ns"][order])


def test_calls_are_chosen_by_their_weight_alone() -> None:
    weights = np.tile([1.0, 3.0], 500)
    table = replace(calls(1000, runs=1), weight=weights, run=np.zeros(1000, np.int64))
    seen = np.zeros(1000)
    for seed in range(400):
        found = Reservoir(50, seed).added(table).table()
        assert found is not None
        seen[found.call] += 1
    # Of 50 draws without replacement from 1,000 calls with weights of 1 and 3: 12.9 and 37.1 (simulated apart), by chance ± 0.16.
    assert seen[0::2].sum() / 400 == pytest.approx(12.9, abs=0.6)
    assert seen[1::2].sum() / 400 == pytest.approx(37.1, abs=0.6)
    # No call is favoured by where it stands: first half against second.
    assert seen[:500].sum() == pytest.approx(seen[500:].sum(), rel=0.04)


def test_means_of_a_reservoir_miss_those_of_all_calls_by_no_more_than_chance() -> None:
    table = replace(calls(20_000, runs=1), run=np.zeros(20_000, np.int64), weight=np.ones(20_000))
    cost = table.metrics["wall_ns"]
    means = []
    for seed in range(100):
        found = Reservoir(400, seed).added(table).table()
        assert found is not None
        means.append(found.metrics["wall_ns"].mean())
    error = cost.std() / math.sqrt(400)
    assert np.mean(means) == pytest.approx(cost.mean(), abs=4 * error / 10)
    assert np.std(means) == pytest.approx(error, rel=0.3)


def test_parts_with_other_columns_are_refused() -> None:
    table = calls(10)
    with pytest.raises(RecordingError) as raised:
        Reservoir(5, 1).added(table).added(replace(table, features=table.features[::-1]))
    assert raised.value.slug == "parts-differ"


def test_a_metric_that_a_part_lacks_is_absent_there() -> None:
    table = calls(10, runs=1)
    other = replace(table, metrics={**table.metrics, "alloc_bytes": np.arange(10.0)}, call=table.call + 10)
    found = Reservoir(50, 1).added(table).added(other).table()
    assert found is not None
    np.testing.assert_array_equal(found.metrics["alloc_bytes"], [*[np.nan] * 10, *range(10)])


def test_calls_that_were_numbered_apart_are_drawn_apart() -> None:
    table = replace(calls(400, runs=1), weight=np.ones(400))
    twice = Reservoir(200, 1).added(table).added(table).table()
    apart = Reservoir(200, 1).added(table, 1).added(table, 2).table()
    assert twice is not None
    assert apart is not None
    assert len(np.unique(twice.call)) == 100
    assert len(np.unique(apart.call)) == pytest.approx(175, abs=15)  # 400 · (1 - 0.75²)


def test_labels_of_all_parts_are_kept() -> None:
    table = calls(10)
    n, mode = table.features
    other = replace(table, features=(n, replace(mode, labels={3: "D"})))
    found = Reservoir(50, 1).added(table).added(other).table()
    assert found is not None
    assert found.features[1].labels == {0: "A", 1: "B", 2: "C", 3: "D"}


def test_one_pass_keeps_as_many_calls_as_models_learn_from() -> None:
    parts: Sequence[SampleTable] = [replace(calls(20_000, seed=seed), call=np.arange(20_000) + seed * 20_000) for seed in range(3)]
    table = functools.reduce(Reservoir.added, parts, Reservoir(quota(5), 0)).table()
    assert table is not None
    assert len(table) == ROWS == 5 * quota(5)
    assert table.weight.sum() == pytest.approx(sum(part.weight.sum() for part in parts), rel=1e-12)
