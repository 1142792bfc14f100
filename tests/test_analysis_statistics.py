"""Inference on runs, and how often the whole analysis is wrong under noise."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from experiments import BASE, HEAD, Columns, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.compare.levels import TRIMMED, levels, lines
from perfdiff.analysis.findings import Findings, Rung, Verdict
from perfdiff.analysis.stats.inference import clear_shift, clear_shifts, contrast, contrasts, false_discovery, noise_floor
from perfdiff.analysis.stats.panel import Panel, panel
from perfdiff.analysis.stats.panel import noise_floor as panel_floor
from perfdiff.analysis.stats.runs import Group, PointRuns, Runs
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Phase, SampleTable, Side
from perfdiff.report.sentences.catalogue import say

BLOCKS = np.arange(100)
FIVE_PERCENT = Noise(call=0.05, run=0.04, function=0.03)
WILD = {
    "20 % between runs": Noise(call=0.10, run=0.20, function=0.05),
    "30 % between functions and runs": Noise(call=0.10, run=0.10, function=0.25),
    "preempted calls and drift": Noise(call=0.05, run=0.05, function=0.05, outliers=0.10, drift=0.5),
}


def pair(base: np.ndarray, head: np.ndarray) -> PointRuns:
    return PointRuns(Group(base, BLOCKS[: len(base)]), Group(head, BLOCKS[: len(head)]))


def rate(trial: Callable[[np.random.Generator], bool], trials: int) -> float:
    rng = np.random.default_rng(7)
    return sum(trial(rng) for _ in range(trials)) / trials


@pytest.mark.parametrize("runs", [4, 5, 10])
def test_interval_holds_its_level_under_normal_noise(runs: int) -> None:
    def covers(rng: np.random.Generator) -> bool:
        low, high = contrast([pair(rng.normal(0, 0.1, runs), rng.normal(0.2, 0.1, runs))]).interval(0.95)
        return low <= 0.2 <= high

    assert rate(covers, 1000) == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("base_sd", [0.0, 0.001, 0.03], ids=["clamped", "tight", "narrow"])
@pytest.mark.parametrize("points", [1, 3])
def test_interval_holds_its_level_where_head_scatters_more_than_base(base_sd: float, points: int) -> None:
    def covers(rng: np.random.Generator) -> bool:
        pairs = [pair(rng.normal(0, base_sd, 5), rng.normal(9, 0.2, 5)) for _ in range(points)]
        low, high = contrast(pairs).interval(0.95)
        return low <= 9 <= high

    assert rate(covers, 1000) >= 0.92


def test_runs_of_one_side_are_not_pulled_into_a_point_by_the_other() -> None:
    head = np.array([9.1, 8.8, 9.3, 8.9, 9.0])
    seen = contrast([pair(np.zeros(5), head)])
    assert seen.error == pytest.approx(head.std(ddof=1) / np.sqrt(5))
    assert seen.freedom == pytest.approx(4)


def test_p_value_holds_its_level_with_preempted_runs() -> None:
    def significant(rng: np.random.Generator) -> bool:
        base, head = (rng.normal(0, 0.05, 6) + np.log(10) * (rng.random(6) < 0.1) for _ in range(2))
        return contrast([pair(base, head)]).p < 0.05

    assert rate(significant, 1000) <= 0.06


def test_one_preempted_run_does_not_hide_a_change() -> None:
    base = np.array([0.00, 0.02, -0.01, 0.01, 0.00])
    head = np.array([0.31, 0.29, 0.30, 0.32, 2.30])
    seen = contrast([pair(base, head)])
    assert seen.p < 0.01
    assert seen.effect == pytest.approx(0.3, abs=0.1)


def test_blocks_remove_drift_that_both_sides_share() -> None:
    rng = np.random.default_rng(1)
    drift = np.linspace(0, 1, 10)
    seen = contrast([pair(drift + rng.normal(0, 0.01, 10), drift + 0.1 + rng.normal(0, 0.01, 10))])
    assert seen.p < 1e-6
    assert seen.effect == pytest.approx(0.1, abs=0.02)


def together(rng: np.random.Generator, blocks: int, *, effect: float = 0.0, points: int = 3) -> Panel:
    """Return runs of one question made in pairs at the same time, of a machine that slows half of the pairs down by half."""
    machine = 0.5 * (rng.random((points, 1, blocks)) < 0.5)
    sides = (machine + rng.normal(shift, 0.02, machine.shape) for shift in (0.0, effect))
    order = [rng.permuted(np.tile(np.arange(blocks), (points, 1)), axis=1) for _ in range(2)]
    return panel(
        *(
            Runs(np.take_along_axis(side, places[:, None, :], axis=2), places, np.ones(points, dtype=bool))
            for side, places in zip(sides, order, strict=True)
        )
    )


@pytest.mark.parametrize("blocks", [5, 10])
def test_what_pairs_meet_of_the_machine_at_the_same_time_is_taken_off(blocks: int) -> None:
    def covers(rng: np.random.Generator) -> bool:
        (seen,) = contrasts(together(rng, blocks, effect=0.1))
        assert seen.error < 0.03  # the machine's modes alone would make it .1 and more
        low, high = seen.interval(0.95)
        return low <= 0.1 <= high

    assert rate(covers, 1000) == pytest.approx(0.95, abs=0.03)


def test_the_noise_floor_of_pairs_is_what_their_differences_show_by_chance() -> None:
    rng = np.random.default_rng(12)
    floors = [panel_floor(together(rng, 10), 0, seed=1) for _ in range(100)]
    shown = [abs(contrasts(together(rng, 10))[0].effect) for _ in range(1000)]
    assert np.median(floors) == pytest.approx(np.quantile(shown, 0.95), rel=0.2)


def test_a_run_whose_pair_is_missing_says_nothing_where_all_others_have_one() -> None:
    blocks = np.array([[0, 1, 2, 3]])
    base, head = np.array([[[0.0, 0.5, 0.0, 0.5]]]), np.array([[[0.1, 0.6, 0.1, np.nan]]])
    (seen,) = contrasts(panel(Runs(base, blocks, np.ones(1, dtype=bool)), Runs(head, blocks, np.ones(1, dtype=bool))))
    assert (seen.runs_base, seen.runs_head) == (3, 3)
    assert seen.effect == pytest.approx(0.1)


def test_counts_that_never_vary_differ_exactly_or_not_at_all() -> None:
    equal, differ = contrast([pair(np.zeros(3), np.zeros(3))]), contrast([pair(np.zeros(3), np.full(3, 1e-3))])
    assert (equal.p, differ.p) == (1.0, 0.0)
    assert differ.interval(0.95) == (1e-3, 1e-3)


@pytest.mark.parametrize("shape", [(2, 0, 5), (0, 3, 5), (2, 3, 0)], ids=["questions", "points", "runs"])
def test_a_panel_without_anything_says_nothing(shape: tuple[int, int, int]) -> None:
    side = Runs(np.ones(shape), np.zeros((shape[0], shape[2]), dtype=np.int64), np.zeros(shape[0], dtype=bool))
    assert contrasts(panel(side, side)) == [None] * shape[1]


def test_runs_that_no_machine_has_of_both_sides_tell_nothing() -> None:
    """A fleet may have base on some hosts and head on others, a cluster lose a worker with all of a point's runs."""
    shape = (2, 1, 10)
    values, blocks, alone = np.zeros(shape), np.tile(BLOCKS[:10], (2, 1)), np.zeros(2, dtype=bool)
    sides = [Runs(values, blocks, alone, np.full((2, 10), machine)) for machine in (1, 2)]
    assert contrasts(panel(*sides)) == [None]


