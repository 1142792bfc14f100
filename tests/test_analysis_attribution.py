"""From where the extra cost shows to the change that causes it, on made-up programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from contradictions import contradictions
from differing import entities, reasons_of
from experiments import BASE, HEAD, Columns, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.causes.citation import depends
from perfdiff.analysis.compare.mix import typical_inputs
from perfdiff.analysis.findings import Findings, FunctionFinding, MetricFinding, Ratio, Verdict
from perfdiff.analysis.means import MEAN
from perfdiff.analysis.telling.headline import MetricSpot, cost_changed
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import Annotation, CostClass, Scope, Term
from perfdiff.records.schema import Change, FunctionInfo, Origin, Side
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.report.sentences.spelling import often
from perfdiff.report.wording import classes, leading

CONFIG = CompareConfig()


def findings(*functions: Made, sizes: tuple[float, ...] = (1000, 3000, 10000), runs: int = 6, seed: int = 1) -> Findings:
    world = World((Made("main", same(5e4)), *functions), sizes=sizes, runs=runs, seed=seed)
    return agreeing(world)


def agreeing(world: World) -> Findings:
    """Return what is found, in which no figures of a block contradict each other."""
    found = analyse(world.experiment(), world.samples, CONFIG)
    assert contradictions(found) == []
    return found


def analyse_all(*functions: Made) -> Findings:
    """Analyse functions that are all there are, `main` among them."""
    return agreeing(World(functions, sizes=(1000, 3000, 10000), runs=6, seed=1))


def named(found: Findings, name: str) -> FunctionFinding:
    return next(each for each in found.functions if each.info.name == name)


def ranks(found: Findings) -> list[str]:
    ranked = [each for each in found.functions if each.rank is not None]
    return [each.info.name for each in sorted(ranked, key=lambda each: each.rank)]


def once(side: str, n: float) -> dict[str, float]:
    return {"main": 1}


def text(**lines: str) -> dict[str, str]:
    return {BASE: lines["base"], HEAD: lines["head"]}


def test_linear_that_became_quadratic_is_told_with_both_cost_functions() -> None:
    insert = Made("insert", lambda side, x: 80 * x["n"] if side == BASE else 0.15 * x["n"] ** 2, Change.CHANGED, once)
    found = findings(insert)
    guilty = named(found, "insert")
    assert found.verdict is Verdict.REGRESSION
    assert guilty.rank == 1
    assert guilty.share == pytest.approx(1.0)
    wall = guilty.metrics["wall_ns"]
    assert (wall.base.cost_class, wall.head.cost_class) == (CostClass.LINEAR, CostClass.QUADRATIC)
    assert wall.class_changed
    assert wall.ratio.low < 18.75 < wall.ratio.high  # 0.15 n² / 80 n at n = 10,000
    assert wall.crosses == pytest.approx(2 * 80 / 0.15, rel=0.1)
    assert say(guilty.headline).startswith("`insert` cost ")
    assert "ns·n, now 0.1" in say(guilty.headline)
    assert "ns·n²: at n = 10,000, " in say(guilty.headline)
    assert guilty.causes[0].name == "class-change"


def test_a_constant_that_is_most_of_the_quoted_cost_is_told_with_the_leading_term() -> None:
    def cost(side: str, x: Columns) -> np.ndarray:
        return 20 * x["n"] + (0 if side == BASE else 40_000)

    said = say(named(findings(Made("f", cost, Change.CHANGED, once), sizes=(1000, 10000, 60000)), "f").headline)
    growth = re.match(r"`f` cost ([\d.]+) ns·n.*, now ([\d.]+) ns·n \+ ([\d.]+) µs: at n = 1000, ", said)
    assert growth is not None, said
    assert [float(each) for each in growth.groups()] == pytest.approx([20, 20, 40], rel=0.1)


@pytest.mark.parametrize(
    ("constant", "quoted", "ratio", "says"),
    [
        (87.0, 31.6, 4.5, "was constant in n, now linear: at n = 10,000, 31.6 ns became 142 ns a call"),
        (0.7, 1.2, 120.0, "cost 0.7 ns, now 0.00126 ns·n + 137 ns: at n = 10,000, 1.2 ns became 144 ns a call"),  # less than probes resolve
    ],
)
def test_cost_functions_are_told_where_they_meet_the_quoted_costs(constant: float, quoted: float, ratio: float, says: str) -> None:
    base, head = (
        Annotation("f", "wall_ns", of, (Scope(of, terms, 1.0, 1.0, 9),), ("n",), {}, {"n": (1e4, 1e6)}, 1.0, 1.0, 9)
        for of, terms in (
            (CostClass.CONSTANT, (Term(constant),)),
            (CostClass.LINEAR, (Term(137.0), Term(0.00126, (("n", "x"),)))),
        )
    )
    grew = Ratio(ratio, ratio / 1.1, ratio * 1.1, 5, 5)
    found = MetricFinding("wall_ns", base, head, "n", grew, "n", grew, 0.0, None, None, None, 0.01, class_changed=True)
    assert say(cost_changed(found, MetricSpot(base=quoted, switch="", feature="n", x=10_000.0), CONFIG, is_own=False)).startswith(says)


def test_a_slower_function_is_not_said_to_grow_less() -> None:
    of = {CostClass.N_LOG_N: Term(0.5, (("n", "xlogx"),)), CostClass.LINEAR: Term(1.2, (("n", "x"),))}
    base, head = (
        Annotation("f", "wall_ns", kind, (Scope(kind, (term,), 1.0, 1.0, 9),), ("n",), {}, {"n": (2.0, 500.0)}, 1.0, 1.0, 9)
        for kind, term in of.items()
    )
    for value, says in ((2.2, "at n = 188, 400 ns became 880 ns a call"), (0.5, "was n log n in n, now linear: at n = 188, 400 ns")):
        moved = Ratio(value, value / 1.1, value * 1.1, 5, 5)
        found = MetricFinding("wall_ns", base, head, "n", moved, "n", moved, 0.0, None, None, None, 0.01, class_changed=True)
        assert say(cost_changed(found, MetricSpot(base=400.0, switch="", feature="n", x=188.0), CONFIG, is_own=False)).startswith(says)


@pytest.mark.parametrize(
    ("value", "says"), [(40.0, "80 ns became 3.2 µs a call "), (0.5, "cost 0.0422 ns·n, now 3.23 µs: 80 ns became 40 ns a call ")]
)
def test_cost_functions_beside_a_mean_are_told_only_where_their_class_changed_as_it_did(value: float, says: str) -> None:
    base, head = (
        Annotation("f", "wall_ns", of, (Scope(of, (term,), 1.0, 1.0, 9),), ("n",), {}, {"n": (50.0, 800.0)}, 1.0, 1.0, 9)
        for of, term in ((CostClass.LINEAR, Term(0.0422, (("n", "x"),))), (CostClass.CONSTANT, Term(3230.0)))
    )
    moved = Ratio(value, value / 1.1, value * 1.1, 5, 5)
    found = MetricFinding("wall_ns", base, head, "n", moved, MEAN, moved, 0.0, None, None, None, 0.01, class_changed=True)
    assert say(cost_changed(found, MetricSpot(base=80.0, switch="", feature=None, x=None), CONFIG, is_own=False)).startswith(says)


def test_calls_told_apart_by_a_type_or_a_size_are_named_once() -> None:
    grew = Ratio(9.0, 8.0, 10.0, 5, 5)
    found = MetricFinding("wall_ns", None, None, None, grew, "type(x) = str", grew, 0.0, None, None, None, 0.01)
    said = say(cost_changed(found, MetricSpot(base=100.0, switch="type(x) = str", feature=None, x=None), CONFIG, is_own=False))
    assert said.startswith("for type(x) = str, 100 ns became 900 ns a call (")
    at_one_size = MetricSpot(base=100.0, switch="tokens = 36,009", feature="tokens", x=36_009.0)
    said = say(cost_changed(replace(found, stratum=""), at_one_size, CONFIG, is_own=False))
    assert said.startswith("for tokens = 36,009, 100 ns became 900 ns a call (")


@pytest.mark.parametrize(("value", "says"), [(2.1, "costs more a call on average (×2.1, "), (0.4, "costs less a call on average (×0.4, ")])
def test_a_mean_without_a_typical_call_is_still_a_sentence(value: float, says: str) -> None:
    moved = Ratio(value, value / 1.1, value * 1.1, 5, 5)
    found = MetricFinding("wall_ns", None, None, None, moved, MEAN, moved, 0.0, None, None, None, 0.01)
    assert say(cost_changed(found, None, CONFIG, is_own=False)).startswith(says)


def test_coefficient_shift_keeps_the_class() -> None:
    found = findings(Made("f", lambda side, x: (20 if side == BASE else 100) * x["n"], Change.CHANGED, once))
    wall = named(found, "f").metrics["wall_ns"]
    assert not wall.class_changed
    assert wall.head.cost_class is CostClass.LINEAR
    slope = next(shift for shift in wall.coefficients if shift.term == "n")
    assert slope.low < 80 < slope.high
    assert slope.q < 0.001
    assert wall.ratio.value == pytest.approx(5, rel=0.1)


def test_callee_called_per_element_is_the_callers_guilt() -> None:
    found = findings(
        Made("sum", same(lambda x: 2 * x["n"]), Change.CHANGED, once),
        Made("length", same(300.0), calls=lambda side, n: {"sum": 1 if side == BASE else n}),
    )
    assert ranks(found) == ["sum"]
    assert named(found, "sum").causes[0].name == "more-calls"
    assert "10,000 times, once before" in say(named(found, "sum").causes[0].says)
    assert named(found, "length").verdict is Verdict.UNCHANGED


def test_more_calls_pass_through_unchanged_functions_to_the_change() -> None:
    found = findings(
        Made("f", same(1000.0), Change.CHANGED, once),
        Made("g", same(100.0), calls=lambda side, n: {"f": 10 if side == BASE else n}),
        Made("h", same(900.0), calls=lambda side, n: {"g": 10 if side == BASE else n}),
    )
    assert ranks(found) == ["f"]
    assert named(found, "f").extra_ns == pytest.approx(1000 * (1000 + 3000 + 10000 - 30), rel=0.1)


def test_function_that_runs_once_and_slows_unchanged_code_through_data_is_first() -> None:
    shared = frozenset({"struct table.buckets"})
    found = findings(
        Made("build_index", same(2e4), Change.CHANGED, once, writes=shared),
        Made("report", same(2e4), Change.CHANGED, once, writes=frozenset({"struct stats.rows"})),
        Made("lookup", lambda side, x: 400.0 if side == BASE else 31e3, calls=lambda side, n: {"main": 500}, reads=shared),
    )
    assert ranks(found) == ["build_index", "lookup"]
    guilty = named(found, "build_index")
    assert guilty.share == pytest.approx(1.0)
    assert say(guilty.chain[0]) == "`build_index` (changed) writes `struct table.buckets`"
    assert say(guilty.chain[1]).startswith("`lookup` (unchanged) reads it: ")
    assert "because of `build_index`" in say(named(found, "lookup").reason)


def test_of_two_writers_the_one_whose_change_mentions_the_field_is_first() -> None:
    shared = frozenset({"struct heap.limit"})
    touched = text(base="setup(h) {\n  h->limit = 64;\n}", head="setup(h) {\n  h->limit = 1;\n}")
    other = text(base="trim(h) {\n  log_it(1);\n  h->limit--;\n}", head="trim(h) {\n  log_it(2);\n  h->limit--;\n}")
    found = findings(
        Made("trim", same(2e4), Change.CHANGED, once, writes=shared, text=other),
        Made("setup", same(2e4), Change.CHANGED, once, writes=shared, text=touched),
        Made("push", lambda side, x: 400.0 if side == BASE else 9e3, calls=lambda side, n: {"main": 500}, reads=shared),
    )
    assert ranks(found)[0] == "setup"


@pytest.mark.parametrize(("body", "way"), [("look() { find(x); }", "is reached from"), ("look() { hash(x); }", "is called by")])
def test_a_callee_is_called_only_by_code_that_names_it(body: str, way: str) -> None:
    found = findings(
        Made("look", lambda side, x: (20 if side == BASE else 90) * x["n"], calls=once, text=text(base=body, head=body)),
        Made("hash", same(4e4), Change.CHANGED, lambda side, n: {"look": 10}),
    )
    assert say(named(found, "hash").chain[0]) == f"`hash` (changed) {way} `look` (unchanged)"


def test_other_parts_of_a_structure_are_not_told_as_what_is_read() -> None:
    def slower(side: str, x: Columns) -> np.ndarray:
        return (20 if side == BASE else 90) * x["n"]

    writes = frozenset({"struct table.known"})
    reads = frozenset({"struct table.size"})
    called = findings(
        Made("show", slower, calls=once, reads=reads),
        Made("rate", same(4e4), Change.CHANGED, lambda side, n: {"show": 10}, writes=writes),
    )
    assert say(named(called, "rate").chain[0]) == "`rate` (changed) is reached from `show` (unchanged)"
    apart = findings(Made("show", slower, calls=once, reads=reads), Made("rate", same(4e4), Change.CHANGED, once, writes=writes))
    assert say(named(apart, "rate").chain[0]) == "`rate` (changed) writes `struct table`"


def test_slower_callee_without_shared_data_is_its_nearest_changed_callers_guilt() -> None:
    found = findings(
        Made("render", same(2e4), Change.CHANGED, once),
        Made("emit", lambda side, x: 10 * x["n"] if side == BASE else 40 * x["n"], calls=lambda side, n: {"render": 5}),
    )
    assert ranks(found) == ["render", "emit"]


def test_work_moved_into_an_added_function_nets_out() -> None:
    found = findings(
        Made("outer", lambda side, x: (100 if side == BASE else 40) * x["n"], Change.CHANGED, once),
        Made("helper", same(lambda x: 60 * x["n"]), Change.ADDED, lambda side, n: {} if side == BASE else {"outer": 1}),
    )
    assert found.verdict is Verdict.UNCHANGED
    assert "moved between it and `helper`" in say(named(found, "outer").reason)


def test_work_moved_between_changed_functions_nets_out() -> None:
    line = "  total += checksum(block, size);"
    found = findings(
        Made(
            "load",
            lambda side, x: (90 if side == BASE else 30) * x["n"],
            Change.CHANGED,
            once,
            text=text(base=f"load\n{line}", head="load"),
        ),
        Made(
            "save",
            lambda side, x: (30 if side == BASE else 90) * x["n"],
            Change.CHANGED,
            once,
            text=text(base="save", head=f"save\n{line}"),
        ),
    )
    assert found.verdict is Verdict.UNCHANGED


@pytest.mark.parametrize(("taken_over", "verdict"), [(900, Verdict.UNCHANGED), (1000, Verdict.INCONCLUSIVE)])
def test_functions_between_which_work_moved_are_open_where_they_may_slow_a_run(taken_over: float, verdict: Verdict) -> None:
    """Of 1,000 ns an element `outer` keeps 100; where its helper takes 1,000, a run takes a tenth more, and runs vary by as much."""
    made = (
        Made("main", same(5e4)),
        Made("outer", lambda side, x: (1000 if side == BASE else 100) * x["n"], Change.CHANGED, once),
        Made("helper", same(lambda x: taken_over * x["n"]), Change.ADDED, lambda side, n: {} if side == BASE else {"outer": 1}),
    )
    world = World(made, seed=2, noise=Noise(run=0.08))
    assert analyse(world.experiment(), world.samples, CONFIG).verdict is verdict


@pytest.mark.parametrize("seed", range(4))
def test_work_is_not_said_to_have_moved_where_next_to_none_did(seed: int) -> None:
    found = findings(
        Made("outer", same(lambda x: 100 * x["n"]), Change.CHANGED, once),
        Made("init", same(lambda x: 50 * x["n"]), Change.CHANGED, lambda side, n: {"outer": 1}),
        Made("helper", same(lambda x: 0.3 * x["n"]), Change.ADDED, lambda side, n: {} if side == BASE else {"outer": 1}),
        seed=seed,
    )
    assert [each.info.name for each in found.functions if "moved" in say(each.reason)] == []


def test_an_unrelated_improvement_does_not_hide_a_regression() -> None:
    found = findings(
        Made("load", lambda side, x: (90 if side == BASE else 30) * x["n"], Change.CHANGED, once),
        Made("save", lambda side, x: (30 if side == BASE else 90) * x["n"], Change.CHANGED, once),
    )
    assert ranks(found) == ["save"]
    assert named(found, "load").verdict is Verdict.IMPROVEMENT


def test_function_merged_into_its_caller_nets_out() -> None:
    found = findings(
        Made("outer", lambda side, x: (40 if side == BASE else 100) * x["n"], Change.CHANGED, once),
        Made("helper", same(lambda x: 60 * x["n"]), Change.REMOVED, lambda side, n: {"outer": 1} if side == BASE else {}),
    )
    assert found.verdict is Verdict.UNCHANGED


@pytest.mark.parametrize("change", [Change.ADDED, Change.REMOVED])
def test_a_one_sided_function_that_probes_cannot_resolve_is_no_difference(change: Change) -> None:
    """Two million calls of 0.75 ns are 1.6 ms only by the probes' own error; the compiler inlines them."""
    only = HEAD if change is Change.ADDED else BASE
    found = findings(
        Made("format", same(4.0), Change.CHANGED, lambda side, n: {"main": 200 * n}),
        Made("digits", same(0.75), change, lambda side, n: {"format": 200 * n} if side == only else {}),
    )
    assert found.verdict is not Verdict.REGRESSION
    assert named(found, "digits").verdict is Verdict.UNCHANGED


