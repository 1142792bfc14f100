"""What is concluded from counts: exact work, sharing between threads, placement; and what is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from experiments import BASE, HEAD, Columns, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.compare.trend import RunCounts
from perfdiff.analysis.counts.growth import CountSources, with_counted_growth
from perfdiff.analysis.counts.work import work_of
from perfdiff.analysis.findings import RUN, Findings, FunctionFinding, Verdict
from perfdiff.analysis.sums.ledger import open_counts, open_ledger
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import CostClass
from perfdiff.models.warmup import WarmUp
from perfdiff.records.recorded import nothing
from perfdiff.records.schema import Change, Experiment, Phase, Run, Side, Totals
from perfdiff.report.counts import work
from perfdiff.report.sentences.catalogue import say
from perfdiff.report.wording import classes

Counts = Callable[[str, Side, float, np.random.Generator], Mapping[str, float]]  # of a function in a run at n, over all its calls

NS = 1e6
PLAIN = {"blocks": 5000.0, "loads": 4000.0, "stores": 1000.0, "l1d_misses": 100.0, "hitm": 0.0, "hitm_false": 0.0, "remote_dram": 0.0}


def counted(world: World, counts: Counts, *, rounds: int = 6, seed: int = 7) -> Experiment:
    """Return a world's experiment with counted runs added."""
    rng = np.random.default_rng(seed)
    experiment = world.experiment()
    runs, rows = list(experiment.runs), []
    for block in range(rounds):
        for point, n in enumerate(world.sizes):
            for side in Side:
                number = len(runs) + 1
                runs.append(Run(number, Phase.COUNTED, point, side, block, 1e9, 1e9, 1e6, 0.0, 0.0, "same"))
                for made in world.functions:
                    calls = sum(made.calls(side, n).values())
                    if calls:
                        rows.append((number, world.ids[made.name], calls, counts(made.name, side, n, rng)))
    names = list(rows[0][3])
    absent = np.full(len(rows), np.nan)
    totals = Totals(
        run=np.array([row[0] for row in rows]),
        function=np.array([row[1] for row in rows]),
        calls=np.array([row[2] for row in rows], float),
        wall_ns=absent,
        self_ns=absent,
        other={name: np.array([row[3][name] for row in rows], float) for name in names},
    )
    return replace(experiment, runs=tuple(runs), counts=totals)


def told(world: World, counts: Counts, *, rounds: int = 6, seed: int = 7) -> Findings:
    return analyse(counted(world, counts, rounds=rounds, seed=seed), world.samples, CompareConfig())


def one(findings: Findings, name: str) -> FunctionFinding:
    return next(each for each in findings.functions if each.info.name == name)


def threads(*functions: Made) -> World:
    """Return a world whose points are numbers of threads."""
    return World(functions, sizes=(1, 2, 4), rest_ns=NS)


WORKER = Made("worker", same(NS), Change.AFFECTED, calls=lambda side, n: {"": n}, culprits=("struct sums",))


def sharing(head: float, *, false: float, accesses: float = 1.0) -> Counts:
    """Return counts where base has some 20 modified lines a run and head `head` times as many, from two threads on."""

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        more = accesses if side is HEAD else 1.0
        lines = 0.0 if n < 2 else float(rng.poisson(20 * (head if side is HEAD else 1.0) * np.exp(rng.normal(0, 0.4))))
        share = false if side is HEAD else 0.0
        return {**{key: value * n * more for key, value in PLAIN.items()}, "hitm": lines, "hitm_false": np.floor(lines * share)}

    return counts


def test_an_exact_difference_of_a_thousandth_is_work_but_no_regression() -> None:
    f = Made("f", same(NS), Change.CHANGED)
    world = World((f,), noise=Noise(call=0.3, run=0.2, function=0.2))
    found = told(world, lambda name, side, n, rng: {**PLAIN, "blocks": 5000.0 if side is BASE else 5005.0}, rounds=2)
    blocks = one(found, "f").counts["blocks"]
    assert (blocks.grew, blocks.exact, blocks.base, blocks.head) == (True, True, 5000, 5005)
    assert blocks.ratio.low == blocks.ratio.high == pytest.approx(1.001)
    assert one(found, "f").verdict is not Verdict.REGRESSION
    said = work(found)
    assert said is not None
    assert "5005 a call, 5000 before" in said.texts[0]


def test_equal_counts_are_said_to_be_equal() -> None:
    found = told(World((Made("f", same(NS), Change.CHANGED),)), lambda name, side, n, rng: PLAIN, rounds=2)
    assert not any(each.grew or each.shrank for each in one(found, "f").counts.values())
    said = work(found)
    assert said is not None
    assert said.texts[0] == "1 changed function: exactly as many basic blocks a call"


