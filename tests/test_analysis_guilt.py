"""Guilt that goes by returned values, by new calls and new memory, and by exact counts; its interval. Each rule with its innocent twin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from differing import entities
from experiments import BASE, HEAD, Columns, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.blame.links import is_laid_out_anew
from perfdiff.analysis.blame.resampling import DRAWS, how_often_first, intervals
from perfdiff.analysis.blame.texts import frees, returned_words
from perfdiff.analysis.counts.suspects import work_by_counts
from perfdiff.analysis.findings import Findings, FunctionFinding, Verdict
from perfdiff.analysis.sums.ledger import open_counts, open_ledger
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, FunctionInfo, Side, Source
from perfdiff.report.sentences.catalogue import say
from test_analysis_counts import counted

MAIN = Made("main", same(5e4))
HASH = {BASE: "hash(s) {\n  h = h * 31 + *s;\n  return h;\n}", HEAD: "hash(s) {\n  h = h + *s;\n  return h;\n}"}
STATUS = {BASE: "hash(s) {\n  check(s);\n  return 0;\n}", HEAD: "hash(s) {\n  check(s, 1);\n  return 0;\n}"}


def once(side: str, n: float) -> dict[str, float]:
    return {"main": 1}


def slower(side: str, x: Columns) -> np.ndarray:
    return (20 if side == BASE else 90) * x["n"]


def found_in(*functions: Made, main: Made = MAIN) -> Findings:
    world = World((main, *functions))
    return analyse(world.experiment(), world.samples, CompareConfig())


def named(found: Findings, name: str) -> FunctionFinding:
    return next(each for each in found.functions if each.info.name == name)


def ranks(found: Findings) -> list[str]:
    ranked = [each for each in found.functions if each.rank is not None]
    return [each.info.name for each in sorted(ranked, key=lambda each: each.rank)]


def lookup(hash_text: Mapping[Side, str]) -> Findings:
    """Return what is found where an unchanged caller of a changed hash is slower, and another change writes a field that it reads."""
    shared = frozenset({"struct table.count"})
    return found_in(
        Made("find", slower, calls=once, reads=shared),
        Made("hash", same(4e4), Change.CHANGED, lambda side, n: {"find": 10}, text=hash_text),
        Made("note", same(4e4), Change.CHANGED, lambda side, n: {"find": 10}, writes=shared),
    )


def test_a_returned_value_that_changed_comes_before_a_field_that_is_written() -> None:
    found = lookup(HASH)
    assert ranks(found)[0] == "hash"
    assert named(found, "hash").causes[0].name == "returned-values"
    assert say(named(found, "hash").chain[0]) == "`hash` (changed) returns other values"


@pytest.mark.parametrize(("calls", "told"), [(10, "its change adds"), (400, "µs became")], ids=["elsewhere", "in its own calls"])
def test_a_ratio_of_a_guilty_functions_own_calls_is_told_where_most_of_the_cost_is_theirs(calls: int, told: str) -> None:
    """A hash that takes 15 % more itself, and whose values make its caller much slower."""

    def own(side: Side, x: Columns) -> np.ndarray | float:
        return 4e4 if side is BASE else 4.6e4

    found = found_in(Made("find", slower, calls=once), Made("hash", own, Change.CHANGED, lambda side, n: {"find": calls}, text=HASH))
    sentence = say(named(found, "hash").headline)
    assert ranks(found)[0] == "hash"
    assert told in sentence
    assert ("ms (95 % CI " in sentence) is (calls == 10), "what the change adds has an interval as well"
    assert "95 % CI " in sentence


def test_an_improvement_is_told_by_the_ratio_of_its_calls() -> None:
    def faster(side: Side, x: Columns) -> np.ndarray | float:
        return 4e6 if side is BASE else 2e6

    found = named(found_in(Made("sort", faster, Change.CHANGED, calls=once)), "sort")
    assert found.verdict is Verdict.IMPROVEMENT
    assert "became" in say(found.headline)
    assert "CI" in say(found.headline)


def test_a_function_that_returns_a_mere_status_is_not_suspected_of_it() -> None:
    assert ranks(lookup(STATUS))[0] == "note"


@pytest.mark.parametrize(
    ("line", "first"), [("    total += copy.length;", "note"), ("    copy.length += total;", "hash"), ("    size = 3;", "hash")]
)
def test_a_change_that_only_sets_aside_what_nothing_else_reads_returns_no_other_value(line: str, first: str) -> None:
    before = "byte[] hash(String of) {\n    copy = bytes(of, size);\n    return copy;\n}"
    after = before.replace("    return", f"{line}\n    return")
    assert ranks(lookup({BASE: after, HEAD: before}))[0] == first
    assert ranks(lookup({BASE: before, HEAD: after}))[0] == first


def test_a_value_handed_on_by_unchanged_code_reaches_the_function_beside_it() -> None:
    found = found_in(
        Made("intern", same(2e4), calls=once),
        Made("hash", same(4e4), Change.CHANGED, lambda side, n: {"intern": 10}, text=HASH),
        Made("seek", slower, calls=lambda side, n: {"intern": 10}),
    )
    assert ranks(found) == ["hash", "seek"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [(HASH, ["hash", "seek"]), (STATUS, []), ({BASE: "f(s) {\n  g(s);\n  return h;\n}", HEAD: "f(s) {\n  return h;\n}"}, [])],
)
def test_a_value_handed_down_twice_reaches_the_function_if_the_change_touches_it(text: Mapping[Side, str], expected: list[str]) -> None:
    found = found_in(
        Made("intern", same(2e4), calls=once),
        Made("hash", same(4e4), Change.CHANGED, lambda side, n: {"intern": 10}, text=text),
        Made("look", same(2e4), calls=lambda side, n: {"intern": 10}),
        Made("seek", slower, calls=lambda side, n: {"look": 10}),
    )
    assert ranks(found) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(size):\n    if bad:\n        return None\n    return hash % size\n\nother", {"hash", "size"}),
        ("def f(table):\n    return [\n        (found,)\n        for found in table\n    ]\nother", {"found", "table"}),
        ("def f():\n    return not True\n", set()),
        ("def f():\n    return", set()),
        ("int f()\n{\n  return one +\n    other;\n}", {"one", "other"}),
        ("f() { return hash % size; }", {"hash", "size"}),
        ("f() { return NULL; }", set()),
        ("f() { if (bad) return -1; return 0; }", set()),
        ("f() { return true; }", set()),
        ("f() { return; }", set()),
        ("f() { work(); }", set()),
        ("f() { if (bad) return ERROR; return node->next; }", {"node", "next"}),
    ],
)
def test_names_in_what_is_returned_are_those_of_values_not_of_statuses(text: str, names: set[str]) -> None:
    assert returned_words(FunctionInfo(1, "f", "a.c", 1, "c", Change.CHANGED, head=Source("a.c", 1, text))) == names


BOX = ("struct box",)


def interpreter(maker: Change, *, new: bool) -> Findings:
    """Return what is found where a constructor, laid out anew, is called far more often or as often, and a collector runs because of it."""
    calls = {BASE: 20.0, HEAD: 4000.0 if new else 20.0}
    dear = 4.0 if new else 1.0

    def make(side: str, x: Columns) -> float:
        return 900.0 * (dear if side == HEAD else 1.0)

    return found_in(
        Made("number", same(2e4), maker, once),
        Made("make", make, Change.AFFECTED, lambda side, n: {"number": calls[side]}, culprits=BOX),
        Made("sweep", same(3e4), Change.AFFECTED, lambda side, n: {"make": 40} if side == HEAD and new else {}, culprits=BOX),
    )


def test_who_makes_calls_that_nobody_made_before_is_guilty_of_all_that_they_cost() -> None:
    found = interpreter(Change.CHANGED, new=True)
    assert ranks(found) == ["number"]
    guilty = named(found, "number")
    assert guilty.extra_ns == pytest.approx(3 * (4000 * 3600 + 40 * 3e4), rel=0.15)
    assert guilty.causes[0].name == "more-calls"


def test_nobody_is_guilty_of_calls_that_are_not_new() -> None:
    assert interpreter(Change.CHANGED, new=False).verdict is Verdict.UNCHANGED


def test_of_new_calls_that_no_change_makes_the_types_layout_stays_guilty() -> None:
    assert ranks(interpreter(Change.CALLER, new=True))[0] == "make"


@pytest.mark.parametrize(
    ("change", "culprits", "text", "expected"),
    [
        (Change.AFFECTED, BOX, "f() { g(); }", True),
        (Change.AFFECTED, BOX, "f() { return malloc(sizeof(*box)); }", True),
        (Change.AFFECTED, BOX, "f() { for (i = 0; i < CHUNK / sizeof(*box); i++) g(); }", False),
        (Change.AFFECTED, ("struct box", "macro N"), "f() { g(); }", False),
        (Change.CHANGED, BOX, "f() { g(); }", False),
        (Change.AFFECTED, (), "f() { g(); }", False),
    ],
)
def test_only_types_of_another_size_are_mere_layout(change: Change, culprits: tuple[str, ...], text: str, expected: bool) -> None:
    source = Source("a.c", 1, text)
    assert is_laid_out_anew(FunctionInfo(1, "f", "a.c", 1, "c", change, culprits=entities(culprits), base=source, head=source)) is expected


def collector(name: str, more: float) -> Findings:
    """Return what is found where a function gets slower, while a change in another branch allocates `more` times as much."""
    bytes_of_a_run = {BASE: 64e3, HEAD: 64e3 * more}
    return found_in(
        Made(
            "parse",
            same(3e4),
            Change.CHANGED,
            lambda side, n: {"main": 10},
            alloc={side: each / 10 for side, each in bytes_of_a_run.items()},
        ),
        Made("log", same(3e4), Change.CHANGED, lambda side, n: {"main": 10}),
        Made(name, slower, calls=once),
        main=replace(MAIN, alloc=bytes_of_a_run),
    )


def test_what_is_freed_later_is_put_down_to_who_allocates_more() -> None:
    found = collector("sweep", 3.0)
    guilty = named(found, "parse")
    assert ranks(found) == ["parse", "sweep"]
    assert guilty.extra_ns == pytest.approx(70 * 14000, rel=0.2)
    assert "which frees it" in " ".join(say(cause.says) for cause in guilty.causes)
    assert named(found, "log").verdict is Verdict.UNCHANGED


@pytest.mark.parametrize(("name", "more"), [("sweep", 1.05), ("walk", 3.0)])
def test_little_more_memory_or_code_that_frees_none_is_put_down_to_no_allocation(name: str, more: float) -> None:
    found = collector(name, more)
    assert named(found, "parse").extra_ns == 0
    assert "sweep" not in ranks(found)


def test_a_text_that_frees_is_known_by_its_words() -> None:
    info = FunctionInfo(1, "f", "a.c", 1, "c", Change.UNCHANGED, base=Source("a.c", 1, "f(x) { free(x); }"))
    assert frees(info)
    assert not frees(replace(info, base=Source("a.c", 1, "f(x) { use(x); }")))


CALLS = 2e6


def tiny(*, atomics: float = 0.0, blocks: float = 1.0, whole: float = 1.0, moved: float = 0.0, rounds: int = 2) -> Findings:
    """Return what is found of a changed function of a nanosecond: counts a call in head, how much slower whole runs are.

    `moved` blocks a call are those that its caller executes less.
    """
    experiment, world = tiny_world(atomics, blocks, whole, moved, rounds)
    return analyse(experiment, world.samples, CompareConfig())


def tiny_world(atomics: float, blocks: float, whole: float, moved: float, rounds: int) -> tuple:
    retain = Made("retain", same(1.0), Change.CHANGED, lambda side, n: {"visit": CALLS})
    visit = Made("visit", same(2e7), calls=lambda side, n: {"": 1})
    noise = Noise(run=0.01, function=0.01)
    world = World((visit, retain), runs=6, noise=noise, plain=lambda side: 2e7 * (whole if side is HEAD else 1.0))

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> dict[str, float]:
        grown = side is HEAD
        if name == "retain":
            return {"blocks": CALLS * (blocks if grown else 1.0), "atomics": CALLS * (atomics if grown else 0.0)}
        return {"blocks": CALLS * (10 - (moved if grown else 0.0)), "atomics": 0.0}

    return counted(world, counts, rounds=rounds), world


def test_atomic_operations_of_calls_too_short_to_be_timed_are_a_regression_where_whole_runs_are_slower() -> None:
    found = tiny(atomics=1.0, whole=1.3)
    guilty = named(found, "retain")
    assert (found.verdict, guilty.rank) == (Verdict.REGRESSION, 1)
    assert guilty.causes[0].name == "atomic-operations"
    assert guilty.extra_ns == pytest.approx(3 * CALLS * 1.5)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ({"blocks": 7.0, "whole": 1.3}, Verdict.REGRESSION),
        ({"blocks": 1.3, "whole": 1.0}, Verdict.UNCHANGED),  # what a rewrite makes
        ({"blocks": 7.0, "whole": 1.0}, Verdict.UNCHANGED),  # whole runs exclude it
        ({"atomics": 1.0, "whole": 1.0}, Verdict.UNCHANGED),
    ],
)
def test_counts_alone_prove_what_no_rewrite_makes_and_whole_runs_do_not_exclude(what: dict[str, float], expected: Verdict) -> None:
    assert named(tiny(**what), "retain").verdict is expected


@pytest.mark.parametrize(("blocks", "is_named"), [(1.2, True), (1.05, False)])
def test_the_only_function_that_executes_more_is_named_where_that_could_explain_slower_runs(blocks: float, is_named: bool) -> None:
    found = tiny(blocks=blocks, whole=1.3)  # 400,000 blocks more take 0.4 % of a run at least, a third of the slow-down at most
    assert (named(found, "retain").rank == 1) is is_named
    assert found.verdict is Verdict.REGRESSION


def test_work_that_moved_between_functions_is_proof_against_nobody() -> None:
    assert named(tiny(blocks=7.0, moved=6.0, whole=1.1), "retain").verdict is not Verdict.REGRESSION


def test_counts_of_a_single_run_order_suspects_and_prove_nothing() -> None:
    experiment, world = tiny_world(1.0, 1.0, 1.3, 0.0, 1)
    counts = open_counts(experiment)
    assert counts is not None
    suspects = work_by_counts(counts, open_ledger(experiment), experiment.functions, {})
    assert [each.name for each in suspects] == ["retain"]
    assert say(suspects[0].says) == "executes 6,000,000 more atomic operations in one run of each point"
    assert named(analyse(experiment, world.samples, CompareConfig()), "retain").verdict is not Verdict.REGRESSION


@pytest.mark.parametrize(
    ("fast", "slow", "expected"),
    [(Change.REMOVED, Change.ADDED, ["slow"]), (Change.UNCHANGED, Change.UNCHANGED, ["read"])],
    ids=["replaced", "chosen"],
)
def test_what_a_callee_executes_is_its_own_if_it_is_new_and_its_caller_s_if_it_was_there(
    fast: Change, slow: Change, expected: list[str]
) -> None:
    def parts(side: Side, n: float) -> Mapping[str, float]:
        return {"read": CALLS} if side is BASE else {}

    def others(side: Side, n: float) -> Mapping[str, float]:
        return {"read": CALLS} if side is HEAD else {}

    read = Made("read", same(1e3), Change.CHANGED, once)
    world = World((MAIN, read, Made("fast", same(1.0), fast, parts), Made("slow", same(5.0), slow, others)), runs=5)
    blocks = {"main": 1.0, "read": CALLS, "fast": CALLS, "slow": 20 * CALLS}
    experiment = counted(world, lambda name, side, n, rng: {"blocks": blocks[name], "atomics": 0.0}, rounds=2)
    counts = open_counts(experiment)
    assert counts is not None
    suspects = work_by_counts(counts, open_ledger(experiment), experiment.functions, {})
    assert [each.name for each in suspects if each.total_ns > 0] == expected
    assert " more " in say(suspects[0].says)


def test_extra_cost_has_an_interval_that_holds_the_truth_and_a_place() -> None:
    truth, held = 70 * 14000, 0
    for seed in range(10):
        world = World((MAIN, Made("f", slower, Change.CHANGED, once)), seed=seed, noise=Noise(run=0.05, function=0.05))
        guilty = named(analyse(world.experiment(), world.samples, CompareConfig()), "f")
        low, high = guilty.extra_ci_ns
        assert low < guilty.extra_ns < high
        assert guilty.first == 1.0
        held += low < truth < high
    assert held >= 8


def test_intervals_are_wider_for_few_blocks_and_say_who_is_first() -> None:
    rng = np.random.default_rng(3)
    draws = {1: rng.normal(10, 1, (DRAWS, 1)), 2: rng.normal(9, 1, (DRAWS, 1)), 3: rng.normal(2, 1, (DRAWS, 1))}
    few, many = (intervals(draws, blocks, 0.95) for blocks in (5, 100))
    assert few[1].total[0] < many[1].total[0] < 10 < many[1].total[1] < few[1].total[1]
    first = how_often_first(many)
    assert 0.6 < first[1] < 0.9
    assert first[3] == 0
    assert sum(first.values()) == pytest.approx(1)


def dearer_at_small_inputs(factor: float) -> Made:
    def cost(side: str, x: Columns) -> np.ndarray:
        return np.where(x["n"] < 2000, 1.0 if side == BASE else factor, 1.0 if side == BASE else 0.97) * 200 * x["n"]

    return Made("work", cost, Change.CHANGED, lambda side, n: {"main": 20})


def test_the_only_slower_function_is_told_although_no_extra_cost_of_a_run_is_put_down_to_it() -> None:
    world = World((MAIN, dearer_at_small_inputs(1.04)), plain=lambda side: 2e7 * (1.3 if side == HEAD else 1.0))
    found = named(analyse(world.experiment(), world.samples, CompareConfig()), "work")
    assert found.verdict is Verdict.REGRESSION
    assert say(found.reason) == "whole runs are slower, and it is the only changed function whose own calls are"
    assert found.causes


@pytest.mark.parametrize(("met", "guilty"), [(2, []), (3, ["trim"])])
def test_a_call_that_three_runs_of_a_side_recorded_tells_where_whole_runs_are_slower(met: int, guilty: list[str]) -> None:
    """As in a page of many short texts and a long one, of which few calls are timed."""
    recorded = dict.fromkeys(Side, 0)

    def texts(side: Side, n: float, count: int, rng: np.random.Generator) -> Columns:
        recorded[side] += 1
        return {"len(text)": np.where((np.arange(count) == 9) & (recorded[side] <= met), 1e5, 10.0)}

    def cost(side: Side, x: Columns) -> np.ndarray:
        return np.where(x["len(text)"] > 100, 2e3 if side == BASE else 2e6, 500.0)

    trim = Made("trim", cost, Change.CHANGED, lambda side, n: {"main": 40}, texts)
    world = World((MAIN, trim), sizes=(1e4,), runs=5, plain=lambda side: 2e7 * (1.3 if side == HEAD else 1.0))
    assert ranks(analyse(world.experiment(), world.samples, CompareConfig())) == guilty


@pytest.mark.parametrize(("blocks", "guilty"), [(8e5, "work"), (5e6, "key")])
def test_who_is_slower_comes_before_who_executes_more_unless_that_surely_takes_as_much(blocks: float, guilty: str) -> None:
    """Of a run of 20 ms that became 26 ms, blocks take 0.16 ms at least, and may explain the rest; or 1 ms at least."""
    key = Made("key", same(50.0), Change.CHANGED, lambda side, n: {"main": 20})
    functions, quiet = (MAIN, dearer_at_small_inputs(1.06), key), Noise(run=0.005, function=0.005)
    world = World(functions, noise=quiet, plain=lambda side: 2e7 * (1.3 if side == HEAD else 1.0))
    more = {("key", HEAD): blocks}
    experiment = counted(world, lambda name, side, n, rng: {"blocks": 2e7 + more.get((name, side), 0.0)}, rounds=2)
    assert ranks(analyse(experiment, world.samples, CompareConfig()))[:1] == [guilty]


def hashed(alike: float) -> Findings:
    """Return what is found where a changed function newly calls an unchanged one, with an argument that base never had."""

    def calls(side: Side, n: float) -> dict[str, float]:
        return {"method": 200, "typed": 200 if side is HEAD else 0}

    def given(side: Side, n: float, count: int, rng: np.random.Generator) -> Columns:
        return {"len(kwargs)": (np.arange(count) % 2) * float(side is HEAD)}

    def cost(side: Side, x: Columns) -> np.ndarray:
        return np.where(x["len(kwargs)"] > 0, 8e3, 2e3 * (alike if side is HEAD else 1.0))

    return found_in(
        Made(
            "method",
            same(1e3),
            calls=lambda side, n: {"main": 200},
            text={BASE: "m() { return hashed(); }", HEAD: "m() { return hashed(); }"},
        ),
        Made(
            "typed",
            same(4e3),
            Change.CHANGED,
            lambda side, n: {"main": 200},
            text={BASE: "t() { return 1; }", HEAD: "t() { return hashed(1); }"},
        ),
        Made("hashed", cost, calls=calls, inputs=given),
    )


def test_calls_with_arguments_that_base_never_had_make_no_unchanged_function_slower() -> None:
    found = hashed(1.0)
    assert ranks(found) == ["typed"]
    typed, unchanged = named(found, "typed"), named(found, "hashed")
    assert [cause.name for cause in typed.causes] == ["more-calls"]
    assert say(typed.causes[0].says).startswith("each call of `typed` calls `hashed` once, never before")
    assert typed.extra_ns == pytest.approx(3 * 200 * 8e3, rel=0.05), "what the new calls cost with these arguments"
    assert unchanged.verdict is Verdict.UNCHANGED
    assert unchanged.metrics["self_ns"].ratio.high < 1.05


def test_calls_with_the_arguments_of_base_are_compared_all_the_same() -> None:
    found = hashed(1.5)
    assert named(found, "hashed").verdict is Verdict.REGRESSION
    assert named(found, "hashed").metrics["self_ns"].ratio.value == pytest.approx(1.5, rel=0.05)


def test_calls_that_two_ways_lead_to_are_told_once_with_all_that_they_cost() -> None:
    text = {BASE: "hash(s) {\n  t = 1;\n  return t;\n}", HEAD: "hash(s) {\n  t = 0;\n  return t;\n}"}
    more = {BASE: 3, HEAD: 60}
    shared = frozenset({"struct table.count"})
    found = found_in(
        Made("parse", same(5e4), Change.CALLER, once, reads=shared),
        Made("hash", same(2e4), Change.CHANGED, lambda side, n: {"parse": more[side]}, writes=shared, text=text),
    )
    told = [step for step in map(say, named(found, "hash").chain) if "60 times" in step]
    assert len(told) == 1, named(found, "hash").chain
    assert told[0].endswith("60 times in a run of w n=1000, 3 times before: 3.38 ms more in all")


def table(calls: float) -> Findings:
    """Return what is found where a look-up that reads another table is dearer, and a changed function makes so many calls of it more."""
    return found_in(
        Made("kind", same(2e3), Change.CHANGED, lambda side, n: {"main": 300}),
        Made(
            "find",
            lambda side, x: 2e3 if side == BASE else 6e3,
            Change.AFFECTED,
            lambda side, n: {"main": 300, "kind": calls if side == HEAD else 0},
            culprits=("global words", "global words_more"),
        ),
    )


@pytest.mark.parametrize(
    ("calls", "guilty"),
    [pytest.param(300, "kind", id="as many new calls as old ones"), pytest.param(6, "find", id="hardly a new call")],
)
def test_what_a_look_up_in_other_data_costs_is_put_down_to_its_new_calls_where_these_are_many(calls: float, guilty: str) -> None:
    assert ranks(table(calls))[0] == guilty