def test_questions_of_a_panel_are_answered_as_one_by_one() -> None:
    rng = np.random.default_rng(5)
    sides = [rng.standard_t(2, (3, 40, 10)) for _ in range(2)]
    for side in sides:
        side[rng.random(side.shape) < 0.3] = np.nan
    sides[0][1, :5] = np.nan  # questions that a point does not answer
    together = panel(*(Runs(side, np.tile(BLOCKS[:10], (3, 1)), np.zeros(3, dtype=bool)) for side in sides))
    answers = contrasts(together)
    for question, answer in enumerate(answers):
        pairs = []
        for point in range(3):
            values = [side[point, question] for side in sides]
            pairs.append(PointRuns(*(Group(each[np.isfinite(each)], BLOCKS[:10][np.isfinite(each)]) for each in values)))
        alone = contrast(pairs)
        assert (answer is None) is (alone is None)
        if answer is not None:
            assert dataclasses.astuple(answer) == pytest.approx(dataclasses.astuple(alone))
            assert panel_floor(together, question, seed=1) == pytest.approx(noise_floor(pairs, seed=1))
    assert None not in answers[5:]


def test_levels_are_the_medians_of_each_stratum_in_each_run() -> None:
    rng = np.random.default_rng(6)
    run, label, values = rng.integers(0, 4, 300), rng.integers(0, 2, 300), rng.normal(size=300)
    values[rng.random(300) < 0.1] = np.nan
    strata = rng.random((5, 300)) < np.array([1.0, 0.5, 0.1, 0.02, 0.0])[:, None]
    of = lines(table(run), label, values)
    found, means = levels(of, strata, fine=False), levels(of, strata, fine=True)
    for stratum, inside in enumerate(strata):
        for group, (number, name) in enumerate(zip(of.runs, of.labels, strict=True)):
            here = np.sort(values[inside & (run == number) & (label == name) & np.isfinite(values)])
            if not len(here):
                assert np.isnan([found[stratum, group], means[stratum, group]]).all()
                continue
            assert found[stratum, group] == np.median(here)
            kept = here[: len(here) - int(len(here) * TRIMMED)]
            assert means[stratum, group] == pytest.approx(np.log(np.exp(kept).mean()))


