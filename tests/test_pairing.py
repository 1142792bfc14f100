"""Two experiments recorded apart become one: numbers change, what they stand for does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import BASE, HEAD, Host, Made, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Verdict
from perfdiff.config import CompareConfig
from perfdiff.errors import UsageError
from perfdiff.records.pairing import COUNTS_APART, paired
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import Change
from perfdiff.report.sentences.catalogue import noted


def recorded(*functions: Made, seed: int, sizes: tuple[float, ...] = (1000, 3000), hosts: tuple[Host, ...] = ()) -> RecordedExperiment:
    world = World(functions, sizes=sizes, seed=seed, hosts=hosts)
    return RecordedExperiment(world.experiment(), world.samples)


def cost(head: float) -> Made:
    return Made(
        "f",
        lambda side, inputs: inputs["n"] * (head if side is HEAD else 10.0),
        text={BASE: "f() { old }", HEAD: "f() { new }"},
        change=Change.CHANGED,
    )


QUIET = Made("g", same(5000.0))


def test_base_of_the_first_is_compared_with_head_of_the_second_by_name_and_parameters() -> None:
    first = recorded(QUIET, cost(head=10.0), seed=1)
    second = recorded(cost(head=15.0), QUIET, seed=2, sizes=(3000, 1000, 10_000))
    both = paired(first, second)
    assert [(info.name, info.change) for info in both.experiment.functions] == [("f", Change.CHANGED), ("g", Change.AFFECTED)]
    assert [point.parameters["n"] for point in both.experiment.points] == [1000, 3000]
    assert len({run.id for run in both.experiment.runs}) == len(both.experiment.runs) == 24
    assert not {run.block for run in both.experiment.runs if run.side is BASE} & {
        run.block for run in both.experiment.runs if run.side is HEAD
    }
    head = both.samples(1, HEAD)
    assert head is not None
    sizes = {point.id: point.parameters["n"] for point in both.experiment.points}
    np.testing.assert_array_equal(head.values[:, 0], [sizes[point] for point in head.point.tolist()])
    findings = analyse(both.experiment, both.samples, CompareConfig())
    assert {each.info.name: each.verdict for each in findings.functions} == {"f": Verdict.REGRESSION, "g": Verdict.UNCHANGED}
    ratio = findings.functions[0].metrics["self_ns"].ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(1.5, rel=0.05)


@pytest.mark.parametrize(("pace", "verdict"), [(1.12, Verdict.INCONCLUSIVE), (1.5, Verdict.REGRESSION)])
def test_what_a_machine_may_differ_by_from_day_to_day_is_no_regression(pace: float, verdict: Verdict) -> None:
    """All that was recorded of head takes 12 % longer, changed or not, as was seen of one machine on two days."""
    head = Made("g", same(5000.0 * pace)), cost(10.0 * pace)
    both = paired(recorded(QUIET, cost(10.0), seed=1), recorded(*head, seed=2))
    assert analyse(both.experiment, both.samples, CompareConfig()).verdict is verdict


def test_counts_of_recordings_made_apart_are_left_out_and_the_reader_is_told() -> None:
    first, second = recorded(cost(10.0), seed=1), recorded(cost(10.0), seed=2)
    counted = replace(first, experiment=replace(first.experiment, counts=first.experiment.totals))
    assert COUNTS_APART in paired(counted, second).experiment.notes
    assert paired(counted, second).experiment.counts is None
    assert COUNTS_APART not in paired(first, second).experiment.notes


def test_sums_and_edges_follow_the_new_numbers() -> None:
    first, second = recorded(QUIET, cost(10.0), seed=1), recorded(cost(10.0), QUIET, seed=2)
    both = paired(first, second).experiment
    for origin, side in ((first.experiment, BASE), (second.experiment, HEAD)):
        kept = {run.id for run in origin.runs if run.side is side}
        old = next(info.id for info in origin.functions if info.name == "f")
        new = next(info.id for info in both.functions if info.name == "f")
        before = origin.totals.self_ns[np.isin(origin.totals.run, sorted(kept)) & (origin.totals.function == old)]
        runs = [run.id for run in both.runs if run.side is side]
        after = both.totals.self_ns[np.isin(both.totals.run, runs) & (both.totals.function == new)]
        assert sorted(before.tolist()) == sorted(after.tolist())
        assert both.edges.calls[np.isin(both.edges.run, runs) & (both.edges.callee == new)].sum() == len(before)


def test_an_experiment_of_one_side_gives_that_side() -> None:
    one = recorded(cost(10.0), seed=1)
    alone = replace(one, experiment=replace(one.experiment, runs=tuple(run for run in one.experiment.runs if run.side is BASE)))
    both = paired(alone, alone)
    assert both.sides == (BASE, HEAD)
    base, head = both.samples(1, BASE), both.samples(1, HEAD)
    assert base is not None
    assert head is not None
    np.testing.assert_array_equal(base.metrics["self_ns"], head.metrics["self_ns"])
    assert not set(base.run.tolist()) & set(head.run.tolist())


def test_what_only_one_has_is_told_and_nothing_in_common_is_refused() -> None:
    both = paired(recorded(QUIET, cost(10.0), seed=1), recorded(QUIET, seed=2))
    assert [(skip.name, skip.reason) for skip in both.experiment.skipped] == [("f", "only base has samples of it")]
    with pytest.raises(UsageError, match="no function in common"):
        paired(recorded(QUIET, seed=1), recorded(cost(10.0), seed=2))
    with pytest.raises(UsageError, match="no workload point in common"):
        paired(recorded(QUIET, seed=1), recorded(QUIET, seed=2, sizes=(7,)))


def test_other_machines_are_noted() -> None:
    first, second = recorded(QUIET, seed=1), recorded(QUIET, seed=2)
    environment = replace(second.experiment.environment, cpu="other")
    other = replace(second, experiment=replace(second.experiment, environment=environment))
    assert [note.slug for note in paired(first, other).experiment.notes] == ["recorded-apart", "machines-differ"]


def test_runs_of_one_machine_in_both_recordings_are_of_one_machine() -> None:
    first = recorded(cost(10.0), QUIET, seed=1, hosts=(Host("a"), Host("b", 2.0)))
    second = recorded(cost(15.0), QUIET, seed=2, hosts=(Host("c", 0.5), Host("b", 2.0), Host("a")))
    experiment = paired(first, second).experiment
    assert [machine.name for machine in experiment.machines] == ["a", "b", "c"]
    assert {run.machine for run in experiment.runs if run.side is BASE} == {0, 1}
    assert {run.machine for run in experiment.runs if run.side is HEAD} == {0, 1, 2}
    assert [note.slug for note in experiment.notes] == ["recorded-apart"]
    found = analyse(experiment, paired(first, second).samples, CompareConfig())
    assert "machines-one-sided" in [note.slug for note in map(noted, found.notes)]
    ratio = next(each for each in found.functions if each.info.name == "f").metrics["self_ns"].ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(1.5, rel=0.08)
