"""The selection of HotCloud (§3) beside ours: the kinds of Figure 1, the reasons where nothing correlates, what each misses."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from perfdiff.analysis.annotations.selections import SelectionReason, side_by_side
from perfdiff.models.correlation import MOST_CLUSTERS, CorrelationKind, clusters, select
from perfdiff.models.fitting import fit
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Origin
from perfdiff.report import annotations, hotcloud
from perfdiff.report.sentences.catalogue import say
from sampled import noisy, strangers, table

Truth = Callable[[np.random.Generator, Floats], Floats]
SEEDS, CALLS = 60, 600


def scattered(rng: np.random.Generator, cost: Floats) -> Floats:
    return cost * (1 + 0.05 * rng.standard_normal(len(cost)))


def modes(rng: np.random.Generator, n: Floats) -> Floats:
    return np.where(rng.random(len(n)) < 0.4, 5_000.0, 20_000.0)


# What a cost does, the kind that the paper's method should find, and in how many of 100 simulated functions it does at least.
TRUTHS: tuple[tuple[Truth, CorrelationKind, int], ...] = (
    (lambda _, n: 500 + 40 * n, CorrelationKind.LINEAR, 99),
    (lambda _, n: 500 + 0.4 * n**2, CorrelationKind.SUPERLINEAR, 99),
    (lambda _, n: 500 + 4e-4 * n**3, CorrelationKind.SUPERLINEAR, 99),
    (lambda _, n: 20_000 - 20_000 / (1 + n / 50), CorrelationKind.SUBLINEAR, 95),
    (lambda _, n: 0 * n + 5_000, CorrelationKind.CONSTANT, 99),
    (modes, CorrelationKind.UNCORRELATED, 99),
    (lambda rng, n: rng.exponential(5_000, len(n)), CorrelationKind.UNCORRELATED, 99),
)


@pytest.mark.parametrize(
    ("truth", "kind", "least"), TRUTHS, ids=["linear", "square", "cube", "flattens", "constant", "modes", "exponential"]
)
def test_the_kinds_of_figure_1_are_told_apart(truth: Truth, kind: CorrelationKind, least: int) -> None:
    found = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        n = rng.integers(1, 1000, CALLS).astype(float)
        found += select(table({"n": n, **strangers(rng, CALLS, 5)}, scattered(rng, truth(rng, n))), "wall_ns").kind is kind
    assert found >= least / 100 * SEEDS


def test_the_highest_correlation_chooses_the_feature_and_the_error_the_degree() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(1, 1000, CALLS).astype(float)
    near = n + 200 * rng.standard_normal(CALLS)
    found = select(table({"near": near, "n": n}, 3 * n**2 + 7), "wall_ns", function="f")
    assert (found.feature, found.degree) == ("n", 2)
    assert [round(term.coefficient, 6) for term in found.annotation.scopes[0].terms] == [7, 0, 3]
    assert found.error < 1e-9


def test_a_falling_cost_is_passed_over_as_the_highest_value_is_taken() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(1, 1000, CALLS).astype(float)
    calls = table({"n": n}, scattered(rng, 50_000 - 40 * n))
    found = side_by_side(fit(calls, "wall_ns", seed=1), calls)
    assert found.paper.kind is CorrelationKind.UNCORRELATED
    assert found.reason is SelectionReason.FALLING
    assert [*map(say, found.paper_misses)] == ["that they follow `n`"]


def test_reasons_of_what_does_not_correlate() -> None:
    rng = np.random.default_rng(2)
    n, m = rng.integers(1, 1000, 2000).astype(float), rng.integers(1, 1000, 2000).astype(float)
    flag, run = rng.integers(0, 2, 2000).astype(float), np.arange(2000) // 100
    state = np.cumsum(rng.standard_normal(2000)) * 300

    def reason(columns: dict[str, Floats], cost: Floats, **more: object) -> SelectionReason | None:
        calls = table(columns, cost, run=run, **more)  # type: ignore[arg-type]
        return side_by_side(fit(calls, "wall_ns", seed=1), calls).reason

    assert reason({"n": n, "flag": flag}, scattered(rng, np.where(flag > 0, 500 + 80 * n, 60_000.0))) is SelectionReason.ANOTHER_FEATURE
    assert reason({"n": n, "m": m}, scattered(rng, 500 + n * m)) is SelectionReason.ANOTHER_FEATURE
    assert reason({"n": n}, scattered(rng, 80 * m), taken={"x": flag}) is SelectionReason.UNKNOWN
    assert reason({"n": m, "g": n}, scattered(rng, 80 * n), origins={"g": Origin.GLOBAL}) is SelectionReason.ANOTHER_FEATURE
    assert reason({"n": n}, noisy(rng, 500 + 80 * n)) is SelectionReason.DELAYS
    assert reason({"n": n}, scattered(rng, modes(rng, n))) is SelectionReason.MIXTURE
    assert reason({"n": n}, 20_000 + state - state.min()) is SelectionReason.HIDDEN_STATE
    assert reason({"n": n}, scattered(rng, 5_000 * (1 + run % 3))) is SelectionReason.HIDDEN_STATE
    assert reason({"n": n}, rng.exponential(5000, 2000)) is SelectionReason.UNKNOWN


def test_each_says_what_the_other_misses() -> None:
    rng = np.random.default_rng(3)
    n = rng.integers(2, 100_000, 2000).astype(float)
    calls = table({"n": n}, scattered(rng, 40 * n * np.log2(n)))
    missed = [say(each) for each in side_by_side(fit(calls, "wall_ns", seed=1), calls).paper_misses]
    assert missed == ["that they grow as n log n: it has polynomials alone"]
    twice = table({"n": n, "bytes": 8 * n}, scattered(rng, 40 * n))
    assert "that `n` cannot be told from `bytes`" in map(say, side_by_side(fit(twice, "wall_ns", seed=1), twice).paper_misses)


@pytest.mark.parametrize("cost", [0.0, 64.0, 1e18])
def test_a_cost_that_never_differs_is_constant(cost: float) -> None:
    found = select(table({"n": np.arange(50.0)}, np.full(50, cost), metric="alloc_bytes"), "alloc_bytes")
    assert (found.kind, found.error) == (CorrelationKind.CONSTANT, 0.0)


def test_calls_without_features_are_clustered() -> None:
    found = select(table({}, np.repeat([10.0, 20.0, 70.0], 20)), "wall_ns")
    assert [(scope.terms[0].coefficient, scope.n, scope.sigma) for scope in found.clusters] == [(10, 20, 0), (20, 20, 0), (70, 20, 0)]


def test_a_metric_that_no_call_has_is_refused() -> None:
    with pytest.raises(ValueError, match="no record"):
        select(table({"n": np.arange(9.0)}, np.full(9, np.nan)), "wall_ns")


VALUES = st.one_of(st.floats(-1e12, 1e12), st.just(float("nan")), st.just(float("inf")), st.sampled_from([0.0, 1.0, 2.0]))


@settings(max_examples=150)
@given(arrays(np.float64, st.integers(1, 40), elements=st.one_of(VALUES, st.floats(0, 1e15))), st.data())
def test_any_calls_have_a_selection_with_a_text_and_a_document(cost: Floats, data: st.DataObject) -> None:
    columns = {name: data.draw(arrays(np.float64, len(cost), elements=VALUES)) for name in ("n", "m")[: data.draw(st.integers(0, 2))]}
    calls = table(columns, cost)
    if not np.isfinite(cost).any():
        return
    found = side_by_side(fit(calls, "wall_ns", seed=1), calls)
    assert hotcloud.text([found]).endswith("f1\n")
    json.dumps(annotations.json_document([found.ours], [found]), allow_nan=False)


@pytest.mark.parametrize("costs", [(0.0, 0.0), (1.0, 1e300)])
def test_inputs_may_lie_as_far_apart_as_numbers_do(costs: tuple[float, float]) -> None:
    calls = table({"n": np.array([2.5e-132, 1.0])}, np.array(costs))
    found = side_by_side(fit(calls, "wall_ns", seed=1), calls)
    assert hotcloud.text([found]).endswith("f1\n")


@settings(max_examples=100)
@given(arrays(np.float64, st.integers(1, 200), elements=st.floats(-1e9, 1e9)))
def test_clusters_are_stretches_of_the_sorted_costs(costs: Floats) -> None:
    ordered = np.sort(costs)
    parts = clusters(ordered)
    assert 1 <= len(parts) <= MOST_CLUSTERS
    assert all(len(part) for part in parts)
    np.testing.assert_array_equal(np.concatenate(parts), ordered)


def test_one_more_cluster_is_worth_it_where_the_error_falls_by_the_elbow() -> None:
    normal = np.sort(np.random.default_rng(1).standard_normal(5000))
    assert len(clusters(normal)) == 1
    assert len(clusters(np.sort(np.concatenate([normal, 20 + normal, 40 + normal])))) == 3
