"""Runs that end by the clock, told from others by simulated runs, and their sums by what they repeat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfdiff.analysis.sums.ledger import Book, Ledger
from perfdiff.analysis.sums.repeats import by_repetitions, in_all_points, told_of_the_clock
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Note, Phase, Point, Run, Side
from perfdiff.report.sentences.catalogue import noted

MAIN, SETUP, STEP, PART = range(4)  # main calls setup once, and step until the time is over, which calls part twice
SECOND = 1e9


def book(calls: Floats, call_ns: float, *, first: int = 0, took_s: float = 1.0, waits: float = 0.0) -> Book:
    """Return runs (r,) of a program that makes so many `calls` of a step, each `call_ns` long, half of it in its parts."""
    rng = np.random.default_rng(first)
    steps = calls * call_ns * (1 + 0.003 * rng.standard_normal(len(calls)))
    setup = np.full(len(calls), 0.02 * SECOND)
    whole = np.maximum(took_s * SECOND, steps + setup)
    ones = np.ones(len(calls))
    runs = tuple(
        Run(first + block, Phase.TIMED, 0, Side.BASE, block, each, each * (1 - waits), 0.0, None, None, "")
        for block, each in enumerate(whole.tolist())
    )
    return Book(
        runs=runs,
        calls=np.column_stack([ones, ones, calls, 2 * calls]),
        self_ns=np.column_stack([whole - setup - steps, setup, steps / 2, steps / 2]),
        wall_ns=np.column_stack([whole, setup, steps, steps / 2]),
        other={"alloc_count": np.column_stack([ones, 5 * ones, 3 * calls, calls])},
        edges={(MAIN, 4): ones, (SETUP, MAIN): ones, (STEP, MAIN): calls, (PART, STEP): 2 * calls},
        edges_ns={(MAIN, 4): whole, (SETUP, MAIN): setup, (STEP, MAIN): steps, (PART, STEP): steps / 2},
    )


def ledger(base: Book, head: Book) -> Ledger:
    books = {(0, Side.BASE): base, (0, Side.HEAD): head}
    return Ledger((1, 2, 3, 4), {1: 0, 2: 1, 3: 2, 4: 3}, books, (0,), {}, {0: "step n=3"})


def by_the_clock(call_ns: float, *, first: int, runs: int = 5, waits: float = 0.0) -> Book:
    """Return runs that repeat for 0.9 s, at a pace of their own each."""
    pace = 1 + 0.05 * np.random.default_rng(first).uniform(-1, 1, runs)
    calls = np.floor(0.9 * SECOND / (call_ns * pace))
    found = book(calls, call_ns, first=first, waits=waits)
    times = 0.9 * SECOND / found.wall_ns[:, [STEP]]
    return replace(
        found,
        wall_ns=np.hstack([found.wall_ns[:, :STEP], found.wall_ns[:, STEP:] * times]),
        self_ns=np.hstack([found.self_ns[:, :STEP], found.self_ns[:, STEP:] * times]),
    )


def test_sums_of_slower_calls_are_those_of_as_many_as_base_makes() -> None:
    base, head = by_the_clock(1000.0, first=0), by_the_clock(3000.0, first=10)
    found = by_repetitions(ledger(base, head), 0.05)
    assert found.clocked == {0}
    before, after = found.pair(0)
    for column, ratio in ((STEP, 3.0), (PART, 3.0), (SETUP, 1.0)):
        assert np.median(after.self_ns[:, column]) / np.median(before.self_ns[:, column]) == pytest.approx(ratio, rel=0.05)
    usual = np.median(base.calls[:, STEP])
    for each in (before, after):
        np.testing.assert_allclose(each.calls, np.column_stack([np.ones(5), np.ones(5), np.full(5, usual), np.full(5, 2 * usual)]))
        np.testing.assert_allclose(each.other["alloc_count"][:, STEP], 3 * usual)
        np.testing.assert_allclose(each.edges[PART, STEP], 2 * usual)
    more = after.wall_ns[:, STEP] - head.wall_ns[:, STEP]
    np.testing.assert_allclose(after.wall_ns[:, MAIN] - head.wall_ns[:, MAIN], more)
    np.testing.assert_allclose(after.edges_ns[MAIN, 4] - head.edges_ns[MAIN, 4], more)
    (note, other) = map(noted, told_of_the_clock(found, [Note("sizes-not-felt", "sizes"), Note("machine-busy", "busy")]))
    assert (note.slug, other.slug) == ("ends-by-the-clock", "machine-busy")
    assert "step n=3" in note.text


def test_runs_that_make_about_as_many_calls_are_told_by_how_these_vary() -> None:
    """Whole runs would say of them that nothing became slower, however many there are."""
    found = by_repetitions(ledger(by_the_clock(1000.0, first=0), by_the_clock(1010.0, first=10)), 0.05)
    assert found.clocked == {0}


def varying(call_ns: float, first: int) -> Book:
    """Return runs that find more or less to do, as where threads share the work."""
    return book(np.random.default_rng(first).integers(700_000, 900_000, 5).astype(np.float64), call_ns, first=first)


@pytest.mark.parametrize(
    ("base", "head"),
    [
        pytest.param(book(np.full(5, 9e5), 1000.0), book(np.full(5, 9e5), 3000.0, first=10), id="as many calls, and longer runs"),
        pytest.param(book(np.full(5, 9e5), 1000.0), book(np.full(5, 3e5), 3000.0, first=10), id="a third of the calls in each run"),
        pytest.param(varying(1000.0, 0), varying(1000.0, 10), id="calls that vary, and take as much longer"),
        pytest.param(varying(1000.0, 0), varying(1300.0, 10), id="longer calls that vary, in longer runs"),
        pytest.param(by_the_clock(1e3, first=0, waits=0.9), by_the_clock(3e3, first=10, waits=0.9), id="calls that wait for something"),
        pytest.param(by_the_clock(1e3, first=0, runs=2), by_the_clock(3e3, first=10, runs=2), id="too few runs to tell"),
    ],
)
def test_other_runs_do_not_end_by_the_clock(base: Book, head: Book) -> None:
    found = ledger(base, head)
    assert by_repetitions(found, 0.05) is found
    assert told_of_the_clock(found, [Note("sizes-not-felt", "sizes")]) == (Note("sizes-not-felt", "sizes"),)


def test_a_clock_ends_runs_of_a_workload_at_all_of_its_points() -> None:
    points = [Point(number, workload, {"n": number}, "./bench") for number, workload in enumerate(["bench", "bench", "parse"])]
    assert in_all_points({1}, points) == {0, 1}
    assert in_all_points(set(), points) == frozenset()
