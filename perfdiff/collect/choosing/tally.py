"""How many calls the survey times: runs that only count come first, and say which functions are called too often to time every call."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from perfdiff.collect.choosing.rates import SAMPLING_ERROR, Rate, may_mark, rings
from perfdiff.languages.protocol import ProbeCosts
from perfdiff.records.schema import Edges, Phase, Run, Side, Totals

# What timing calls may add to a run of the survey: half of the plain run's CPU time, so that it takes 1.5 times as long …
STAMPS_SHARE = 0.5
# … or so much where that is more. Every call of a small input is timed by that, as a rule: long calls that are rare are seen there.
STAMPS_NS = 50e6
LEAST_TIMED = 1000.0  # calls of a function that are timed in any case: they tell a mean whose calls differ as much as it to 3 %
MOST_INNER = 0xFFFF  # the plan file has 16 bits for it
JUMP_NS = 12e6  # the longest that a call was seen to seem longer than it was (docs/architecture/records.md)

Cell = tuple[int, Side]  # a point on one side


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted in one run at each cell.

    `cpu_ns` is the plain build's median; `calls` by function, exact; `inner` those that a function makes to itself, about; `callees` are
    whom a function was seen to call in any run.
    """

    cpu_ns: Mapping[Cell, float]
    calls: Mapping[Cell, Mapping[int, float]]
    inner: Mapping[Cell, Mapping[int, float]]
    callees: Mapping[int, frozenset[int]]

    @property
    def points(self) -> frozenset[int]:
        """Return the points at which calls were counted."""
        return frozenset(point for point, _ in self.calls)

    def rates(self, point: int, costs: Collection[ProbeCosts]) -> dict[int, Rate]:
        """Return how often calls are looked at in runs of a point, for functions of which not all are timed; the same on all sides.

        As many calls of each function are timed as fit, the same number of all that have more, by probes of these `costs`. Where no callee
        has to find them on the stack, the others pass: those of leaves, and those inside a recursion.
        """
        around = rings(self.callees)
        timed_ns, marked = max(cost.timed_ns for cost in costs), may_mark(costs)
        slowest: dict[int, Rate] = {}
        for cell in (cell for cell in self.calls if cell[0] == point):
            calls, inner = self.calls[cell], self.inner[cell]
            most = _most_timed(calls.values(), max(STAMPS_SHARE * self.cpu_ns[cell], STAMPS_NS) / timed_ns)
            for function in (function for function, count in calls.items() if count > most):
                period = math.ceil(calls[function] / most)
                outermost = math.ceil((calls[function] - inner.get(function, 0.0)) / most)
                is_alone = list(around.values()).count(around.get(function, 0)) == 1
                if not self.callees.get(function):
                    rate = Rate(period, passing=True)
                elif function in around and is_alone:
                    rate = Rate(max(outermost, 1), inner=min(period, MOST_INNER))
                else:
                    rate = Rate(period, marked=marked and function not in around)
                slowest[function] = max(slowest.get(function, rate), rate)
        return slowest

    def calls_more(self, point: int, others: Collection[int]) -> bool:
        """Return whether runs of a point call a function on some side that runs of no other point do."""
        called = {place: self._called(place) for place in (point, *others)}
        return not called[point] <= frozenset[int]().union(*(called[other] for other in others))

    def _called(self, point: int) -> frozenset[int]:
        return frozenset(function for cell, calls in self.calls.items() if cell[0] == point for function in calls if calls[function] > 0)

    def unsteady(self) -> frozenset[int]:
        """Return the points at which one disturbed call could be taken for one that holds much of a run's time: they are run again."""
        return frozenset(point for (point, _), cpu_ns in self.cpu_ns.items() if cpu_ns * SAMPLING_ERROR < JUMP_NS)


def counted(runs: Iterable[Run], totals: Totals, edges: Edges) -> Tally:
    """Return the tally of one counting run (of the phase survey) at each cell, and any number of plain ones."""
    plain: dict[Cell, list[float]] = {}
    cells: dict[int, Cell] = {}
    for run in runs:
        if run.phase is Phase.PLAIN:
            plain.setdefault((run.point, run.side), []).append(run.cpu_ns)
        else:
            cells[run.id] = run.point, run.side
    calls: dict[Cell, dict[int, float]] = {cell: {} for cell in cells.values()}
    inner: dict[Cell, dict[int, float]] = {cell: {} for cell in cells.values()}
    callees: dict[int, set[int]] = {}
    for run_id, function, count in zip(totals.run.tolist(), totals.function.tolist(), totals.calls.tolist(), strict=True):
        calls[cells[run_id]][function] = count
    for run_id, caller, callee, count in zip(
        *(column.tolist() for column in (edges.run, edges.caller, edges.callee, edges.calls)), strict=True
    ):
        callees.setdefault(caller, set()).add(callee)
        if caller == callee:
            inner[cells[run_id]][callee] = count
    cpu_ns = {cell: float(np.median(times)) for cell, times in plain.items()}
    return Tally(cpu_ns, calls, inner, {caller: frozenset(called) for caller, called in callees.items()})


def _most_timed(calls: Iterable[float], budget: float) -> float:
    """Return how many calls of each function can be timed so that all together are `budget` at most; infinity where all can."""
    ordered = sorted(calls)
    left = budget
    for place, count in enumerate(ordered):
        share = left / (len(ordered) - place)
        if count > share:
            return max(share, LEAST_TIMED)
        left -= count
    return math.inf
