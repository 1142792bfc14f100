"""Annotations learnt from simulated calls with known truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perfdiff.models import modes
from perfdiff.models.annotation import CostClass, Term, coefficients, design, term_names
from perfdiff.models.fitting import fit, refit
from perfdiff.models.growth import dominant_class
from perfdiff.models.manifest import growing
from perfdiff.models.noise import MAX_TRIMMED, OUTLIER, estimate, no_outliers
from perfdiff.models.observations import columns_of, observe
from perfdiff.models.selection import MAX_FEATURES, Contest, ContestSetting, basis, select
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Origin, SampleTable
from sampled import noisy, strangers, table

TRUTHS: dict[CostClass, Callable[[Floats], Floats]] = {
    CostClass.CONSTANT: lambda x: np.full(len(x), 1000.0),
    CostClass.LOGARITHMIC: lambda x: 200 + 300 * np.log2(x),
    CostClass.LINEAR: lambda x: 400 + 12 * x,
    CostClass.N_LOG_N: lambda x: 400 + 6 * x * np.log2(x),
    CostClass.QUADRATIC: lambda x: 400 + 100 * x + 2 * x**2,
    CostClass.CUBIC: lambda x: 400 + 0.5 * x**3,
}


def test_what_is_left_of_exact_counts_is_no_noise() -> None:
    """Fits of counts such as 0 and 4 leave remainders of arithmetic, whose squares are no numbers."""
    expected, residuals = np.array([4.65e-243] * 18 + [4.0] * 18), np.array([-4.65e-243] * 18 + [0.0] * 18)
    found = estimate(expected, residuals, floor=0.04)
    assert (found.additive, found.relative) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_memory_that_a_function_is_about_to_write_is_no_input() -> None:
    """An initialiser's argument points to what was there before: addresses, in some calls zeros or small numbers."""
    rng = np.random.default_rng(1)
    left_over = np.where(rng.random(400) < 0.5, 0.0, 0x7FFF_0000_0000 + 16.0 * rng.integers(0, 2**24, 400))
    cost = noisy(rng, np.where(left_over > 0, 120.0, 100.0), 0.05, 0.0)
    fitted = fit(table({"buffer->size": left_over}, cost), "wall_ns", seed=1)
    assert fitted.features == ()
    assert not any(scope.conditions for scope in fitted.scopes)


def test_a_large_number_that_is_not_whole_is_an_input() -> None:
    rng = np.random.default_rng(2)
    seconds = rng.uniform(1e12, 4e12, 400) + 0.5
    assert fit(table({"t": seconds}, noisy(rng, 1e-9 * seconds, 0.01, 0.0)), "wall_ns", seed=1).features == ("t",)


@pytest.mark.parametrize(
    ("of_points", "features"),
    [
        pytest.param((4480.0, 4480.0, 4497.0), (), id="memory in use"),
        pytest.param((1000.0, 1400.0, 1900.0), ("size",), id="a size"),
    ],
)
def test_a_value_of_a_whole_point_is_an_input_only_if_a_cost_can_follow_it(of_points: tuple[float, ...], features: tuple[str, ...]) -> None:
    """A function that runs once: whatever has another value at each point orders its cost, by 4 ms, 12 ms and 40 ms."""
    point = np.repeat([1, 2, 3], 10)
    rng = np.random.default_rng(6)
    sizes = np.array(of_points)[point - 1]
    cost = 1e-3 * sizes**3 if features else np.array([4e6, 12e6, 40e6])[point - 1]
    assert fit(table({"size": sizes}, noisy(rng, cost, 0.02, 0.0), point=point), "wall_ns", seed=1).features == features


def test_a_value_that_varies_within_a_point_is_an_input_however_little_it_varies() -> None:
    rng = np.random.default_rng(7)
    place = rng.uniform(4480.0, 4497.0, 300)
    cost = noisy(rng, 100 + 1000 * (place - 4480.0), 0.02, 0.0)
    assert fit(table({"place": place}, cost, point=np.repeat([1, 2, 3], 100)), "wall_ns", seed=1).features == ("place",)


@pytest.mark.parametrize(
    ("law", "least"),
    [
        pytest.param(lambda x: x**2, {CostClass.QUADRATIC: 16}, id="n²"),
        pytest.param(lambda x: 4 * x, {CostClass.LINEAR: 20}, id="4·n"),
        pytest.param(lambda x: 100 + 4 * x, {CostClass.LINEAR: 18}, id="100 + 4·n"),
        pytest.param(lambda x: x * np.log2(x), {CostClass.LINEAR: 19}, id="n·log n"),
    ],
)
def test_a_line_below_zero_is_no_plainer_than_a_square(law: Callable[[Floats], Floats], least: dict[CostClass, int]) -> None:
    """Four sizes in the noise of a busy machine: of 40 squares, 24 to 29 passed for lines while these had to be beaten by far."""
    sizes = np.repeat([40.0, 60.0, 80.0, 100.0], 10)
    found: Counter[CostClass] = Counter()
    for seed in range(20):
        cost = law(sizes) * np.exp(0.2 * np.random.default_rng(seed).standard_normal(len(sizes)))
        found[fit(table({"n": sizes}, cost, run=np.arange(len(sizes))), "wall_ns", seed=1).growth] += 1
    assert all(found[growth] >= count for growth, count in least.items()), found