def test_more_calls_of_what_probes_cannot_resolve_are_no_regression() -> None:
    found = findings(
        Made("scan", same(lambda x: 20 * x["n"]), Change.CHANGED, once),
        Made("peek", same(1.0), calls=lambda side, n: {"scan": (1 if side == BASE else 10) * n}),
    )
    assert found.verdict is not Verdict.REGRESSION


def test_larger_inputs_of_code_that_became_cheaper_count_at_what_they_cost() -> None:
    found = findings(
        Made("parse", same(3e4), Change.CHANGED, once),
        Made(
            "scan",
            lambda side, x: (80 if side == BASE else 0.8) * x["length"],
            Change.CHANGED,
            calls=lambda side, n: {"parse": 10},
            inputs=lambda side, n, count, rng: {"length": n * (1 + np.arange(count)) * (20 if side == HEAD else 1)},
        ),
    )
    paid = 0.8 * 20 * (1000 + 3000 + 10000) * (10 * 11 / 2)
    assert named(found, "parse").extra_ns == pytest.approx(paid * (1 - 1 / 20), rel=0.2)
    assert named(found, "scan").verdict is Verdict.IMPROVEMENT


def test_of_two_writers_the_one_that_calls_the_reader_is_first() -> None:
    shared = frozenset({"struct table.size"})
    found = findings(
        Made("count", same(2e4), Change.CHANGED, once, writes=shared),
        Made("grow", same(2e4), Change.CHANGED, once, writes=shared),
        Made("insert", lambda side, x: 400.0 if side == BASE else 9e3, calls=lambda side, n: {"grow": 500}, reads=shared),
    )
    assert ranks(found)[0] == "grow"


