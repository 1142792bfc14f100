"""A look at the findings while runs go on: the verdicts of the end, for less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from experiments import Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.compare.study import DECISIVE, Decisive, study_all
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.analysis.looks import look
from perfdiff.analysis.sums.ledger import open_ledger
from perfdiff.analysis.verdicts.settling import settled
from perfdiff.config import CompareConfig
from perfdiff.records.recorded import TablesInMemory
from perfdiff.records.schema import Change, Side

CONFIG = CompareConfig()
SMALL = 10  # functions of a two-thousandth of a run each


def world(factor: float, *, runs: int = 6, noise: float = 0.02) -> World:
    """Return a program whose `work` changed, slower by a factor, and that has many small functions beside, every second changed."""
    work = Made(
        "work",
        lambda side, inputs: 2000 + 10 * inputs["n"] * (factor if side is Side.HEAD else 1.0),
        change=Change.CHANGED,
        calls=lambda side, n: {"": 50},
        inputs=lambda side, n, count, rng: {"n": rng.uniform(n / 2, n, count)},
        alloc={Side.BASE: 64.0, Side.HEAD: 64.0},
    )
    small = [
        Made(f"small{number}", same(5.0), change=Change.AFFECTED if number % 2 else Change.UNCHANGED, calls=lambda side, n: {"work": 10})
        for number in range(SMALL)
    ]
    return World((work, *small), runs=runs, noise=Noise(run=noise, function=noise))


@pytest.mark.parametrize(("factor", "runs", "noise"), [(1.0, 8, 0.005), (1.0, 5, 0.1), (1.3, 6, 0.02)])
def test_a_look_gives_the_verdicts_of_the_end(factor: float, runs: int, noise: float) -> None:
    made = world(factor, runs=runs, noise=noise)
    seen, end = (judge(made.experiment(), made.samples, CONFIG) for judge in (look, analyse))
    assert seen.verdict is end.verdict
    assert {each.info.id: each.verdict for each in seen.functions} == {each.info.id: each.verdict for each in end.functions}
    assert settled(seen, CONFIG) == settled(end, CONFIG)


def test_functions_that_are_no_material_share_together_are_not_compared() -> None:
    made = world(1.3)
    ledger = open_ledger(made.experiment())
    studies = Decisive(made.experiment(), made.samples, ledger, CONFIG).studies(made.experiment().functions)
    compared = [each.info.name for each in studies if each.comparisons]
    assert compared[0] == "work"
    share = sum(float(np.max(book.medians["self_ns"][1:] / book.cost_ns)) for book in list(ledger.books.values())[:1])
    assert share < 0.01
    assert len(compared) < 1 + SMALL / 2
    assert all(each.untested for each in studies if not each.comparisons)


def test_how_the_time_of_trifles_grows_is_not_learnt() -> None:
    made = world(1.3)
    experiment = made.experiment()
    ledger = open_ledger(experiment)
    looked = Decisive(experiment, made.samples, ledger, CONFIG).studies(experiment.functions)
    end = [*study_all(experiment, made.samples, ledger, CONFIG)]
    assert end[0].growth is not None
    trifles = [full for seen, full in zip(looked, end, strict=True) if not seen.comparisons]
    assert any(each.info.change.is_suspect for each in trifles)
    for each in trifles:
        assert each.growth is None
        assert each.shifts
        assert set(each.comparisons) <= set(DECISIVE)


def test_small_ones_of_many_functions_are_compared_and_not_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    made = world(1.3)
    experiment = made.experiment()
    ledger = open_ledger(experiment)
    few = [*study_all(experiment, made.samples, ledger, CONFIG)]
    monkeypatch.setattr("perfdiff.analysis.compare.shares.MANY", SMALL)
    work, *small = study_all(experiment, made.samples, ledger, CONFIG)
    assert work.comparisons["self_ns"].base == few[0].comparisons["self_ns"].base is not None
    assert work.shifts == few[0].shifts
    assert work.growth is not None
    assert all(each.comparisons["self_ns"].base is not None for each in few)
    for each in small:
        assert {name: found.base for name, found in each.comparisons.items()} == dict.fromkeys(each.comparisons)
        assert set(each.comparisons) <= set(DECISIVE)
        assert each.comparisons["self_ns"].ratio is not None
        assert not each.shifts
        assert each.growth is None


@pytest.mark.parametrize("judge", [look, analyse])
@pytest.mark.parametrize(("factor", "runs", "noise"), [(1.0, 8, 0.005), (1.0, 5, 0.1), (1.3, 6, 0.02)])
def test_what_small_functions_cost_is_judged_alike_in_many_and_in_few(
    monkeypatch: pytest.MonkeyPatch, judge: Callable[..., Findings], factor: float, runs: int, noise: float
) -> None:
    made = world(factor, runs=runs, noise=noise)
    few = judge(made.experiment(), made.samples, CONFIG)
    monkeypatch.setattr("perfdiff.analysis.compare.shares.MANY", SMALL)
    many = judge(made.experiment(), made.samples, CONFIG)
    assert many.verdict is few.verdict
    assert {each.info.id: each.verdict for each in many.functions} == {each.info.id: each.verdict for each in few.functions}


@pytest.mark.parametrize(("count", "learnt"), [(1, 0), (6, 3)])
def test_small_functions_that_cost_more_by_other_inputs_are_learnt_as_far_as_they_matter_together(
    monkeypatch: pytest.MonkeyPatch, count: int, learnt: int
) -> None:
    monkeypatch.setattr("perfdiff.analysis.compare.shares.MANY", 1)
    grown = Made(
        "grown",
        lambda side, inputs: 37 * inputs["k"],
        calls=lambda side, n: {"": 80},
        inputs=lambda side, n, count, rng: {"k": rng.integers(1, 20, count) * (2 if side is Side.HEAD else 1)},
    )
    still = replace(grown, name="still", inputs=lambda side, n, count, rng: {"k": rng.integers(1, 20, count)})
    several = [replace(grown, name=f"grown {number}") for number in range(count)]
    made = World((Made("rest", same(1e6), change=Change.CHANGED, calls=lambda side, n: {"": 10}), *several, still))
    studies = [*study_all(made.experiment(), made.samples, open_ledger(made.experiment()), CONFIG)]
    own = {each.info.name: each.comparisons["self_ns"] for each in studies}
    found = [own[each.name] for each in several if own[each.name].base is not None]
    assert len(found) == learnt
    assert all(min(each.mix.values()) > 1.5 for each in found)
    assert own["still"].base is None


def test_a_small_function_that_allocates_more_is_looked_at() -> None:
    heavy = Made("heavy", same(5.0), change=Change.CHANGED, calls=lambda side, n: {"": 10}, alloc={Side.BASE: 1e3, Side.HEAD: 1e5})
    made = World((heavy, Made("rest", same(1e5), calls=lambda side, n: {"": 10})))
    verdicts = {each.info.name: each.verdict for each in look(made.experiment(), made.samples, CONFIG).functions}
    assert verdicts["heavy"] is Verdict.REGRESSION


def test_tables_in_memory_are_loaded_like_stored_ones() -> None:
    made = world(1.3)
    tables = [table for function in made.ids.values() for side in Side if (table := made.samples(function, side)) is not None]
    held = TablesInMemory(tables)
    assert held(1, Side.HEAD) is next(table for table in tables if (table.function, table.side) == (1, Side.HEAD))
    assert held(10_000, Side.BASE) is None


def test_a_look_learns_own_time_alone_where_inputs_did_not_move() -> None:
    callee = Made("leaf", same(300.0), calls=lambda side, n: {"work": 20})
    work = Made("work", same(2000.0), change=Change.CHANGED, calls=lambda side, n: {"": 50})
    made = World((work, callee))
    experiment = made.experiment()
    ledger = open_ledger(experiment)
    looked = Decisive(experiment, made.samples, ledger, CONFIG).studies(experiment.functions)[0]
    end = next(iter(study_all(experiment, made.samples, ledger, CONFIG)))
    assert not np.array_equal(*(made.samples(1, Side.BASE).metrics[metric] for metric in ("self_ns", "wall_ns")))  # type: ignore[union-attr]
    assert (looked.comparisons["self_ns"].base, looked.comparisons["wall_ns"].base) == (end.comparisons["self_ns"].base, None)
    assert end.comparisons["wall_ns"].base is not None
