"""Figures of one block of a report agree: extra time is what calls take more, and what is done once is told as such."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import findings as examples
from contradictions import contradictions
from experiments import BASE, HEAD, Columns, Made, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Cause, CauseFigure, Findings, FunctionFinding, Ratio, Verdict
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Side
from perfdiff.report import terminal, wording
from perfdiff.report.document import build
from perfdiff.report.sentences.catalogue import say
from test_analysis_counts import counted

NONE: Mapping[Side, tuple[int, float]] = {}


def compared(cost: tuple[float, float], first: Mapping[Side, tuple[int, float]] = NONE, calls: int = 60) -> Findings:
    """Return what is found of `render`, called so often, whose `first` calls of a run cost so many times as much as later ones."""

    def own(side: Side, inputs: Columns) -> float:
        return cost[side is HEAD]

    render = Made("render", own, Change.CHANGED, lambda side, n: {"main": calls}, first=first)
    world = World((Made("main", same(3e7)), render), runs=8, sizes=(1000, 3000))
    return analyse(world.experiment(), world.samples, CompareConfig())


def guilty(findings: Findings) -> FunctionFinding:
    (found,) = (each for each in findings.functions if each.rank == 1)
    return found


@pytest.mark.parametrize(
    ("cost", "first", "says"),
    [
        ((18e3, 18e3), {HEAD: (1, 3300.0)}, "its first call of a run takes 6"),
        ((18e3, 22e3), {HEAD: (1, 3300.0)}, "its first call of a run takes 7"),
        ((18e3, 18e3), {BASE: (1, 100.0), HEAD: (1, 3300.0)}, "its first call of a run takes 6"),
        ((18e3, 18e3), {HEAD: (3, 1000.0)}, "its first 3 calls of a run take, each, 18"),
    ],
    ids=["first call", "first call, and all of them a little", "a dearer first call", "first calls"],
)
def test_what_first_calls_cost_is_told_as_done_once(cost: tuple[float, float], first: Mapping[Side, tuple[int, float]], says: str) -> None:
    findings = compared(cost, first)
    render = guilty(findings)
    assert (render.info.name, render.causes[0].name) == ("render", "first-calls")
    assert say(render.causes[0].says).startswith(says), say(render.causes[0].says)
    assert "as long at equal inputs" not in say(render.headline)
    assert say(render.reason).endswith(" to one run of each workload point, most of it in first calls")
    assert contradictions(findings) == []


def test_calls_that_all_take_longer_are_not_told_by_the_first_one() -> None:
    render = guilty(compared((5e5, 1e6), {BASE: (1, 2.0), HEAD: (1, 2.0)}))
    assert [cause.name for cause in render.causes] == ["more-work"]
    assert say(render.reason).endswith(" to one run of each workload point")


def test_a_ratio_of_the_mean_of_all_calls_stands_beside_their_mean_costs() -> None:
    findings = compared((18e3, 18e3), {HEAD: (1, 3300.0)})
    said = terminal.render(build(findings), width=200)
    assert "cost      18.1 µs → 1.01 ms a call (time, callees included)" in said
    assert "ratio     ×56 [54, 58], 95 % interval over 16 base and 16 head runs (mean of all calls)" in said


def test_what_all_calls_take_is_told_where_the_call_that_is_told_does_not_speak_for_them() -> None:
    few = terminal.render(build(compared((18e3, 18e3), {HEAD: (3, 1000.0)})), width=200)
    assert "cost      17.8 µs → 18.1 ms a call" in few
    assert "in all    2.17 ms → 111 ms for all calls of one run of each point; not all cost as much as the one above" in few
    assert "in all" not in terminal.render(build(compared((5e5, 1e6))), width=200)


def test_who_is_named_by_misses_alone_is_not_told_to_execute_more() -> None:
    """Of all that was counted of it, only what grew is a cause."""
    render = Made("render", same(2e6), Change.CHANGED, lambda side, n: {"main": 1})
    world = World((Made("main", same(8e6)), render), runs=8, plain=lambda side: 1.2e7 if side is HEAD else 1e7)

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        return {"blocks": 1e6, "loads": 1e6, "stores": 1e6, "llc_misses": 4e5 if side is HEAD and name == "render" else 1e3}

    findings = analyse(counted(world, counts, rounds=2), world.samples, CompareConfig())
    assert guilty(findings).info.name == "render"
    assert "more last-level cache misses" in say(guilty(findings).reason)
    assert contradictions(findings) == []


def test_first_calls_are_told_of_who_is_named_by_counts_as_later_calls_are_faster() -> None:
    """As of a table that is made once: whole runs are slower, and a typical call is faster, which differs more than the mean does."""
    first = {HEAD: (1, 2000.0)}
    render = Made("render", lambda side, x: 2e3 if side is HEAD else 18e3, Change.CHANGED, lambda side, n: {"main": 60}, first=first)
    functions = (Made("main", same(3e6)), render)
    world = World(functions, runs=8, sizes=(1000, 3000), plain=lambda side: 7.2e6 if side is HEAD else 4.2e6)

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        return {"blocks": 3e6 if side is HEAD and name == "render" else 1e5, "loads": 1e5, "stores": 1e5}

    findings = analyse(counted(world, counts, rounds=2), world.samples, CompareConfig())
    named = [cause.name for cause in guilty(findings).causes]
    assert "first-calls" in named, (guilty(findings).reason, named)
    assert contradictions(findings) == []


def test_a_count_of_which_a_typical_call_has_none_leads_no_block() -> None:
    found = examples.regressed()
    switches = replace(
        found.metrics["alloc_bytes"], metric="switches", base=None, head=None, ratio=Ratio(1.33, 1.07, 1.65, 10, 10), typical=0.0
    )
    faster = replace(found.metrics["wall_ns"], metric="self_ns", ratio=Ratio(0.4, 0.3, 0.5, 10, 10))
    leading = wording.leading(replace(found, metrics={"switches": switches, "self_ns": faster}))
    assert leading is faster


def test_contradictions_are_found() -> None:
    """Else no report that has none says anything."""
    found = examples.regressed()
    wall = found.metrics["wall_ns"]
    assert wall.ratio is not None
    plain = replace(wall, typical=18.1e3, typical_at="", ratio=replace(wall.ratio, value=1.01, low=1.005, high=1.02), in_all=None)
    calls = replace(
        found, metrics={"wall_ns": plain}, calls_base=60.0, calls_head=60.0, extra_ns=59.8e6, extra_ci_ns=(59e6, 60e6), causes=()
    )
    (apart,) = contradictions(replace(examples.findings(), functions=(calls,)))
    assert apart.startswith("`insert`: cost 18.1 µs → 18.3 µs a call (time, callees included) and 60 in one run of each point, but 97 % of")
    never = Cause("more-calls", examples.worded("each call of `a` calls `b` never, never before"), (CauseFigure("calls of b", 0.0, 0.0),))
    (cause,) = contradictions(replace(examples.findings(), functions=(replace(found, causes=(never,)),)))
    assert cause.endswith("0 before and 0 now: each call of `a` calls `b` never, never before")
    assert found.verdict is Verdict.REGRESSION
