"""What calls into libraries tell: which grew for certain, in what order they make suspects, and that alone they prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import HEAD, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.causes.outside import entering, left, likeliest, prolonged, slower
from perfdiff.analysis.counts.library import RANKED_RUNS, departures
from perfdiff.analysis.counts.suspects import work_by_counts
from perfdiff.analysis.counts.work import work_of
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.sums.ledger import open_counts, open_ledger
from perfdiff.config import CompareConfig
from perfdiff.errors import RecordingError
from perfdiff.records import store
from perfdiff.records.schema import Change, Experiment, LibraryCalls, Phase, Side, Source, Totals
from perfdiff.report.sentences.catalogue import say
from test_analysis_counts import counted

CALLS = 1000.0
NAMES = ("strlen", "write")
Calls = Callable[[str, Side, int], float]  # of a function, on a side, in a round: in one run


def calling(calls: Calls, *, rounds: int = 2, spans: Calls | None = None, names: tuple[str, ...] = NAMES) -> tuple[Experiment, World]:
    """Return a program whose changed function `scan` makes calls outside, at equal times and counts of its own.

    `spans` says what one of them takes, where half of them were timed.
    """
    scan = Made("scan", same(20.0), Change.CHANGED, lambda side, n: {"visit": CALLS})
    visit = Made("visit", same(2e7), calls=lambda side, n: {"": 1})
    world = World((visit, scan), runs=6, noise=Noise(run=0.005, function=0.005), plain=lambda side: 2e7)
    made = counted(world, lambda name, side, n, rng: dict.fromkeys(("blocks", "loads", "stores"), 1e6), rounds=rounds)
    function = next(info.id for info in made.functions if info.name == "scan")
    runs = [run for run in made.runs if run.phase is Phase.COUNTED]
    rows = [
        (run.id, function, at, calls(name, run.side, run.block), spans(name, run.side, run.block) if spans else 0.0)
        for run in runs
        for at, name in enumerate(names)
    ]
    run, caller, callee, count, span = np.array(rows).T
    timed = np.where(span > 0, count / 2, 0.0)
    library = LibraryCalls(run.astype(np.int64), caller.astype(np.int64), callee.astype(np.int64), count, names, timed, span * timed)
    return replace(made, library=library), world


def more_strlen(name: str, side: Side, block: int) -> float:
    return CALLS * (300.0 if side is HEAD and name == "strlen" else 1.0)


def found(experiment: Experiment) -> dict[str, tuple[bool, float, float]]:
    (of_scan,) = departures(experiment, CompareConfig()).values()
    return {each.name: (each.grew, each.base, each.head) for each in of_scan}


def test_calls_that_grew_per_call_of_their_caller_are_told_apart_from_those_that_did_not() -> None:
    assert found(calling(more_strlen)[0]) == {"strlen": (True, 1.0, 300.0), "write": (False, 1.0, 1.0)}


@pytest.mark.parametrize(("rounds", "grew"), [(RANKED_RUNS, True), (RANKED_RUNS - 1, False)])
def test_calls_that_differ_from_run_to_run_grew_where_all_of_heads_are_above_bases(rounds: int, grew: bool) -> None:
    experiment, _ = calling(lambda name, side, block: CALLS * (2.0 if side is HEAD else 1.0) + block, rounds=rounds)
    assert {each for each, _, _ in found(experiment).values()} == {grew}


def test_calls_that_overlap_grew_for_nobody() -> None:
    experiment, _ = calling(lambda name, side, block: CALLS + 100 * block + (50 if side is HEAD else 0), rounds=RANKED_RUNS)
    assert not any(grew for grew, _, _ in found(experiment).values())


def test_more_calls_alone_are_no_regression_and_no_equal_counts_either() -> None:
    experiment, world = calling(more_strlen)
    verdicts = {each.info.name: each.verdict for each in analyse(experiment, world.samples, CompareConfig()).functions}
    assert verdicts["scan"] is not Verdict.REGRESSION
    counts, points = open_counts(experiment), len(experiment.points)
    equal, unequal = (work_of(counts, points, leaving) for leaving in ({}, departures(experiment, CompareConfig())))
    assert equal is not None
    assert unequal is not None
    assert (equal.is_same, unequal.is_same) == (True, False)


def test_suspects_are_ordered_by_what_they_call_outside_as_well() -> None:
    experiment, _ = calling(more_strlen)
    counts = open_counts(experiment)
    assert counts is not None
    (suspect,) = work_by_counts(counts, open_ledger(experiment), experiment.functions, departures(experiment, CompareConfig()))
    points = len(experiment.points)
    assert say(suspect.says) == f"executes {299 * int(CALLS) * points:,} more calls of strlen in one run of each point"
    assert suspect.total_ns == pytest.approx(299 * CALLS * points)
    assert suspect.beyond_rewriting == ()


def test_a_cause_names_the_function_its_counts_and_the_kernel() -> None:
    experiment, _ = calling(lambda name, side, block: CALLS * (4096.0 if side is HEAD and name == "write" else 1.0))
    (info,) = [each for each in experiment.functions if each.name == "scan"]
    departed = departures(experiment, CompareConfig())[info.id]
    cause = left(info, departed[:1])
    label = departed[0].point.label
    assert cause.name == "system-calls"
    assert say(cause.says).startswith(
        f"it calls `write` 4096 times a call at {label}, once before (in one run 4,096,000, 1000 before), each time a call of"
    )
    assert [(each.counter, each.base, each.head) for each in cause.evidence] == [
        ("calls of write", 1.0, 4096.0),
        ("calls of write a run", CALLS, 4096 * CALLS),
    ]
    assert f"`write` is called 4,096,000 times in one run of {label}, 1000 times before" in say(entering(departed))


def test_a_cause_says_what_each_of_the_calls_takes() -> None:
    spans = {"strlen": 3100.0, "write": 90.0}
    experiment, _ = calling(more_strlen, spans=lambda name, side, block: spans[name] * (1.2 if block else 1.0))
    (info,) = [each for each in experiment.functions if each.name == "scan"]
    strlen, write = departures(experiment, CompareConfig())[info.id]
    assert say(left(info, (strlen,)).says).startswith(
        f"it calls `strlen` 300 times a call at {strlen.point.label}, once before, 3.1 µs each"
    )
    assert (write.base_ns, write.head_ns) == (None, None), "most of so short a call is what tells of it"
    assert strlen.dearest_ns.tolist() == pytest.approx((strlen.extra * 3100.0 / 0.8).tolist())
    assert not strlen.takes_longer


def test_a_method_of_another_type_that_is_called_as_often_takes_the_others_place() -> None:
    sides = {"java.util.Queue.remove": (500.0, 0.0), "java.util.List.remove": (0.0, 500.0), "java.util.List.size": (0.0, 400.0)}
    experiment, _ = calling(lambda name, side, block: CALLS * sides[name][side is HEAD], names=tuple(sides))
    (info,) = [each for each in experiment.functions if each.name == "scan"]
    found = {each.name: each for each in departures(experiment, CompareConfig())[info.id]}
    assert {name: each.instead_of for name, each in found.items() if each.grew} == {
        "java.util.List.remove": "java.util.Queue.remove",
        "java.util.List.size": None,
    }
    assert not found["java.util.List.remove"].least_ns.any()
    told = likeliest(info, tuple(each for each in found.values() if each.grew))
    assert [each.name for each in told] == ["java.util.List.size", "java.util.List.remove"], (
        "what nothing was in the place of is named first"
    )
    says = say(left(info, told).says)
    assert ", and `java.util.List.remove` 500 times, in place of `java.util.Queue.remove`" in says


def test_of_calls_that_may_cost_alike_those_on_changed_lines_are_named_first_and_their_lines_cited() -> None:
    experiment, _ = calling(lambda name, side, block: CALLS * (500.0 if side is HEAD else 1.0), names=("q.List.isEmpty", "q.List.remove"))
    (info,) = [each for each in experiment.functions if each.name == "scan"]
    loop = "while (!waiting.isEmpty()) {\n"
    before, after = f"{loop}    job = waiting.poll();", f"{loop}    job = waiting.remove(0);"
    info = replace(info, base=Source("Spool.java", 20, before), head=Source("Spool.java", 20, after))
    told = likeliest(info, departures(experiment, CompareConfig())[info.id])
    assert [each.name for each in told] == ["q.List.remove", "q.List.isEmpty"]
    assert say(left(info, told).says).endswith("(Spool.java, line 21: `job = waiting.remove(0);`)")


def test_calls_that_take_all_of_their_callers_time_are_told_so() -> None:
    experiment, _ = calling(more_strlen, spans=lambda name, side, block: 3100.0)
    (info,) = [each for each in experiment.functions if each.name == "scan"]
    strlen = departures(experiment, CompareConfig())[info.id][0]
    says = say(left(info, (strlen,), own_ns=300 * 3000.0).says)
    assert says.startswith(f"it calls `strlen` 300 times a call at {strlen.point.label}, once before, nearly all of its time (in one run")


def test_calls_that_are_as_many_and_take_longer_are_a_cause_of_their_own() -> None:
    experiment, _ = calling(
        lambda name, side, block: CALLS, spans=lambda name, side, block: 31e3 if side is HEAD and name == "strlen" else 3e3
    )
    (info,) = [each for each in experiment.functions if each.name == "scan"]
    found = departures(experiment, CompareConfig())[info.id]
    (longer,) = slower(found)
    assert longer.longer_ns.tolist() == pytest.approx([CALLS * 28e3] * len(experiment.points))
    cause = prolonged(info, (longer,))
    assert cause.name == "library-time"
    assert say(cause.says).startswith(f"it calls `strlen`, which takes 31 µs a call at {longer.point.label}, 3 µs before")
    assert [(each.base, each.head) for each in cause.evidence] == [(3e3, 31e3)]


def test_calls_that_other_work_stretched_in_some_runs_take_no_longer() -> None:
    stretched = calling(lambda name, side, block: CALLS, spans=lambda name, side, block: 30e3 if side is HEAD and block else 3e3)[0]
    assert not any(each.takes_longer for (found) in departures(stretched, CompareConfig()).values() for each in found)


def test_calls_outside_are_kept_and_read_again(tmp_path: Path) -> None:
    experiment, _ = calling(more_strlen)
    store.save(tmp_path / "kept", experiment, ())
    read = store.load(tmp_path / "kept")
    assert read.library is not None
    assert read.library.names == NAMES
    assert found(read) == found(experiment)


def test_a_call_of_a_function_that_has_no_name_is_refused(tmp_path: Path) -> None:
    experiment, _ = calling(more_strlen)
    assert experiment.library is not None
    store.save(tmp_path / "kept", replace(experiment, library=replace(experiment.library, names=("strlen",))), ())
    with pytest.raises(RecordingError, match="library function 1"):
        store.load(tmp_path / "kept")


def test_calls_explain_the_time_of_the_points_that_were_counted() -> None:
    """Counted runs of the large points may exceed their budget: what the others tell is no part of those."""
    scan = Made("scan", lambda side, inputs: 12e3 if side is HEAD else 2e3, Change.CHANGED, lambda side, n: {"visit": n})
    visit = Made("visit", lambda side, inputs: 1e4, calls=lambda side, n: {"": 1})
    world = World((visit, scan), sizes=(100, 1000, 10_000), runs=6)
    made = counted(world, lambda name, side, n, rng: {"bytecode_blocks": 3 * n}, rounds=2)
    assert made.counts is not None
    larger = {run.id for run in made.runs if run.phase is Phase.COUNTED and run.point > 0}
    kept = ~np.isin(made.counts.run, [*larger])
    few = replace(made, runs=tuple(run for run in made.runs if run.id not in larger), counts=of_rows(made.counts, kept))
    function = world.ids["scan"]
    rows = [(run.id, 500.0 if run.side is HEAD else 0.0) for run in few.runs if run.phase is Phase.COUNTED]
    run, calls = np.array(rows).T
    callers, nothing = np.full(len(rows), function), np.zeros(len(rows))
    library = LibraryCalls(run.astype(np.int64), callers, np.zeros(len(rows), np.int64), calls, ("q.Text.matches",), nothing, nothing)
    findings = analyse(replace(few, library=library), world.samples, CompareConfig())
    (found,) = [each for each in findings.functions if each.info.name == "scan"]
    assert found.verdict is Verdict.REGRESSION
    assert [cause.name for cause in found.causes][:1] == ["library-calls"]
    assert "calls `q.Text.matches` 5 times a call" in say(found.causes[0].says)


def of_rows(totals: Totals, kept: np.ndarray) -> Totals:
    """Return some rows of totals."""
    columns = {name: getattr(totals, name)[kept] for name in ("run", "function", "calls", "wall_ns", "self_ns")}
    return Totals(**columns, other={name: values[kept] for name, values in totals.other.items()})