def few_large(rng: np.random.Generator, n: int) -> Floats:
    return np.where(rng.random(n) < 0.98, rng.integers(1, 10, n), np.floor(10 ** rng.uniform(2, 4.5, n)))


SIZES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "uniform": lambda rng, n: rng.integers(1, 1000, n).astype(np.float64),
    "log-uniform": lambda rng, n: np.floor(10 ** rng.uniform(0, 4, n)),
    "four points": lambda rng, n: rng.choice([1000.0, 3000.0, 10000.0, 30000.0], n),
    "few large": few_large,
}


@pytest.mark.statistical
@pytest.mark.parametrize("noise", [0.05, 0.10])
@pytest.mark.parametrize("kind", TRUTHS)
def test_class_is_recovered_at_1000_calls_whatever_the_sizes(kind: CostClass, noise: float) -> None:
    found = Counter()
    for seed in range(36):
        rng = np.random.default_rng(seed)
        x = list(SIZES.values())[seed % len(SIZES)](rng, 1000)
        found[fit(table({"n": x} | strangers(rng, 1000, 5), noisy(rng, TRUTHS[kind](x), noise)), "wall_ns", seed=1).cost_class] += 1
    assert found[kind] >= 35, found  # at least 97 %


@pytest.mark.statistical
def test_noisy_constants_stay_constant() -> None:
    noises: list[Callable[[np.random.Generator, int], Floats]] = [
        lambda rng, n: noisy(rng, np.ones(n), 0.05),
        lambda rng, n: noisy(rng, np.ones(n), 0.20, 0.08),
        lambda rng, n: np.exp(0.3 * rng.standard_normal(n)),
        lambda rng, n: 0.2 + rng.exponential(1.0, n),
        lambda rng, n: np.round(20 * (1 + 0.05 * rng.standard_normal(n))) / 20,  # a coarse clock
    ]
    found = Counter()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = (100, 400, 1000)[seed % 3]
        columns = strangers(rng, n, 8) | {"flag": rng.integers(0, 2, n) + 0.0, "mode": rng.integers(0, 5, n) + 0.0}
        calls = table(columns, 1000 * noises[seed % len(noises)](rng, n), labels={"flag": {0: "false", 1: "true"}, "mode": {}})
        annotation = fit(calls, "wall_ns", seed=1)
        found[annotation.cost_class, len(annotation.scopes)] += 1
    assert found[CostClass.CONSTANT, 1] >= 198, found


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [CostClass.CONSTANT, CostClass.LINEAR, CostClass.QUADRATIC])
def test_class_is_recovered_from_four_points_of_five_runs_of_one_call(kind: CostClass) -> None:
    found = Counter()
    for seed in range(100):
        rng = np.random.default_rng(seed)
        point = np.repeat(np.arange(4), 5)
        x = np.array([1000.0, 3000.0, 10000.0, 30000.0])[point]
        calls = table(
            {"n": x, "length": 2 * x + 1},
            noisy(rng, TRUTHS[kind](x), 0.10, 0.05),
            run=np.arange(20),
            point=point,
            origins={"n": Origin.WORKLOAD},
        )
        found[fit(calls, "wall_ns", seed=1).cost_class] += 1
    assert found[kind] >= 97, found


def of_sizes(rng: np.random.Generator, costs: Mapping[float, float], calls: Sequence[int], runs: int = 5) -> SampleTable:
    """Return calls at a few sizes, so many at each, whose costs follow no formula."""
    sizes = np.repeat(np.array(list(costs)), calls)
    run = np.concatenate([np.arange(count) % runs + runs * number for number, count in enumerate(calls)])
    point = np.repeat(np.arange(len(calls)), calls)
    cost = noisy(rng, np.repeat(np.array(list(costs.values())), calls), 0.08)
    return table({"n": sizes}, cost, run=run, point=point, origins={"n": Origin.WORKLOAD})


@pytest.mark.statistical
@pytest.mark.parametrize("costs", [{1000.0: 6.27e6, 2000.0: 18.2e6, 4000.0: 87.3e6}, {1000.0: 83e6, 2000.0: 331e6, 4000.0: 4200e6}])
@pytest.mark.parametrize("calls", [(981, 339, 78), (400, 400, 400), (5, 5, 5)])
def test_a_cost_that_rises_to_a_multiple_is_not_constant_though_no_formula_fits_it(
    costs: dict[float, float], calls: tuple[int, ...]
) -> None:
    """As of a list that outgrows a cache between two sizes: two medians that were seen."""
    found = Counter(fit(of_sizes(np.random.default_rng(seed), costs, calls), "wall_ns", seed=1).cost_class for seed in range(12))
    assert found[CostClass.CONSTANT] == found[CostClass.LOGARITHMIC] == 0, found
    assert found[CostClass.QUADRATIC] + found[CostClass.CUBIC] >= 11, found


