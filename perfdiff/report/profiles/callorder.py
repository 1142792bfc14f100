"""An order of functions in which callers stand before what they call, with the calls that recursion adds left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perfdiff.analysis.callgraph import CallEdge

Calls = dict[int | None, list[CallEdge]]


@dataclass(frozen=True, slots=True)
class CallOrder:
    """Functions by their ids, callers first, and the `calls` of each caller; None as a caller is the start of a thread.

    `orphans` are functions that no start of a thread leads to.
    """

    functions: tuple[int, ...]
    calls: Calls
    orphans: tuple[int, ...]


def call_order(edges: Iterable[CallEdge], functions: Iterable[int]) -> CallOrder:
    """Return an order of `functions` with callers before callees, the costliest first among equals.

    Of a call that would close a circle, nothing is kept: the caller and the callee are both at work already.
    """
    walk = _CallWalk(_by_caller(edges))
    walk.go(None)
    orphans = []
    for function in functions:
        if function not in walk.left:
            orphans.append(function)
            walk.go(function)
    order = [function for function in reversed(walk.left) if function is not None]
    return CallOrder(tuple(order), walk.kept, tuple(orphans))


def _by_caller(edges: Iterable[CallEdge]) -> Calls:
    calls: Calls = {}
    for edge in sorted(edges, key=lambda edge: (-max(edge.base_ns, edge.head_ns), -max(edge.calls_base, edge.calls_head), edge.callee)):
        calls.setdefault(edge.caller, []).append(edge)
    return calls


class _CallWalk:
    """A walk along calls, depth first, without Python's own recursion, as call chains may be thousands long."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self.left: dict[int | None, None] = {}  # in the order in which all that they call had been seen
        self.kept: Calls = {}

    def go(self, start: int | None) -> None:
        """Walk along all calls that `start` leads to and that were not walked along before."""
        at_work: dict[int | None, Iterator[CallEdge]] = {start: iter(self._calls.get(start, ()))}
        while at_work:
            caller, calls = next(reversed(at_work.items()))
            edge = next((call for call in calls if call.callee not in at_work), None)
            if edge is None:
                del at_work[caller]
                self.left[caller] = None
                continue
            self.kept.setdefault(caller, []).append(edge)
            if edge.callee not in self.left:
                at_work[edge.callee] = iter(self._calls.get(edge.callee, ()))