@pytest.mark.parametrize(
    ("rounds", "more", "is_same"),
    [(2, 0.0, True), (2, 50.0, True), (2, 500.0, False), (1, 0.0, False)],
    ids=["equal", "within-a-percent", "a-tenth-more", "counted-once"],
)
def test_work_is_the_same_where_every_function_counts_about_the_same_twice(rounds: int, more: float, is_same: bool) -> None:
    world = World((Made("f", same(NS), Change.CHANGED), Made("g", same(NS))))
    moved = {("f", HEAD): more, ("g", HEAD): -more}  # what one gains the other loses: together they are equal
    every = {"alloc_count": 0.0, "alloc_bytes": 0.0, **PLAIN}
    found = counted(world, lambda name, side, n, rng: {**every, "blocks": 5000.0 + moved.get((name, side), 0.0)}, rounds=rounds)
    work = work_of(open_counts(found), len(world.sizes), {})
    assert work is not None
    assert work.is_same is is_same
    assert work_of(open_counts(found), len(world.sizes) + 1, {}) is None, "not all points were counted"


def test_nothing_counted_is_nothing_said() -> None:
    world = World((Made("f", same(NS), Change.CHANGED),))
    found = analyse(world.experiment(), world.samples, CompareConfig())
    assert one(found, "f").counts == {}
    assert work(found) is None


@pytest.mark.parametrize(("false", "cause"), [(0.9, "false-sharing"), (0.1, "true-sharing")])
def test_threads_that_share_lines_are_a_regression_where_time_shows_nothing(false: float, cause: str) -> None:
    found = told(threads(WORKER), sharing(1000, false=false))
    worker = one(found, "worker")
    assert found.verdict is Verdict.REGRESSION
    assert (worker.verdict, worker.rank) == (Verdict.REGRESSION, 1)
    assert worker.causes[0].name == cause
    assert worker.counts["hitm"].point.parameters["n"] > 1
    assert "struct sums" in " ".join(say(each.says) for each in worker.causes)


def test_sharing_that_costs_nothing_worth_a_word_is_no_regression() -> None:
    found = told(threads(WORKER), sharing(3, false=0.9))
    assert one(found, "worker").counts["hitm"].grew
    assert found.verdict is Verdict.UNCHANGED


def test_lines_that_grow_with_the_accesses_are_more_work_not_sharing() -> None:
    found = told(threads(WORKER), sharing(1000, false=0.9, accesses=1000.0))
    assert one(found, "worker").counts["hitm"].grew
    assert one(found, "worker").verdict is not Verdict.REGRESSION


def test_memory_placed_by_another_function_is_put_down_to_it() -> None:
    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        remote = 2000.0 * n if name == "reads" and side is HEAD and n > 1 else 0.0
        return {**{key: value * n for key, value in PLAIN.items()}, "remote_dram": remote}

    fills = Made("fills", same(NS / 10), Change.CHANGED, writes=frozenset({"struct points.x"}))
    other = Made("prints", same(NS / 10), Change.CHANGED, writes=frozenset({"struct page.text"}))
    reads = Made("reads", same(NS), calls=lambda side, n: {"": n}, reads=frozenset({"struct points.x"}))
    found = told(threads(fills, other, reads), counts)
    guilty = one(found, "fills")
    assert (guilty.verdict, guilty.rank, guilty.causes[0].name) == (Verdict.REGRESSION, 1, "remote-memory")
    assert "`reads`" in say(guilty.causes[0].says)
    assert one(found, "prints").verdict is Verdict.UNCHANGED
    assert one(found, "reads").verdict is Verdict.REGRESSION
    assert "`fills`" in say(one(found, "reads").reason)


@pytest.mark.parametrize("same_work", [True, False])
def test_who_waits_at_a_barrier_for_slower_threads_is_put_down_to_nobody_else(same_work: bool) -> None:
    """`serve` got slower; `wait`, below `main`, takes as much longer, and `main` depends on what changed as well."""

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        more = 2.0 if side is HEAD and (name == "serve" or (name == "wait" and not same_work)) else 1.0
        return {key: value * n * more for key, value in PLAIN.items()}

    def slower(side: Side, inputs: Columns) -> float:
        return NS * (3.0 if side is HEAD else 1.0)

    affected = {"change": Change.AFFECTED, "culprits": ("struct office",)}
    main = Made("main", same(NS / 10), **affected)
    serve = Made("serve", slower, calls=lambda side, n: {"": n}, **affected)
    wait = Made("wait", slower, calls=lambda side, n: {"main": n})
    found = told(threads(main, serve, wait), counts, rounds=2)
    assert (one(found, "serve").verdict, one(found, "serve").rank) == (Verdict.REGRESSION, 1)
    assert one(found, "main").verdict is (Verdict.UNCHANGED if same_work else Verdict.REGRESSION)
    assert ("`wait` below it" in say(one(found, "main").reason)) is same_work