def test_what_most_calls_of_a_size_cost_is_no_outlier_though_they_are_few() -> None:
    """They are a twentieth of the calls, and lie far above what cheaper ones lead to expect."""
    calls = of_sizes(np.random.default_rng(1), {1000.0: 6.27e6, 2000.0: 18.2e6, 4000.0: 87.3e6}, (981, 339, 78))
    (scope,) = fit(calls, "wall_ns", seed=1).scopes
    assert scope.trimmed < 0.04
    expected = sum(term.coefficient * 4000.0 ** {"x": 1, "x2": 2, "x3": 3}[dict(term.factors)["n"]] for term in scope.terms if term.factors)
    assert 0.8 < expected / 87.3e6 < 1.2


@pytest.mark.parametrize(
    ("costs", "calls", "runs"),
    [
        ({1.0: 100.0, 2.0: 150.0, 4.0: 180.0}, (20, 20, 20), 5),  # by less than a multiple
        ({1.0: 100.0, 2.0: 400.0, 4.0: 300.0}, (20, 20, 20), 5),  # not from size to size
        ({1.0: 100.0, 4.0: 400.0}, (20, 20), 5),  # of two sizes
        ({1.0: 100.0, 2.0: 200.0, 4.0: 400.0}, (20, 20, 4), 5),  # of too few calls
        ({1.0: 100.0, 2.0: 200.0, 4.0: 400.0}, (20, 20, 20), 1),  # in a run of each size
    ],
)
def test_growth_is_manifest_only_from_size_to_size_to_a_multiple_in_every_run(
    costs: dict[float, float], calls: tuple[int, ...], runs: int
) -> None:
    rows = observe(of_sizes(np.random.default_rng(2), costs, calls, runs), "wall_ns")
    assert growing(rows, {"n": rows.columns["n"]}) == ((), ())
    rising = observe(of_sizes(np.random.default_rng(2), {1.0: 100.0, 2.0: 200.0, 4.0: 400.0}, (20, 20, 20)), "wall_ns")
    assert growing(rising, {"n": rising.columns["n"]}) == (("n",), ())
    disturbed = replace(rising, cost=np.where(rising.run == 14, 90.0, rising.cost))  # one run of the largest size
    assert growing(disturbed, {"n": disturbed.columns["n"]}) == ((), ())


@pytest.mark.statistical
def test_class_of_a_scan_is_recovered_though_half_of_the_calls_end_early() -> None:
    found = Counter()
    for seed in range(100):
        rng = np.random.default_rng(seed)
        point = np.repeat(np.arange(4), 80)
        n = np.array([1000.0, 2000.0, 4000.0, 8000.0])[point]
        ends = np.where(rng.random(320) < 0.5, n, rng.uniform(0, n))  # misses read everything, hits stop where they hit
        calls = table(
            {"n": n}, noisy(rng, 20 + 0.5 * ends, 0.03, 0.03), run=np.arange(320) // 16, point=point, origins={"n": Origin.WORKLOAD}
        )
        found[fit(calls, "wall_ns", seed=1).cost_class] += 1
    assert found[CostClass.LINEAR] >= 97, found


@pytest.mark.statistical
def test_slow_runs_do_not_make_a_constant_grow() -> None:
    found = Counter()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        run = np.repeat(np.arange(20), 50)
        point = run // 5
        x = np.array([1000.0, 3000.0, 10000.0, 30000.0])[point]
        slow = 1 + 0.1 * np.abs(rng.standard_normal(20))
        calls = table(
            {"n": x, "call": np.arange(1000) % 50 + 0.0}, noisy(rng, 1000 * slow[run]), run=run, point=point, origins={"n": Origin.WORKLOAD}
        )
        found[fit(calls, "wall_ns", seed=1).cost_class] += 1
    assert found[CostClass.CONSTANT] >= 39, found


@pytest.mark.statistical
def test_slope_is_found_under_additive_exponential_noise() -> None:
    slopes = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 1000, 1000) + 0.0
        annotation = fit(table({"n": x} | strangers(rng, 1000), 500 + 20 * x + rng.exponential(3000, 1000)), "wall_ns", seed=1)
        assert annotation.cost_class is CostClass.LINEAR
        slopes.append(annotation.scopes[0].terms[1].coefficient)
    assert np.mean(slopes) == pytest.approx(20, rel=0.01)
    assert np.mean(np.abs(np.array(slopes) - 20) <= 1) >= 0.95  # least squares would reach 0.98


