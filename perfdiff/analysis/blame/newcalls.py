"""New calls and new allocations, and the changed functions that make them.

Exact counts prove both, without a test: what unchanged code costs at calls that are new, and what it takes to free what is new, follows
from the change behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.models.middle import median
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Side

_Edges = dict[tuple[int, int], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class NewCalls:
    """Calls and allocations in one run of each point, medians over runs: `calls` and `edges` (callee, caller) base and head, by function.

    As a caller, 0 is the start of a thread. `allocations` are those of each function with its callees.
    """

    calls: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    edges: Mapping[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    allocations: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def is_mostly_new(self, function: int) -> bool:
        """Return whether base never made most of the calls of a function that head makes."""
        base, head = self.calls.get(function, (0.0, 0.0))
        return head > POLICY.mostly_new * base

    def moved_part(self, callee: int, caller: int) -> float:
        """Return which part of the calls of a function that each call of a caller makes more are made no longer elsewhere.

        That is what the function is not called more often in all.
        """
        none = (0.0, 0.0)
        (edge_base, edge_head), (base, head) = self.edges.get((callee, caller), none), self.calls.get(caller, none)
        more = edge_head - (edge_base * head / base if base else 0.0)
        before, after = self.calls.get(callee, none)
        return min(max(1 - (after - before) / more, 0.0), 1.0) if more > 0 else 0.0

    def allocates_below(self, function: int, below: Collection[int]) -> bool:
        """Return whether most of what a function allocates more is allocated by functions that it calls (`below`)."""
        more = {at: self.allocations[at][1] - self.allocations[at][0] for at in (function, *below) if at in self.allocations}
        return any(more[callee] > POLICY.most * more.get(function, 0.0) for callee in below if callee in more)

    def makers(self, function: int, is_changed: Callable[[int], bool]) -> dict[int, float]:
        """Return the changed functions that make the new calls of a function, directly or through unchanged ones, with their parts.

        A changed function makes them if each of its own calls makes more; else who calls it does.
        """
        makers: dict[int, float] = {}
        seen, frontier = {function, 0}, {function: 1.0}
        while frontier:
            above: dict[int, float] = {}
            for at, part in frontier.items():
                for caller, share in self._callers(at).items():
                    if caller in seen or share < POLICY.followed:
                        continue
                    into = makers if is_changed(caller) and self._calls_more(at, caller) else above
                    into[caller] = into.get(caller, 0.0) + part * share
            seen |= set(above) | set(makers)
            frontier = above
        return makers

    def _callers(self, function: int) -> dict[int, float]:
        """Return the callers of a function's new calls, with the part of these that each makes."""
        extra = {caller: head - base for (callee, caller), (base, head) in self.edges.items() if callee == function and head > base}
        whole = sum(extra.values())
        return {caller: more / whole for caller, more in extra.items()}

    def _calls_more(self, callee: int, caller: int) -> bool:
        edge_calls, own = self.edges[callee, caller], self.calls.get(caller, (0.0, 0.0))
        before, after = (calls / of if of else 0.0 for calls, of in zip(edge_calls, own, strict=True))
        return after > before

    def owners(self, roots: Collection[int], is_changed: Callable[[int], bool], below: Callable[[int], set[int]]) -> frozenset[int]:
        """Return the innermost changed functions that account for what runs allocate more, none where that is little.

        `roots` are the functions that together allocate what a run does; `below` gives all that a function calls, directly or not.
        """
        base, head = (sum(self.allocations.get(root, (0.0, 0.0))[side] for root in roots) for side in range(2))
        if head <= POLICY.more_allocated * base:
            return frozenset()
        more = {
            function
            for function, (before, after) in self.allocations.items()
            if is_changed(function) and after - before >= POLICY.most * (head - base)
        }
        return frozenset(function for function in more if not below(function) & more)


def new_calls(ledger: Ledger) -> NewCalls:
    """Return the calls and allocations of a ledger's runs."""
    calls, allocations = (_both(ledger, metric) for metric in ("calls", "alloc_count"))
    return NewCalls(calls, _edges(ledger), allocations)


def _both(ledger: Ledger, metric: str) -> dict[int, tuple[float, float]]:
    sides = [ledger.of_a_run(metric, side).tolist() for side in Side]
    return {function: (base, head) for function, base, head in zip(ledger.ids, *sides, strict=True)}


def _edges(ledger: Ledger) -> _Edges:
    ids: Ints = np.array([*ledger.ids, 0])
    sums: dict[tuple[int, int], Floats] = {}
    for (_, side), book in ledger.books.items():
        for (callee, caller), calls in book.edges.items():
            both = sums.setdefault((int(ids[callee]), int(ids[caller])), np.zeros(2))
            both[list(Side).index(side)] += median(calls)
    return {pair: (float(both[0]), float(both[1])) for pair, both in sums.items()}
