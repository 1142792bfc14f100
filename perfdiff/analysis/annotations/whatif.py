"""What a run would take if functions took otherwise: changes carried down to all that they call, by exact sums and calls of runs.

A causal profiler slows all else down to see what a faster function would bring (Curtsinger and Berger 2015); here it follows from sums.
What runs take is the own time of all functions, and that of what has no probe, which stays. Threads work at the same time, and probes take
time: where own times come to more than runs without probes take, a run changes in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter

import numpy as np

from perfdiff.analysis.annotations.runtable import of_runs
from perfdiff.analysis.sums.ledger import Book, Ledger, open_ledger
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Experiment, Phase, Run, SampleTable, Side


@dataclass(frozen=True, slots=True)
class CostChange:
    """A function that takes otherwise: `factor` times its time, or `ns` a call; with what it calls, or its `own` time alone.

    Calls that take `ns` on average vary by a standard deviation of `varies_ns`.
    """

    function: int
    factor: float | None = None
    ns: float | None = None
    own: bool = False
    varies_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class Lever:
    """What a run saves, as a share of it, if the own time of a function is halved."""

    function: str
    share: float


def workload_ledger(experiment: Experiment, side: Side, workload: str | None) -> Ledger:
    """Return the sums of one side at the points of a workload, or of all."""
    points = tuple(point for point in experiment.points if workload in (None, point.workload))
    return open_ledger(replace(experiment, points=points), (side,))


def changed_by(
    experiment: Experiment, side: Side, changes: Sequence[CostChange], workload: str | None, within: int | None = None
) -> tuple[SampleTable, SampleTable] | None:
    """Return the own time of all functions in each run, as it is and with the changes; None where no run of the side was timed.

    `within` a function, it is what one of its calls takes in each run, with callees.
    """
    ledger = workload_ledger(experiment, side, workload)
    runs: list[Run] = []
    before: list[float] = []
    after: list[float] = []
    for point in ledger.points:
        book = ledger.books[point, side]
        own, whole = _times(book, ledger.place, changes)
        if within is None:
            part = _part_of_run(experiment, point, side, book)
            now, added = part * book.self_ns.sum(axis=1), part * _added(book, own, whole)
        else:
            column = ledger.place[within]
            calls = np.maximum(book.calls[:, column], 1.0)
            now, added = book.wall_ns[:, column] / calls, _added(_below(book, column), own, whole) / calls
        runs += book.runs
        before += now.tolist()
        after += np.maximum(now + added, 0.0).tolist()
    return (of_runs(experiment, runs, before, side), of_runs(experiment, runs, after, side)) if runs else None


def varied_by(experiment: Experiment, side: Side, changes: Sequence[CostChange], workload: str | None, within: int | None = None) -> float:
    """Return the standard deviation, in ns, of what is added to runs, or calls `within` a function, as changed functions' calls vary.

    It is that of a sum of as many calls, each by itself, as there are at the last point.
    """
    ledger = workload_ledger(experiment, side, workload)
    if not ledger.points:
        return 0.0
    book = ledger.books[ledger.points[-1], side]
    calls = np.median(book.calls, axis=0)
    if within is not None:
        root = ledger.place[within]
        below = np.divide(_below(book, root).self_ns, book.self_ns, out=np.zeros_like(book.self_ns), where=book.self_ns > 0)
        calls = calls * np.median(below, axis=0) / max(calls[root], 1.0)
    return float(np.sqrt(sum(change.varies_ns**2 * calls[ledger.place[change.function]] for change in changes)))


def levers(experiment: Experiment, side: Side, workload: str | None) -> tuple[Lever, ...]:
    """Return what halving the own time of each function saves of a run at the last point, the largest first."""
    ledger = workload_ledger(experiment, side, workload)
    if not ledger.points:
        return ()
    book = ledger.books[ledger.points[-1], side]
    run_ns = max(book.cost_ns, float(book.medians["self_ns"].sum()))
    shares = {info.name: book.medians["self_ns"][ledger.place[info.id]] / run_ns / 2 for info in experiment.functions}
    largest = sorted(shares, key=lambda name: -shares[name])
    return tuple(Lever(name, float(shares[name])) for name in largest if shares[name] > 0)


def _part_of_run(experiment: Experiment, point: int, side: Side, book: Book) -> float:
    """Return what a run without probes takes of each nanosecond of own time: 1, or less where these come to more than it takes."""
    plain_ns = [run.took_ns for run in experiment.runs if (run.phase, run.point, run.side) == (Phase.PLAIN, point, side)]
    own_ns = float(np.median(book.self_ns.sum(axis=1))) if book.runs else 0.0
    return min(1.0, float(np.median(plain_ns)) / own_ns) if plain_ns and own_ns > 0 else 1.0


def _times(book: Book, place: Mapping[int, int], changes: Sequence[CostChange]) -> tuple[Floats, Floats]:
    """Return how many times as long as now functions take by themselves, and with callees (f,), with the changes alone."""
    own, whole = np.ones(len(place)), np.ones(len(place))
    for change in changes:
        column = place[change.function]
        (own if change.own else whole)[column] *= _factor(book, column, change)
    return own, whole


def _added(book: Book, own: Floats, whole: Floats) -> Floats:
    """Return what is added to each of the runs of a point (r,) where functions take `own` and `whole` (f,) times as long."""
    return np.asarray(book.self_ns @ (own * whole * _inherited(book, whole) - 1))


def _below(book: Book, root: int) -> Book:
    """Return a point's book with what runs below one function alone, which nobody calls."""
    columns = book.self_ns.shape[1]
    shares = np.zeros(columns)
    shares[root] = 1.0
    callers: dict[int, dict[int, float]] = {}
    for (to, by), ns in book.edges_ns.items():
        if to not in (root, by):
            callers.setdefault(to, {})[by] = float(np.median(ns))
    for _ in range(columns):  # a call tree is no deeper; rings settle before
        before = shares.copy()
        for to, times in callers.items():
            if total := sum(times.values()):
                shares[to] = sum(ns * before[by] for by, ns in times.items() if by < columns) / total
        if np.allclose(before, shares, rtol=1e-9):
            break
    edges_ns = {(to, by): ns * shares[by] for (to, by), ns in book.edges_ns.items() if by < columns and to != root and shares[by] > 0}
    return replace(book, self_ns=book.self_ns * shares, edges_ns=edges_ns)


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