def test_added_function_that_costs_more_than_it_replaces_is_first_then_its_caller() -> None:
    found = findings(
        Made("outer", lambda side, x: (100 if side == BASE else 40) * x["n"], Change.CHANGED, once),
        Made("helper", same(lambda x: 260 * x["n"]), Change.ADDED, lambda side, n: {} if side == BASE else {"outer": 1}),
    )
    assert ranks(found) == ["helper", "outer"]


def only_in_head(caller: str) -> Callable[[Side, float], dict[str, float]]:
    return lambda side, n: {} if side == BASE else {caller: 1}


@pytest.mark.parametrize(("caller", "first"), [(Change.AFFECTED, "sanitize"), (Change.CHANGED, "names")])
def test_a_caller_whose_own_text_is_the_same_calls_for_nothing_that_was_added(caller: Change, first: str) -> None:
    """The method of a new base class stands between a method of a class and what is dear, as in zipp 3.19.1."""
    culprits = ("class Directories",) if caller is Change.AFFECTED else ()
    found = findings(
        Made("names", lambda side, x: (20 if side == BASE else 60) * x["n"], caller, once, culprits=culprits),
        Made("names_of_base", same(lambda x: 30 * x["n"]), Change.ADDED, only_in_head("names")),
        Made("sanitize", same(lambda x: 500 * x["n"]), Change.ADDED, only_in_head("names_of_base")),
    )
    assert ranks(found)[0] == first
    assert {"names", "sanitize"} <= set(ranks(found))
    share = named(found, "sanitize").share
    assert share == pytest.approx(500 / 570 if caller is Change.AFFECTED else 250 / 570, rel=0.1)


def test_of_several_callers_those_with_another_text_share_what_an_added_function_costs() -> None:
    found = findings(
        Made("names", same(lambda x: 20 * x["n"]), Change.AFFECTED, once, culprits=("class Directories",)),
        Made("listed", same(lambda x: 20 * x["n"]), Change.CHANGED, once),
        Made("sanitize", same(lambda x: 500 * x["n"]), Change.ADDED, lambda side, n: {} if side == BASE else {"names": 1, "listed": 1}),
    )
    assert set(ranks(found)) == {"listed", "sanitize"}


def test_a_caller_and_what_it_newly_calls_stand_together_before_what_costs_less_than_both() -> None:
    found = findings(
        Made("outer", lambda side, x: (100 if side == BASE else 150) * x["n"], Change.CHANGED, once),
        Made("helper", same(lambda x: 140 * x["n"]), Change.ADDED, lambda side, n: {} if side == BASE else {"outer": 1}),
        Made("besides", lambda side, x: (20 if side == BASE else 155) * x["n"], Change.CHANGED, once),
    )
    assert ranks(found) == ["outer", "helper", "besides"]


