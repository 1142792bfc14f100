"""Functions that call each other in a ring, in a run of one side: what calls it from outside, and how deep each such call goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Book
from perfdiff.records.arrays import Bools, Floats

Edge = tuple[int, int]  # callee and caller


@dataclass(frozen=True, slots=True)
class Ring:
    """How often a ring calls each function itself in a run of one side, (f,), and by callee and caller the calls from outside.

    `entries_ns` is what these take. `busiest` is the number of calls within the ring that a call of that function makes on average which
    makes most.
    """

    called: Floats
    busiest: float
    entries: Mapping[Edge, float]
    entries_ns: Mapping[Edge, float]

    @classmethod
    def of(cls, book: Book, members: Bools) -> Ring:
        """Return the medians over the runs of one side; `members` (f,) are the ring's functions."""
        called, made_by, entries, entries_ns = np.zeros(len(members)), np.zeros(len(members)), {}, {}
        for edge, calls in book.edges.items():
            callee, caller = edge
            if not members[callee] or not (count := float(np.median(calls))):
                continue
            if caller < len(members) and members[caller]:
                called[callee] += count
                made_by[caller] += count
            else:
                entries[edge] = count
                entries_ns[edge] = float(np.median(book.edges_ns[edge])) if edge in book.edges_ns else 0.0
        busiest = float(np.max(made_by / np.maximum(book.medians["calls"], 1.0)))
        return cls(called, busiest, entries, entries_ns)

    @property
    def inner(self) -> float:
        """Return how many calls the ring makes itself."""
        return float(self.called.sum())

    @property
    def is_timed(self) -> bool:
        """Return whether all that is called from outside is known to take time."""
        return bool(self.entries_ns) and all(self.entries_ns.values())

    def below(self, edge: Edge) -> float:
        """Return how many calls the ring makes itself for one from outside: by its part in what all of them take."""
        a_call_ns = self.entries_ns[edge] / self.entries[edge]
        calls = self.inner + sum(self.entries.values())
        return max(a_call_ns * calls / sum(self.entries_ns.values()) - 1, 0.0)


def both(before: Book, after: Book, members: Bools) -> tuple[Ring, Ring]:
    """Return a ring on both sides, where callers that took over a former one's calls go by its name."""
    base, head = Ring.of(before, members), Ring.of(after, members)
    gone, new = ([edge for edge in side.entries if edge not in other.entries] for side, other in ((base, head), (head, base)))
    names: dict[Edge, Edge] = {}
    for edge in new:
        former = next((candidate for candidate in gone if _took_over(edge, candidate, base, head, after)), None)
        if former is not None:
            gone.remove(former)
            names[edge] = former
    entries, entries_ns = ({names.get(edge, edge): value for edge, value in by_edge.items()} for by_edge in (head.entries, head.entries_ns))
    return base, replace(head, entries=entries, entries_ns=entries_ns)


def _took_over(edge: Edge, former: Edge, base: Ring, head: Ring, after: Book) -> bool:
    """Return whether the same caller calls another function of the ring about as often, or a wrapper that it calls the same one."""
    (callee, caller), (old_callee, old_caller) = edge, former
    is_wrapped = callee == old_callee and (caller, old_caller) in after.edges
    times = head.entries[edge] / base.entries[former]
    return (caller == old_caller or is_wrapped) and 1 / POLICY.taken_over <= times <= POLICY.taken_over


def expected(base: Ring, head: Ring) -> float | None:
    """Return how many calls a ring would make itself for head's calls from outside by base's code; None where nothing tells.

    Each goes as deep as it does in base, or in head where base made none; equally deep all of them, where what they take is not known.
    """
    if not base.inner or not base.entries or not head.entries:
        return None
    if not (base.is_timed and head.is_timed):
        return base.inner * sum(head.entries.values()) / sum(base.entries.values())
    in_base, in_head = (sum(calls * side.below(edge) for edge, calls in side.entries.items()) for side in (base, head))
    of_known = sum(head.entries.get(edge, 0.0) * base.below(edge) for edge in base.entries)
    of_new = sum(calls * head.below(edge) for edge, calls in head.entries.items() if edge not in base.entries)
    return base.inner * _part(of_known, in_base) + head.inner * _part(of_new, in_head)


def other_calls(base: Ring, head: Ring) -> float:
    """Return how many calls may be made below calls from outside that only one side makes, or more often than most others.

    As many as these, and those below them, make if each is of the busiest function. By how much the number of most calls rose is the
    median of those that both sides make, by what is below them in base.
    """
    if not (base.is_timed and head.is_timed):
        return 0.0
    weights = {edge: calls * (1 + base.below(edge)) for edge, calls in base.entries.items()}
    times = {edge: head.entries[edge] / calls for edge, calls in base.entries.items() if edge in head.entries}
    usual = _weighted_median(times, weights)
    differ = sum(abs(ratio - usual) * weights[edge] for edge, ratio in times.items())
    gone = sum(weight for edge, weight in weights.items() if edge not in times)
    new = sum(calls * (1 + head.below(edge)) for edge, calls in head.entries.items() if edge not in base.entries)
    return (differ + gone + new) * max(base.busiest, head.busiest)


def _part(some: float, all_of_them: float) -> float:
    return some / all_of_them if all_of_them else 0.0


def _weighted_median(values: Mapping[Edge, float], weights: Mapping[Edge, float]) -> float:
    """Return the least value that at least half of the weight does not exceed, 1 of none."""
    half, reached = sum(weights[edge] for edge in values) / 2, 0.0
    for edge in sorted(values, key=lambda edge: values[edge]):
        reached += weights[edge]
        if reached >= half:
            return values[edge]
    return 1.0
