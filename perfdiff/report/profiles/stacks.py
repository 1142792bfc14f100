"""Call stacks with what is spent in each on both sides, put together from calls of one function by another.

What is recorded is who called whom how often and for how long, not whole stacks. So what a function spends itself is divided among the
ways that lead to it: at each step up in proportion to the time of the calls by each caller (for counts, in proportion to their number). The
sum over all stacks of a function is what was measured; what it spends on one of several ways is right as far as its calls are alike.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from perfdiff.analysis.callgraph import CallEdge, CallGraph
from perfdiff.analysis.findings import Findings
from perfdiff.models.workcounter import plain
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Side
from perfdiff.report.profiles.callorder import CallOrder, call_order

OUTSIDE = "(outside of probed functions)"
NO_CALLER = "(callers not known)"
TOO_SMALL = "(too small to be shown)"
UNREPORTED = "(function {} of those that are not reported)"
METHOD = (
    "Stacks are put together from calls of one function by another: where several lead to a function, its own cost is divided among them"
    " in proportion to their calls; calls within a recursion are cut off. Own cost includes callees without probes."
)
_TIME, _CALLS = 0, 1  # what ways are weighed by


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is spent: its `unit` is `ns` or `count`, and `says` tells what of."""

    name: str
    unit: str
    says: str


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A function in stacks, by its id; None as `function` is something else, which `name` tells in parentheses."""

    name: str
    file: str = ""
    line: int = 0
    function: int | None = None

    @property
    def place(self) -> str:
        """Return file and line of a function; "" for a frame that is no function."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True, slots=True)
class StackCosts:
    """What is spent in each stack itself on one side, in one quantity: (stacks,)."""

    side: Side
    quantity: Quantity
    own: Floats

    @property
    def says(self) -> str:
        """Return the title of the costs: `head: time in one run of each workload point`."""
        return f"{self.side.value}: {self.quantity.says} in one run of each workload point"


@dataclass(frozen=True, slots=True)
class Stacks:
    """A tree of stacks in columns: the place of each one's frame, and of the stack above it (None at the start), which comes before it.

    `own` (stacks, quantities, 2) is what is spent in a stack itself in base and head, in one run of each workload point.
    """

    quantities: tuple[Quantity, ...]
    frames: tuple[StackFrame, ...]
    frame: tuple[int, ...]
    above: tuple[int | None, ...]
    own: Floats

    @property
    def costs(self) -> tuple[StackCosts, ...]:
        """Return base and head of each quantity."""
        return tuple(
            StackCosts(side, quantity, self.own[:, row, column])
            for row, quantity in enumerate(self.quantities)
            for column, side in enumerate(Side)
        )

    def chain(self, stack: int) -> list[int]:
        """Return the frames of a stack, the start of its thread first."""
        frames: list[int] = []
        place: int | None = stack
        while place is not None:
            frames.append(self.frame[place])
            place = self.above[place]
        return frames[::-1]

    def added_up(self, costs: Floats) -> Floats:
        """Return costs of stacks (stacks, …) each with those of all stacks below it."""
        sums = costs.copy()
        for stack in range(len(sums) - 1, -1, -1):
            above = self.above[stack]
            if above is not None:
                sums[above] += sums[stack]
        return sums


@dataclass(frozen=True, slots=True)
class Detail:
    """How far stacks are told: the smallest share of any quantity, how many stacks at most, and how deep."""

    least: float
    most: int
    deepest: int


# Viewers open as many at once, and what is left is not seen in any.
EXPORTED = Detail(least=1e-5, most=20_000, deepest=500)


def call_stacks(findings: Findings, detail: Detail) -> Stacks:
    """Return the stacks of a comparison, the costliest first; what is smaller stands in one frame for all of its caller.

    Where nothing was timed with probes, all time of whole runs is outside of probed functions.
    """
    calls = findings.calls or CallGraph({}, ())
    spent = _Spent(calls)
    growth = _StackGrowth(findings, spent, detail)
    growth.grow()
    outside = _outside(findings, calls, spent)
    if outside.any():
        growth.add(StackFrame(OUTSIDE), None, outside)
    return growth.stacks()


