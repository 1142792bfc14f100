"""What a run would take if functions took otherwise: changes carried down to all that they call, by exact sums and calls of runs.

A causal profiler slows all else down to see what a faster function would bring (Curtsinger and Berger 2015); here it follows from sums.
What runs take is the own time of all functions, and that of what has no probe, which stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter

import numpy as np

from perfdiff.analysis.annotations.runtable import of_runs
from perfdiff.analysis.sums.ledger import Book, Ledger, open_ledger
from perfdiff.records.schema import Experiment, Floats, Ints, Run, SampleTable, Side


@dataclass(frozen=True, slots=True)
class CostChange:
    """A function that takes otherwise: `factor` times its time, or `ns` a call; with what it calls, or its `own` time alone."""

    function: int
    factor: float | None = None
    ns: float | None = None
    own: bool = False


@dataclass(frozen=True, slots=True)
class Lever:
    """What a run saves, as a share of it, if the own time of a function is halved."""

    function: str
    share: float


def changed_by(experiment: Experiment, side: Side, changes: Sequence[CostChange], workload: str | None) -> SampleTable | None:
    """Return what the changes add to each run, in ns, which may be less than nothing; None where no run of the side was timed."""
    ledger = _ledger(experiment, side, workload)
    runs: list[Run] = []
    added: list[float] = []
    for point in ledger.points:
        book = ledger.books[point, side]
        runs += book.runs
        added += _added(book, ledger.place, changes).tolist()
    return of_runs(experiment, runs, added, side) if runs else None


def levers(experiment: Experiment, side: Side, workload: str | None) -> tuple[Lever, ...]:
    """Return what halving the own time of each function saves of a run at the last point, the largest first."""
    ledger = _ledger(experiment, side, workload)
    if not ledger.points:
        return ()
    book = ledger.books[ledger.points[-1], side]
    run_ns = max(book.cost_ns, float(book.medians["self_ns"].sum()))
    shares = {info.name: book.medians["self_ns"][ledger.place[info.id]] / run_ns / 2 for info in experiment.functions}
    largest = sorted(shares, key=lambda name: -shares[name])
    return tuple(Lever(name, float(shares[name])) for name in largest if shares[name] > 0)


def _ledger(experiment: Experiment, side: Side, workload: str | None) -> Ledger:
    points = tuple(point for point in experiment.points if workload in (None, point.workload))
    return open_ledger(replace(experiment, points=points), (side,))


def _added(book: Book, place: Mapping[int, int], changes: Sequence[CostChange]) -> Floats:
    """Return what changes add to each of the runs of a point (r,)."""
    columns = len(place)
    own, whole = np.ones(columns), np.ones(columns)
    for change in changes:
        column = place[change.function]
        (own if change.own else whole)[column] *= _factor(book, column, change)
    times = own * whole * _inherited(book, whole)
    return np.asarray(book.self_ns @ (times - 1))


def _factor(book: Book, column: int, change: CostChange) -> float:
    """Return how many times as long as now a function takes at a point."""
    if change.factor is not None:
        return change.factor
    now = float(np.median((book.self_ns if change.own else book.wall_ns)[:, column]))
    return float(np.median(book.calls[:, column])) * (change.ns or 0.0) / now if now > 0 else 1.0


def _inherited(book: Book, whole: Floats) -> Floats:
    """Return by how much what functions take (f,) follows from their callers, of which each takes `whole` (f,) times as long with callees.

    A function's calls are as dear as its callers' are, in proportion to the time that they spend in it. Functions that call each other are
    entered from outside; those of them that are not inherit what the entered ones do.
    """
    columns = len(whole)
    times = {pair: float(np.median(ns)) for pair, ns in book.edges_ns.items() if pair[0] < columns}
    ring = _rings([(by, to) for to, by in times if by < columns], columns)
    outer: dict[int, dict[int, float]] = {column: {} for column in range(columns)}
    for (to, by), ns in times.items():
        if ns > 0 and (by == columns or ring[by] != ring[to]):
            outer[to][by] = ns
    members: dict[int, list[int]] = {}
    for column, number in enumerate(ring.tolist()):
        members.setdefault(number, []).append(column)
    above = {number: {int(ring[by]) for to in inside for by in outer[to] if by < columns} for number, inside in members.items()}
    inherited, passed_on = np.ones(columns + 1), np.append(whole, 1.0)  # the last is the start of a thread
    for number in TopologicalSorter(above).static_order():
        entered = [to for to in members[number] if outer[to]]
        for to in entered:
            inherited[to] = np.average([inherited[by] * passed_on[by] for by in outer[to]], weights=list(outer[to].values()))
        weights = [sum(outer[to].values()) for to in entered]
        within = float(np.average(inherited[entered] * passed_on[entered], weights=weights)) if entered else 1.0
        for column in members[number]:
            if not outer[column] and len(members[number]) > 1:
                inherited[column] = within
    return inherited[:columns]


def _rings(calls: Sequence[tuple[int, int]], columns: int) -> Ints:
    """Return the ring of functions that call each other, directly or not, which each function (f,) is in; most are alone."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(calls, dtype=np.int64).reshape(len(calls), 2)
    graph = csr_array((np.ones(len(calls)), (ends[:, 0], ends[:, 1])), shape=(columns, columns))
    return np.asarray(connected_components(graph, directed=True, connection="strong")[1], dtype=np.int64)
