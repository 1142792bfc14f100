"""The call tree: which calls cost more in head, and how much of that functions take themselves, and how much their callees."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from perfdiff import units
from perfdiff.analysis.callgraph import CallEdge
from perfdiff.analysis.findings import Findings, FunctionFinding, Verdict
from perfdiff.report import wording

# The costliest calls come first; more rows are searched, not read.
MOST_ROWS = 120
# Deeper nesting leaves names no room, and a browser's parser gives up on hundreds of levels.
DEEPEST = 24
# Of the largest extra cost: calls that cost less are folded away.
SEEN_AT_ONCE = 0.01


@dataclass(frozen=True, slots=True)
class ExtraCost:
    """What head takes more than base in one run of each workload point, in ns; `clear` if beyond what runs vary by."""

    ns: float
    clear: bool

    @property
    def text(self) -> str:
        """Return the extra time with its sign, such as `+2 ms`."""
        return f"{'+' if self.ns > 0 else '−'}{units.duration(abs(self.ns))}" if self.ns else "0"


@dataclass(frozen=True, slots=True)
class TreeCall:
    """A function as called by the one above it, with the calls it makes.

    `total` is the extra cost of these calls. `own` and `below` split that of all calls of the function into its own and that of its
    callees; they are None where the function stands elsewhere in the tree, with its callees. `callers` counts who calls it, `left_out`
    calls it makes that are not shown. `opened` if something below it is to be seen at once.
    """

    target: str
    name: str
    place: str
    verdict: Verdict
    rank: int | None
    calls: str
    total: ExtraCost
    own: ExtraCost | None
    below: ExtraCost | None
    callers: int
    children: tuple[TreeCall, ...]
    left_out: int
    opened: bool


@dataclass(frozen=True, slots=True)
class CallTree:
    """The calls from the starts of threads on; `low` and `high` are the ends of an axis that all extra costs fit on, in ns."""

    roots: tuple[TreeCall, ...]
    low: float
    high: float


def call_tree(findings: Findings) -> CallTree | None:
    """Return the tree of the costliest calls, or None where no calls are known. Texts of the findings must be printable.

    Calls make a graph. Each function stands with its callees where it costs most more, and only by its name elsewhere.
    """
    finding_by_id = {finding.info.id: finding for finding in findings.functions}
    edges = [edge for edge in findings.calls.edges if edge.callee in finding_by_id and edge.caller != edge.callee] if findings.calls else []
    if not edges:
        return None
    roots = _TreeBuilder(finding_by_id, edges).grown()
    largest = max((abs(row.edge.head_ns - row.edge.base_ns) for row in roots), default=0.0)
    calls = tuple(_Pruning(findings, edges, SEEN_AT_ONCE * largest).call(row) for row in roots)
    extras = [extra.ns for extra in _extras(calls)]
    return CallTree(calls, min(0.0, *extras), max(0.0, *extras)) if calls else None


def has_moved(finding: FunctionFinding, metric: str) -> bool:
    """Return whether the sum of a metric over a run differs by more than runs vary by."""
    compared = finding.metrics.get(metric)
    return compared is not None and compared.total is not None and not compared.total.low <= 1 <= compared.total.high


@dataclass(slots=True)
class _Row:
    """A call's place in the tree; `first` where its callee has not been placed before."""

    edge: CallEdge
    depth: int
    first: bool
    rows: list[_Row] = field(default_factory=list)


class _TreeBuilder:
    """Grows a tree over the graph of calls, the costliest call first, ways to ranked functions before all others."""

    def __init__(self, finding_by_id: Mapping[int, FunctionFinding], edges: Iterable[CallEdge]) -> None:
        self._below = _by_caller(edges)
        self._leading = _leading({number for number, finding in finding_by_id.items() if finding.rank is not None}, edges)
        self._waiting: list[tuple[bool, float, int, int, CallEdge, list[_Row], int]] = []
        self._seen = itertools.count()  # of calls that cost the same, the first one seen comes first

    def grown(self) -> list[_Row]:
        """Return the calls that start threads, with those below them."""
        roots: list[_Row] = []
        placed: set[int] = set()
        self._wait(None, roots, 1)
        for _ in range(MOST_ROWS):
            if not self._waiting:
                break
            *_, edge, siblings, depth = heapq.heappop(self._waiting)
            row = _Row(edge, depth, first=edge.callee not in placed)
            siblings.append(row)
            if row.first:
                placed.add(edge.callee)
                if depth < DEEPEST:
                    self._wait(edge.callee, row.rows, depth + 1)
        return roots

    def _wait(self, caller: int | None, siblings: list[_Row], depth: int) -> None:
        for edge in self._below.get(caller, []):
            key = edge.callee not in self._leading, -abs(edge.head_ns - edge.base_ns), edge.callee
            heapq.heappush(self._waiting, (*key, next(self._seen), edge, siblings, depth))


