"""The calls that runs are made of: what each function takes by itself and with its callees, and from whom it is called."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np

from perfdiff.analysis.callgraph import CallCost, CallEdge, CallGraph, OwnCounts
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.models.workcounter import work_counters
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Edges, Experiment, Side


def call_graph(experiment: Experiment, ledger: Ledger, counted: Ledger | None = None) -> CallGraph:
    """Return calls and times of one run of each workload point: medians over runs, added up over the points; work of `counted` runs."""
    times = [ledger.of_a_run(metric, side).tolist() for metric in ("self_ns", "wall_ns") for side in Side]
    costs = {function: CallCost(*ns) for function, *ns in zip(ledger.ids, *times, strict=True)}
    calls: dict[tuple[int, int], dict[Side, Floats]] = {}
    for point in ledger.points:
        for side in Side:
            runs = np.array([run.id for run in ledger.books[point, side].runs], dtype=np.int64)
            for pair, typical in _typical_calls(experiment.edges, runs).items():
                sums = calls.setdefault(pair, {side: np.zeros(2) for side in Side})
                sums[side] = sums[side] + typical
    edges = [
        CallEdge(caller or None, callee, *(float(sums[side][column]) for column in range(2) for side in Side))
        for (caller, callee), sums in sorted(calls.items())
        if callee in ledger.place and (caller == 0 or caller in ledger.place)
    ]
    base_ns, head_ns = (sum(ledger.books[point, side].cost_ns for point in ledger.points) for side in Side)
    return CallGraph(costs, tuple(edges), (base_ns, head_ns) if ledger.points else None, _own_counts(counted) if counted else {})


def _own_counts(counted: Ledger) -> dict[str, OwnCounts]:
    counts = {}
    for counter in (work.metric for work in work_counters(counted.metrics)):
        sides = (counted.of_a_run(counter, side).tolist() for side in Side)
        sums = [runs for book in counted.books.values() if (runs := book.sums(counter)) is not None]
        exact = all((runs == runs[:1]).all() for runs in sums)
        counts[counter] = OwnCounts(dict(zip(counted.ids, zip(*sides, strict=True), strict=True)), exact)
    return counts


def _typical_calls(edges: Edges, runs: Ints) -> dict[tuple[int, int], Floats]:
    """Return the medians of calls and of their time (2,) over `runs`, by caller and callee; a run without such calls counts as 0."""
    rows = np.flatnonzero(np.isin(edges.run, runs) & (edges.calls > 0))
    if not len(rows):
        return {}
    pairs, place = np.unique(np.column_stack([edges.caller[rows], edges.callee[rows]]), axis=0, return_inverse=True)
    row = np.searchsorted(np.sort(runs), edges.run[rows])
    sums = np.zeros((len(pairs), len(runs), 2))
    np.add.at(sums, (place.ravel(), row), np.column_stack([edges.calls[rows], edges.wall_ns[rows]]))
    medians = np.median(sums, axis=1)
    return {(int(caller), int(callee)): medians[number] for number, (caller, callee) in enumerate(pairs)}


def reached(steps: Mapping[int, Set[int]], function: int) -> set[int]:
    """Return all functions that `steps`, such as a web's callers, lead to from one, without itself and the start of threads."""
    seen: set[int] = set()
    frontier = {function}
    while frontier:
        frontier = {neighbour for at in frontier for neighbour in steps.get(at, frozenset())} - seen - {0}
        seen |= frontier
    return seen - {function}