@pytest.mark.parametrize(("callee_ns", "says"), [(5e5, "without what the probed callees take, a call takes"), (5e2, "a call takes")])
def test_how_much_longer_a_call_takes_says_where_callees_are_left_out(callee_ns: float, says: str) -> None:
    found = findings(
        Made("f", lambda side, x: 1e5 if side == BASE else 4e5, Change.CHANGED, once),
        Made("callee", same(callee_ns), calls=lambda side, n: {"f": 1}),
    )
    assert say(named(found, "f").causes[0].says).startswith(says)


def test_what_was_added_in_many_parts_is_the_guilt_of_the_change_that_calls_for_them() -> None:
    parts = [f"part{each}" for each in range(30)]
    found = findings(
        Made("outer", same(1e5), Change.CHANGED, once),
        *(
            Made(name, same(4e3), Change.ADDED, lambda side, n, above=above: {} if side == BASE else {above: 1})
            for name, above in zip(parts, ["outer", *parts], strict=False)
        ),
    )
    assert ranks(found)[:1] == ["outer"], say(found.sentence)


def test_removed_cache_is_the_guilt_of_the_changed_caller() -> None:
    found = findings(
        Made("get", same(200.0), Change.CHANGED, lambda side, n: {"main": n}),
        Made("cached", same(50.0), Change.REMOVED, lambda side, n: {"get": n} if side == BASE else {}),
        Made("compute", same(5000.0), calls=lambda side, n: {"cached": 20} if side == BASE else {"get": n}),
    )
    assert ranks(found) == ["get"]


def test_affected_function_is_guilty_beside_an_innocent_changed_body() -> None:
    found = findings(
        Made("show", same(3e4), Change.CHANGED, once),
        Made(
            "hash",
            lambda side, x: (10 if side == BASE else 30) * x["n"],
            Change.AFFECTED,
            lambda s, n: {"main": 100},
            culprits=("macro HASH",),
        ),
    )
    assert ranks(found) == ["hash"]
    assert "macro HASH" in say(named(found, "hash").causes[0].says)
    assert named(found, "show").verdict is Verdict.UNCHANGED


def test_larger_inputs_from_the_workload_are_no_regression() -> None:
    found = findings(
        Made(
            "work",
            same(lambda x: 80 * x["n"]),
            Change.CHANGED,
            lambda side, n: {"main": 3},
            inputs=lambda side, n, count, rng: {"n": np.full(count, n * (2 if side == HEAD else 1))},
        ),
        runs=20,
    )
    work = named(found, "work")
    assert found.verdict is Verdict.UNCHANGED
    assert work.metrics["wall_ns"].mix.value == pytest.approx(2, rel=0.05)
    assert work.metrics["wall_ns"].overall.value == pytest.approx(1, rel=0.05)
    assert say(work.reason).startswith("called with larger inputs (n; expected cost ×2")


def test_changed_function_that_passes_larger_inputs_on_is_guilty() -> None:
    found = findings(
        Made("parse", same(3000.0), Change.CHANGED, lambda side, n: {"main": 10}),
        Made(
            "scan",
            same(lambda x: 8 * x["length"]),
            calls=lambda side, n: {"parse": 10},
            inputs=lambda side, n, count, rng: {"length": np.full(count, n * (10 if side == HEAD else 1))},
        ),
    )
    assert ranks(found) == ["parse"]
    assert named(found, "parse").causes[0].name == "larger-inputs"


def test_larger_stored_state_is_the_guilt_of_who_stores_it() -> None:
    shared = frozenset({"struct list.size"})
    found = findings(
        Made("fill", same(3e4), Change.CHANGED, once, writes=shared),
        Made(
            "walk",
            same(lambda x: 8 * x["list->size"]),
            calls=lambda side, n: {"main": 10},
            inputs=lambda side, n, count, rng: {"list->size": np.full(count, n * (10 if side == HEAD else 1))},
            reads=shared,
            origin=Origin.FIELD,
        ),
    )
    assert ranks(found) == ["fill"]


def test_slower_mode_of_a_flag_is_found_in_its_mode_only() -> None:
    def inputs(side: str, n: float, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"n": np.full(count, n), "mode": (rng.random(count) < 0.2).astype(float)}

    def cost(side: str, x: dict[str, np.ndarray]) -> np.ndarray:
        return np.where(x["mode"] == 1, 5 if side == BASE else 15, 5) * x["n"]

    found = findings(Made("f", cost, Change.CHANGED, lambda side, n: {"main": 100}, inputs))
    metric = named(found, "f").metrics["self_ns"]
    assert metric.stratum == "mode = 1"
    assert metric.ratio.low < 3 < metric.ratio.high
    assert metric.overall.value == pytest.approx(1, abs=0.05)


def test_rare_slow_calls_are_found_in_the_mean() -> None:
    def cost(side: str, x: dict[str, np.ndarray]) -> np.ndarray:
        return np.where(np.arange(len(x["n"])) % 20 == 0, 1.0 if side == BASE else 40.0, 1.0) * 1e4

    found = findings(Made("f", cost, Change.CHANGED, lambda side, n: {"main": 100}))
    assert ranks(found) == ["f"]


def test_what_is_surely_slower_is_told_where_the_time_with_callees_hardly_moved() -> None:
    found = findings(
        Made("outer", lambda side, x: (200 if side == BASE else 300) * x["n"], Change.CHANGED, lambda side, n: {"main": 30}),
        Made("inner", same(lambda x: 2000 * x["n"]), calls=lambda side, n: {"outer": 30}),
        runs=10,
    )
    outer = named(found, "outer")
    assert ranks(found) == ["outer"]
    assert 1 < outer.metrics["wall_ns"].ratio.low < 1.05
    assert outer.metrics["self_ns"].ratio.low > 1.4
    assert outer.rests_on == "self_ns"
    assert leading(outer) is outer.metrics["self_ns"]
    assert "of its own a call" in say(outer.headline)


def test_few_calls_that_grow_by_another_class_are_found_in_the_mean_of_the_dearest_point() -> None:
    """As a parser of values, of which every third has as many parts as the input is long, which no input of it tells."""

    def cost(side: str, x: dict[str, np.ndarray]) -> np.ndarray:
        parts = x["n"][0] * (1 if side == BASE else 1 + x["n"][0] / 10_000)
        return np.where(np.arange(len(x["n"])) % 3 == 2, parts, 2.0) * 1e3

    def inputs(side: str, n: float, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"n": np.full(count, n), "unlike": rng.random(count)}

    found = findings(Made("parse", cost, Change.CHANGED, lambda side, n: {"main": 30}, inputs), runs=10)
    assert ranks(found) == ["parse"]
    metric = named(found, "parse").metrics["self_ns"]
    assert metric.stratum == "mean of all calls at w n=10000"
    assert metric.ratio.low < 2 < metric.ratio.high
    assert re.search(r"3\.\d+ ms became 6\.\d+ ms a call on average at w n=10000 \(×", say(named(found, "parse").headline))
    alike = findings(Made("parse", same(lambda x: cost(BASE, x)), Change.CHANGED, lambda side, n: {"main": 30}, inputs), runs=10)
    assert named(alike, "parse").verdict is Verdict.UNCHANGED


