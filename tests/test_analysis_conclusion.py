"""What is said of a program as a whole: of whole runs that leave the answer open, and of slower functions in a faster program."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import findings as made
from experiments import BASE, HEAD, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.counts.suspects import ExtraWork, work_by_counts
from perfdiff.analysis.counts.work import WorkDifference
from perfdiff.analysis.findings import EndToEnd, FunctionFinding, PointStanding, Ratio, Rung, Verdict
from perfdiff.analysis.looks import look
from perfdiff.analysis.sums.ledger import open_counts, open_ledger
from perfdiff.analysis.verdicts.conclusion import conclude, slower_beside
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.config import CompareConfig
from perfdiff.records.reach import Reach
from perfdiff.records.schema import Change, Point
from perfdiff.report import terminal
from perfdiff.report.document import build
from perfdiff.report.sentences.catalogue import noted, say
from test_analysis_counts import counted

FASTER = PointStanding.FASTER
IMPROVED = made.plain(9, "sift", Verdict.IMPROVEMENT, Change.CHANGED, ratio=Ratio(0.5, 0.4, 0.6, 26, 26), reason="its change saves time")


@pytest.mark.parametrize(
    ("needed", "says"),
    [
        (160, "(26 pairs); about 160 pairs of runs would decide: raise measure.budget_s"),
        (29_579, "(26 pairs), which 320 pairs would not tell from the smallest effect of interest: try a quieter machine"),
        (0, "(26 pairs): raise measure.budget_s, or run on a quieter machine"),
    ],
)
def test_what_would_decide_is_told_where_it_is_within_reach(needed: int, says: str) -> None:
    point = Point(0, "run", {}, "./prog")
    end = EndToEnd(point, 1e8, 1.05e8, Ratio(1.05, 0.97, 1.12, 26, 26), None, needed=needed)
    found = conclude((), Evidence(WholeRuns((end,))), CompareConfig())
    assert found.verdict is Verdict.INCONCLUSIVE
    told = "Inconclusive, with slow-downs of more than 12 % excluded: whole runs at run take ×1.05 [0.97, 1.12] the CPU time"
    assert say(found.sentence) == f"{told} {says}"
    assert found.excluded == 1.12


@pytest.mark.parametrize(
    ("ended_by", "advice"),
    [(None, "raise measure.budget_s"), ("time", "give the comparison more with --time"), ("interrupted", "let it measure to its end")],
)
def test_the_advice_names_what_limited_the_runs(ended_by: str | None, advice: str) -> None:
    end = EndToEnd(Point(0, "run", {}, "./prog"), 1e8, 1.05e8, Ratio(1.05, 0.97, 1.12, 26, 26), None, needed=160)
    evidence = Evidence(WholeRuns((end,)), ended_by=ended_by)
    assert say(conclude((), evidence, CompareConfig()).sentence).endswith(f"about 160 pairs of runs would decide: {advice}")


def test_of_open_points_the_one_is_told_that_seems_to_be_slower_and_else_the_one_that_takes_longest_to_decide() -> None:
    nearly = EndToEnd(Point(0, "nearly", {}, "./prog"), 1e8, 1e8, Ratio(0.99, 0.95, 1.06, 5, 5), None, needed=6)
    far = EndToEnd(Point(1, "far", {}, "./prog"), 1e8, 1e8, Ratio(1.0, 0.84, 1.14, 5, 5), None, needed=40)
    slower = EndToEnd(Point(2, "slower", {}, "./prog"), 1e8, 1e8, Ratio(1.04, 1.01, 1.07, 5, 5), None, needed=9)
    assert "whole runs at far take ×1 [0.84, 1.14] the CPU time (5 pairs); about 40" in say(
        conclude((), Evidence(WholeRuns((nearly, far))), CompareConfig()).sentence
    )
    assert "whole runs at slower" in say(conclude((), Evidence(WholeRuns((nearly, far, slower))), CompareConfig()).sentence)
    machines = {"lab1": Ratio(0.9, 0.8, 1.0, 5, 5), "lab2": Ratio(1.1, 1.0, 1.2, 5, 5)}
    unlike = replace(nearly, point=Point(3, "unlike", {}, "./prog"), needed=0, disagree=True, machines=machines)
    assert "machines disagree: whole runs at unlike" in say(conclude((), Evidence(WholeRuns((far, unlike))), CompareConfig()).sentence)


def test_no_quieter_machine_is_asked_for_where_layouts_leave_a_point_open() -> None:
    end = EndToEnd(Point(0, "run", {}, "./prog"), 1e8, 1.05e8, Ratio(1.05, 0.97, 1.12, 26, 26), None, needed=29_579, by_layouts=True)
    said = say(conclude((), Evidence(WholeRuns((end,))), CompareConfig()).sentence)
    assert said.endswith("smallest effect of interest: the place of code in memory makes more than the change")


@pytest.mark.parametrize(
    ("low", "work", "verdict"),
    [
        (1.05, WorkDifference(3e-7, 0.0, 0.0, 0.0, repeats=False, is_bounded=True), Verdict.INCONCLUSIVE),
        (1.12, WorkDifference(3e-7, 0.0, 0.0, 0.0, repeats=False, is_bounded=True), Verdict.REGRESSION),
        (1.05, WorkDifference(0.03, 0.0, 0.0, 0.0, repeats=True, is_bounded=True), Verdict.REGRESSION),
        (1.05, WorkDifference(0.0, 0.0, 0.03, 0.0, repeats=True, is_bounded=True), Verdict.REGRESSION),
        (1.05, WorkDifference(0.0, 0.0, 0.0, 0.0, repeats=True, is_bounded=False), Verdict.REGRESSION),
        (1.05, None, Verdict.REGRESSION),
    ],
)
def test_slower_runs_that_places_of_code_may_make_are_no_regression_where_counts_say_that_nothing_was_added(
    low: float, work: WorkDifference | None, verdict: Verdict
) -> None:
    """As of a loop that is compiled to the same instructions eight bytes further on, which cross a line of the cache in more layouts."""
    end = EndToEnd(Point(0, "run", {}, "./prog"), 1e7, 1.1e7, Ratio(1.1, low, 1.15, 80, 80), None, standing=PointStanding.SLOWER)
    found = conclude((), Evidence(WholeRuns((end,)), work), CompareConfig())
    assert found.verdict is verdict
    assert ("the place of code in memory" in say(found.sentence)) is (verdict is Verdict.INCONCLUSIVE)


def test_runs_that_take_longer_at_times_are_told_and_no_good_news_whatever_counts_say() -> None:
    end = EndToEnd(Point(0, "run", {}, "./prog"), 1e7, 1e7, Ratio(1.0, 0.99, 1.01, 20, 20), None, PointStanding.OPEN, at_times=6.0)
    same_work = WorkDifference(0.0, 0.0, 0.0, 0.0, repeats=True, is_bounded=True)
    found = conclude((), Evidence(WholeRuns((end,)), same_work), CompareConfig())
    assert found.verdict is Verdict.INCONCLUSIVE
    assert say(found.sentence).startswith("Inconclusive: some runs of head at run take ×6 as long as most, and hardly any of base's")


@pytest.mark.parametrize(
    ("standing", "ratio", "verdict"),
    [
        (PointStanding.SLOWER, Ratio(1.4, 1.06, 1.9, 20, 20), Verdict.REGRESSION),
        (PointStanding.OPEN, Ratio(1.04, 0.99, 1.08, 20, 20), Verdict.INCONCLUSIVE),
    ],
)
def test_counts_and_the_place_of_code_say_nothing_of_what_head_waits(standing: PointStanding, ratio: Ratio, verdict: Verdict) -> None:
    end = EndToEnd(Point(0, "run", {}, "./prog"), 1e7, 1.1e7, ratio, None, standing, by="wall_ns")
    same_work = WorkDifference(0.0, 0.0, 0.0, 0.0, repeats=True, is_bounded=True)
    waiting, working = (
        conclude((), Evidence(WholeRuns((replace(end, waits_more=more),)), same_work), CompareConfig()) for more in (True, False)
    )
    assert waiting.verdict is verdict
    assert working.verdict is not verdict


def test_where_the_program_is_judged_functions_that_it_does_not_feel_are_named() -> None:
    end = EndToEnd(Point(0, "run", {}, "./prog"), 1e8, 1e8, Ratio(1.0, 0.99, 1.01, 20, 20), None, PointStanding.NOT_SLOWER)
    found = conclude((made.regressed(),), Evidence(WholeRuns((end,))), CompareConfig(judge="program"))
    assert found.verdict is Verdict.UNCHANGED
    assert say(found.sentence).endswith("; slower functions that it does not feel: `insert`")


def test_what_few_runs_exclude_is_no_answer() -> None:
    end = EndToEnd(Point(0, "run", {}, "./prog"), 1e8, 1.05e8, Ratio(1.1, 0.5, 2.4, 5, 5), None, needed=160)
    found = conclude((), Evidence(WholeRuns((end,))), CompareConfig())
    assert say(found.sentence).startswith("Inconclusive: whole runs at run take ×1.1 [0.5, 2.4]")
    assert found.excluded is None


def test_runs_that_say_nothing_of_the_program_are_not_runs_that_nobody_made() -> None:
    """As where all of them end by the clock, and the program alone is judged."""
    made_runs = WholeRuns((EndToEnd(Point(0, "run", {}, "./prog"), 1e8, 1e8, Ratio(1.0, 0.99, 1.01, 26, 26), None),))
    said = [say(conclude((), Evidence(runs), CompareConfig(judge="program")).sentence) for runs in (WholeRuns(), made_runs.without({0}))]
    assert said == [
        "Inconclusive: no whole runs were made",
        "Inconclusive: what whole runs take is a matter of the clock, of services or of larger inputs, not of the program",
    ]


def test_runs_that_a_clock_ends_are_no_sign_that_nothing_is_slower() -> None:
    """As where what they repeat has no probe: they last as long however slow it became."""
    alike = EndToEnd(Point(0, "run", {}, "./prog"), 1e8, 1e8, Ratio(1.0, 0.99, 1.01, 26, 26), None, PointStanding.NOT_SLOWER)
    bench = replace(alike, point=Point(1, "bench", {}, "./bench"), standing=PointStanding.CLOCKED)
    assert conclude((), Evidence(WholeRuns((alike,))), CompareConfig()).verdict is Verdict.UNCHANGED
    found = conclude((), Evidence(WholeRuns((alike, bench))), CompareConfig())
    assert (found.verdict, found.excluded) == (Verdict.INCONCLUSIVE, None)
    assert say(found.sentence).startswith("Inconclusive: whole runs at bench end by the clock, and which function they repeat is not known")
    slower = replace(alike, standing=PointStanding.SLOWER, ratio=Ratio(1.3, 1.2, 1.4, 26, 26))
    assert conclude((), Evidence(WholeRuns((slower, bench))), CompareConfig()).verdict is Verdict.REGRESSION


def test_slower_runs_of_the_same_command_are_a_regression_where_all_that_grew_is_inputs_that_no_change_hands_on() -> None:
    def inputs(side: str, n: float, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"n": n * np.exp(rng.normal(0, 0.7, count)) * (2 if side == HEAD else 1)}

    work = Made("work", same(lambda given: 100.0 * given["n"]), calls=lambda *_: {"main": 50}, inputs=inputs)
    world = World((Made("main", same(2e4)), work), runs=12, plain=lambda side: 2e7 if side == HEAD else 1e7)
    experiment = replace(world.experiment(), met=("settings.txt",))
    findings = analyse(experiment, world.samples, CompareConfig())
    assert (findings.verdict, findings.rung) == (Verdict.REGRESSION, Rung.RUNS)
    assert say(findings.sentence).startswith("Regression, not located: whole runs at w n=")
    assert "; the file `settings.txt`, which runs use, differs between base and head; " in say(findings.sentence)
    assert [function.info.name for function in findings.functions if function.verdict is Verdict.REGRESSION] == []
    assert [note.text for note in map(noted, findings.notes) if note.slug == "workload-grown"] != []
    assert [end.judges for end in findings.end_to_end] == [True] * 3


ALIKE = EndToEnd(Point(0, "run", {}, "./prog"), 1e8, 1e8, Ratio(1.0, 0.99, 1.01, 26, 26), None, PointStanding.NOT_SLOWER)


@pytest.mark.parametrize(
    ("reach", "verdict", "sentence"),
    [
        (None, Verdict.UNCHANGED, "No regression: slow-downs of more than 1 % are excluded at the only point (95 %)"),
        (Reach(0, 0), Verdict.UNCHANGED, "No regression: slow-downs of more than 1 % are excluded at the only point (95 %)"),
        (Reach(17, 14), Verdict.UNCHANGED, "No regression in the 14 of 17 changed functions that ran: slow-downs of more than 1 % are"),
        (Reach(3, 3), Verdict.UNCHANGED, "No regression in the 3 changed functions, all of which ran: slow-downs of more than 1 % are"),
        (Reach(1, 1), Verdict.UNCHANGED, "No regression in the changed function, which ran: slow-downs of more than 1 % are excluded"),
        (
            Reach(3, 1, 2),
            Verdict.UNCHANGED,
            "No regression in the 1 of 3 changed functions that ran (of 2 without a probe it is",
        ),
        (Reach(1, 0, 1, ()), Verdict.UNCHANGED, "No regression (whether the changed function ran is not known)"),
        (Reach(2, 0, 1, ("f",)), Verdict.UNCHANGED, "No regression (whether the 2 changed functions ran is not known)"),
        (
            Reach(2, 0, 0, ("f", "g")),
            Verdict.INCONCLUSIVE,
            "Inconclusive: none of the 2 changed functions ran (`f`, `g`), so nothing is said of the change; whole runs",
        ),
        (Reach(1, 0, 0, ("f",)), Verdict.INCONCLUSIVE, "Inconclusive: no workload calls `f`, which changed, so nothing is said of"),
    ],
)
def test_the_first_sentence_says_of_how_many_changed_functions_it_speaks(reach: Reach | None, verdict: Verdict, sentence: str) -> None:
    concluded = conclude((), Evidence(WholeRuns((ALIKE,)), reach=reach), CompareConfig())
    assert concluded.verdict is verdict
    assert say(concluded.sentence).startswith(sentence)


def test_slower_runs_are_a_regression_though_nothing_that_changed_ran() -> None:
    slower = replace(ALIKE, standing=PointStanding.SLOWER, ratio=Ratio(1.3, 1.2, 1.4, 26, 26))
    concluded = conclude((), Evidence(WholeRuns((slower,)), same_code=True, reach=Reach(2, 0, 0, ("f", "g"))), CompareConfig())
    assert concluded.verdict is Verdict.REGRESSION


def test_a_proof_tells_the_runs_that_confirm_it() -> None:
    bare = "No regression: nothing that runs differs between base and head"
    assert say(conclude((), Evidence(same_code=True), CompareConfig()).sentence) == bare
    confirmed = conclude((), Evidence(WholeRuns((ALIKE,)), same_code=True), CompareConfig())
    assert (confirmed.rung, say(confirmed.sentence)) == (Rung.CODE, f"{bare}, and 26 pairs of whole runs at run agree (×1 [0.99, 1.01])")


@pytest.mark.parametrize(
    ("extra_ns", "interval", "verdict"),
    [
        (1e7, (0.9e7, 1.1e7), Verdict.IMPROVEMENT),
        (6e8, (5e8, 7e8), Verdict.REGRESSION),
        (1e7, None, Verdict.REGRESSION),
    ],
    ids=["adds little of what is saved", "adds more than is saved", "is guilty by memory or counts"],
)
def test_a_slower_function_in_a_faster_program_is_a_note_where_it_adds_less_than_is_saved(
    extra_ns: float, interval: tuple[float, float] | None, verdict: Verdict
) -> None:
    ends = tuple(EndToEnd(Point(n, "run", {"n": n}, "./prog"), 5e8, 2.5e8, Ratio(0.5, 0.48, 0.52, 26, 26), None, FASTER) for n in (1, 2))
    slower = replace(made.regressed(), extra_ns=extra_ns, extra_ci_ns=interval)
    found = conclude((slower,), Evidence(WholeRuns(ends)), CompareConfig())
    assert found.verdict is verdict
    assert say(found.sentence).startswith(
        "Improvement: whole runs" if verdict is Verdict.IMPROVEMENT else "Regression of a function, not of"
    )
    texts = [note.text for note in map(noted, slower_beside(found.verdict, (slower,)))]
    told = [f"slower all the same, in a program that is faster as a whole: {say(slower.headline)}"]
    assert texts == (told if verdict is Verdict.IMPROVEMENT else [])


@pytest.mark.parametrize(
    ("functions", "high", "verdict"),
    [
        ((IMPROVED,), 0.99, Verdict.IMPROVEMENT),
        ((IMPROVED,), 1.01, Verdict.UNCHANGED),
        ((), 0.99, Verdict.UNCHANGED),
    ],
    ids=["runs and a function", "a function alone", "runs alone"],
)
def test_runs_that_are_faster_beyond_chance_are_an_improvement_where_a_function_is_faster(
    functions: tuple[FunctionFinding, ...], high: float, verdict: Verdict
) -> None:
    end = EndToEnd(Point(0, "run", {}, "./prog"), 1e8, 0.98e8, Ratio(0.98, 0.97, high, 26, 26), None, PointStanding.NOT_SLOWER)
    assert conclude(functions, Evidence(WholeRuns((end,))), CompareConfig()).verdict is verdict


def test_a_faster_program_that_is_not_as_fast_at_one_point_is_headed_by_its_slower_function() -> None:
    faster = EndToEnd(Point(0, "run", {}, "./prog"), 5e8, 2.5e8, Ratio(0.5, 0.48, 0.52, 26, 26), None, FASTER)
    still_open = EndToEnd(Point(1, "run", {}, "./prog"), 1e8, 1e8, Ratio(1.05, 0.97, 1.12, 26, 26), None)
    slower = replace(made.regressed(), extra_ns=1e7, extra_ci_ns=(0.9e7, 1.1e7))
    assert conclude((slower,), Evidence(WholeRuns((faster, still_open))), CompareConfig()).verdict is Verdict.REGRESSION


@pytest.mark.parametrize(
    ("standings", "says"),
    [
        ("slower, not slower, open", "; whole runs are slower at n=1, not at n=2, open at n=3"),
        ("slower, slower, faster", "; whole runs are slower at n=1, n=2, not at n=3"),
        ("slower, slower, open", ""),
    ],
)
def test_points_where_a_slower_program_is_not_slower_are_in_its_first_sentence(standings: str, says: str) -> None:
    ratio = Ratio(1.1, 0.9, 1.3, 26, 26)
    ends = [
        EndToEnd(Point(n, f"n={n}", {}, "./prog"), 5e8, 5e8, ratio, None, PointStanding(each))
        for n, each in enumerate(standings.split(", "), start=1)
    ]
    slower = made.regressed()
    assert (
        say(conclude((slower,), Evidence(WholeRuns(tuple(ends))), CompareConfig()).sentence) == f"Regression: {say(slower.headline)}{says}"
    )


def test_a_function_that_costs_more_a_call_and_is_called_less_often_is_told_by_what_its_calls_take_in_all() -> None:
    often = {BASE: 400.0, HEAD: 10.0}
    main = Made("main", same(1e6))
    rule = Made("rule", lambda side, x: 2e3 if side == BASE else 200e3, Change.CHANGED, lambda side, n: {"main": often[side]})
    world = World((main, rule), runs=8, plain=lambda side: 3e6 if side == BASE else 4.2e6)
    found = analyse(world.experiment(), world.samples, CompareConfig())
    (guilty,) = (each for each in found.functions if each.rank == 1)
    assert guilty.info.name == "rule"
    assert say(guilty.headline).startswith("`rule` ")
    assert ", 24 runs a side), but is called 10 times in " in say(guilty.headline)
    assert " before: 2 ms in all, " in say(guilty.headline)
    beside = terminal.render(build(replace(found, functions=(made.regressed(), replace(guilty, rank=2)))), width=300)
    assert re.search(r"regression in rule \(×\d\d\.?\d* a call, ×2\.4\d in all\)", beside)


def test_a_release_that_is_faster_as_a_whole_is_an_improvement_with_a_slower_function_beside() -> None:
    main = Made("main", lambda side, x: 1e6)
    read = Made("read", lambda side, x: 9e6 if side == BASE else 2e6, Change.CHANGED, lambda side, n: {"main": 1})
    start = Made("start", lambda side, x: 4e5 if side == BASE else 9e5, Change.CHANGED, lambda side, n: {"main": 1})
    world = World((main, read, start), runs=8, plain=lambda side: 1.05e7 if side == BASE else 4e6)
    seen, found = (judge(world.experiment(), world.samples, CompareConfig()) for judge in (look, analyse))
    assert seen.verdict is found.verdict is Verdict.IMPROVEMENT
    slower = next(each for each in found.functions if each.info.name == "start")
    assert (slower.verdict, slower.rank) == (Verdict.REGRESSION, 1)
    said = terminal.render(build(found), width=200)
    assert said.index("Improvement:") < said.index("Slower all the same, in a program that is faster as a whole: `start`")


@pytest.mark.parametrize(
    ("fewer", "says"),
    [
        (6e7, "the CPU time (26 pairs); by counts, `grow` executes 60,000,000 fewer basic blocks in one run of each point"),
        (1e6, "the CPU time (26 pairs)"),
    ],
)
def test_who_executes_materially_less_is_named_where_runs_are_faster_and_no_call_explains_it(fewer: float, says: str) -> None:
    end = EndToEnd(Point(0, "run", {}, "./prog"), 1e8, 0.89e8, Ratio(0.89, 0.87, 0.91, 26, 26), None, FASTER)
    saved = np.array([-0.2 * fewer])
    saver = ExtraWork(3, "grow", (0,), saved, np.zeros(1), {"blocks": (1e8, 1e8 - fewer)}, repeats=True)
    found = conclude((), Evidence(WholeRuns((end,)), savers=(saver,)), CompareConfig())
    assert found.verdict is Verdict.IMPROVEMENT
    assert say(found.sentence).endswith(says)


def test_a_function_that_executes_less_is_a_saver_and_no_suspect() -> None:
    world = World((Made("main", same(5e4)), Made("grow", same(1e6), Change.CHANGED, lambda side, n: {"main": 1})), runs=5)
    blocks = {BASE: 5e6, HEAD: 1e6}
    experiment = counted(world, lambda name, side, n, rng: {"blocks": blocks[side] if name == "grow" else 10.0}, rounds=2)
    counts = open_counts(experiment)
    assert counts is not None
    (saved,) = work_by_counts(counts, open_ledger(experiment), experiment.functions, {})
    assert say(saved.says) == "executes 12,000,000 fewer basic blocks in one run of each point"
    assert saved.total_ns < 0


@pytest.mark.parametrize(
    ("misses", "says"),
    [(6.0, "executes 1,000,000 more basic blocks"), (100.0, "executes 1,000,000 more basic blocks and 100 more last-level cache misses")],
)
def test_counts_that_take_next_to_nothing_beside_others_are_not_told(misses: float, says: str) -> None:
    """A million blocks take 200 µs at least; six misses at the dearest half a per cent of that, a hundred a tenth."""
    counts = {"blocks": (0.0, 1e6), "llc_misses": (0.0, misses)}
    work = ExtraWork(1, "scan", (0,), np.array([2e5]), np.array([5e6]), counts, repeats=True)
    assert say(work.says) == f"{says} in one run of each point"


def test_of_open_functions_the_one_that_may_cost_most_is_named_first() -> None:
    def made(name: str, factor: float) -> Made:
        return Made(name, lambda side, _: 1e4 * (factor if side is HEAD else 1.0), Change.CHANGED, calls=lambda *_: {"main": 20})

    world = World((Made("main", same(2e4)), made("cheaper", 0.97), made("dearer", 1.12)), runs=6, noise=Noise(run=0.12), seed=0)
    found = analyse(world.experiment(), world.samples, CompareConfig())
    assert [each.info.name for each in found.functions if each.verdict is Verdict.INCONCLUSIVE] == ["dearer", "cheaper"]
    assert say(found.sentence).startswith("Inconclusive: `dearer`")