def test_coefficients_ignore_preempted_calls() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(1, 1000, 2000) + 0.0
    annotation = fit(table({"n": x}, noisy(rng, 400 + 12 * x, 0.10, 0.05)), "wall_ns", seed=1)
    assert annotation.predict({"n": np.array([10.0, 1000.0])}) == pytest.approx([520, 12400], rel=0.03)
    assert 0.02 < annotation.scopes[0].trimmed < 0.10


def test_slight_curvature_is_still_linear() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(1, 1000, 1000) + 0.0
    assert fit(table({"n": x}, noisy(rng, 20 * x + 0.005 * x**2)), "wall_ns", seed=1).cost_class is CostClass.LINEAR


def test_two_sizes_give_a_line_at_most() -> None:
    rng = np.random.default_rng(1)
    x = np.repeat([100.0, 200.0], 20)
    annotation = fit(table({"n": x}, noisy(rng, x**2)), "wall_ns", seed=1)
    assert annotation.cost_class is CostClass.LINEAR


def test_exact_counts_give_exact_coefficients() -> None:
    rng = np.random.default_rng(1)
    x, m = rng.integers(0, 1000, 500) + 0.0, rng.integers(0, 50, 500) + 0.0
    annotation = fit(table({"n": x, "m": m}, 16 * x + 24 * m + 8, metric="alloc_bytes"), "alloc_bytes", seed=1)
    assert annotation.scopes[0].terms[0].coefficient == pytest.approx(8)
    assert {term.factors: pytest.approx(term.coefficient) for term in annotation.scopes[0].terms[1:]} == {
        (("n", "x"),): 16,
        (("m", "x"),): 24,
    }
    assert annotation.cv_r2 == pytest.approx(1.0)


def test_rare_allocations_count_in_the_mean() -> None:
    cost = np.where(np.arange(1000) % 10 == 0, 64.0, 0.0)
    annotation = fit(table({"n": np.arange(1000.0) % 7}, cost, metric="alloc_bytes"), "alloc_bytes", seed=1)
    assert annotation.predict({"n": np.zeros(1)}) == pytest.approx([6.4])


def test_product_of_two_sizes_is_found() -> None:
    rng = np.random.default_rng(1)
    x, m = rng.integers(1, 1000, 1000) + 0.0, rng.integers(1, 500, 1000) + 0.0
    annotation = fit(table({"n": x, "m": m} | strangers(rng, 1000), noisy(rng, 300 + 2 * x * m)), "wall_ns", seed=1)
    assert term_names(annotation) == ("1", "n*m")
    assert fit(table({"n": x, "m": m}, noisy(rng, 300 + 9 * x * np.log2(m))), "wall_ns", seed=1).cost_class is CostClass.N_LOG_N


def shared_out(rng: np.random.Generator, law: Callable[[Mapping[str, Floats]], Floats], noise: float = 0.05) -> SampleTable:
    """Return calls whose cost follows a number of threads and a size, in twenty runs that all have the same inputs."""
    columns = {"threads": rng.choice([1.0, 2.0, 4.0, 8.0, 16.0], 50), "n": rng.choice([100.0, 300.0, 1000.0, 3000.0], 50)}
    tiled = {name: np.tile(column, 20) for name, column in columns.items()}
    return table(tiled | strangers(rng, 1000, 3), noisy(rng, law(tiled), noise), run=np.repeat(np.arange(20), 50))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("law", "terms"),
    [
        pytest.param(lambda c: 80_000 / c["threads"], {"1/threads"}, id="80,000/t"),
        pytest.param(lambda c: 9_000 + 80_000 / c["threads"], {"1/threads"}, id="9,000 + 80,000/t"),
        pytest.param(lambda c: 500 + 200 * c["n"] / c["threads"], {"n/threads"}, id="500 + 200·n/t"),
    ],
)
def test_work_that_is_shared_out_costs_its_part(law: Callable[[Mapping[str, Floats]], Floats], terms: set[str]) -> None:
    """They were constant, as a line and a logarithm of the threads both miss it, and a line of n with another border for each t."""
    held = {"threads": np.array([3.0, 6.0, 12.0]), "n": np.array([200.0, 600.0, 2000.0])}
    right = 0
    for seed in range(12):
        annotation = fit(shared_out(np.random.default_rng(seed), law), "wall_ns", seed=1)
        is_near = annotation.predict(held) == pytest.approx(law(held), rel=0.08)
        right += is_near and terms <= set(term_names(annotation))
        assert annotation.cost_class in (CostClass.INVERSE, CostClass.LINEAR)
    assert right >= 11, right


def test_a_cost_that_plainly_falls_is_not_constant_though_no_formula_fits_it() -> None:
    """Threads that meet at a lock: five times as long for one as for eight."""
    calls = of_sizes(np.random.default_rng(1), {8.0: 100.0, 4.0: 110.0, 2.0: 480.0, 1.0: 500.0}, (40, 40, 40, 40))
    assert fit(calls, "wall_ns", seed=1).cost_class is CostClass.INVERSE
    rows = observe(calls, "wall_ns")
    assert growing(rows, {"n": rows.columns["n"]}) == ((), ("n",))