@pytest.mark.parametrize("works_more", [True, False])
def test_who_does_the_same_work_is_not_blamed_for_the_time_of_a_changed_callee(works_more: bool) -> None:
    """`scan` depends on what changed and seems to take longer; `fetch` below it changed, and does more or the same."""

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        more = 50.0 if side is HEAD and name == "fetch" and works_more else 1.0
        return {key: value * n * more for key, value in PLAIN.items()}

    def slower(side: Side, inputs: Columns) -> float:
        return NS * (3.0 if side is HEAD else 1.0)

    main = Made("main", same(NS / 10))
    scan = Made("scan", slower, Change.AFFECTED, calls=lambda side, n: {"main": n}, culprits=("struct parser",))
    fetch = Made("fetch", slower, Change.CHANGED, calls=lambda side, n: {"scan": n})
    found = told(threads(main, scan, fetch), counts, rounds=2)
    assert one(found, "fetch").verdict is Verdict.REGRESSION
    assert one(found, "scan").verdict is (Verdict.UNCHANGED if works_more else Verdict.REGRESSION)


def test_lines_that_locks_share_are_told_beside_the_waiting_for_locks() -> None:
    """The fetches alone are a small part of the time, most of which threads spend waiting for the lock that they share."""

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        return {**{key: value * n for key, value in PLAIN.items()}, "hitm": 300.0 * n if side is HEAD and n > 1 else 0.0}

    def waits(side: Side, inputs: Columns) -> float:
        return NS * (4.0 if side is HEAD else 1.0)

    world = threads(Made("queries", waits, Change.AFFECTED, calls=lambda side, n: {"": n}, culprits=("macro LOCK",)))
    experiment = counted(world, counts, rounds=6)
    totals = experiment.totals
    of_head = np.isin(totals.run, [run.id for run in experiment.runs if run.side is HEAD])
    locked = replace(totals, other={**totals.other, "lock_wait_ns": np.where(of_head, 0.7, 0.01) * totals.self_ns})
    found = analyse(replace(experiment, totals=locked), world.samples, CompareConfig())
    names = [cause.name for cause in one(found, "queries").causes]
    assert {"lock-wait", "true-sharing"} <= set(names)


def bounced(more: float, *, blocks: float = 1.0, misses: float = 0.0) -> Counts:
    """Return counts in which head fetches so many lines from other threads a thread, each of which misses two caches, and misses others."""

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        lines = more * n if side is HEAD and n > 1 else 0.0
        other = misses * n if side is HEAD else 0.0
        plain = {key: value * n for key, value in PLAIN.items()}
        work = plain["blocks"] * (blocks if side is HEAD and n > 1 else 1.0)
        missed = {"l1d_misses": plain["l1d_misses"] + lines + other, "l2_misses": n + lines + other}
        return {**plain, **missed, "blocks": work, "hitm": lines, "hitm_false": lines}

    return counts


def taking(times: float) -> Callable[[Side, Columns], float]:
    return lambda side, inputs: NS * (times if side is HEAD else 1.0)


def causes(times: float, counts: Counts) -> list[str]:
    """Return the causes of a function whose calls take so many times as long."""
    made = Made("worker", taking(times), Change.AFFECTED, calls=lambda side, n: {"": n}, culprits=("struct slot",))
    worker = one(told(threads(made), counts), "worker")
    assert worker.verdict is Verdict.REGRESSION
    return [cause.name for cause in worker.causes]


def test_lines_of_other_threads_are_the_cause_and_no_misses_beside_it() -> None:
    assert causes(4.0, bounced(30_000.0)) == ["false-sharing", "dependency"]


def test_misses_beyond_those_of_other_threads_are_told_behind_these() -> None:
    assert causes(4.0, bounced(10_000.0, misses=40_000.0)) == ["false-sharing", "dependency", "locality"]


def test_who_waits_by_trying_again_waits_for_other_threads_however_long_that_takes() -> None:
    """A thread that holds a lock and has lost its CPU keeps the others going round: the lines alone explain little of that."""
    assert causes(40.0, bounced(2_000.0, blocks=50.0))[0] == "false-sharing"


def test_a_few_lines_beside_much_more_work_are_no_cause() -> None:
    assert causes(4.0, bounced(20.0, blocks=500.0))[0] != "false-sharing"


def test_a_counter_that_some_run_lacks_says_nothing() -> None:
    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        return {**PLAIN, "hitm": np.nan if rng.random() < 0.1 else 1e6 * (side is HEAD)}

    found = told(threads(WORKER), counts)
    assert "hitm" not in one(found, "worker").counts
    assert "blocks" in one(found, "worker").counts
    assert found.verdict is Verdict.UNCHANGED


