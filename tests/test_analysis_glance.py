"""A look that ends as soon as one function alone keeps the runs going: it says the same as one at all functions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import BASE, HEAD, Host, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.looks import glance, look
from perfdiff.analysis.verdicts.settling import settled
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Phase
from perfdiff.report.sentences.catalogue import say
from test_analysis_counts import counted

CONFIG = CompareConfig()
CHANGES = (*(Change.CHANGED, Change.AFFECTED, Change.UNCHANGED) * 3, Change.ADDED, Change.REMOVED)
PROGRAMS = 40
OPEN = 7  # suspects that noise leaves open


def function(number: int, rng: np.random.Generator) -> Made:
    """Return a function that changes, costs, calls, allocates and shares data by chance."""
    change = Change.CHANGED if number == 0 else CHANGES[int(rng.integers(0, len(CHANGES)))]
    caller, missing = "" if number == 0 else f"f{int(rng.integers(0, number))}", {Change.ADDED: BASE, Change.REMOVED: HEAD}.get(change)
    often = {BASE: int(rng.integers(2, 12))}
    often[HEAD] = often[BASE] + int(rng.choice([0, 0, 0, 4]))
    cost, factor = float(rng.choice([500, 5000])), float(rng.choice([1.0, 1.0, 1.0, 1.08, 1.5, 0.6]))
    value = {side: side.value if change is Change.CHANGED else "" for side in (BASE, HEAD)}
    return Made(
        f"f{number}",
        lambda side, inputs: cost + inputs["n"] * (factor if side is HEAD else 1.0),
        change=change,
        calls=lambda side, n: {} if side is missing else {caller: often[side]},
        alloc={BASE: 64.0, HEAD: float(rng.choice([64.0, 64.0, 64.0, 128.0]))},
        writes=frozenset({"state.total"}) if rng.random() < 0.3 else frozenset(),
        reads=frozenset({"state.total"}) if rng.random() < 0.3 else frozenset(),
        text={side: f"int f{number}() {{\n  total += table[index];\n  x = {value[side]};\n}}" for side in (BASE, HEAD)},
        loads=bool(rng.random() < 0.1),
    )


def drawn(seed: int) -> World:
    """Return a program of a few functions, with more or less noise, with or without whole runs, of one machine or two."""
    rng = np.random.default_rng(seed)
    made = tuple(function(number, rng) for number in range(int(rng.integers(1, 7))))
    noise = float(rng.choice([0.005, 0.03, 0.1]))
    slower = float(rng.choice([1.0, 1.1]))
    plain = (lambda side: 1e6 * (slower if side is HEAD else 1.0)) if rng.random() < 0.5 else None
    hosts = (Host("a"), Host("b", slow=1.5)) if rng.random() < 0.1 else ()
    runs = int(rng.choice([5, 10]))
    return World(made, sizes=(1000, 4000), runs=runs, noise=Noise(0.05, noise, noise), seed=seed, kept=40, plain=plain, hosts=hosts)


def test_a_look_that_ends_early_says_what_a_whole_one_says() -> None:
    ended = went_through = stops = 0
    for seed in range(PROGRAMS):
        made = drawn(seed)
        experiment = made.experiment()
        whole = look(experiment, made.samples, CONFIG)
        early = glance(experiment, made.samples, CONFIG)
        if early.findings is None:
            ended += 1
            assert not settled(whole, CONFIG), f"program {seed}: f{early.keeps_open}"
        else:
            went_through += 1
            stops += settled(whole, CONFIG)
            assert repr(early.findings) == repr(whole)
    assert min(ended, went_through, stops) >= PROGRAMS / 10, (ended, went_through, stops)


def noisy() -> World:
    """Return suspects of equal cost that noise leaves open."""
    made = [Made(f"work{number}", same(5000.0), change=Change.CHANGED, calls=lambda side, n: {"": 20}) for number in range(OPEN)]
    return World(tuple(made), runs=5, noise=Noise(run=0.1, function=0.1), kept=40)


def test_a_look_ends_at_the_first_function_that_keeps_the_runs_going() -> None:
    made = noisy()
    seen = glance(made.experiment(), made.samples, CONFIG)
    assert seen.findings is None
    assert seen.studied < OPEN / 2


def test_the_function_that_was_open_at_the_last_look_is_looked_at_first() -> None:
    made = noisy()
    whole = look(made.experiment(), made.samples, CONFIG)
    for each in (each for each in whole.functions if each.verdict is Verdict.INCONCLUSIVE):
        seen = glance(made.experiment(), made.samples, CONFIG, first=each.info.id)
        assert (seen.keeps_open, seen.studied) == (each.info.id, 1)


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_look_at_what_is_settled_returns_the_findings_of_all_functions(factor: float) -> None:
    work = Made(
        "work", lambda side, inputs: 5000.0 * (factor if side is HEAD else 1.0), change=Change.CHANGED, calls=lambda side, n: {"": 50}
    )
    rest = Made("rest", same(5000.0), calls=lambda side, n: {"": 50})
    made = World((work, rest), runs=10, noise=Noise(0.01, 0.002, 0.002))
    seen = glance(made.experiment(), made.samples, CONFIG)
    assert seen.keeps_open is None
    assert seen.findings is not None
    assert settled(seen.findings, CONFIG)
    assert seen.studied == 2


def test_a_function_that_other_work_may_have_moved_to_does_not_end_a_look_alone() -> None:
    """What it costs may be set against what the other one saves, which leaves it unchanged."""
    line = "  total = total + table[index];\n"
    texts = ({BASE: f"f() {{\n{line}}}", HEAD: "f() {\n}"}, {BASE: "g() {\n}", HEAD: f"g() {{\n{line}}}"})
    made = noisy()
    functions = tuple(replace(each, text=texts[place]) for place, each in enumerate(made.functions[:2]))
    apart = World(tuple(replace(each, text=texts[0]) for each in functions), runs=5, noise=made.noise, kept=40)
    moved = World(functions, runs=5, noise=made.noise, kept=40)
    assert glance(apart.experiment(), apart.samples, CONFIG).findings is None
    assert glance(moved.experiment(), moved.samples, CONFIG).findings is not None


def test_machines_are_judged_by_themselves_before_runs_are_said_to_go_on() -> None:
    made = World(noisy().functions, runs=10, noise=Noise(run=0.1, function=0.1), kept=40, hosts=(Host("a"), Host("b", slow=1.5)))
    assert glance(made.experiment(), made.samples, CONFIG).findings is not None


@pytest.mark.parametrize("phases", [{Phase.PLAIN}, {Phase.COUNTED}, {Phase.PLAIN, Phase.COUNTED}], ids=lambda each: "+".join(sorted(each)))
def test_runs_without_probes_alone_are_an_answer_whatever_changed(phases: set[Phase]) -> None:
    """Where whole runs and counts tell enough no call is timed: nothing is known then of any function's time."""
    seen = set()
    for seed in range(PROGRAMS):
        made = replace(drawn(seed), plain=lambda side: 1e6)
        experiment = counted(made, lambda name, side, n, rng: {"blocks": n * (1 + len(name) + (side is HEAD))}, rounds=2)
        untimed = replace(experiment, runs=tuple(run for run in experiment.runs if run.phase in phases))
        found = analyse(untimed, made.samples, CONFIG)
        seen |= {function.info.change for function in found.functions}
        assert found.verdict is not Verdict.REGRESSION, f"program {seed}: {say(found.sentence)}"
        assert look(untimed, made.samples, CONFIG).verdict is found.verdict
    assert seen >= {Change.ADDED, Change.REMOVED, Change.CHANGED, Change.AFFECTED}