@pytest.mark.parametrize(("long", "dearest"), [((), "10000"), ((10_000,), "3000")])
def test_a_seldom_call_that_grows_in_head_alone_is_found_where_it_takes_most_and_runs_tell(long: tuple[float, ...], dearest: str) -> None:
    def cost(side: str, x: dict[str, np.ndarray]) -> np.ndarray:
        return np.where((np.arange(len(x["n"])) == 7) & (side == HEAD), x["n"] ** 2, 1e3)

    def inputs(side: str, n: float, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"n": np.full(count, n), "unlike": rng.random(count)}

    trimming = Made("trim", cost, Change.CHANGED, lambda side, n: {"main": 200}, inputs)
    found = agreeing(World((Made("main", same(5e4)), trimming), long=long))
    assert ranks(found) == ["trim"]
    assert named(found, "trim").metrics["self_ns"].stratum == f"mean of all calls at w n={dearest}"


def test_deeper_recursion_is_its_own_guilt() -> None:
    found = findings(
        Made("descend", same(500.0), Change.CHANGED, lambda side, n: {"main": 10, "descend": 10 * (20 if side == BASE else n)})
    )
    assert ranks(found) == ["descend"]
    assert named(found, "descend").causes[0].name == "deeper-recursion"


def test_more_calls_of_a_function_that_leads_to_no_further_ones_are_no_deeper_recursion() -> None:
    """As in ape, where a collector runs 14 times as often and then looks at a fifth more objects a call."""
    found = findings(
        Made("driver", same(100.0), Change.CHANGED, lambda side, n: {"main": 10 if side == BASE else 1000}),
        Made("sweep", same(500.0), Change.CHANGED, lambda side, n: {"driver": 10 if side == BASE else 1000}),
        Made("release", same(400.0), calls=lambda side, n: {"sweep": 10 * 107 if side == BASE else 1000 * 129}),
    )
    causes = [cause for each in found.functions for cause in each.causes]
    assert "deeper-recursion" not in {cause.name for cause in causes}
    assert any(say(cause.says).startswith("each call of `sweep` calls `release` 129 times, 107 times before") for cause in causes)


def test_mutual_recursion_blames_the_changed_partner() -> None:
    found = findings(
        Made("odd", same(500.0), Change.CHANGED, lambda side, n: {"main": 10, "even": 10 * (20 if side == BASE else n)}),
        Made("even", same(400.0), calls=lambda side, n: {"odd": 10 * (20 if side == BASE else n)}),
    )
    assert ranks(found) == ["odd"]


def test_calls_within_a_recursion_cost_no_more_than_all_of_them_take() -> None:
    """As in marshmallow, where a list loads its items one by one and no longer all at once: all rates lead round to where they began.

    By these alone, a call more would bring about as many others as the whole run makes.
    """

    def many(side: str, n: float) -> float:
        return n if side == BASE else 8 * n

    found = findings(
        Made("schema", same(500.0), calls=lambda side, n: {"main": 1, "schema": 9 * n if side == BASE else n, "load": many(side, n)}),
        Made("field", same(500.0), calls=lambda side, n: {"schema": 18 * n, "items": many(side, n)}),
        Made("items", same(500.0), Change.CHANGED, lambda side, n: {"field": n}),
        Made("load", same(500.0), calls=lambda side, n: {"field": many(side, n)}),
    )
    more = 13 * 500.0  # ns for each of n: 7 calls of `field` and of `load`, one of `schema` less
    assert ranks(found) == ["items"]
    assert named(found, "items").extra_ns == pytest.approx(more * (1000 + 3000 + 10000), rel=0.1)


def parser(
    asking: Side, asked: Callable[[float], float], below: float, *, change: Change = Change.UNCHANGED, deeper: float = 1
) -> list[Made]:
    """Return functions that call each other for a text, and one that asks them for values on one side, each with so many calls below it.

    In head `item` makes `deeper` times as many calls for the text.
    """
    own = 500.0

    def more(side: Side, n: float) -> float:
        return asked(n) if side is asking else 0.0

    def of_text(side: Side, n: float) -> float:
        return 2 * n * (deeper if side is HEAD else 1)

    return [
        Made("outside", same(5e4), Change.CHANGED, once),
        Made(
            "value",
            same(own),
            calls=lambda side, n: {"main": 1, "item": of_text(side, n) + more(side, n) * below / 2},
            takes=lambda side, n: {"main": own * (1 + 2 * n + of_text(side, n))},
        ),
        Made(
            "item",
            same(own),
            change,
            calls=lambda side, n: {"value": n + more(side, n) * below / 2, "item": n, "outside": more(side, n)},
            takes=lambda side, n: {"outside": own * (1 + below)},
        ),
    ]


@pytest.mark.parametrize(("asked", "below"), [(20, 40), ("n", 0), ("n", 4), ("n", 20)])
@pytest.mark.parametrize("side", Side)
def test_calls_into_a_recursion_cost_what_they_take(side: Side, asked: float | str, below: float) -> None:
    """They go less deep than those for the text, and the functions that call each other do nothing else than before."""

    def often(n: float) -> float:
        return n / 5 if asked == "n" else float(asked)

    found = findings(*parser(side, often, below))
    takes = sum(often(n) * 500.0 * (1 + below) for n in (1000, 3000, 10000))
    assert named(found, "outside").extra_ns == pytest.approx(takes if side is HEAD else -takes, rel=0.05)
    if below:  # without any, they take a twentieth of the run: the smallest effect of interest
        assert found.verdict is (Verdict.REGRESSION if side is HEAD else Verdict.IMPROVEMENT)
        assert ranks(found) == (["outside"] if side is HEAD else [])


@pytest.mark.parametrize("part", [0.1, 0.5, 1.0])
def test_a_recursion_that_goes_deeper_is_told_beside_new_calls_into_it(part: float) -> None:
    found = findings(*parser(HEAD, lambda n: part * n, 4, change=Change.CHANGED, deeper=2))
    assert set(ranks(found)) == {"item", "outside"}
    sizes = (1000, 3000, 10000)
    assert named(found, "outside").extra_ns == pytest.approx(sum(part * n * 500.0 * 5 for n in sizes), rel=0.05)
    assert named(found, "item").extra_ns == pytest.approx(sum(500.0 * 2 * n for n in sizes), rel=0.05)


def test_calls_into_a_recursion_whose_times_are_not_known_cost_no_more_than_the_run() -> None:
    untimed = [replace(each, takes=lambda side, n: {"main": 0.0, "outside": 0.0}) for each in parser(HEAD, lambda n: 20, 4)[1:]]
    found = findings(Made("outside", same(5e4), Change.CHANGED, once), *untimed)
    assert abs(named(found, "outside").extra_ns) < 500.0 * sum(4 * n + 1 for n in (1000, 3000, 10000))


def test_calls_that_moved_out_of_a_recursion_are_no_regression() -> None:
    """Half of what one function asked for in its loop another one asks for now, and one of a hundred more."""

    def moved(side: Side, n: float) -> float:
        return 0.0 if side is BASE else 0.51 * n

    found = findings(
        Made("driver", same(5e4), Change.CHANGED, once),
        Made(
            "walk",
            same(500.0),
            calls=lambda side, n: {"main": 1, "visit": n / 10 if side is BASE else 0.101 * n},
            takes=lambda side, n: {"main": 500 * 1.1 * n if side is BASE else 250 * 1.1 * n},
        ),
        Made(
            "visit",
            same(500.0),
            calls=lambda side, n: {"walk": n if side is BASE else n / 2, "driver": moved(side, n)},
            takes=lambda side, n: {"driver": 550.0},
        ),
    )
    assert found.verdict is Verdict.UNCHANGED
    assert named(found, "driver").extra_ns < 0.02 * sum(500 * 1.1 * n for n in (1000, 3000, 10000))


