"""What probes cannot resolve: times of some nanoseconds, and programs that probes slow down beyond recognition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import BASE, HEAD, Columns, Made, Noise, World
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.compare.ratios import with_hidden
from perfdiff.analysis.findings import Findings, Ratio, Verdict
from perfdiff.analysis.sums.ledger import open_ledger
from perfdiff.config import CompareConfig
from perfdiff.models.clock import HIDDEN_NS
from perfdiff.records.schema import Change, Phase, SampleTable, Side
from perfdiff.report.sentences.catalogue import say


@pytest.mark.parametrize("hidden", [0.0, 0.5 * HIDDEN_NS, HIDDEN_NS])
@pytest.mark.parametrize(("base", "head"), [(1.0, 13.0), (20.0, 25.0), (30.0, 10.0), (5_000.0, 6_000.0)])
def test_the_interval_of_a_ratio_holds_whatever_part_of_a_probe_was_hidden(base: float, head: float, hidden: float) -> None:
    seen = head / base
    ratio = with_hidden(Ratio(seen, seen, seen, 10, 10), base)
    assert ratio.low <= (head + hidden) / (base + hidden) * (1 + 1e-12)
    assert ratio.high >= (head + hidden) / (base + hidden) * (1 - 1e-12)
    assert (ratio.low > 1) == (head > base)


def findings(overhead: float, *, plain_is_slower: bool) -> Findings:
    """Return findings on a function that probes see as 60 % slower, where they cost `overhead` times the program."""

    def cost(side: Side, inputs: Columns) -> float:
        return 1.6e6 if side is HEAD else 1e6

    def plain(side: Side) -> float:
        return 1.6e6 if side is HEAD and plain_is_slower else 1e6

    world = World((Made("slow", cost, Change.CHANGED),), runs=10, plain=plain)
    experiment = world.experiment()
    runs = [replace(run, cpu_ns=(1 + overhead) * run.cpu_ns) if run.phase is Phase.TIMED else run for run in experiment.runs]
    return analyse(replace(experiment, runs=tuple(runs)), world.samples, CompareConfig())


@pytest.mark.parametrize(
    ("overhead", "plain_is_slower", "expected"),
    [
        (0.02, False, Verdict.REGRESSION),
        (3.0, True, Verdict.REGRESSION),
        (3.0, False, Verdict.INCONCLUSIVE),
    ],
)
def test_where_probes_cost_more_than_the_program_whole_runs_must_agree(overhead: float, plain_is_slower: bool, expected: Verdict) -> None:
    found = findings(overhead, plain_is_slower=plain_is_slower)
    assert found.functions[0].verdict is expected, say(found.functions[0].reason)


def test_a_run_costs_its_cpu_time_and_what_every_run_waits() -> None:
    """What other work takes from a run by the clock must not make a function's share of it small."""
    experiment = World((Made("slow", lambda side, inputs: 1e6),), runs=10).experiment()
    runs = [replace(run, cpu_ns=1e7, wall_ns=1.5e7 + 2e7 * (run.block % 4)) for run in experiment.runs]
    ledger = open_ledger(replace(experiment, runs=tuple(runs)))
    together = replace(experiment, runs=tuple(replace(run, together=True, wall_ns=9e7) for run in runs))
    assert [open_ledger(together).cost_ns(point.id) for point in experiment.points] == pytest.approx([1.0e7] * len(experiment.points))
    assert [ledger.cost_ns(point.id) for point in experiment.points] == pytest.approx([1.5e7] * len(experiment.points))


def test_calls_that_move_between_recursive_functions_leave_no_doubt_of_what_became_slower() -> None:
    """As in cJSON's comparison of objects: `below` is merged into `compare`, where each call then looks for its key from the start."""

    def compared(side: Side, n: float) -> dict[str, float]:
        return {"": 40, "below": 300 * n} if side is BASE else {"": 40, "compare": 1000 * n}

    world = World(
        (
            Made("compare", lambda side, inputs: 5.0 if side is BASE else 50.0, Change.CHANGED, compared),
            Made("below", lambda side, inputs: 10.0, Change.REMOVED, lambda side, n: {"compare": 100 * n} if side is BASE else {}),
        ),
        sizes=(100, 300, 1000),
        runs=10,
    )
    found = analyse(world.experiment(), world.samples, CompareConfig())
    assert [(each.info.name, each.rank) for each in found.functions if each.rank] == [("compare", 1)]
    assert found.verdict is Verdict.REGRESSION
    assert found.functions[0].causes[0].name != "deeper-recursion"


def test_what_probes_of_callees_leave_in_a_caller_is_no_cost_of_its_own() -> None:
    """As in md4c, where a loop's body became a function: its 3000 calls leave some 6 ns each in their caller."""
    calls = 3000.0

    def outer(side: Side, inputs: Columns) -> float:
        return 6.0 * calls if side is HEAD else 0.5 * calls

    world = World(
        (
            Made("loop", outer, Change.CHANGED),
            Made("body", lambda side, inputs: 1.0, Change.ADDED, lambda side, n: {"loop": calls} if side is HEAD else {}),
        ),
        runs=10,
        rest_ns=1e5,
    )
    found = analyse(world.experiment(), world.samples, CompareConfig())
    assert found.verdict is not Verdict.REGRESSION, say(found.sentence)


def of_two_kinds(seed: int) -> tuple[Ratio, float]:
    """Return the ratio that is told of calls of two kinds that no input tells apart, 15 of which a run records, and the true one."""
    costs = {BASE: (730.0, 3700.0), HEAD: (3100.0, 8400.0)}

    def cost(side: Side, inputs: Columns) -> np.ndarray:
        return np.where(np.arange(len(inputs["n"])) % 2, costs[side][1], costs[side][0])

    made = Made("f", cost, Change.CHANGED, calls=lambda side, n: {"": 600})
    world = World((made,), runs=5, noise=Noise(0.02, 0.01, 0.01), seed=seed, kept=600, rest_ns=1e4)

    def few(function: int, side: Side) -> SampleTable | None:
        table, rng = world.samples(function, side), np.random.default_rng([seed, side is HEAD])
        assert table is not None
        kept = [rng.choice(np.flatnonzero(table.run == run), 15, replace=False) for run in np.unique(table.run)]
        thin = table.rows(np.sort(np.concatenate(kept)))
        return replace(thin, weight=np.full(len(thin), 40.0))

    (found,) = analyse(world.experiment(), few, CompareConfig()).functions
    assert found.verdict is Verdict.REGRESSION
    ratio = found.metrics["self_ns"].ratio
    assert ratio is not None
    return ratio, sum(costs[HEAD]) / sum(costs[BASE])


@pytest.mark.statistical
def test_where_few_calls_leave_open_how_much_slower_a_function_is_its_sums_tell() -> None:
    told = [of_two_kinds(seed) for seed in range(20)]
    assert [ratio.value for ratio, truth in told if ratio.value != pytest.approx(truth, rel=0.1)] == []


@pytest.mark.parametrize(("overhead", "is_told"), [(-0.8, True), (-0.3, False), (0.5, False)])
def test_probed_runs_that_take_far_less_than_plain_ones_are_another_program(overhead: float, *, is_told: bool) -> None:
    notes = {note.kind: note.facts for note in findings(overhead, plain_is_slower=True).notes}
    assert ("probed-otherwise" in notes) is is_told
    if is_told:
        assert notes["probed-otherwise"]["probed_ns"] < 0.5 * notes["probed-otherwise"]["plain_ns"]
