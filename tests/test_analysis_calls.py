"""Who calls whom at what cost, on made-up programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import BASE, HEAD, Made, World, same
from perfdiff.analysis.callgraph import CallGraph, OwnCounts
from perfdiff.analysis.sums.calls import call_graph
from perfdiff.analysis.sums.ledger import open_counts, open_ledger
from perfdiff.records.schema import Phase, Side
from test_analysis_counts import counted

SIZES = (1000, 3000)


def graph(*functions: Made) -> tuple[CallGraph, World]:
    world = World(functions, sizes=SIZES)
    experiment = world.experiment()
    return call_graph(experiment, open_ledger(experiment)), world


def test_calls_and_times_are_summed_over_the_points() -> None:
    found, world = graph(
        Made("main", same(5e4)),
        Made("sum", same(1e3), calls=lambda side, n: {"main": 2 if side == BASE else n}),
        Made("log", same(1e3), calls=lambda side, n: {"main": 1, "sum": 3}),
    )
    edges = {(edge.caller, edge.callee): edge for edge in found.edges}
    main, total, log = (world.ids[name] for name in ("main", "sum", "log"))
    assert set(edges) == {(None, main), (main, total), (main, log), (total, log)}
    assert (edges[main, total].calls_base, edges[main, total].calls_head) == (4, sum(SIZES))
    assert (edges[None, main].calls_base, edges[None, main].calls_head) == (2, 2)
    assert edges[main, total].head_ns == pytest.approx(1e3 * sum(SIZES), rel=0.1)
    assert edges[total, log].base_ns == pytest.approx(3 * edges[main, log].base_ns, rel=0.01)


def test_own_time_is_apart_from_that_of_callees() -> None:
    found, world = graph(
        Made("main", same(5e4)),
        Made("sum", lambda side, x: 1e5 if side == BASE else 3e5, calls=lambda side, n: {"main": 1}),
    )
    main, total = (found.costs[world.ids[name]] for name in ("main", "sum"))
    assert main.self_head_ns == pytest.approx(main.self_base_ns, rel=0.1)
    assert total.self_head_ns == pytest.approx(2 * 3e5, rel=0.1)
    assert main.head_ns - main.base_ns == pytest.approx(2 * 2e5, rel=0.1)


def test_what_only_one_side_calls_costs_nothing_on_the_other() -> None:
    found, world = graph(Made("main", same(5e4)), Made("check", same(1e3), calls=lambda side, n: {} if side == BASE else {"main": 1}))
    edge = next(edge for edge in found.edges if edge.callee == world.ids["check"])
    assert (edge.calls_base, edge.base_ns) == (0, 0)
    assert edge.head_ns == pytest.approx(2e3, rel=0.1)


def test_the_same_runs_as_a_whole_stand_beside_the_calls() -> None:
    found, world = graph(Made("main", same(5e4)))
    runs = {side: [run for run in world.experiment().runs if run.phase is Phase.TIMED and run.side is side] for side in (BASE, HEAD)}
    expected = [
        sum(np.median([run.cpu_ns for run in runs[side] if run.point == point]) for point in range(len(SIZES))) for side in (BASE, HEAD)
    ]
    assert found.runs_ns == pytest.approx(tuple(expected), rel=0.05)
    alone = replace(world.experiment(), runs=())
    assert call_graph(alone, open_ledger(alone)).runs_ns is None


def counts_of(vary: float) -> tuple[OwnCounts, World]:
    world = World([Made("main", same(5e4)), Made("sum", same(1e3), calls=lambda side, n: {"main": 2})], sizes=SIZES)

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> dict[str, float]:
        return {"blocks": (n if name == "main" else 7) * (1 if side == BASE else 3) + vary * rng.integers(0, 2), "loads": 1.0}

    experiment = counted(world, counts)
    graph_of = call_graph(experiment, open_ledger(experiment), open_counts(experiment))
    assert list(graph_of.counts) == ["blocks"], "loads are no work"
    return graph_of.counts["blocks"], world


def test_counts_of_work_are_told_with_whether_they_are_exact() -> None:
    found, world = counts_of(0.0)
    assert found == OwnCounts({world.ids["main"]: (4000.0, 12000.0), world.ids["sum"]: (14.0, 42.0)}, exact=True)
    varying, _ = counts_of(1.0)
    assert not varying.exact
