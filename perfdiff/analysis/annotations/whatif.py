"""What a run would take if functions took otherwise: changes carried down to all that they call, by exact sums and calls of runs.

A causal profiler slows all else down to see what a faster function would bring (Curtsinger and Berger 2015); here it follows from sums.
What runs take is the own time of all functions, and that of what has no probe, which stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from perfdiff.analysis.annotations.runtable import of_runs
from perfdiff.analysis.sums.ledger import Book, Ledger, open_ledger
from perfdiff.records.schema import Experiment, Floats, Run, SampleTable, Side

_ROUNDS = 200  # of carrying factors down; the deepest call trees without recursion are shallower


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


def levers(experiment: Experiment, side: Side, workload: str | None, most: int) -> list[Lever]:
    """Return the functions whose own time is the most of a run at the last point, the largest first."""
    ledger = _ledger(experiment, side, workload)
    if not ledger.points:
        return []
    book = ledger.books[ledger.points[-1], side]
    run_ns = max(book.cost_ns, float(book.medians["self_ns"].sum()))
    shares = {info.name: book.medians["self_ns"][ledger.place[info.id]] / run_ns / 2 for info in experiment.functions}
    largest = sorted(shares, key=lambda name: -shares[name])[:most]
    return [Lever(name, float(shares[name])) for name in largest if shares[name] > 0]


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

    A function's calls are as dear as its callers' are, in proportion to the time that they spend in it. Calls within a recursion, which are
    part of its outermost ones, carry nothing.
    """
    columns = len(whole)
    pairs = {pair: float(np.median(ns)) for pair, ns in book.edges_ns.items() if pair[1] < columns and pair[0] != pair[1]}
    calls = csr_array((np.ones(len(pairs)), ([by for _, by in pairs], [to for to, _ in pairs])), shape=(columns, columns))
    _, ring = connected_components(calls, directed=True, connection="strong")
    total = np.zeros(columns)
    for (to, by), ns in book.edges_ns.items():
        if to < columns and (by == columns or ring[by] != ring[to]):
            total[to] += float(np.median(ns))
    shares = {pair: ns / total[pair[0]] for pair, ns in pairs.items() if ring[pair[0]] != ring[pair[1]] and total[pair[0]] > 0}
    inherited = np.ones(columns)
    for _ in range(_ROUNDS):
        carried = np.ones(columns)
        for (to, by), share in shares.items():
            carried[to] += share * (inherited[by] * whole[by] - 1)
        if np.allclose(carried, inherited, rtol=1e-12):
            break
        inherited = carried
    return inherited