@pytest.mark.parametrize(
    "steps", [(100.0, 200.0, 400.0, 800.0, 1600.0), (1600.0, 800.0, 400.0, 200.0, 100.0), (400.0, 100.0, 1600.0, 200.0, 800.0)]
)
def test_a_cost_that_falls_while_a_run_warms_up_is_no_inverse_of_sizes_that_rise_with_it(steps: tuple[float, ...]) -> None:
    """A run that goes from small to large sizes: first calls cost five times as much whatever their size."""
    rng = np.random.default_rng(1)
    size = np.tile(np.repeat(steps, 10), 20)
    drift = 1 + 4 * np.exp(-np.tile(np.arange(50), 20) / 8)
    annotation = fit(table({"n": size}, noisy(rng, 3000 * drift), run=np.repeat(np.arange(20), 50)), "wall_ns", seed=1)
    assert annotation.cost_class is not CostClass.INVERSE
    assert not any("inv" in dict(term.factors).values() for scope in annotation.scopes for term in scope.terms)


def test_an_input_drifts_where_it_rises_with_the_calls_of_every_run() -> None:
    run, rng = np.repeat(np.arange(4), 25), np.random.default_rng(1)
    rising = np.tile(np.arange(1.0, 26.0), 4)
    columns = {"rising": rising, "of a run": run + 1.0, "once": np.where(run == 0, rising, 7.0), "random": rng.uniform(1, 9, 100)}
    assert observe(table(columns, rng.uniform(1, 2, 100), run=run), "wall_ns").drifting == {"rising"}


def sum_of(count: int, seed: int) -> SampleTable:
    """Return calls whose cost is the sum of so many of eight inputs."""
    rng = np.random.default_rng(seed)
    columns = strangers(rng, 1500, 8)
    return table(columns, noisy(rng, 400 + 10 * np.sum([columns[f"f{place}"] for place in range(count)], axis=0)))


@pytest.mark.statistical
@pytest.mark.parametrize("count", [3, 4, 5, 6])
def test_a_sum_of_several_inputs_has_them_all_and_no_other(count: int) -> None:
    for seed in range(6):
        annotation = fit(sum_of(count, seed), "wall_ns", seed=1)
        assert set(annotation.features) == {f"f{place}" for place in range(count)}
        assert annotation.further is None


def test_an_input_beyond_those_that_a_model_may_have_is_told() -> None:
    annotation = fit(sum_of(8, 1), "wall_ns", seed=1)
    assert len(annotation.features) == MAX_FEATURES
    assert annotation.further in {f"f{place}" for place in range(8)} - set(annotation.features)


def test_a_further_input_that_says_next_to_nothing_is_left_out() -> None:
    """Its evidence is beyond doubt, by BIC; what it takes away is a hundredth."""
    rng = np.random.default_rng(1)
    columns = strangers(rng, 20_000, 4)
    cost = 4000 + 10 * (columns["f0"] + columns["f1"] + columns["f2"]) + 0.5 * columns["f3"]
    assert set(fit(table(columns, noisy(rng, cost)), "wall_ns", seed=1).features) == {"f0", "f1", "f2"}


@pytest.mark.parametrize(
    ("law", "term", "kind"),
    [
        pytest.param(lambda n, m: n * m**2, "n*m^2", CostClass.CUBIC, id="n·m²"),
        pytest.param(lambda n, m: n**2 * m, "n^2*m", CostClass.CUBIC, id="n²·m"),
        pytest.param(lambda n, m: n * np.log2(n) * m * np.log2(m), "n*log2(n)*m*log2(m)", CostClass.QUADRATIC, id="n·log n·m·log m"),
        pytest.param(lambda n, m: n * m * np.log2(m), "n*m*log2(m)", CostClass.QUADRATIC, id="n·m·log m"),
        pytest.param(lambda n, m: n * m, "n*m", CostClass.QUADRATIC, id="n·m"),
        pytest.param(lambda n, m: n * np.log2(m), "n*log2(m)", CostClass.N_LOG_N, id="n·log m"),
    ],
)
def test_products_of_two_shapes_are_found(law: Callable[[Floats, Floats], Floats], term: str, kind: CostClass) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n, m = rng.integers(1, 1000, 1000) + 0.0, rng.integers(1, 500, 1000) + 0.0
        annotation = fit(table({"n": n, "m": m} | strangers(rng, 1000, 4), noisy(rng, 300 + 2 * law(n, m))), "wall_ns", seed=1)
        assert term_names(annotation) == ("1", term)
        assert annotation.cost_class is kind


def test_correlated_twin_is_listed_beside_the_plainest_member() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(1, 1000, 1000) + 0.0
    columns = {"list->size": x + rng.integers(0, 9, 1000), "n": x, "end - begin": 2 * x + 1, "squared": x**2}
    origins = {"list->size": Origin.FIELD, "end - begin": Origin.DERIVED, "squared": Origin.DERIVED}
    annotation = fit(table(columns, noisy(rng, 400 + 12 * x), origins=origins), "wall_ns", seed=1)
    assert annotation.features == ("n",)
    assert annotation.twins == {"n": ("list->size", "end - begin", "squared")}