def table(run: np.ndarray) -> SampleTable:
    n, none = len(run), np.empty((len(run), 0))
    numbers = np.zeros(n, dtype=np.int64)
    return SampleTable(1, Side.BASE, {}, (), none, (), none, none, run, numbers, numbers, numbers, np.ones(n))


def test_too_few_runs_have_no_contrast() -> None:
    assert contrast([pair(np.zeros(1), np.zeros(5))]) is None


def test_noise_floor_follows_the_noise_not_the_effect() -> None:
    rng = np.random.default_rng(2)
    base, head = rng.normal(0, 0.1, 10), rng.normal(0, 0.1, 10)
    floor = noise_floor([pair(base, head)], seed=1)
    assert floor == pytest.approx(1.96 * 0.1 * np.sqrt(2 / 10), rel=0.4)
    assert noise_floor([pair(base, head + 5)], seed=1) == pytest.approx(floor)


def test_false_discovery_is_benjamini_and_hochbergs() -> None:
    assert false_discovery([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert len(false_discovery([])) == 0


def test_counts_that_do_not_vary_have_moved_by_any_difference() -> None:
    assert clear_shift(np.array([10.0, 10.0]), np.array([11.0, 11.0]))
    assert not clear_shift(np.array([0.1 + 0.2, 0.3]), np.array([0.3, 0.3]))  # rounding
    assert not clear_shift(np.array([10.0]), np.array([20.0]))
    assert not clear_shift(np.array([10.0, np.nan]), np.array([20.0, 20.0]))


def test_a_shift_of_counts_that_depend_on_timing_is_seen_more_surely_with_more_runs() -> None:
    def seen(runs: int, deviations: float) -> float:
        return rate(lambda rng: clear_shift(rng.normal(100, 1, runs), rng.normal(100 + deviations, 1, runs)), 1000)

    powers = [seen(runs, 5.0) for runs in (2, 5, 8, 12, 30)]
    assert powers == sorted(powers)
    assert 0.4 < powers[1] < 0.65
    assert powers[2] > 0.97
    assert powers[3] == 1.0
    assert max(seen(runs, 0.0) for runs in (2, 5, 12)) <= 0.003


def test_q_values_are_those_of_scipy() -> None:
    from scipy.stats import false_discovery_control

    p = np.random.default_rng(3).beta(0.3, 2.0, 200)
    assert false_discovery(p.tolist()) == pytest.approx(false_discovery_control(p), rel=1e-12)
    assert len(false_discovery([])) == 0


def program(slower: float = 1.0) -> tuple[Made, ...]:
    """Return six functions, all but one changed in text; `target` is slower in head by a factor."""

    def slope(k: int) -> Callable[..., np.ndarray]:
        return lambda side, x: (20 + 10 * k) * x["n"] * (slower if k == 2 and side == HEAD else 1.0)

    def calls(k: int) -> Callable[..., dict[str, float]]:
        return lambda side, n: {"main": (1, 5, 50)[k % 3]}

    shared = frozenset({"struct s.a"})
    functions = [
        Made(
            "target" if k == 2 else f"f{k}", slope(k), Change.CHANGED if k < 4 else Change.UNCHANGED, calls(k), reads=shared, writes=shared
        )
        for k in range(5)
    ]
    return (Made("main", same(5e4), Change.CHANGED), *functions)


def compared(functions: tuple[Made, ...], *, runs: int, noise: Noise, seed: int) -> Findings:
    world = World(functions, runs=runs, noise=noise, seed=seed, kept=20)
    return analyse(world.experiment(), world.samples, CompareConfig(seed=seed))


def guilty(found: Findings) -> list[str]:
    return [each.info.name for each in found.functions if each.rank is not None]


@pytest.mark.statistical
@pytest.mark.parametrize("noise", WILD.values(), ids=WILD.keys())
def test_base_against_base_is_no_regression_on_a_wild_machine(noise: Noise) -> None:
    alarms = [guilty(compared(program(), runs=5, noise=noise, seed=seed)) for seed in range(8)]
    assert alarms == [[]] * 8


@pytest.mark.statistical
@pytest.mark.parametrize("noise", WILD.values(), ids=WILD.keys())
@pytest.mark.parametrize("change", [Change.ADDED, Change.REMOVED])
def test_work_that_moves_to_or_from_a_function_of_its_own_is_no_difference_on_a_wild_machine(noise: Noise, change: Change) -> None:
    only, slope = (HEAD, 0.4) if change is Change.ADDED else (BASE, 2.5)
    functions = (
        Made("main", same(5e4)),
        Made("outer", lambda side, x: 100 * x["n"] * (slope if side == HEAD else 1.0), Change.CHANGED, lambda side, n: {"main": 3}),
        Made(
            "helper",
            same(lambda x: (60 if only == HEAD else 150) * x["n"]),
            change,
            lambda side, n: {"outer": 3} if side == only else {},
        ),
    )
    verdicts = [compared(functions, runs=5, noise=noise, seed=seed).verdict for seed in range(5)]
    assert not {Verdict.REGRESSION, Verdict.IMPROVEMENT} & set(verdicts)


@pytest.mark.statistical
def test_base_against_base_is_unchanged_on_a_usual_machine() -> None:
    verdicts = [compared(program(), runs=40, noise=FIVE_PERCENT, seed=seed).verdict for seed in range(10)]
    assert verdicts.count(Verdict.UNCHANGED) >= 9
    assert Verdict.REGRESSION not in verdicts


@pytest.mark.statistical
def test_a_slow_down_at_the_largest_inputs_alone_never_reads_as_unchanged() -> None:
    def slower(side: Side, inputs: Columns) -> np.ndarray:
        return 100.0 * inputs["n"] * np.where((inputs["n"] >= 30000) & (side == HEAD), 1.1, 1.0)

    worlds = [
        World((Made("f", slower, Change.CHANGED),), sizes=(1000, 3000, 10000, 30000), runs=10, noise=Noise(0.02, 0.01, 0.03), seed=seed)
        for seed in range(12)
    ]
    verdicts = [analyse(world.experiment(), world.samples, CompareConfig()).verdict for world in worlds]
    assert Verdict.UNCHANGED not in verdicts


@pytest.mark.statistical
def test_slower_by_a_third_is_found_with_ten_runs() -> None:
    found = [guilty(compared(program(1.3), runs=10, noise=FIVE_PERCENT, seed=seed)) for seed in range(10)]
    assert found.count(["target"]) >= 9


@pytest.mark.statistical
def test_twice_as_slow_is_always_found_with_five_runs() -> None:
    found = [guilty(compared(program(2.0), runs=5, noise=FIVE_PERCENT, seed=seed)) for seed in range(10)]
    assert found == [["target"]] * 10


def test_too_few_runs_are_inconclusive_with_the_remedy() -> None:
    found = compared(program(), runs=2, noise=replace(FIVE_PERCENT, function=0.2), seed=1)
    open_ends = [each for each in found.functions if each.verdict is Verdict.INCONCLUSIVE]
    assert found.verdict is Verdict.INCONCLUSIVE
    assert all("add runs" in say(each.reason) for each in open_ends)


def test_noise_above_the_smallest_effect_is_inconclusive_with_the_remedy() -> None:
    noise = Noise(call=0.1, run=0.1, function=0.25)
    results = [compared(program(), runs=5, noise=noise, seed=seed) for seed in range(8)]
    open_ends = [found for found in results if found.verdict is Verdict.INCONCLUSIVE]
    assert len(open_ends) >= 5  # the rest exclude a slow-down by luck: their interval lies below
    assert all("base against base differs by up to" in say(found.sentence) and "add runs" in say(found.sentence) for found in open_ends)


def slower_outside(rest_head: float, *, runs: int = 8, base_ns: float = 1e8) -> World:
    """Return a world whose plain runs take 1.6 times as long in head, by the clock, and no function longer."""
    plain = {BASE: base_ns, HEAD: 1.6 * base_ns}
    return World(program(), runs=runs, noise=FIVE_PERCENT, kept=20, rest_ns=1e8, rest_head=rest_head, plain=lambda side: plain[side])


@pytest.mark.parametrize(("plain_head", "expected"), [(0.72, Verdict.IMPROVEMENT), (1.0, Verdict.UNCHANGED)])
def test_a_saving_that_whole_runs_deny_is_none(plain_head: float, expected: Verdict) -> None:
    def cost(side: Side, inputs: Columns) -> float:
        return 7e6 if side is HEAD else 1e7

    world = World((Made("f", cost, Change.CHANGED),), runs=10, rest_ns=1e5, plain=lambda side: 1e7 * (plain_head if side is HEAD else 1.0))
    assert analyse(world.experiment(), world.samples, CompareConfig()).functions[0].verdict is expected


def test_a_saving_that_another_function_uses_up_is_one() -> None:
    def cost(side: Side, inputs: Columns) -> float:
        return 7e6 if side is HEAD else 1e7

    def more(side: Side, inputs: Columns) -> float:
        return 5e6 if side is HEAD else 2e6

    functions = (Made("f", cost, Change.CHANGED), Made("g", more, Change.CHANGED))
    world = World(functions, runs=10, rest_ns=1e5, plain=lambda side: 1.2e7)
    found = {each.info.name: each.verdict for each in analyse(world.experiment(), world.samples, CompareConfig()).functions}
    assert (found["f"], found["g"]) == (Verdict.IMPROVEMENT, Verdict.REGRESSION)


def test_whole_runs_prove_without_any_runs_with_probes_that_are_slower() -> None:
    world = slower_outside(1.0, base_ns=1e7)
    assert analyse(world.experiment(), world.samples, CompareConfig()).verdict is Verdict.REGRESSION


def test_slower_whole_runs_without_a_slower_function_are_a_regression_not_located() -> None:
    world = slower_outside(1.6)
    found = analyse(world.experiment(), world.samples, CompareConfig())
    assert found.verdict is Verdict.REGRESSION
    assert say(found.sentence).startswith("Regression, not located: whole runs at ")
    assert found.end_to_end[0].ratio.value == pytest.approx(1.6, rel=0.1)


def test_too_few_whole_runs_leave_the_answer_open() -> None:
    world = slower_outside(1.0, runs=5, base_ns=1e7)  # probes take more than the program: their runs confirm nothing
    experiment = world.experiment()
    few = tuple(run for run in experiment.runs if run.phase is not Phase.PLAIN or run.block % 2 == 0)
    found = analyse(replace(experiment, runs=few), world.samples, CompareConfig())
    assert found.verdict is Verdict.INCONCLUSIVE
    assert re.search(r"whole runs at .* are too few: raise measure.budget_s", say(found.sentence))


def test_whole_runs_that_other_work_delays_prove_by_their_cpu_time() -> None:
    world = slower_outside(1.6)
    experiment = world.experiment()
    waits = np.random.default_rng(1).exponential(5.0, len(experiment.runs))
    pairs = zip(experiment.runs, waits, strict=True)
    delayed = [replace(run, wall_ns=run.wall_ns * (1 + wait)) if run.phase is Phase.PLAIN else run for run, wait in pairs]
    found = analyse(replace(experiment, runs=tuple(delayed)), world.samples, CompareConfig())
    assert {end.by for end in found.end_to_end} == {"cpu_ns"}
    assert found.verdict is Verdict.REGRESSION


def test_plain_runs_give_the_overhead_of_probes() -> None:
    world = World((Made("main", same(1e6)),), runs=6, noise=Noise(0.001, 0.001, 0.001), rest_ns=0, plain=lambda side: 0.98e6)
    found = analyse(world.experiment(), world.samples, CompareConfig())
    assert found.overhead == pytest.approx(1 / 0.98 - 1, abs=0.005)
    assert {run.phase for run in world.made_runs} == {Phase.PLAIN, Phase.TIMED}


def test_probes_do_not_cost_what_runs_beside_each_other_cost_each_other() -> None:
    """Both sides' runs with probes are made at the same time, as are plain ones but for the first."""
    world = World((Made("main", same(1e6)),), runs=9, noise=Noise(0.001, 0.001, 0.001), rest_ns=0, plain=lambda side: 0.98e6)
    experiment = world.experiment()
    together = [run.phase is Phase.TIMED or run.block > 5 for run in experiment.runs]
    runs = [
        replace(run, together=beside, cpu_ns=run.cpu_ns * (1.3 if beside else 1))
        for run, beside in zip(experiment.runs, together, strict=True)
    ]
    found = analyse(replace(experiment, runs=tuple(runs)), world.samples, CompareConfig())
    assert found.overhead == pytest.approx(1 / 0.98 - 1, abs=0.01)
    assert [end.overhead for end in found.end_to_end] == pytest.approx([1 / 0.98 - 1] * 3, abs=0.01)


def test_the_same_experiment_gives_the_same_findings() -> None:
    world = World(program(1.3), runs=5, noise=FIVE_PERCENT, kept=20)
    first, second = (analyse(world.experiment(), world.samples, CompareConfig()) for _ in range(2))
    assert repr(first) == repr(second)


def test_slower_whole_runs_are_a_regression_that_no_function_explains_where_inputs_have_grown() -> None:
    work = Made(
        "work",
        same(lambda x: 80 * x["n"]),
        calls=lambda side, n: {"main": 3},
        inputs=lambda side, n, count, rng: {"n": np.full(count, n * (2 if side == HEAD else 1))},
    )
    world = World(
        (Made("main", same(5e4)), work), sizes=(10000,), runs=6, rest_ns=1e5, plain=lambda side: 2.55e6 if side == BASE else 4.95e6
    )
    found = analyse(world.experiment(), world.samples, CompareConfig())
    assert found.end_to_end[0].ratio.low > 1.5
    assert (found.verdict, found.rung) == (Verdict.REGRESSION, Rung.RUNS)
    assert [function.info.name for function in found.functions if function.verdict is Verdict.REGRESSION] == []


def test_larger_inputs_that_cost_more_than_smaller_ones_let_expect_make_no_function_guilty_either() -> None:
    def cost(x: Columns) -> np.ndarray:  # as where a cache is outgrown
        return np.where(x["n"] > 10000, 240, 80) * x["n"]

    def inputs(side: Side, n: float, count: int, rng: np.random.Generator) -> Columns:
        return {"n": n * rng.uniform(0.5, 1 if side == BASE else 2, count)}

    work = Made("work", same(cost), calls=lambda side, n: {"main": 30}, inputs=inputs)
    world = World(
        (Made("main", same(5e4)), work), sizes=(10000,), runs=10, rest_ns=1e5, plain=lambda side: 1.8e7 if side == BASE else 7.8e7
    )
    found = analyse(world.experiment(), world.samples, CompareConfig())
    assert found.end_to_end[0].ratio.low > 3
    assert (found.verdict, found.rung) == (Verdict.REGRESSION, Rung.RUNS)
    assert [function.info.name for function in found.functions if function.verdict is Verdict.REGRESSION] == []


@pytest.mark.parametrize(("head_ns", "is_slower"), [(15.5, False), (30.0, True)])
def test_calls_near_the_clocks_step_are_compared_by_their_mean(head_ns: float, is_slower: bool) -> None:
    def tiny(side: str, inputs: object) -> float:
        return 15.0 if side == BASE else head_ns

    clock = replace(FIVE_PERCENT, step_ns=10.0, run=0.01, function=0.01)
    made = Made("tiny", tiny, Change.CHANGED, calls=lambda side, n: {"": 100_000})
    world = World((made,), runs=10, noise=clock, kept=1000)
    (found,) = analyse(world.experiment(), world.samples, CompareConfig()).functions
    assert (found.verdict is Verdict.REGRESSION) is is_slower, (found.reason, found.metrics["self_ns"].ratio)
    assert found.metrics["self_ns"].ratio.value == pytest.approx(head_ns / 15, rel=0.03)


def test_shifts_of_numbers_without_measure_are_told_without_overflowing() -> None:
    wild = np.array([[1e200, 3e307, -1e300, 2.0, 5e250], [1e200, 1e200, 1e200, 1e200, 1e200]])
    tame = np.array([[1.0, 1.5, 1.25, 1.75, 1.5], [1.0, 1.0, 1.0, 1.0, 1.0]])
    assert clear_shifts(wild, tame).tolist() == [False, True]
    assert clear_shifts(wild, wild).tolist() == [False, False]
