"""What is concluded where an interpreter's lines are the only count of work: less than from basic blocks, for a line may do more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import HEAD, Columns, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.counts.own_work import work_finding
from perfdiff.analysis.counts.work import WorkDifference, work_of
from perfdiff.analysis.findings import EndToEnd, Findings, FunctionFinding, PointStanding, Ratio, Rung, Verdict
from perfdiff.analysis.search.symptom import Figure, symptoms
from perfdiff.analysis.sums.ledger import open_counts
from perfdiff.analysis.verdicts.conclusion import conclude
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.config import CompareConfig
from perfdiff.models.workcounter import is_bounded
from perfdiff.records.schema import Change, Phase, Point, Side
from perfdiff.report.counts import work
from perfdiff.report.sentences.catalogue import say
from test_analysis_counts import counted

CALLS, CALL_NS = 200.0, 10_000.0
TINY_CALLS = 2e6


def interpreted(
    slower: float, head_lines: float, *, whole: float = 1.0, counter: str = "lines", rest_ns: float = 0.0
) -> tuple[Findings, FunctionFinding]:
    """Return what is found of a changed function whose calls take `slower` times as long, and execute 100 lines, in head `head_lines`.

    The rest of a run takes `rest_ns`; in head, whole runs take `whole` times as long.
    """

    def cost(side: Side, inputs: Columns) -> float:
        return CALL_NS * (slower if side is HEAD else 1.0)

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> dict[str, float]:
        return {counter: CALLS * (head_lines if side is HEAD else 100.0)}

    made = Made("f", cost, Change.CHANGED, calls=lambda side, n: {"": CALLS})
    run_ns = CALLS * CALL_NS + rest_ns
    noise = Noise(run=0.01, function=0.01)
    world = World((made,), runs=10, rest_ns=rest_ns, noise=noise, plain=lambda side: run_ns * (whole if side is HEAD else 1.0))
    found = analyse(counted(world, counts, rounds=2), world.samples, CompareConfig())
    return found, found.functions[0]


def test_more_lines_are_told_as_the_cause_and_as_work() -> None:
    found, f = interpreted(3.0, 300.0, whole=3.0)
    assert f.verdict is Verdict.REGRESSION
    told = [say(cause.says) for cause in f.causes]
    assert any("executes 300 lines a call at" in text and ", 100 before, the same in every run" in text for text in told)
    said = work(found)
    assert said is not None
    assert said.title == "Work, counted in lines"
    assert "f: 300 a call, 100 before" in said.texts[0]
    assert "large values" in said.texts[-1]


def test_equal_lines_are_told_as_equal_and_do_not_blame_the_machine() -> None:
    found, f = interpreted(3.0, 100.0, whole=3.0)
    assert f.verdict is Verdict.REGRESSION
    said = work(found)
    assert said is not None
    assert said.texts[0] == "1 changed function: exactly as many lines a call"
    assert not any("layout" in say(cause.says) for cause in f.causes)


@pytest.mark.parametrize(("counter", "expected"), [("blocks", Verdict.INCONCLUSIVE), ("lines", Verdict.REGRESSION)])
def test_a_small_slow_down_at_equal_lines_is_no_matter_of_layout(counter: str, expected: Verdict) -> None:
    _, f = interpreted(1.10, 100.0, counter=counter, rest_ns=4e6)  # 3 % of a run, which whole runs do not exclude
    assert f.verdict is expected, say(f.reason)


def test_whole_runs_that_exclude_a_slow_down_at_equal_lines_leave_it_open_and_put_it_down_to_probes() -> None:
    _, f = interpreted(1.30, 100.0)
    assert f.verdict is Verdict.INCONCLUSIVE
    assert say(f.reason).endswith("counts do not explain it: its probes may")


def test_a_search_follows_lines_first_where_they_grew_with_the_time() -> None:
    found, f = interpreted(3.0, 300.0, whole=3.0)
    first = symptoms(found, f, None)[0]
    assert (first.metric, first.figure) == ("lines", Figure.COUNT)
    found, f = interpreted(3.0, 101.0, whole=3.0)
    assert symptoms(found, f, None)[0].metric != "lines"


@pytest.mark.parametrize(("counter", "beside", "excludes"), [("blocks", ("loads", "stores"), True), ("lines", (), False)])
def test_equal_lines_answer_beside_whole_runs_and_never_alone(counter: str, beside: tuple[str, ...], excludes: bool) -> None:
    world = World((Made("f", same(CALL_NS), Change.CHANGED),))
    experiment = counted(world, lambda name, side, n, rng: dict.fromkeys((counter, *beside), 100.0), rounds=2)
    found = work_of(open_counts(experiment), len(world.sizes), {})
    assert found is not None
    assert (found.is_same, found.excludes_more) == (True, excludes)
    point = Point(0, "run", {}, "./prog")
    decided = WholeRuns((EndToEnd(point, 1e8, 1e8, Ratio(1.0, 0.99, 1.01, 26, 26), None, standing=PointStanding.NOT_SLOWER),))
    bounded = WholeRuns((EndToEnd(point, 1e8, 1e8, Ratio(1.0, 0.95, 1.08, 26, 26), None, standing=PointStanding.OPEN),))
    assert (decided.are_as_fast, bounded.are_as_fast) == (True, False)
    rung = conclude((), Evidence(bounded, found), CompareConfig()).rung
    assert (rung is Rung.COUNTS) is excludes


def test_more_lines_in_any_function_leave_calls_to_be_timed() -> None:
    world = World((Made("f", same(CALL_NS), Change.CHANGED),))
    experiment = counted(world, lambda name, side, n, rng: {"lines": 103.0 if side is HEAD else 100.0}, rounds=2)
    found = work_of(open_counts(experiment), len(world.sizes), {})
    assert found is not None
    assert not found.is_same


def test_a_program_of_both_kinds_is_no_more_certain_than_its_lines() -> None:
    world = World((Made("f", same(CALL_NS), Change.CHANGED), Made("g", same(CALL_NS))))

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> dict[str, float]:
        return {"lines": 100.0 * (name == "f"), **dict.fromkeys(("blocks", "loads", "stores"), 1e5 * (name == "g"))}

    experiment = counted(world, counts, rounds=2)
    found = work_of(open_counts(experiment), len(world.sizes), {})
    assert isinstance(found, WorkDifference)
    assert (found.is_same, found.is_bounded) == (True, False)
    functions = {each.info.name: each for each in analyse(experiment, world.samples, CompareConfig()).functions}
    assert {name: is_bounded(each.counts) for name, each in functions.items()} == {"f": False, "g": True}


def test_of_two_counts_of_work_that_of_most_extra_time_is_told() -> None:
    world = World((Made("f", same(CALL_NS), Change.CHANGED),))

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> dict[str, float]:
        return {"lines": 500.0 if side is HEAD else 100.0, "blocks": 1010.0 if side is HEAD else 1000.0}

    f = analyse(counted(world, counts, rounds=2), world.samples, CompareConfig()).functions[0]
    seen = work_finding(f.counts)
    assert seen is not None
    assert (seen.counter, seen.base, seen.head) == ("lines", 100, 500)


@pytest.mark.parametrize(
    ("counter", "more", "is_named"),
    [
        ("blocks", 1.2, True),  # 400,000 more may take a third of the slow-down
        ("lines", 1.2, False),  # so may these, but another function's lines may each do more
        ("lines", 3.0, False),  # and as many are begun by the same text in more lines
        ("lines", 6.0, True),  # these take all of it at the least
    ],
)
def test_more_lines_name_a_function_where_they_certainly_explain_slower_runs(counter: str, more: float, is_named: bool) -> None:
    retain = Made("retain", same(1.0), Change.CHANGED, lambda side, n: {"visit": TINY_CALLS})
    visit = Made("visit", same(2e7), calls=lambda side, n: {"": 1})
    noise = Noise(run=0.01, function=0.01)
    world = World((visit, retain), runs=6, noise=noise, plain=lambda side: 2e7 * (1.3 if side is HEAD else 1.0))

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> dict[str, float]:
        return {counter: TINY_CALLS * (more if name == "retain" and side is HEAD else 1.0)}

    found = analyse(counted(world, counts, rounds=2), world.samples, CompareConfig())
    ranks = {each.info.name: each.rank for each in found.functions}
    assert (ranks["retain"] == 1) is is_named
    assert found.verdict is Verdict.REGRESSION


def test_functions_whose_calls_were_not_timed_are_not_said_to_be_proved_equal_by_lines() -> None:
    world = World((Made("f", same(CALL_NS), Change.CHANGED),), plain=lambda side: CALL_NS, noise=Noise(run=0.001))
    experiment = counted(world, lambda name, side, n, rng: {"lines": 100.0}, rounds=2)
    untimed = replace(experiment, runs=tuple(run for run in experiment.runs if run.phase in (Phase.PLAIN, Phase.COUNTED)))
    f = analyse(untimed, world.samples, CompareConfig()).functions[0]
    assert f.verdict is Verdict.UNCHANGED
    assert say(f.reason) == (
        "its calls were not timed: whole runs exclude a slow-down of the program, and functions execute about as many lines as before"
    )
