"""Small differences of time: they count where counts or whole runs confirm them, for another layout of the same code makes as much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from experiments import HEAD, Columns, Made, Noise, World
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Verdict
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Phase, Side
from perfdiff.report.sentences.catalogue import say
from test_analysis_counts import NS, PLAIN, WORKER, counted, sharing

CALL_NS, BLOCKS = 10_000.0, PLAIN["blocks"]


@pytest.mark.parametrize(
    ("slower", "blocks", "plain", "expected"),
    [
        (1.10, 1.0, 1.0, Verdict.INCONCLUSIVE),
        (1.10, 1.0005, 1.0, Verdict.INCONCLUSIVE),  # a few blocks more cannot take a microsecond
        (1.10, 1.08, 1.08, Verdict.REGRESSION),
        (1.10, 1.0, 1.10, Verdict.REGRESSION),
        (1.10, None, 1.0, Verdict.REGRESSION),  # without counts nothing speaks against it
        (1.30, 1.0, 1.0, Verdict.INCONCLUSIVE),  # more than layout makes as a rule, but whole runs exclude it
        (1.30, 1.0, 1.30, Verdict.REGRESSION),
    ],
)
def test_a_small_slow_down_of_the_same_work_needs_whole_runs_that_confirm_it(
    slower: float, blocks: float | None, plain: float, expected: Verdict
) -> None:
    def cost(side: Side, inputs: Columns) -> float:
        return CALL_NS * (slower if side is HEAD else 1.0)

    made = Made("f", cost, Change.CHANGED, calls=lambda side, n: {"": 200})
    noise = Noise(run=0.01, function=0.01)
    world = World((made,), runs=10, noise=noise, plain=lambda side: 2e6 * (plain if side is HEAD else 1.0))
    experiment = world.experiment()
    if blocks is not None:
        experiment = counted(
            world, lambda name, side, n, rng: {**PLAIN, "blocks": 200 * BLOCKS * (blocks if side is HEAD else 1.0)}, rounds=2
        )
    found = analyse(experiment, world.samples, CompareConfig())
    assert found.functions[0].verdict is expected, say(found.functions[0].reason)
    assert ("another layout" in say(found.functions[0].reason)) is (expected is Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("other", "expected"), [(1.0, Verdict.INCONCLUSIVE), (0.8, Verdict.REGRESSION)], ids=["nothing else", "made up for"]
)
def test_more_work_that_whole_runs_exclude_counts_where_another_function_makes_up_for_it(other: float, expected: Verdict) -> None:
    def grown(factor: float) -> Callable[[Side, Columns], float]:
        return lambda side, inputs: CALL_NS * (factor if side is HEAD else 1.0)

    made = [Made(name, grown(factor), Change.CHANGED, calls=lambda side, n: {"": 200}) for name, factor in (("f", 1.2), ("g", other))]
    world = World((*made,), runs=10, noise=Noise(run=0.01, function=0.01), plain=lambda side: 4.1e6)
    factors = {"f": 1.2, "g": other}
    experiment = counted(
        world, lambda name, side, n, rng: {**PLAIN, "blocks": 200 * BLOCKS * (factors.get(name, 1.0) if side is HEAD else 1.0)}, rounds=2
    )
    found = analyse(experiment, world.samples, CompareConfig()).functions[0]
    assert (found.info.name, found.verdict) == ("f", expected), say(found.reason)
    assert ("whole runs without probes exclude" in say(found.reason)) is (expected is Verdict.INCONCLUSIVE)


def test_counts_that_prove_waiting_stand_where_probes_distort_all_times() -> None:
    def cost(side: Side, inputs: Columns) -> float:
        return 1.6 * NS if side is HEAD else NS

    made = replace(WORKER, cost=cost)
    world = World((made,), sizes=(1, 2, 4), runs=10, rest_ns=NS, plain=lambda side: NS)
    experiment = counted(world, sharing(1000, false=0.9))
    runs = tuple(replace(run, cpu_ns=4 * run.cpu_ns) if run.phase is Phase.TIMED else run for run in experiment.runs)
    worker = analyse(replace(experiment, runs=runs), world.samples, CompareConfig()).functions[0]
    assert (worker.verdict, worker.causes[0].name) == (Verdict.REGRESSION, "false-sharing")
    quiet = counted(world, sharing(1, false=0.0))
    assert analyse(replace(quiet, runs=runs), world.samples, CompareConfig()).functions[0].verdict is Verdict.INCONCLUSIVE