def _outside(findings: Findings, calls: CallGraph, spent: _Spent) -> Floats:
    """Return the time of whole runs that no probed function takes, as own cost (quantities, 2); 0 where that is not known."""
    outside = np.zeros_like(spent.total)
    if calls.runs_ns is not None:
        outside[_TIME] = np.maximum(calls.runs_ns - spent.total[_TIME], 0.0)
    elif not spent.total[_TIME].any():
        outside[_TIME] = sum(end.base_ns for end in findings.end_to_end), sum(end.head_ns for end in findings.end_to_end)
    return outside


class _Spent:
    """What functions spend on both sides: themselves, and with all that they call, by quantity."""

    def __init__(self, calls: CallGraph) -> None:
        counters = {name: counts for name, counts in calls.counts.items() if any(map(any, counts.by_function.values()))}
        self.quantities = (
            Quantity("time", "ns", "time"),
            Quantity("calls", "count", "calls"),
            *(Quantity(name, "count", f"{plain(name)} executed{'' if counts.exact else ', medians'}") for name, counts in counters.items()),
        )
        # Of times, ways are weighed by the time of calls; of all counts by the number of calls.
        self.weighing = [_TIME, *[_CALLS] * (len(self.quantities) - 1)]
        self.own: dict[int, Floats] = {}
        for function, cost in calls.costs.items():
            self._of(function)[_TIME] = max(cost.self_base_ns, 0.0), max(cost.self_head_ns, 0.0)
        for edge in calls.edges:
            self._of(edge.callee)[_CALLS] += edge.calls_base, edge.calls_head
        for row, counts in enumerate(counters.values(), start=2):
            for function, sides in counts.by_function.items():
                self._of(function)[row] = sides
        self.own = {function: own for function, own in self.own.items() if own.any()}
        self.total: Floats = sum(self.own.values(), np.zeros((len(self.quantities), 2)))
        self.order: CallOrder = call_order(calls.edges, sorted(self.own, key=lambda function: (-self.own[function][_TIME].max(), function)))
        self.ways = _ways(self.order)
        self.together: dict[int, Floats] = {}
        for function in reversed(self.order.functions):
            below = self.order.calls.get(function, ())
            shares = (self.ways[function, edge.callee][self.weighing] * self.together[edge.callee] for edge in below)
            self.together[function] = sum(shares, self.own.get(function, np.zeros_like(self.total)).copy())

    @property
    def without_caller(self) -> dict[int, Floats]:
        """Return the share (2, 2) of what functions spend that no known call leads to: all of a side without calls of them."""
        led = {function: np.zeros((2, 2)) for function in self.order.functions}
        for (_, callee), share in self.ways.items():
            led[callee] += share
        shares = {function: np.where(share > 0, 0.0, 1.0) for function, share in led.items()}
        return {function: share for function, share in shares.items() if (self.together[function] * share[self.weighing]).any()}

    def _of(self, function: int) -> Floats:
        return self.own.setdefault(function, np.zeros((len(self.quantities), 2)))


def _ways(order: CallOrder) -> Mapping[tuple[int | None, int], Floats]:
    """Return the share of each caller in all calls of a function: (2, 2), weighed by time and by number, in base and head.

    Where calls took no time they are weighed by number. What has no calls at all on a side has no caller there.
    """
    weights = {(edge.caller, edge.callee): _weights(edge) for edges in order.calls.values() for edge in edges}
    sums: dict[int, Floats] = {}
    for (_, callee), weight in weights.items():
        sums[callee] = sums.get(callee, np.zeros((2, 2))) + weight

    def share(weight: Floats, whole: Floats) -> Floats:
        parts = np.divide(weight, whole, out=np.zeros((2, 2)), where=whole > 0)
        return np.where(whole[_TIME] > 0, parts, parts[_CALLS])

    return {way: share(weight, sums[way[1]]) for way, weight in weights.items()}