def test_workload_parameter_names_the_class_unless_a_twin_varies_within_a_point() -> None:
    rng = np.random.default_rng(1)
    point = np.repeat(np.arange(4), 100)
    n = np.array([1000.0, 3000.0, 10000.0, 30000.0])[point]
    for length, named, other in ((2 * n + 1, "n", "length"), (n * rng.uniform(0.9, 1.1, 400), "length", "n")):
        calls = table({"length": length, "n": n}, noisy(rng, 400 + 3 * n), point=point, origins={"n": Origin.WORKLOAD})
        annotation = fit(calls, "wall_ns", seed=1)
        assert annotation.twins == {named: (other,)}


def test_workload_parameters_join_by_point() -> None:
    rng = np.random.default_rng(1)
    point = np.repeat(np.arange(4), 50)
    n = np.array([1000.0, 3000.0, 10000.0, 30000.0])
    points = {i: {"n": value, "kind": "sorted"} for i, value in enumerate(n)}
    annotation = fit(table({}, noisy(rng, 12 * n[point]), point=point), "wall_ns", seed=1, points=points)
    assert annotation.features == ("n",)
    assert annotation.cost_class is CostClass.LINEAR


def test_same_table_gives_the_same_annotation() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(1, 1000, 3000) + 0.0
    calls = table({"n": x} | strangers(rng, 3000), noisy(rng, 400 + 12 * x))
    assert fit(calls, "wall_ns", seed=1) == fit(calls, "wall_ns", seed=1)


def test_refit_keeps_the_structure_and_finds_new_coefficients() -> None:
    rng = np.random.default_rng(1)
    x, flag = rng.integers(1, 1000, 1000) + 0.0, (rng.random(1000) < 0.3) + 0.0
    base = fit(table({"n": x, "flag": flag}, noisy(rng, np.where(flag > 0, 9000, 400 + 12 * x))), "wall_ns", seed=1)
    calls = table({"n": x, "flag": flag}, noisy(rng, np.where(flag > 0, 9000, 400 + 60 * x)))
    head = refit(base, calls, "wall_ns")
    assert term_names(head) == term_names(base)
    assert coefficients(head) == pytest.approx([9000, 400, 60], rel=0.05)


def test_refit_leaves_rows_without_the_feature_aside() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(1, 1000, 500) + 0.0
    base = fit(table({"n": x}, noisy(rng, 400 + 12 * x)), "wall_ns", seed=1)
    head = refit(base, table({"n": np.where(np.arange(500) < 50, np.nan, x)}, noisy(rng, 400 + 12 * x)), "wall_ns")
    assert head.scopes[0].n == 450
    assert head.scopes[0].share == pytest.approx(0.9)


def test_quality_is_held_out_by_run() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(1, 1000, 1000) + 0.0
    annotation = fit(table({"n": x}, noisy(rng, 400 + 12 * x, 0.02, 0.0)), "wall_ns", seed=1)
    assert annotation.cv_r2 >= 0.9866  # Freud §5
    assert annotation.cv_r2 <= annotation.r2


def test_design_times_coefficients_is_the_prediction() -> None:
    rng = np.random.default_rng(1)
    x, flag = rng.integers(1, 1000, 1000) + 0.0, (rng.random(1000) < 0.3) + 0.0
    annotation = fit(table({"n": x, "flag": flag}, noisy(rng, np.where(flag > 0, 9000, 400 + 12 * x))), "wall_ns", seed=1)
    values = {"n": np.array([0.0, 500.0]), "flag": np.array([1.0, 0.0])}
    assert design(annotation, values).tolist() == [[1, 0, 0], [0, 1, 500]]
    assert annotation.predict(values) == pytest.approx([9000, 6400], rel=0.03)


@pytest.mark.parametrize("cost", [[0.0] * 50, [5.0], [1.0, 2.0], [-3.0, -2.0, 1.0] * 20, [1e18] * 10 + [1.0] * 10])
def test_odd_costs_are_fitted_without_complaint(cost: list[float]) -> None:
    x = np.linspace(0, 1e300, len(cost))
    annotation = fit(table({"n": x, "m": np.full(len(cost), np.nan)}, np.array(cost)), "wall_ns", seed=1)
    assert annotation.n == len(cost)
    assert np.isfinite(annotation.predict({"n": x})).all()


def test_missing_metric_is_an_error() -> None:
    with pytest.raises(ValueError, match="no record with wall_ns"):
        fit(table({"n": np.arange(3.0)}, np.full(3, np.nan)), "wall_ns", seed=1)


