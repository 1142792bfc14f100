"""Distributions of single calls: chosen by likelihood, calibrated, and told from selected calls where delays hide the trend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import kstest

from perfdiff.models.annotation import Annotation, CostClass, Trend
from perfdiff.models.distribution import Binomial, Distribution, Exponential, Normal
from perfdiff.models.fitting import fit, refit
from perfdiff.models.forecast import cdf, interval
from perfdiff.models.language import parse, print_annotation
from perfdiff.models.observations import columns_of
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import SampleTable
from sampled import noisy, strangers, table

Cost = Callable[[np.random.Generator, Floats, int], Floats]
N = 1000

# What is drawn, and the distribution that should be found.
COSTS: dict[str, tuple[str, Cost, type[Distribution] | None]] = {
    "even noise": ("wall_ns", lambda rng, x, n: 400 + 12 * x + 30 * rng.standard_normal(n), None),
    "constant": ("wall_ns", lambda rng, x, n: 1000 + 50 * rng.standard_normal(n), None),
    "relative noise": ("wall_ns", lambda rng, x, n: (400 + 12 * x) * (1 + 0.05 * rng.standard_normal(n)), Normal),
    "both": ("wall_ns", lambda rng, x, n: (400 + 12 * x) * (1 + 0.05 * rng.standard_normal(n)) + 200 * rng.standard_normal(n), Normal),
    "delays": ("wall_ns", lambda rng, x, n: 500 + 20 * x + rng.exponential(3000, n), Exponential),
    "delays alone": ("wall_ns", lambda rng, x, n: 200 + rng.exponential(1000, n), Exponential),
    "two values": ("alloc_bytes", lambda rng, x, n: np.where(rng.random(n) < 0.05, 4096.0, 64.0), Binomial),
    "counts": ("callee_calls", lambda rng, x, n: rng.binomial(10, 0.3, n) + 0.0, Binomial),
    "counts per element": ("callee_calls", lambda rng, x, n: rng.binomial(x.astype(np.int64), 0.3) + 0.0, Binomial),
}


def drawn(cost: Cost, metric: str, seed: int, n: int = N, others: int = 2) -> tuple[SampleTable, Floats]:
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 1000, n) + 0.0
    y = cost(rng, x, n)
    return table({"n": x} | strangers(rng, n, others), y, metric=metric), y


def transform(annotation: Annotation, calls: SampleTable, y: Floats) -> Floats:
    return cdf(annotation, columns_of(calls), y, seed=1)


@pytest.mark.statistical
@pytest.mark.parametrize("name", COSTS)
def test_the_distribution_is_found_and_new_calls_are_uniform_under_it(name: str) -> None:
    metric, cost, expected = COSTS[name]
    found, distances, covered = Counter(), [], []
    for seed in range(10):
        annotation = fit(drawn(cost, metric, seed)[0], metric, seed=1)
        assert parse(print_annotation(annotation)) == annotation
        law = annotation.scopes[0].distribution
        found[None if law is None else type(law)] += 1
        calls, y = drawn(cost, metric, seed + 1000)
        distances.append(kstest(transform(annotation, calls, y), "uniform").statistic)
        low, high = interval(annotation, columns_of(calls), 0.9)
        covered.append(np.mean((y >= low) & (y <= high)))
    assert found[expected] >= 9, found
    # Kolmogorov's distance of 1,000 uniform values is 0.027 on average; the annotation's own 1,000 calls add as much, its shape nothing.
    assert np.mean(distances) < 0.045
    assert np.mean(covered) > 0.88
    assert np.mean(covered) < (0.92 if expected is not Binomial else 1.0)  # steps of counts hold more than asked for


@pytest.mark.statistical
def test_the_transform_tells_a_slow_down_of_a_few_percent() -> None:
    metric, cost, _ = COSTS["relative noise"]
    annotation = fit(drawn(cost, metric, 1)[0], metric, seed=1)
    calls, y = drawn(cost, metric, 2)
    assert kstest(transform(annotation, calls, y), "uniform").pvalue > 0.01
    assert kstest(transform(annotation, calls, 1.03 * y), "uniform").pvalue < 1e-6


def test_the_transform_of_a_mixture_is_uniform() -> None:
    def cost(rng: np.random.Generator, x: Floats, n: int) -> Floats:
        return np.where(rng.random(n) < 0.3, 1000.0, 5000.0) * (1 + 0.05 * rng.standard_normal(n))

    annotation = fit(drawn(cost, "wall_ns", 1)[0], "wall_ns", seed=1)
    calls, y = drawn(cost, "wall_ns", 2)
    assert annotation.cost_class is CostClass.MIXTURE
    assert kstest(transform(annotation, calls, y), "uniform").statistic < 0.07  # probabilities are off by 0.02 or so
    low, high = interval(annotation, columns_of(calls), 0.9)
    assert 0.85 < np.mean((y >= low) & (y <= high)) < 0.95


def test_exact_counts_agree_or_do_not() -> None:
    calls, y = drawn(lambda rng, x, n: 64 + 16 * x, "alloc_bytes", 1)
    annotation = fit(calls, "alloc_bytes", seed=1)
    assert annotation.scopes[0].sigma == 0
    assert kstest(transform(annotation, calls, y), "uniform").pvalue > 0.01
    assert (transform(annotation, calls, y + 16) == 1).all()
    assert (transform(annotation, calls, y - 16) == 0).all()


def test_calls_without_a_feature_have_no_transform() -> None:
    calls, y = drawn(lambda rng, x, n: 400 + 12 * x, "alloc_bytes", 1)
    annotation = fit(calls, "alloc_bytes", seed=1)
    columns = columns_of(calls)
    columns["n"][:3] = np.nan
    assert np.isnan(cdf(annotation, columns, y, seed=1)).tolist() == [True] * 3 + [False] * (N - 3)


@pytest.mark.statistical
def test_slope_and_edge_are_found_under_exponential_noise() -> None:
    _, cost, _ = COSTS["delays"]
    found = [fit(drawn(cost, "wall_ns", seed, others=9)[0], "wall_ns", seed=1) for seed in range(20)]
    # Delays of a sixth of the range may bend a line to n·log n, which then grows as much.
    assert sum(annotation.cost_class is CostClass.LINEAR for annotation in found) >= 18
    growth = np.array([np.diff(annotation.predict({"n": np.array([100.0, 1000.0])}))[0] / 900 for annotation in found])
    assert (np.abs(growth - 20) <= 1).all()  # 5 %
    lines = [annotation.scopes[0] for annotation in found if annotation.cost_class is CostClass.LINEAR]
    assert np.mean([abs(scope.terms[1].coefficient - 20) for scope in lines]) < 0.25
    assert np.array([scope.terms[0].coefficient - scope.sigma for scope in lines]) == pytest.approx(np.full(len(lines), 500), abs=150)
    assert np.mean([scope.sigma for scope in lines]) == pytest.approx(3000, rel=0.02)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "delay",
    [
        lambda rng, n: rng.exponential(40000, n),
        lambda rng, n: 20000 * rng.pareto(1.1, n),
        lambda rng, n: 10000 * np.exp(1.5 * rng.standard_normal(n)),
    ],
    ids=["exponential", "Pareto", "log-normal"],
)
def test_delays_larger_than_the_cost_leave_its_lower_bound(delay: Callable[[np.random.Generator, int], Floats]) -> None:
    slopes = []
    for seed in range(10):
        calls, _ = drawn(lambda rng, x, n: 500 + 20 * x + delay(rng, n), "wall_ns", seed, n=2000, others=9)
        annotation = fit(calls, "wall_ns", seed=1)
        assert annotation.cost_class is CostClass.LINEAR
        assert annotation.scopes[0].trend is Trend.LOWER_BOUND
        slopes.append(annotation.scopes[0].terms[1].coefficient)
        assert refit(annotation, calls, "wall_ns").scopes == annotation.scopes
    assert slopes == pytest.approx([20] * 10, rel=0.2)
    assert np.mean(slopes) == pytest.approx(20, rel=0.05)


@pytest.mark.statistical
def test_delays_of_many_calls_leave_the_main_trend() -> None:
    for seed in range(10):
        calls, _ = drawn(
            lambda rng, x, n: (
                (500 + 20 * x) * (1 + 0.03 * rng.standard_normal(n)) + np.where(rng.random(n) < 0.3, rng.uniform(0, 2e5, n), 0)
            ),
            "wall_ns",
            seed,
            n=2000,
            others=9,
        )
        annotation = fit(calls, "wall_ns", seed=1)
        assert annotation.cost_class in (CostClass.LINEAR, CostClass.MIXTURE)
        first = annotation.scopes[0]
        assert len(annotation.scopes) > 1 or first.trend is not Trend.LOWER_BOUND
        assert first.terms[1].coefficient == pytest.approx(20, rel=0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("delay", [lambda rng, n: rng.exponential(40000, n), lambda rng, n: 20000 * rng.pareto(1.1, n)])
def test_delays_alone_have_no_bound_that_grows(delay: Callable[[np.random.Generator, int], Floats]) -> None:
    found = Counter()
    for seed in range(30):
        calls, _ = drawn(lambda rng, x, n: 100 + delay(rng, n), "wall_ns", seed, n=(300, 1000, 2000)[seed % 3], others=9)
        annotation = fit(calls, "wall_ns", seed=1)
        found[annotation.cost_class, annotation.scopes[0].trend] += 1
    assert found[CostClass.CONSTANT, Trend.MEAN] >= 29, found


def test_counts_have_no_delays() -> None:
    calls, _ = drawn(lambda rng, x, n: np.round(20 * x + rng.exponential(40000, n)), "alloc_bytes", 1, n=2000)
    assert {scope.trend for scope in fit(calls, "alloc_bytes", seed=1).scopes} == {Trend.MEAN}


def test_preempted_calls_do_not_make_a_cost_exponential() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(1, 1000, N) + 0.0
    scope = fit(table({"n": x}, noisy(rng, 400 + 12 * x, 0.05, 0.08)), "wall_ns", seed=1).scopes[0]
    assert isinstance(scope.distribution, Normal)
    assert scope.distribution.relative == pytest.approx(0.05, rel=0.1)
    assert scope.trimmed == pytest.approx(0.08, abs=0.03)