def _weights(edge: CallEdge) -> Floats:
    return np.maximum([[edge.base_ns, edge.head_ns], [edge.calls_base, edge.calls_head]], 0.0)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A stack that may be told, with what is spent in it and below: (quantities, 2), and the share of its way (2, 2)."""

    function: int
    above: int | None
    depth: int
    share: Floats
    together: Floats


@dataclass(slots=True)
class _Grown:
    """Stacks as they grow: the frame of each, the stack above it, and its own cost."""

    frame: list[int] = field(default_factory=list)
    above: list[int | None] = field(default_factory=list)
    own: list[Floats] = field(default_factory=list)


class _StackGrowth:
    """Grows stacks, those in which most is spent first, until the rest is too small."""

    def __init__(self, findings: Findings, spent: _Spent, detail: Detail) -> None:
        self._infos = {finding.info.id: finding.info for finding in findings.functions}
        self._spent = spent
        self._detail = detail
        self._frames: dict[StackFrame, int] = {}
        self._grown = _Grown()
        self._waiting: list[tuple[float, int, _Branch]] = []
        self._seen = itertools.count()  # of stacks that cost the same, the first one seen comes first
        self._rest: dict[int | None, Floats] = {}

    def add(self, frame: StackFrame, above: int | None, own: Floats) -> int:
        """Add a stack, and return its place."""
        self._grown.frame.append(self._frames.setdefault(frame, len(self._frames)))
        self._grown.above.append(above)
        self._grown.own.append(own)
        return len(self._grown.own) - 1

    def grow(self) -> None:
        """Add all stacks that are large enough, then what is left of each."""
        for edge in self._spent.order.calls.get(None, ()):
            self._wait(edge.callee, None, 1, self._spent.ways[None, edge.callee])
        if self._spent.without_caller:
            above = self.add(StackFrame(NO_CALLER), None, np.zeros_like(self._spent.total))
            for function, share in self._spent.without_caller.items():
                self._wait(function, above, 2, share)
        while self._waiting:
            importance, _, branch = heapq.heappop(self._waiting)
            if -importance < self._detail.least or len(self._grown.own) >= self._detail.most or branch.depth > self._detail.deepest:
                self._rest[branch.above] = self._rest.get(branch.above, np.zeros_like(branch.together)) + branch.together
            else:
                self._tell(branch)
        for above_rest, rest in self._rest.items():
            self.add(StackFrame(TOO_SMALL), above_rest, rest)

    def _tell(self, branch: _Branch) -> None:
        own = self._spent.own.get(branch.function)
        share = branch.share[self._spent.weighing]
        place = self.add(self._frame(branch.function), branch.above, np.zeros_like(share) if own is None else own * share)
        for edge in self._spent.order.calls.get(branch.function, ()):
            self._wait(edge.callee, place, branch.depth + 1, branch.share * self._spent.ways[branch.function, edge.callee])

    def _wait(self, function: int, above: int | None, depth: int, share: Floats) -> None:
        together = self._spent.together[function] * share[self._spent.weighing]
        total = self._spent.total
        if not together.any():
            return
        importance = float(np.divide(together, total, out=np.zeros_like(total), where=total > 0).max())
        heapq.heappush(self._waiting, (-importance, next(self._seen), _Branch(function, above, depth, share, together)))

    def _frame(self, function: int) -> StackFrame:
        info = self._infos.get(function)
        return StackFrame(info.name, info.file, info.line, function) if info else StackFrame(UNREPORTED.format(function))

    def stacks(self) -> Stacks:
        """Return what has grown."""
        shape = (-1, len(self._spent.quantities), 2)
        own = np.array(self._grown.own).reshape(shape)
        return Stacks(self._spent.quantities, tuple(self._frames), tuple(self._grown.frame), tuple(self._grown.above), own)