@pytest.mark.parametrize("seed", range(60))
def test_any_table_gives_a_finite_prediction_for_each_of_its_calls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 3, 8, 20, 120]))
    kinds: list[Callable[[], Floats]] = [
        lambda: np.full(n, rng.choice([0.0, -1.0, 1e18])),
        lambda: rng.integers(0, 5, n) + 0.0,
        lambda: 10 ** rng.uniform(0, 18, n),
        lambda: rng.choice([1e300, np.inf, np.nan, 0.0], n),
        lambda: np.where(rng.random(n) < 0.3, np.nan, rng.integers(-100, 100, n)),
        lambda: 140737488355328.0 + 16 * rng.integers(0, 1000, n),  # a pointer
    ]
    columns = {f"c{i}": kinds[rng.integers(len(kinds))]() for i in range(rng.integers(0, 6))}
    costs = (rng.exponential(100, n), rng.choice([0.0, 64.0], n), rng.standard_normal(n), np.arange(n) ** 2.0)
    taken = {"condition": (rng.random(n) < 0.5) + 0.0}
    calls = table(columns, costs[seed % 4], run=rng.integers(0, 4, n), taken=taken, labels={"c0": {}})
    annotation = fit(calls, "wall_ns", seed=1)
    assert sum(scope.share for scope in annotation.scopes) == pytest.approx(1)
    assert np.isfinite(annotation.predict(columns_of(calls))).all()
    assert refit(annotation, calls, "wall_ns").n == n


def test_predictions_need_no_feature() -> None:
    calls = table({}, np.array([5.0, 5.0, 5.0]))
    assert fit(calls, "wall_ns", seed=1).predict(columns_of(calls)) == pytest.approx([5, 5, 5])


def test_a_term_that_does_not_vary_over_the_rows_is_constant() -> None:
    terms = (Term(15.0), Term(0.5, (("kind", "x"),)))
    assert dominant_class(terms, {"kind": np.full(4, 32769.0)}, 4) is CostClass.CONSTANT


def test_what_grows_a_little_faster_than_a_square_is_quadratic_and_a_cube_is_cubic() -> None:
    x = {"n": np.array([1000.0, 3000.0, 10000.0, 30000.0])}
    swollen = (Term(0.0), Term(20000.0, (("n", "x"),)), Term(1e-4, (("n", "x3"),)))
    assert dominant_class(swollen, x, 4) is CostClass.QUADRATIC
    assert dominant_class((Term(5.0), Term(1e-4, (("n", "x3"),))), x, 4) is CostClass.CUBIC


def test_one_value_with_a_rare_outlier_has_no_modes() -> None:
    assert modes._valley(np.r_[np.full(999, 5.0), 900.0], 50) is None


@pytest.mark.parametrize(("square", "kind"), [(0.006, CostClass.LINEAR), (0.02, CostClass.QUADRATIC)])
def test_class_of_a_line_and_a_square_is_the_nearer_one(square: float, kind: CostClass) -> None:
    x = {"n": np.array([1000.0, 2000.0, 4000.0, 8000.0])}
    assert dominant_class([Term(300.0), Term(65.0, (("n", "x"),)), Term(square, (("n", "x2"),))], x, 4) is kind


def test_growth_of_several_powers_is_that_of_the_faster_half() -> None:
    x = {"n": np.array([0.0, 1.0])}
    even = [Term(1.0, (("n", "x"),)), Term(1.0, (("n", "x2"),)), Term(1.0, (("n", "x3"),))]
    assert dominant_class(even, x, 2) is CostClass.QUADRATIC


def test_growth_in_two_features_is_that_of_the_one_whose_values_span_a_doubling() -> None:
    columns = {"routes": np.array([20.0, 20.0, 100.0, 100.0]), "letters": np.array([19.0, 21.0, 19.0, 21.0])}
    bent = [Term(825.0), Term(-2862.0, (("routes", "x"),)), Term(674.0, (("routes", "x"), ("letters", "log")))]
    assert dominant_class(bent, columns, 4) is CostClass.LINEAR
    wider = {**columns, "letters": np.array([19.0, 190.0, 19.0, 190.0])}
    assert dominant_class(bent, wider, 4) is CostClass.N_LOG_N
    alone = [Term(825.0), Term(15.0, (("letters", "x2"),))]
    assert dominant_class(alone, columns, 4) is CostClass.QUADRATIC


def test_class_of_a_term_whose_feature_is_never_positive() -> None:
    cube = [Term(-1.0, (("k", "x3"),))]
    assert dominant_class(cube, {"k": np.array([-3.0, -2.0, 0.0])}, 3) is CostClass.CUBIC
    assert dominant_class(cube, {"k": np.array([-3.0, -2.0, 5.0])}, 3) is CostClass.CUBIC


# What a recording can hold: any number in a feature, 64 bits in a metric.
ANY_NUMBER = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -7.5, 1e-300, 1e9, 1e45, -1e45, 1e300, np.nan, np.inf, -np.inf])
ANY_COST = st.sampled_from([0.0, 1e-300, 0.5, 1.0, 2.0, 40.0, 1e3, 1e9, 2.0**63, -5.0, np.nan, np.inf])