def test_a_recursion_that_is_entered_elsewhere_and_goes_deeper_is_told() -> None:
    def takes(side: Side, n: float) -> dict[str, float]:
        return {"main": 500.0 * (3 if side is BASE else 5) * n}

    found = findings(
        Made("value", same(500.0), calls=lambda side, n: {"item": (2 if side is BASE else 4) * n, "main": side is BASE}, takes=takes),
        Made("item", same(500.0), Change.CHANGED, lambda side, n: {"value": n, "main": side is HEAD}, takes=takes),
    )
    assert ranks(found) == ["item"]
    assert named(found, "item").extra_ns == pytest.approx(sum(500.0 * 2 * n for n in (1000, 3000, 10000)), rel=0.05)


def test_a_recursion_that_goes_deeper_is_told_where_another_function_calls_it_now() -> None:
    wrapped = parser(HEAD, lambda n: 0, 0, change=Change.CHANGED, deeper=2)
    wrapped[1] = replace(
        wrapped[1],
        calls=lambda side, n: {"main" if side is BASE else "wrapper": 1, "item": 2 * n * (1 if side is BASE else 2)},
        takes=lambda side, n: {},
    )
    found = findings(*wrapped, Made("wrapper", same(1e3), Change.ADDED, lambda side, n: {} if side is BASE else {"main": 1}))
    assert ranks(found)[0] == "item"
    assert named(found, "item").extra_ns == pytest.approx(sum(500.0 * 2 * n for n in (1000, 3000, 10000)), rel=0.05)


def test_calls_that_moved_from_one_caller_to_another_are_no_regression() -> None:
    found = findings(
        Made("first", same(1e4), Change.CHANGED, once),
        Made("second", same(1e4), Change.CHANGED, once),
        Made("work", same(5e3), calls=lambda side, n: {"first": n / 10, "second": 1} if side == BASE else {"first": 1, "second": n / 10}),
    )
    assert found.verdict is Verdict.UNCHANGED


def test_doubled_allocation_is_a_regression_of_that_metric() -> None:
    found = findings(Made("f", same(lambda x: 50 * x["n"]), Change.CHANGED, lambda side, n: {"main": 10}, alloc={BASE: 640, HEAD: 1280}))
    guilty = named(found, "f")
    assert guilty.verdict is Verdict.REGRESSION
    assert guilty.metrics["alloc_bytes"].ratio.value == pytest.approx(2)
    assert guilty.causes[0].name == "more-allocation"
    assert (guilty.rests_on, guilty.chain) == ("alloc_bytes", ())  # the way of time, which did not grow, is not told


def test_one_allocation_more_in_a_run_of_some_milliseconds_is_no_regression() -> None:
    found = findings(Made("f", same(lambda x: 50e3 * x["n"]), Change.CHANGED, once, alloc={BASE: 64.0, HEAD: 96.0}))
    ratio = named(found, "f").metrics["alloc_bytes"].ratio
    assert ratio is not None
    assert ratio.low == pytest.approx(1.5)
    assert named(found, "f").verdict is not Verdict.REGRESSION


def test_headline_of_a_count_names_what_is_counted() -> None:
    found = findings(Made("f", same(lambda x: 50 * x["n"]), Change.CHANGED, lambda side, n: {"main": 10}, alloc={BASE: 640, HEAD: 1280}))
    more = replace(named(found, "f").metrics["alloc_count"], stratum="")
    assert say(cost_changed(more, MetricSpot(10.0, "", None, None), CompareConfig(), is_own=False)).startswith(
        "10 became 20 allocations a call (×2"
    )


def test_a_call_that_allocates_more_is_no_regression_where_others_make_nearly_all_that_a_run_allocates_more() -> None:
    of_a_run = {BASE: 650_000.0, HEAD: 975_000.0}  # sums of callers hold what they call
    functions = (
        Made("main", same(5e4), alloc=of_a_run),
        Made("fill", same(100.0), Change.CHANGED, lambda side, n: {"main": 1000}, alloc={BASE: 640, HEAD: 960}),
        Made("once", same(1e4), Change.CHANGED, once, alloc={BASE: 10_000, HEAD: 15_000}),
    )
    world = World(functions, sizes=(1000, 3000, 10000), runs=6, seed=1)
    found = analyse(world.experiment(), world.samples, CONFIG)
    assert named(found, "fill").verdict is Verdict.REGRESSION
    assert named(found, "once").verdict is not Verdict.REGRESSION


def test_a_caller_is_not_guilty_of_what_a_callee_that_is_guilty_by_time_allocates() -> None:
    """As in ape, whose machine allocates more where it executes, and was also told as heavier where that is called."""
    more = {BASE: 64_000.0, HEAD: 640_000.0}
    found = analyse_all(
        Made("main", same(5e4), alloc=more),
        Made("run", same(1e3), Change.AFFECTED, once, alloc=more),
        Made("execute", lambda side, x: (50 if side == BASE else 200) * x["n"], Change.CHANGED, lambda side, n: {"run": 1}, alloc=more),
    )
    assert ranks(found) == ["execute"]
    assert say(named(found, "run").reason) == "it allocates more only through what it calls"


def test_a_caller_that_allocates_most_itself_stays_guilty_beside_a_callee_that_allocates_some_more() -> None:
    found = analyse_all(
        Made("main", same(5e4), alloc={BASE: 64_000.0, HEAD: 164_000.0}),
        Made("build", same(1e6), Change.CHANGED, once, alloc={BASE: 64_000.0, HEAD: 164_000.0}),
        Made("name", same(1e6), Change.CHANGED, lambda side, n: {"build": 1}, alloc={BASE: 10_000.0, HEAD: 20_000.0}),
    )
    assert {"build", "name"} == set(ranks(found))


def test_of_functions_that_call_each_other_and_allocate_more_one_at_least_is_guilty() -> None:
    """As where a field makes the nodes of a recursive parser larger."""
    more = {BASE: 64_000.0, HEAD: 128_000.0}
    found = analyse_all(
        Made("main", same(5e4), alloc={BASE: 700_000.0, HEAD: 1_400_000.0}),
        Made("value", same(1e4), Change.CHANGED, lambda side, n: {"main": 1, "list": 9}, alloc=more),
        Made("list", same(1e4), Change.CHANGED, lambda side, n: {"value": 9}, alloc=more),
    )
    assert found.verdict is Verdict.REGRESSION
    assert {"value", "list"} >= set(ranks(found)) > set()


def test_unchanged_function_whose_slow_down_is_immaterial_to_the_run_is_no_victim() -> None:
    shared = frozenset({"struct item.next"})
    found = findings(
        Made("append", lambda side, x: (20 if side == BASE else 1000) * x["n"], Change.CHANGED, once, writes=shared),
        Made("print", lambda side, x: 1500.0 if side == BASE else 2700.0, calls=lambda side, n: {"main": 3}, reads=shared),
    )
    assert ranks(found) == ["append"]
    assert named(found, "print").verdict is Verdict.UNCHANGED