@pytest.mark.statistical
def test_scheduling_alone_raises_no_alarm() -> None:
    functions = tuple(Made(f"f{i}", same(NS), Change.CHANGED, calls=lambda side, n: {"": n}) for i in range(10))

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        met = np.exp(rng.normal(0, 1.0)) * (n - 1)
        lines = float(rng.poisson(1000 * met))
        return {key: float(rng.poisson(value * n)) for key, value in PLAIN.items()} | {
            "hitm": lines,
            "hitm_false": float(rng.binomial(int(lines), 0.5)),
        }

    world = threads(*functions)
    alarms = [
        each
        for seed in range(10)
        for finding in told(world, counts, seed=seed).functions
        for each in finding.counts.values()
        if each.grew or each.shrank or finding.verdict is Verdict.REGRESSION
    ]
    assert alarms == []


def bending(blocks: Callable[[float], float], *, per_block: float = 1.0) -> FunctionFinding:
    """Return the finding on a function that is called once, takes like n log n on both sides, twice as long in head, and has a callee."""
    sizes = (1000, 10_000, 100_000, 1_000_000)

    def bent(side: Side, inputs: Columns) -> np.ndarray:
        return np.asarray((2.0 if side is HEAD else 1.0) * inputs["n"] * np.log2(inputs["n"]))

    made = (
        Made("walk", bent, Change.CHANGED),
        Made("step", same(10.0), calls=lambda side, n: {"walk": n / 100}),
    )

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        return {**PLAIN, "blocks": per_block * (blocks(n) if name == "walk" else n / 100)}

    return one(told(World(made, sizes=sizes), counts), "walk")


def growths(found: FunctionFinding, name: str) -> list[CostClass]:
    metric = found.metrics[name]
    return [each.growth for each in (metric.base, metric.head) if each is not None]


def test_line_of_counts_is_told_where_times_bend_like_n_log_n() -> None:
    found = bending(lambda n: 10.0 * n + 20.0)
    assert [growths(found, name) for name in ("self_ns", "wall_ns", RUN)] == [[CostClass.LINEAR] * 2] * 3
    assert classes(found.metrics[RUN]) == "linear (by counts)"


def test_n_log_n_stays_where_counts_grow_so_or_cannot_take_the_time() -> None:
    """Counts that take a hundredth of the time leave it to libraries, such as a Fourier transform."""
    assert growths(bending(lambda n: 5.0 * n * np.log2(n)), RUN) == [CostClass.N_LOG_N] * 2
    assert growths(bending(lambda n: 10.0 * n, per_block=0.01), RUN) == [CostClass.N_LOG_N] * 2


@pytest.mark.parametrize(("blocks", "told"), [(1000.0, CostClass.LINEAR), (0.1, CostClass.CONSTANT)])
def test_runs_whose_first_calls_cost_much_at_all_sizes_are_told_to_grow_as_their_counts(blocks: float, told: CostClass) -> None:
    """Counts that take next to nothing of a run leave its growth to the time."""
    world = World((Made("drain", lambda side, inputs: 1e6, Change.CHANGED),), sizes=(2500, 5000, 10_000, 20_000))

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        return {"bytecode_blocks": blocks * n}

    experiment = counted(world, counts, rounds=2)
    drain = one(analyse(experiment, world.samples, CompareConfig()), "drain")
    assert growths(drain, RUN) == [CostClass.CONSTANT] * 2
    warming = replace(drain, verdict=Verdict.REGRESSION, warm_up={BASE: WarmUp(4, 3.0)})
    runs = open_counts(experiment)
    assert runs is not None
    of_all = CountSources(nothing, RunCounts(runs, experiment.points, 1), open_ledger(experiment))
    (found,) = with_counted_growth([warming], world.samples, of_all, CompareConfig())
    assert growths(found, RUN) == [told, CostClass.CONSTANT]


@pytest.mark.parametrize(("loads", "told"), [(0.0078, "linear → quadratic (by counts)"), (1e-5, "linear")])
def test_runs_of_few_sizes_whose_times_scatter_grow_as_their_exact_loads(loads: float, told: str) -> None:
    """As a list that is walked to its end at each of n steps: times of three sizes, by which a line from below zero is as plain."""
    took_ns = {20_000: 11.4e6, 50_000: 62.6e6, 100_000: 203.5e6}

    def cost(side: Side, inputs: Columns) -> np.ndarray | float:
        n = inputs["n"]
        return 3.0 * n if side is BASE else np.array([took_ns[int(each)] for each in n.tolist()])

    world = World((Made("append", cost, Change.CHANGED),), sizes=tuple(took_ns), noise=Noise(run=0.1))
    experiment = counted(world, lambda name, side, n, rng: {"loads": 2 * n if side is BASE else loads * n**2}, rounds=2)
    found = one(analyse(experiment, world.samples, CompareConfig()), "append")
    assert classes(found.metrics[RUN]) == told
    assert found.metrics[RUN].class_changed is (told != "linear")