def _by_caller(edges: Iterable[CallEdge]) -> dict[int | None, list[CallEdge]]:
    by_caller: dict[int | None, list[CallEdge]] = {}
    for edge in edges:
        by_caller.setdefault(edge.caller, []).append(edge)
    return by_caller


def _leading(targets: set[int], edges: Iterable[CallEdge]) -> set[int]:
    """Return the functions that lead to `targets`, these included."""
    callers: dict[int, list[int]] = {}
    for edge in edges:
        if edge.caller is not None:
            callers.setdefault(edge.callee, []).append(edge.caller)
    leading, frontier = set(targets), list(targets)
    while frontier:
        frontier = [caller for function in frontier for caller in callers.get(function, []) if caller not in leading]
        leading.update(frontier)
    return leading


class _Pruning:
    """Turns places in the tree into what is said of them."""

    def __init__(self, findings: Findings, edges: Iterable[CallEdge], seen_at_once: float) -> None:
        self._known = {finding.info.id: finding for finding in findings.functions}
        self._costs = findings.calls.costs if findings.calls else {}
        self._below = _by_caller(edges)
        self._callers: dict[int, int] = {}
        for edge in edges:
            self._callers[edge.callee] = self._callers.get(edge.callee, 0) + 1
        self._seen_at_once = seen_at_once

    def call(self, row: _Row) -> TreeCall:
        """Return a row with all below it."""
        edge = row.edge
        finding = self._known[edge.callee]
        children = tuple(self.call(child_row) for child_row in row.rows)
        own, below = self._split(edge.callee) if row.first else (None, None)
        return TreeCall(
            target=f"function-{edge.callee}",
            name=finding.info.name,
            place=wording.place(finding.info),
            verdict=finding.verdict,
            rank=finding.rank,
            calls=wording.counts(edge.calls_base, edge.calls_head),
            total=self._total(edge),
            own=own,
            below=below,
            callers=self._callers[edge.callee],
            children=children,
            left_out=len(self._below.get(edge.callee, [])) - len(children) if row.first else 0,
            opened=any(self._stands_out(child) for child in children),
        )

    def _total(self, edge: CallEdge) -> ExtraCost:
        """Return the extra cost of a caller's calls; those of one among several callers are not tested apart from the others'."""
        ns = edge.head_ns - edge.base_ns
        cost = self._costs[edge.callee]
        return ExtraCost(ns, self._moved(edge.callee, "wall_ns") and ns * (cost.head_ns - cost.base_ns) > 0)

    def _split(self, function: int) -> tuple[ExtraCost, ExtraCost | None]:
        cost = self._costs[function]
        own = cost.self_head_ns - cost.self_base_ns
        callees = self._below.get(function, [])
        clear = any(self._moved(edge.callee, "wall_ns") for edge in callees)
        below = ExtraCost(cost.head_ns - cost.base_ns - own, clear) if callees else None
        return ExtraCost(own, self._moved(function, "self_ns")), below

    def _moved(self, function: int, metric: str) -> bool:
        return has_moved(self._known[function], metric)

    def _stands_out(self, call: TreeCall) -> bool:
        return call.opened or call.rank is not None or (call.total.clear and abs(call.total.ns) >= self._seen_at_once)


def _extras(calls: Iterable[TreeCall]) -> Iterator[ExtraCost]:
    for call in calls:
        yield from (extra for extra in (call.total, call.own, call.below) if extra is not None)
        yield from _extras(call.children)