def test_allocation_that_cannot_explain_the_time_is_told_as_a_fact_after_the_cause() -> None:
    found = findings(
        Made("f", lambda side, x: (50 if side == BASE else 5000) * x["n"], Change.CHANGED, once, alloc={BASE: 32e3, HEAD: 64e3})
    )
    causes = named(found, "f").causes
    assert [cause.name for cause in causes] == ["more-work", "more-allocation"]
    assert say(causes[0].says).startswith("a call takes ×")
    assert say(causes[1].says) == "it also allocates 64 kB a call, 32 kB before"


def test_allocation_that_grows_with_the_inputs_is_a_cause_with_the_point_it_is_told_of() -> None:
    grown = {BASE: lambda n: 300 * n, HEAD: lambda n: 50 * n**2}
    found = findings(Made("f", lambda side, x: 300 * x["n"] if side == BASE else 50 * x["n"] ** 2, Change.CHANGED, once, alloc=grown))
    causes = [say(cause.says) for cause in named(found, "f").causes]
    assert any(says.startswith("it allocates 5 GB a call at w n=10000, 3 MB before") for says in causes)


def test_time_that_grows_with_a_counter_is_not_put_down_to_the_machine() -> None:
    def cost(side: str, x: Columns) -> np.ndarray:
        return (50 if side == BASE else 5000) * x["n"]

    untold = {BASE: "f() { same }", HEAD: "f() { same }"}
    beside = named(findings(Made("f", cost, Change.CHANGED, once, alloc={BASE: 32e3, HEAD: 33e3}, text=untold)), "f")
    assert [cause.name for cause in beside.causes] == ["more-allocation"]
    assert "a call than before, ×1.03, which does not explain all of the time" in say(beside.causes[0].says)
    alone = named(findings(Made("f", cost, Change.CHANGED, once, text=untold)), "f")
    assert [cause.name for cause in alone.causes] == ["time-only"]
    assert say(alone.causes[0].says) == "its time grew and nothing that was counted did: more work, machine, layout or I/O"


@pytest.mark.parametrize(
    ("culprits", "reasons", "says"),
    [
        (("struct s",), ("uses struct s, whose size changed",), "its text is the same, but it uses struct s, whose size changed"),
        (
            ("m",),
            ("moved from a.c", "expands m, which is new"),
            "its text is the same, but it was moved from a.c; it expands m, which is new",
        ),
        ((), ("its text is the same; the rest was not compared",), "its text is the same; the rest was not compared"),
        (("struct s",), (), "its text is the same, but struct s changed"),
    ],
)
def test_what_a_function_depends_on_is_said_once(culprits: tuple[str, ...], reasons: tuple[str, ...], says: str) -> None:
    info = FunctionInfo(1, "f", "a.c", 1, "c", Change.AFFECTED, reasons=reasons_of(reasons), culprits=entities(culprits))
    assert say(depends(info)) == says


def test_a_cause_cites_no_more_of_a_line_than_a_sentence_holds() -> None:
    line = "for (int i = 0; i < n; i++) { total += first[i] * second[i]; if (total > limit) total -= limit; }"
    made = Made("f", lambda side, x: (5 if side == BASE else 12) * x["n"], Change.CHANGED, once, text=text(base="f();", head=line))
    says = say(named(findings(made), "f").causes[0].says)
    assert "`for (int i = 0; i < n; i++) { total += first[i] *…`)" in says


def test_fractions_of_a_byte_a_call_are_neither_cause_nor_fact() -> None:
    found = findings(
        Made("f", lambda side, x: (5 if side == BASE else 12) * x["n"], Change.CHANGED, once, alloc={BASE: 0.127, HEAD: 0.621})
    )
    assert [cause.name for cause in named(found, "f").causes] == ["more-work"]


def test_allocation_in_proportion_to_the_time_is_its_cause() -> None:
    found = findings(Made("f", lambda side, x: 1e4 if side == BASE else 3e5, Change.CHANGED, once, alloc={BASE: 4e3, HEAD: 1.2e6}))
    assert named(found, "f").causes[0].name == "more-allocation"


def test_calls_that_unchanged_code_makes_more_often_through_data_are_told() -> None:
    shared = frozenset({"struct table.size"})
    found = findings(
        Made("resize", same(2e3), Change.CHANGED, lambda side, n: {"rehash": 30 if side == BASE else 1000}, writes=shared),
        Made("insert", same(2e4), calls=lambda side, n: {"main": 50}, reads=shared),
        Made("rehash", same(3e3), calls=lambda side, n: {"insert": 30 if side == BASE else 1000}),
    )
    guilty = named(found, "resize")
    assert ranks(found) == ["resize"]
    assert guilty.causes[0].name == "more-calls"
    assert say(guilty.causes[0].says).startswith(
        "it writes `struct table.size`, and the unchanged `insert` calls `rehash` 1000 times in a run of w n=10000, 30 times before"
    )
    calls = "`insert` (unchanged) calls `rehash` (unchanged) 1000 times in a run of w n=10000, 30 times before: "
    assert say(guilty.chain[1]).startswith(calls)


def test_a_cache_that_is_gone_from_around_a_function_is_not_told_as_another_value() -> None:
    lines = text(base="@cache\ndef lower(word):\n    return word.lower()", head="def lower(word):\n    return word.lower()")
    found = findings(
        Made("select", same(2e4), calls=lambda side, n: {"main": 50}),
        Made(
            "lower",
            same(3e3),
            Change.CHANGED,
            lambda side, n: {"select": 30 if side == BASE else 1000},
            reasons=("decorators changed",),
            text=lines,
        ),
    )
    guilty = named(found, "lower")
    assert ranks(found) == ["lower"]
    assert say(guilty.causes[0].says).startswith("its decorators changed, and the unchanged `select` calls it 1000 times in a run")


@pytest.mark.parametrize(("culprits", "first"), [((), "callee"), (("macro LIMIT",), "caller")])
def test_whether_a_caller_is_known_to_differ_decides_who_is_behind_its_calls(culprits: tuple[str, ...], first: str) -> None:
    found = findings(
        Made("caller", same(2e4), Change.AFFECTED, lambda side, n: {"main": 50}, culprits=culprits),
        Made("callee", same(3e3), Change.CHANGED, lambda side, n: {"caller": 30 if side == BASE else 1000}),
    )
    assert ranks(found) == [first]


def test_what_explains_more_of_the_cost_is_told_first() -> None:
    found = findings(
        Made("f", lambda side, x: 2e5 if side == BASE else 5e5, Change.CHANGED, once),
        Made("g", same(2e3), calls=lambda side, n: {"f": 10 if side == BASE else 500}),
    )
    assert [cause.name for cause in named(found, "f").causes] == ["more-calls", "more-work"]


def test_times_are_words_where_a_person_would_use_them() -> None:
    assert [often(count) for count in (0.0, 1.0, 0.99999, 2.0, 8.562e-06)] == [
        "never",
        "once",
        "once",
        "2 times",
        "less than 0.001 times",
    ]


def test_other_slower_functions_are_counted_in_words() -> None:
    def slower(name: str, by: float) -> Made:
        return Made(name, lambda side, x: (20 if side == BASE else by) * x["n"], Change.CHANGED, once)

    assert say(findings(slower("a", 90), slower("b", 60)).sentence).endswith("; 1 more function is slower")
    assert say(findings(slower("a", 90), slower("b", 60), slower("c", 50)).sentence).endswith("; 2 more functions are slower")


