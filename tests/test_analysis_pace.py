"""What timed runs have in common is taken off, as far as functions that the change leaves alone tell it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import HEAD, Made, Noise, World
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.stats.inference import contrast
from perfdiff.analysis.stats.runs import PointRuns
from perfdiff.analysis.sums.ledger import Ledger, open_ledger
from perfdiff.analysis.sums.pace import FEWEST, pace_of
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Side

UNEVEN = Noise(call=0.02, run=0.15, function=0.01)  # runs that differ, functions that keep in step
TARGET = 1  # the number of the changed function


def world(*, others: int = 7, slower: float = 1.0, all_slower: float = 1.0, seed: int = 1, runs: int = 6) -> World:
    """Return a changed function, `slower` in head, and `others` that are unchanged, `all_slower` there."""

    def cost(factor: float, ns: float):  # type: ignore[no-untyped-def]
        return lambda side, inputs: ns * inputs["n"] * (factor if side is HEAD else 1.0)

    target = Made("target", cost(slower, 100.0), Change.CHANGED, lambda side, n: {"": 5})
    beside = [Made(f"f{k}", cost(all_slower, 50.0 + 10 * k), calls=lambda side, n: {"": 5}) for k in range(others)]
    return World((target, *beside), sizes=(3000,), runs=runs, noise=UNEVEN, seed=seed, kept=20)


def own_times(ledger: Ledger, function: int) -> PointRuns:
    books = ledger.pair(0)
    return PointRuns(*(book.group(np.log(book.self_ns[:, ledger.place[function]])) for book in books))


def at_usual_pace(made: World) -> tuple[Ledger, Ledger]:
    experiment = made.experiment()
    ledger = open_ledger(experiment)
    return ledger, pace_of(ledger, experiment.functions).taken_off(ledger)


def test_what_all_functions_of_a_run_have_in_common_is_taken_off() -> None:
    raw, paced = (own_times(each, TARGET) for each in at_usual_pace(world(slower=1.2)))
    before, after = contrast([raw]), contrast([paced])
    assert before is not None
    assert after is not None
    assert after.error < before.error / 4
    assert after.effect == pytest.approx(np.log(1.2), abs=0.03)


def test_calls_are_taken_at_the_pace_of_their_runs() -> None:
    made = world()
    experiment = made.experiment()
    pace = pace_of(open_ledger(experiment), experiment.functions)
    table, paced = (load(TARGET, Side.BASE) for load in (made.samples, pace.taken_off_calls(made.samples)))
    assert table is not None
    assert paced is not None
    logs = pace.of(TARGET, Side.BASE)
    assert set(logs) == {run.id for run in experiment.runs if run.side is Side.BASE}
    ratio = np.log(table.metrics["self_ns"] / paced.metrics["self_ns"])
    assert ratio == pytest.approx(np.array([logs[run] for run in table.run.tolist()]))
    assert np.array_equal(table.metrics["alloc_bytes"], paced.metrics["alloc_bytes"])


def test_what_the_change_makes_of_unchanged_functions_is_not_taken_off() -> None:
    raw, paced = at_usual_pace(world(all_slower=1.6))
    assert paced == raw


def test_runs_too_few_to_tell_whose_the_pace_is_tell_none() -> None:
    raw, paced = at_usual_pace(world(runs=3))
    assert paced == raw


def test_few_functions_tell_no_pace() -> None:
    raw, paced = at_usual_pace(world(others=FEWEST - 1))
    assert paced == raw


def test_a_function_that_does_not_keep_in_step_is_left_as_it_is() -> None:
    experiment = world().experiment()
    ledger = open_ledger(experiment)
    waits = {key: replace(book, self_ns=book.self_ns.copy()) for key, book in ledger.books.items()}
    for book in waits.values():
        book.self_ns[:, ledger.place[TARGET]] = 1e6 * (1 + 1e-3 * np.arange(len(book.runs)))
    ledger = replace(ledger, books=waits)
    pace = pace_of(ledger, experiment.functions)
    assert pace.of(TARGET, Side.HEAD) == {}
    assert pace.of(TARGET + 1, Side.HEAD) != {}


@pytest.mark.statistical
def test_without_an_effect_few_seem_different_at_the_usual_pace() -> None:
    seen = [contrast([own_times(at_usual_pace(world(seed=seed, runs=5))[1], 1 + seed % 8)]) for seed in range(120)]
    assert sum(each is not None and each.p < 0.05 for each in seen) <= 12  # 6 are expected; of 120 at 5 %, more than 12 are one in 120


@pytest.mark.statistical
def test_a_fifth_more_is_found_with_five_uneven_runs() -> None:
    found = []
    for seed in range(8):
        made = world(slower=1.2, seed=seed, runs=5)
        findings = analyse(made.experiment(), made.samples, CompareConfig())
        found.append([each.info.name for each in findings.functions if each.rank is not None])
    assert found.count(["target"]) >= 7
