"""Locks that a change holds for longer are told, whether time shows it or not, and are no regression by themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments import BASE, HEAD, Made, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Findings, FunctionFinding, Verdict
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, SampleTable, Side
from perfdiff.report.sentences.catalogue import noted, say

HELD = {BASE: 12.0, HEAD: 4000.0}
WAITED = {BASE: 50.0, HEAD: 9000.0}


def findings(cost: float, held: dict[Side, float]) -> Findings:
    """Return what is told of `submit`, which holds a lock for `held` ns a call, and of its unchanged caller, which waits for it."""
    submit = Made("submit", lambda side, x: 5e4 if side == BASE else cost, Change.CHANGED, lambda side, n: {"work": 20})
    world = World((Made("main", same(5e4)), Made("work", same(1e5), calls=lambda side, n: {"main": 5}), submit))
    experiment = world.experiment()
    rng = np.random.default_rng(3)
    sides = {run.id: run.side for run in experiment.runs}
    locks = {"lock_hold_ns": held, "lock_wait_ns": WAITED if held[HEAD] > held[BASE] else {BASE: 50.0, HEAD: 50.0}}
    of = {"lock_hold_ns": {world.ids["submit"], world.ids["work"]}, "lock_wait_ns": {world.ids["work"]}}
    totals = experiment.totals
    sums = {
        name: np.array(
            [
                calls * locks[name][sides[run]] * np.exp(rng.normal(0, 0.05)) * (function in of[name])
                for run, function, calls in zip(totals.run.tolist(), totals.function.tolist(), totals.calls.tolist(), strict=True)
            ]
        )
        for name in locks
    }

    def samples(function: int, side: Side) -> SampleTable | None:
        table = world.samples(function, side)
        if table is None:
            return None
        spread = np.exp(np.random.default_rng(function).normal(0, 0.1, len(table)))
        values = {name: values[side] * spread * (function in of[name]) for name, values in locks.items()}
        return replace(table, metrics={**table.metrics, **values})

    return analyse(replace(experiment, totals=replace(totals, other={**totals.other, **sums})), samples, CompareConfig())


def named(found: Findings, name: str) -> FunctionFinding:
    return next(each for each in found.functions if each.info.name == name)


def test_locks_held_longer_are_told_though_time_is_the_same_and_are_no_regression() -> None:
    found = findings(5e4, HELD)
    assert found.verdict is not Verdict.REGRESSION
    assert say(named(found, "submit").reason).startswith("it holds locks ×33")
    assert "`submit` holds locks" in say(named(found, "work").reason)
    (note,) = [note for note in map(noted, found.notes) if note.slug == "locks-held-longer"]
    assert "`submit` holds locks ×33" in note.text
    assert "`work` waits " in note.text


def test_locks_held_as_long_as_before_are_not_told() -> None:
    found = findings(5e4, {BASE: 12.0, HEAD: 12.0})
    assert not any(note.slug == "locks-held-longer" for note in map(noted, found.notes))
    assert "locks" not in say(named(found, "submit").reason)


def test_locks_held_longer_are_a_fact_beside_the_cause_of_a_regression() -> None:
    found = findings(2e5, HELD)
    assert found.verdict is Verdict.REGRESSION
    assert [cause.name for cause in named(found, "submit").causes] == ["more-work", "lock-hold"]
    assert not any(note.slug == "locks-held-longer" for note in map(noted, found.notes))