def test_calls_too_short_to_time_are_told_by_what_a_run_of_them_takes() -> None:
    found = findings(Made("append", lambda side, x: 0.8 if side == BASE else 2 * x["n"], Change.CHANGED, lambda side, n: {"main": n}))
    guilty = named(found, "append")
    assert found.verdict is Verdict.REGRESSION
    assert say(guilty.headline).startswith("`append` takes ")
    assert " ms in all its 10,000 calls of a run of w n=10000, less than 20 µs before; cause: " in say(guilty.headline)
    assert "×" not in say(guilty.headline)
    assert "×" not in say(guilty.chain[0])


def test_calls_that_fall_into_groups_of_cost_are_no_change_of_growth() -> None:
    def cost(side: str, x: dict[str, np.ndarray]) -> np.ndarray:
        slow = 1.0 if side == BASE else np.where(np.arange(len(x["n"])) % 2 == 0, 2.0, 6.0)
        return 5e3 * slow * np.ones(len(x["n"]))

    found = findings(Made("f", cost, Change.CHANGED, lambda side, n: {"main": 100}))
    assert named(found, "f").verdict is Verdict.REGRESSION
    assert all("mixture" not in say(cause.says) for cause in named(found, "f").causes)


def test_a_cost_that_grows_at_two_speeds_is_told_with_its_growth() -> None:
    def cost(side: str, x: Columns) -> np.ndarray:
        speed = np.where(np.arange(len(x["n"])) % 3 == 0, 1.0, 2.0)
        return speed * (4e3 if side == BASE else 200 * x["n"])

    def inputs(side: str, n: float, count: int, rng: np.random.Generator) -> Columns:
        return {"n": rng.integers(1, int(n), count) + 0.0}

    guilty = named(findings(Made("f", cost, Change.CHANGED, lambda side, n: {"main": 100}, inputs), sizes=(100, 300, 1000)), "f")
    wall = guilty.metrics["wall_ns"]
    assert wall.head.cost_class is CostClass.MIXTURE
    assert classes(wall) == "constant → linear"
    assert say(guilty.causes[0].says).startswith("its cost was constant in n and is now linear")


def test_headline_names_no_other_growth_than_the_class() -> None:
    found = findings(
        Made("f", lambda side, x: 80 * x["n"] if side == BASE else 0.004 * x["n"] ** 2.4, Change.CHANGED, once),
        sizes=(1000, 2000, 4000, 8000),
    )
    guilty = named(found, "f")
    assert guilty.metrics["wall_ns"].head.cost_class is CostClass.QUADRATIC
    assert "³" not in say(guilty.headline)


def test_tiny_function_is_no_regression_whatever_its_ratio() -> None:
    found = findings(
        Made("work", same(lambda x: 500 * x["n"]), calls=once),
        Made("f", lambda side, x: 30.0 if side == BASE else 90.0, Change.CHANGED, lambda side, n: {"main": 2}),
    )
    assert found.verdict is Verdict.UNCHANGED


def test_unchanged_function_that_is_slower_without_any_change_is_not_attributed() -> None:
    found = findings(Made("work", lambda side, x: (500 if side == BASE else 900) * x["n"], calls=once))
    assert found.verdict is Verdict.UNCHANGED
    assert [note.slug for note in map(noted, found.notes)] == ["unattributed"]


def test_layout_shift_of_unchanged_code_is_nobodys_guilt() -> None:
    shared = frozenset({"struct s.a"})
    found = findings(
        Made("setup", same(2e4), Change.CHANGED, once, writes=shared),
        Made("work", lambda side, x: (50 if side == BASE else 55) * x["n"], calls=lambda side, n: {"main": 10}, reads=shared),
    )
    assert found.verdict is Verdict.UNCHANGED


def test_improvement() -> None:
    found = findings(Made("f", lambda side, x: (50 if side == BASE else 20) * x["n"], Change.CHANGED, lambda side, n: {"main": 10}))
    assert found.verdict is Verdict.IMPROVEMENT
    assert named(found, "f").extra_ns < 0
    assert named(found, "f").rank is None


@pytest.mark.parametrize("loads", [True, False])
def test_what_another_module_is_the_first_to_load_is_no_regression_of_its(loads: bool) -> None:
    found = findings(
        Made("one.<module>", lambda side, x: 4e6 if side == BASE else 2e5, Change.CHANGED, once, loads=loads),
        Made("other.<module>", lambda side, x: 2e6 if side == BASE else 5.8e6, Change.CHANGED, once, loads=loads),
    )
    assert (named(found, "other.<module>").verdict is Verdict.REGRESSION) is not loads


@pytest.mark.parametrize(("loads", "extra_ns", "slower"), [(True, 3e5, False), (True, 3e6, True), (False, 3e5, True)])
def test_what_is_loaded_once_is_slower_where_a_run_feels_it(loads: bool, extra_ns: float, slower: bool) -> None:
    found = findings(
        Made("work", same(2e7), calls=once),
        Made("names.<module>", lambda side, x: 2e5 + (extra_ns if side == HEAD else 0), Change.CHANGED, once, loads=loads),
    )
    function = named(found, "names.<module>")
    assert (function.verdict is Verdict.REGRESSION) is slower
    assert say(function.reason).endswith(" µs more, once in a process, and less than 5 % of any run") is not slower


def test_two_regressions_are_ranked_by_what_they_cost() -> None:
    found = findings(
        Made("small", lambda side, x: (20 if side == BASE else 40) * x["n"], Change.CHANGED, once),
        Made("large", lambda side, x: (20 if side == BASE else 120) * x["n"], Change.CHANGED, once),
    )
    assert ranks(found) == ["large", "small"]
    assert named(found, "large").share == pytest.approx(100 / 120, abs=0.03)


def test_a_function_that_only_head_has_shows_what_it_costs() -> None:
    found = findings(
        Made("outer", same(1e4), Change.CHANGED, once),
        Made("helper", same(lambda x: 260 * x["n"]), Change.ADDED, lambda side, n: {} if side == BASE else {"outer": 1}),
    )
    cost = named(found, "helper").metrics["self_ns"]
    assert (cost.base, cost.ratio) == (None, None)
    assert cost.head is not None
    assert cost.head.cost_class is CostClass.LINEAR


@pytest.mark.parametrize(("left", "is_guilty"), [(0.0, True), (-64_000.0, False)])
def test_allocations_that_moved_from_one_function_to_another_are_no_regression(left: float, is_guilty: bool) -> None:
    """`takes` allocates more; `main`, whose allocations include its callees', has as much more, or what another one allocated before."""
    more = 64_000.0
    takes = Made("takes", same(1e6), Change.CHANGED, calls=lambda side, n: {"main": 1}, alloc={BASE: 64_000.0, HEAD: 64_000.0 + more})
    main = Made("main", same(1e5), alloc={BASE: 640_000.0, HEAD: 640_000.0 + more + left})
    world = World((main, takes), runs=8)
    found = analyse(world.experiment(), world.samples, CompareConfig())
    assert (named(found, "takes").verdict is Verdict.REGRESSION) is is_guilty


def test_typical_inputs_are_those_of_a_call_that_was_made() -> None:
    world = World((Made("main", same(5e4)), Made("f", same(1e5), Change.CHANGED, once)), sizes=(1000, 3000, 10_000, 30_000))
    table = world.samples(2, BASE)
    assert table is not None
    assert typical_inputs(table, slice(None)) == {"n": 3000.0}