@st.composite
def hostile(draw: st.DrawFn) -> tuple[dict[str, Floats], Floats]:
    """Return columns and costs of some calls: constants, few values or noise, any of them absent, infinite or huge."""
    n = draw(st.integers(1, 50))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def column(values: st.SearchStrategy[float]) -> Floats:
        few = draw(st.lists(values, min_size=1, max_size=5))
        wild = np.exp(rng.uniform(-5, 30, n)) * rng.choice([1, -1], n)
        return wild if draw(st.booleans()) else rng.choice(np.array(few), n)

    columns = {f"x{i}": column(ANY_NUMBER) for i in range(draw(st.integers(0, 3)))}
    return columns, column(ANY_COST)


@settings(max_examples=150, derandomize=True)
@given(hostile(), st.sampled_from(["wall_ns", "alloc_bytes"]))
def test_any_numbers_have_an_annotation(calls: tuple[dict[str, Floats], Floats], metric: str) -> None:
    columns, cost = calls
    assume(np.isfinite(cost).any())
    made = table(columns, cost, metric=metric)
    found = fit(made, metric, seed=1)
    assert np.isfinite(found.predict({name: np.array([1.0, 10.0]) for name in columns})).all()
    assert refit(found, made, metric).n == found.n == np.isfinite(cost).sum()


@pytest.mark.statistical
def test_disturbed_runs_of_a_steep_cost_are_no_delays() -> None:
    near = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        run = np.repeat(np.arange(20), 10)
        n = np.array([1000.0, 2000.0, 4000.0, 8000.0])[run // 5]
        slow = np.isin(run, rng.choice(20, 4, replace=False))
        cost = noisy(rng, 5000 + 0.013 * n**2, 0.01, 0.0) * np.where(slow, rng.uniform(1.2, 2.3, len(run)), 1.0)
        annotation = fit(table({"n": n}, cost, run=run, point=run // 5), "wall_ns", seed=1)
        assert annotation.cost_class is CostClass.QUADRATIC
        near += annotation.predict({"n": np.array([1000.0])})[0] == pytest.approx(18_000, rel=0.25)
    assert near >= 7


def test_of_shapes_that_are_all_ruled_out_none_is_compared() -> None:
    # Beside x, each of b's plain shapes leaves a square that falls: a score of infinity each. Warnings are errors.
    rng = np.random.default_rng(6)
    x = 10.0 * np.arange(1, 41)
    b = np.round(x**0.8 + rng.integers(0, 6, 40))
    cost = 100 + 3 * b + 0.02 * x**2 + rng.normal(0, 1, 40)
    contest = Contest(basis({"x": x, "b": b}, 40), cost, ContestSetting(np.ones(40), np.ones(40), 1e-6, 1.0, np.arange(40)))
    assert set(select(contest, margin=0.0)) >= {(), (("x", "x2"),)}


def test_a_metric_that_some_calls_lack_is_learnt_from_the_others_alone() -> None:
    rng = np.random.default_rng(8)
    n = rng.uniform(10, 1000, 400)
    calls = table({"n": n}, noisy(rng, 100 + 5 * n))
    some = np.where(np.arange(400) < 300, calls.metrics["wall_ns"], np.nan)
    both = replace(calls, metrics=calls.metrics | {"self_ns": some})
    learnt = [fit(both, metric, seed=1) for metric in ("wall_ns", "self_ns", "wall_ns")]
    assert [each.n for each in learnt] == [400, 300, 400]
    assert replace(learnt[1], metric="wall_ns") == fit(calls.rows(np.arange(300)), "wall_ns", seed=1)
    assert learnt[0] == learnt[2] == fit(calls, "wall_ns", seed=1)


@pytest.mark.parametrize("outliers", [0, 1, 30, 49, 50, 51, 52, 120])
def test_upward_outliers_are_left_out_up_to_a_tenth(outliers: int) -> None:
    rng = np.random.default_rng(outliers)
    standardised = rng.permutation(np.concatenate([rng.uniform(-3, 3, 500 - outliers), rng.uniform(4, 9, outliers)]))
    bound = max(OUTLIER, float(np.quantile(standardised, 1 - MAX_TRIMMED)))
    assert no_outliers(standardised).tolist() == (standardised <= bound).tolist()
    assert np.count_nonzero(~no_outliers(standardised)) == min(outliers, 50)


@pytest.mark.parametrize("nothing", [0.0, 1e-200])
def test_costs_of_nothing_beside_others_divide_no_number_beyond_all_bounds(nothing: float) -> None:
    found = fit(table({"n": np.array([0.0, 0.5, 0.0])}, np.array([nothing, 3.0, nothing])), "wall_ns", seed=1)
    assert found.predict({"n": np.array([0.0, 0.5])}) == pytest.approx([0.0, 3.0])
