"""The call tree: a graph of calls laid out so that extra cost is followed down to where it arises."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import findings as made
from perfdiff.analysis.callgraph import CallCost, CallEdge, CallGraph
from perfdiff.analysis.findings import FunctionFinding, Ratio, Verdict
from perfdiff.records.schema import Change
from perfdiff.report.tree import DEEPEST, MOST_ROWS, CallTree, ExtraCost, TreeCall, call_tree

SAME, MORE = Ratio(1.0, 0.9, 1.1, 10, 10), Ratio(2.0, 1.8, 2.2, 10, 10)


def function(number: int, *, total: Ratio = SAME, rank: int | None = None) -> FunctionFinding:
    """Return the function `f<number>`; `total` is the ratio of its whole time, by itself and with callees."""
    found = made.plain(number, f"f{number}", Verdict.UNCHANGED, Change.UNCHANGED, ratio=SAME, reason="")
    wall = replace(found.metrics["wall_ns"], total=total)
    return replace(found, rank=rank, metrics={"wall_ns": wall, "self_ns": replace(wall, metric="self_ns")})


def tree(functions: Iterable[FunctionFinding], costs: dict[int, tuple[float, float]], *calls: tuple[int | None, int, float]) -> CallTree:
    """Return the tree of functions with extra costs `(own, with callees)` and calls `(caller, callee, extra)`."""
    graph = CallGraph(
        {number: CallCost(100.0, 100.0 + own, 1000.0, 1000.0 + whole) for number, (own, whole) in costs.items()},
        tuple(CallEdge(caller, callee, 1.0, 1.0, 1000.0, 1000.0 + extra) for caller, callee, extra in calls),
    )
    found = call_tree(replace(made.findings(functions=tuple(functions)), calls=graph))
    assert found is not None
    return found


def shape(calls: Iterable[TreeCall]) -> list[object]:
    """Return names with the shapes below them."""
    return [(call.name, shape(call.children)) if call.children else call.name for call in calls]


def test_extra_cost_is_split_into_own_and_callees() -> None:
    found = tree([function(1), function(2, total=MORE)], {1: (5.0, 905.0), 2: (900.0, 900.0)}, (None, 1, 905.0), (1, 2, 900.0))
    (root,) = found.roots
    assert (root.own, root.below, root.total) == (ExtraCost(5.0, False), ExtraCost(900.0, True), ExtraCost(905.0, False))
    (leaf,) = root.children
    assert (leaf.own, leaf.below, leaf.total) == (ExtraCost(900.0, True), None, ExtraCost(900.0, True))
    assert (found.low, found.high) == (0.0, 905.0)


def test_signs_are_written_out() -> None:
    assert [ExtraCost(ns, True).text for ns in (2500.0, -2500.0, 0.0)] == ["+2.5 µs", "−2.5 µs", "0"]


def test_costlier_calls_come_first_and_savings_count_as_much() -> None:
    costs = dict.fromkeys((1, 2, 3, 4), (0.0, 0.0))
    found = tree(map(function, costs), costs, (None, 1, 10.0), (1, 2, 5.0), (1, 3, -40.0), (1, 4, 20.0))
    assert shape(found.roots) == [("f1", ["f3", "f4", "f2"])]
    assert found.low == -40.0


def test_calls_that_cost_the_same_stand_in_their_order() -> None:
    costs = dict.fromkeys((1, 2), (0.0, 0.0))
    found = tree(map(function, costs), costs, (None, 1, 10.0), (1, 2, 5.0), (1, 2, 5.0))
    assert shape(found.roots) == [("f1", ["f2", "f2"])]


def test_a_function_of_several_callers_stands_with_its_callees_where_it_costs_most() -> None:
    costs = dict.fromkeys((1, 2, 3, 4), (0.0, 0.0))
    found = tree(map(function, costs), costs, (None, 1, 90.0), (1, 2, 30.0), (1, 3, 60.0), (2, 4, 10.0), (3, 4, 50.0), (4, 4, 7.0))
    assert shape(found.roots) == [("f1", [("f3", ["f4"]), ("f2", ["f4"])])]
    first, again = (branch.children[0] for branch in found.roots[0].children)
    assert (first.own, first.callers) == (ExtraCost(0.0, False), 2)
    assert (again.own, again.below, again.total.ns) == (None, None, 10.0)


def test_mutual_recursion_ends() -> None:
    costs = {1: (0.0, 0.0), 2: (0.0, 0.0)}
    assert shape(tree(map(function, costs), costs, (None, 1, 1.0), (1, 2, 1.0), (2, 1, 1.0)).roots) == [("f1", [("f2", ["f1"])])]


def test_the_way_to_the_guilty_is_open_and_the_rest_is_folded() -> None:
    functions = [function(1), function(2), function(3), function(4, rank=1), function(5)]
    costs = dict.fromkeys(range(1, 6), (0.0, 0.0))
    found = tree(functions, costs, (None, 1, 100.0), (1, 2, 90.0), (1, 3, 1.0), (3, 4, 1.0), (2, 5, 90.0))
    guilty, other = found.roots[0].children
    assert (guilty.name, guilty.opened, other.name, other.opened) == ("f3", True, "f2", False)
    assert found.roots[0].opened


def test_one_callers_calls_are_not_said_to_be_clear_where_all_calls_moved_the_other_way() -> None:
    functions = [function(1), function(2), function(3, total=MORE)]
    costs = {1: (0.0, 0.0), 2: (0.0, 0.0), 3: (60.0, 60.0)}
    found = tree(functions, costs, (None, 1, 80.0), (1, 3, 80.0), (None, 2, -20.0), (2, 3, -20.0))
    assert [root.children[0].total for root in found.roots] == [ExtraCost(80.0, True), ExtraCost(-20.0, False)]


def test_a_program_of_thousands_of_functions_shows_the_costliest_and_says_how_many_are_left_out() -> None:
    count = 2_000
    costs = dict.fromkeys(range(1, count + 1), (0.0, 0.0))
    calls = [(1, number, float(number)) for number in range(2, count + 1)]
    (root,) = tree(map(function, costs), costs, (None, 1, 1.0), *calls).roots
    assert len(root.children) == MOST_ROWS - 1
    assert root.left_out == count - MOST_ROWS
    assert root.children[0].name == f"f{count}"


def test_a_chain_of_hundreds_of_calls_is_cut_where_it_gets_too_deep() -> None:
    costs = dict.fromkeys(range(1, 301), (0.0, 0.0))
    calls = [(number - 1 or None, number, 1.0) for number in costs]
    call = tree(map(function, costs), costs, *calls).roots[0]
    depth = 1
    while call.children:
        depth, call = depth + 1, call.children[0]
    assert (depth, call.left_out) == (DEEPEST, 1)


def test_without_calls_there_is_no_tree() -> None:
    assert call_tree(replace(made.findings(), calls=None)) is None
    assert call_tree(replace(made.findings(), calls=CallGraph({}, ()))) is None
