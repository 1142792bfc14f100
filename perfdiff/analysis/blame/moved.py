"""Calls that moved from one caller to another, and what is left of their extra cost where they became cheaper on the way.

Work that is done at once instead of when its result is asked for (a list instead of a generator, a loop instead of an iterator) costs under
the function that does it now what it cost under the one that asked. Both ways seldom make the same number of calls: the one that asks makes
a last call that finds nothing, the other one a first call that only begins. So the calls that are left when those that moved are set
against each other are no measure by themselves: it is what all of them take together, before and after.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perfdiff.analysis.blame.links import Web, are_neighbours
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.calls import reached
from perfdiff.analysis.sums.ledger import Book
from perfdiff.records.arrays import Floats


def net_by_callee(added: Floats) -> Floats:
    """Let callers that call less often pay for those that call more: calls that moved from one caller to another are no extra cost.

    `added` (f, f + 1) are the calls of [callee] that [.., caller] makes more, and so are those that are returned.
    """
    more = np.where(added > 0, added, 0.0)
    less = np.where(added < 0, added, 0.0)
    plus, minus = more.sum(axis=1, keepdims=True), -less.sum(axis=1, keepdims=True)
    common = np.minimum(plus, minus)
    with np.errstate(divide="ignore", invalid="ignore"):
        net: Floats = np.nan_to_num(more * (1 - common / plus)) + np.nan_to_num(less * (1 - common / minus))
    return net


def part_that_remains(moved: Floats, extra_ns: Floats, before: Book, after: Book) -> Floats:
    """Return which part of what extra calls of each function cost is extra time, (f,): all of it where few of them are calls that moved.

    `moved` (f, f + 1) are the calls of [callee] that [.., caller] makes more because another one makes less, and `extra_ns` (f, f + 1) what
    calls beyond these cost at base's prices. All callers whose calls moved are taken together: no more is extra than what the function
    takes longer under them, compared with what it would take had each of them kept base's ways of calling it.
    """
    remains = np.ones(len(moved))
    extra = np.where(extra_ns > 0, extra_ns, 0.0).sum(axis=1)
    for callee in np.flatnonzero((extra > 0) & (moved > 0).any(axis=1)).tolist():
        callers = set(np.flatnonzero(moved[callee]).tolist()) - {callee}  # the outermost call's time is that of all inside
        taken = [(_median(after.edges_ns, callee, caller), _expected_ns(callee, caller, before, after)) for caller in callers]
        longer_ns = sum(head - base for head, base in taken)
        remains[callee] = np.clip(longer_ns / extra[callee], 0.0, 1.0)
    return remains


def mostly_moved(added: Floats, net: Floats) -> Floats:
    """Return the calls that moved (f, f + 1), of functions whose calls did so for the most part: else the rest is what matters."""
    moved = added - net
    more, of_them = (np.where(calls > 0, calls, 0.0).sum(axis=1, keepdims=True) for calls in (added, moved))
    return np.where(of_them > POLICY.most * more, moved, 0.0)


def moved_through_others(
    web: Web, cheaper: int, dearer: int, saved_ns: Mapping[int, Floats], extra_ns: Mapping[int, Floats]
) -> Floats | float:
    """Return the time (points,) of work that `cheaper` did through callees it now calls less often, and that `dearer` does itself.

    So it is where a loop takes the place of an iterator, or one call for all that of a call for each. The two functions must be
    neighbours, as they are where one hands the other's work on. `saved_ns` and `extra_ns` (points,) are what they save and cost more by
    calls, by the function that is called.
    """
    if not are_neighbours(web, cheaper, dearer):
        return 0.0
    moved: Floats | float = 0.0
    for callee, extra in extra_ns.items():
        part = web.new.moved_part(callee, dearer)
        if part > POLICY.most:
            saved = sum(ns for through, ns in saved_ns.items() if callee in reached(web.callees, through))
            moved = moved + np.minimum(part * extra, saved)
    return moved


def _expected_ns(callee: int, caller: int, before: Book, after: Book) -> float:
    """Return what a caller's calls of a function take in base, for as many calls of the caller as head makes."""
    own = [1.0 if caller == book.calls.shape[1] else float(np.median(book.calls[:, caller])) for book in (before, after)]
    return _median(before.edges_ns, callee, caller) * own[1] / own[0] if own[0] > 0 else 0.0


def _median(edges_ns: Mapping[tuple[int, int], Floats], callee: int, caller: int) -> float:
    return float(np.median(edges_ns[callee, caller])) if (callee, caller) in edges_ns else 0.0
