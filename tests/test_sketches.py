"""What is kept of more calls than memory holds is the same in whatever parts and order they come, and as near to the truth as it says."""

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
from perfdiff.models.annotation import transformed
from perfdiff.records.schema import Floats, SampleTable
from perfdiff.records.sketches import quantiles
from perfdiff.records.sketches.exact import exact_sums, rounded, shares, whole
from perfdiff.records.sketches.moments import Moments
from perfdiff.records.sketches.products import INTERCEPT, Products
from perfdiff.records.sketches.quantiles import Quantiles
from perfdiff.records.sketches.reservoir import Reservoir
from perfdiff.records.sketches.summary import RECORDS, Summary, quota, summary

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


def plain(found: Summary) -> object:
    table = found.reservoir.table()
    assert table is not None
    columns = {name: getattr(table, name).tolist() for name in ("run", "call", "weight", "values")}
    metrics = {name: values.tolist() for name, values in table.metrics.items()}
    sketches = {name: (each.buckets.tolist(), each.units.tolist()) for name, each in found.quantiles.items()}
    return columns, metrics, sketches, found.moments, found.reservoir.offered, found.reservoir.weight


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
@given(COSTS.filter(len), st.floats(0, 1))
def test_quantiles_are_within_their_bound_of_the_true_ones(values: Floats, share: float) -> None:
    true = float(np.quantile(values, share, method="inverted_cdf"))
    found = Quantiles.of(values).quantile(share)
    # Below the smallest normal number there are no digits to be wrong in.
    assert abs(found - true) <= quantiles.ERROR * abs(true) + 2.0**-1022


def test_quantiles_of_ten_thousand_costs_are_within_their_bound_at_every_share() -> None:
    values = np.random.default_rng(1).lognormal(8, 2, 10_000)
    sketch = Quantiles.of(values)
    shares_asked = np.linspace(0, 1, 501)
    true = np.quantile(values, shares_asked, method="inverted_cdf")
    found = np.array([sketch.quantile(share) for share in shares_asked])
    assert np.abs(found / true - 1).max() <= quantiles.ERROR
    assert len(sketch.buckets) < 1500


def test_quantiles_count_calls_by_their_weight_and_leave_out_what_is_absent() -> None:
    sketch = Quantiles.of(np.array([10.0, 1000.0, np.nan, np.inf]), np.array([9.0, 1.0, 5.0, 5.0]))
    assert sketch.weight == 10
    assert sketch.quantile(0.9) == pytest.approx(10, rel=quantiles.ERROR)
    assert sketch.quantile(0.91) == pytest.approx(1000, rel=quantiles.ERROR)
    assert math.isnan(quantiles.EMPTY.quantile(0.5))


@SETTINGS
@given(st.integers(1, 400), st.integers(1, 6), st.integers(1, 60), st.integers(0, 2**32))
def test_a_summary_is_the_same_in_whatever_parts_and_order_the_calls_come(count: int, parts: int, size: int, seed: int) -> None:
    table = calls(count, seed=count)
    once = Summary(Reservoir(size, 7)).added(table)
    summaries = [Summary(Reservoir(size, 7)).added(part) for part in dealt(table, parts, seed)]
    assert plain(functools.reduce(Summary.merged, summaries)) == plain(once)
    assert plain(functools.reduce(Summary.merged, reversed(summaries))) == plain(once)
    assert plain(
        functools.reduce(lambda made, part: made.added(part), dealt(table, parts, seed + 1), Summary(Reservoir(size, 7)))
    ) == plain(once)


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


def test_labels_of_all_parts_are_kept() -> None:
    table = calls(10)
    n, mode = table.features
    other = replace(table, features=(n, replace(mode, labels={3: "D"})))
    found = Reservoir(50, 1).added(table).added(other).table()
    assert found is not None
    assert found.features[1].labels == {0: "A", 1: "B", 2: "C", 3: "D"}


def test_variance_of_costs_that_hardly_differ_does_not_cancel() -> None:
    cost = 1e6 + np.random.default_rng(1).normal(0, 0.1, 5000)
    table = replace(calls(5000), metrics={"wall_ns": cost}, run=np.zeros(5000, np.int64), weight=np.ones(5000))
    moment = functools.reduce(Moments.merged, map(Moments.of_table, dealt(table, 7, 1))).of[0, "wall_ns"]
    assert (moment.rows, moment.calls, moment.sum) == (5000, 5000.0, math.fsum(cost))
    assert moment.variance == pytest.approx(float(np.var(cost)), rel=1e-4)
    assert (moment.least, moment.most) == (cost.min(), cost.max())


def test_least_squares_over_products_are_those_over_all_calls() -> None:
    table = replace(calls(4000), values=calls(4000).values[:, :1], features=calls(4000).features[:1])
    parts = [Products.of_table(part, "wall_ns", transformed) for part in dealt(table, 3, 1)]
    found = functools.reduce(Products.merged, parts).solve([INTERCEPT, ("n", "x")])
    n, cost = table.values[:, 0], table.metrics["wall_ns"]
    rows, root = np.column_stack([np.ones(4000), n]), np.sqrt(table.weight)
    truth = np.linalg.lstsq(rows * root[:, None], cost * root, rcond=None)[0]
    np.testing.assert_allclose(found.coefficients, truth, rtol=1e-9)
    np.testing.assert_allclose(found.errors, _clustered(rows, cost, table), rtol=1e-6)
    assert 0.98 < found.r2 < 1


def _clustered(rows: Floats, cost: Floats, table: SampleTable) -> Floats:
    """Return errors clustered by run as statistics texts write them."""
    weighted = rows * table.weight[:, None]
    inverse = np.linalg.inv(weighted.T @ rows)
    left = cost - rows @ (inverse @ (weighted.T @ cost))
    scores = [weighted[table.run == run].T @ left[table.run == run] for run in range(5)]
    return np.asarray(np.sqrt(np.diag(inverse @ sum(np.outer(s, s) for s in scores) @ inverse) * 5 / 4))


def test_one_pass_keeps_as_many_calls_as_models_learn_from() -> None:
    parts: Sequence[SampleTable] = [replace(calls(20_000, seed=seed), call=np.arange(20_000) + seed * 20_000) for seed in range(3)]
    found = summary(iter(parts), runs=5)
    table = found.reservoir.table()
    assert table is not None
    assert len(table) == RECORDS == 5 * quota(5)
    assert table.weight.sum() == pytest.approx(sum(part.weight.sum() for part in parts), rel=1e-12)
