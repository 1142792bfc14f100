"""Work that one function does now and another did before, under other numbers of calls, on made-up programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from experiments import BASE, Made, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Findings, FunctionFinding, Verdict
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Side
from perfdiff.report.sentences.catalogue import say

Calls = Callable[[Side, float], Mapping[str, float]]


def findings(*functions: Made) -> Findings:
    world = World(functions)
    return analyse(world.experiment(), world.samples, CompareConfig())


def named(found: Findings, name: str) -> FunctionFinding:
    return next(each for each in found.functions if each.info.name == name)


def made_eager(*, calls: float, price: float, own: float = 1.0) -> Findings:
    """`collect` goes through the steps that its caller asked for one by one; times so many calls, prices and own costs as before."""
    return findings(
        Made("main", same(5e4), Change.AFFECTED),
        Made("collect", lambda side, x: 1e3 if side is BASE else own * 1e3, Change.CHANGED, lambda side, n: {"main": n / 100}),
        Made(
            "step",
            lambda side, x: 2e3 if side is BASE else price * 2e3,
            Change.CHANGED,
            lambda side, n: {"main": n / 5} if side is BASE else {"collect": calls * n / 5},
        ),
    )


def test_steps_that_the_caller_asked_for_before_and_that_became_cheaper_are_no_regression_of_who_takes_them_now() -> None:
    found = made_eager(calls=1.18, price=0.35)
    assert found.verdict is Verdict.IMPROVEMENT
    assert named(found, "step").verdict is Verdict.IMPROVEMENT
    collect = named(found, "collect")
    assert collect.verdict is Verdict.UNCHANGED
    assert say(collect.reason) == "its own cost did not grow; it makes calls of `step` that `main` made before"


def test_more_steps_than_the_caller_asked_for_are_a_regression_of_who_takes_them_now() -> None:
    collect = named(made_eager(calls=1.2, price=1.0), "collect")
    assert collect.verdict is Verdict.REGRESSION
    assert collect.extra_ns == pytest.approx(0.2 * 2e3 / 5 * (1000 + 3000 + 10000), rel=0.25)


def test_cheaper_steps_do_not_hide_that_most_of_them_are_new() -> None:
    assert named(made_eager(calls=3, price=0.9), "collect").verdict is Verdict.REGRESSION


def test_cheaper_steps_do_not_hide_what_taking_them_costs_by_itself() -> None:
    collect = named(made_eager(calls=1.18, price=0.35, own=60), "collect")
    assert collect.verdict is Verdict.REGRESSION
    assert collect.extra_ns == pytest.approx(59e3 / 100 * (1000 + 3000 + 10000), rel=0.1)


def made_a_loop(*, calls: float, through: Calls, change: Change) -> Findings:
    """`main` asked `next` for what `parse` makes of each item; `collect`, which it calls as well, does so in a loop."""
    return findings(
        Made("main", same(5e4), Change.CHANGED),
        Made("collect", same(1e3), Change.CHANGED, lambda side, n: {"main": n / 100}),
        Made("next", same(300.0), change, through),
        Made("parse", same(2e3), calls=lambda side, n: {"next": n / 5} if side is BASE else {"collect": calls * n / 5}),
    )


def gone(side: Side, n: float) -> dict[str, float]:
    return {"main": n / 5} if side is BASE else {}


@pytest.mark.parametrize("change", [Change.REMOVED, Change.UNCHANGED])
def test_a_loop_that_takes_the_place_of_an_iterator_is_no_regression(change: Change) -> None:
    found = made_a_loop(calls=1.1, through=gone, change=change)
    assert found.verdict is not Verdict.REGRESSION
    assert "work moved between it and `main`" in say(named(found, "collect").reason)


def test_a_loop_that_does_twice_the_work_of_the_iterator_is_a_regression() -> None:
    assert named(made_a_loop(calls=2.1, through=gone, change=Change.REMOVED), "collect").verdict is Verdict.REGRESSION


def all_at_once(*, calls: float) -> Findings:
    """`main` calls `read` for each item in base, and once for all of them in head."""
    return findings(
        Made("main", same(5e4), Change.CHANGED),
        Made("read", same(1e3), Change.CHANGED, lambda side, n: {"main": n / 10 if side is BASE else 1}),
        Made("parse", same(2e3), calls=lambda side, n: {"read": n / 5 if side is BASE else calls * n / 5}),
    )


def test_one_call_for_all_items_that_does_the_same_work_is_no_regression() -> None:
    found = all_at_once(calls=1.1)
    assert found.verdict is Verdict.IMPROVEMENT
    assert "work moved between it and `main`" in say(named(found, "read").reason)


def test_one_call_for_all_items_that_does_more_work_is_a_regression() -> None:
    assert named(all_at_once(calls=2.5), "read").verdict is Verdict.REGRESSION


def test_functions_that_are_no_neighbours_pay_nothing_for_each_other() -> None:
    """`report` makes calls of `parse` that `next` made for `scan`; nothing but `main` calls either, through functions of their own."""
    found = findings(
        Made("main", same(5e4)),
        Made("left", same(1e3), calls=lambda side, n: {"main": 1}),
        Made("right", same(1e3), calls=lambda side, n: {"main": 1}),
        Made("scan", same(1e3), Change.CHANGED, lambda side, n: {"left": 1}),
        Made("report", same(1e3), Change.CHANGED, lambda side, n: {"right": 1}),
        Made("next", same(300.0), calls=lambda side, n: {"scan": n / 5} if side is BASE else {}),
        Made("parse", same(2e3), calls=lambda side, n: {"next": n / 5} if side is BASE else {"report": 1.1 * n / 5}),
    )
    assert named(found, "report").verdict is Verdict.REGRESSION
    assert named(found, "scan").verdict is Verdict.IMPROVEMENT
