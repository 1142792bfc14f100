"""Functions that call each other in a ring: what a call more within one costs, which rates of calls cannot say.

Rates know nothing of how deep a call is. Within a ring they multiply to nearly one, so that a call more seems to bring about as many others
as the whole run makes. gprof (Graham, Kessler and McKusick 1982) takes a ring for one function for that reason. Here each call within it
costs at most what calls of its callee take on average, and all calls together what counts say of the ring as a whole; a call into it from
outside costs at most what calls of its caller take.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.stats.panel import Bools
from perfdiff.analysis.sums.ledger import Book
from perfdiff.records.schema import Floats, Ints

SOMEBODY = -1  # a caller in place of several


def rings(before: Book, after: Book) -> Ints:
    """Return the number of each function's ring on both sides together, (f,): the same for functions that call each other by some way."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    width = before.calls.shape[1]
    edges = [edge for book in (before, after) for edge in book.edges if edge[1] < width]  # not from the start of a thread
    callees, callers = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(edges)), (callers, callees)), shape=(width, width))
    found: Ints = connected_components(graph, connection="strong")[1]
    return found


def most(before: Book, after: Book, net: Floats, numbers: Ints) -> Floats:
    """Return what a call takes at most by its callee and caller, (f, f + 1), with all that it calls: infinity where no ring is called.

    Within a ring it is what one of the callee's calls takes on average, the outermost ones with all that is inside; from outside, what the
    caller's calls take. Head's where `net` has more calls, base's where it has fewer.
    """
    within = _within(numbers)
    sides = [_average(book, within, numbers) for book in (before, after)]
    return np.where(net > 0, sides[1], sides[0])


def by_ways(more: Floats, numbers: Ints, before: Book, after: Book) -> Floats:
    """Return the calls that callers make more, (f, f + 1), without what other calls into a ring make of its rates.

    `more` has them by base's rates. Calls from outside that go less deep than most, or other ways, change the average rates of a ring none
    of whose functions does anything else: by no more calls than are made below them.
    """
    within, found = _within(numbers), more.copy()
    for number in _concerned(more, within, numbers):
        of_ring = within & (numbers == number)[:, None]
        other = _other_calls(*_both(before, after, numbers == number))
        for some in (of_ring & (more > 0), of_ring & (more < 0)):
            if total := float(np.abs(more[some]).sum()):
                found[some] *= max(1 - other / total, 0.0)
    return found * balance(found, np.ones(len(found)), numbers, before, after)


def balance(extra: Floats, a_round: Floats, numbers: Ints, before: Book, after: Book) -> Floats:
    """Return which part of what calls add remains, (f, f + 1), so that those within a ring come to what the ring has more of.

    `extra` (f, f + 1) is what calls add by callee and caller, as a number or in ns, `a_round` (f,) one call with all that it calls outside
    of its ring. A ring has more of the calls that it makes itself, beyond those that base would make for head's calls from outside. What
    is too much is taken from those that make more, what is too little from those that make fewer.
    """
    within, parts = _within(numbers), np.ones(extra.shape)
    inner = [_inner(book, within) for book in (before, after)]
    for number in _concerned(extra, within, numbers):
        ring = numbers == number
        expected = _expected(*_both(before, after, ring))
        if expected is None:
            continue
        whole = float(np.sum(a_round[ring] * (inner[1][ring] - inner[0][ring] * expected / np.sum(inner[0][ring]))))
        of_ring = within & ring[:, None]
        dearer, cheaper = of_ring & (extra > 0), of_ring & (extra < 0)
        added, saved = float(extra[dearer].sum()), float(extra[cheaper].sum())
        if added + saved > whole and added > 0:
            parts[dearer] = np.clip((whole - saved) / added, 0.0, 1.0)
        elif saved < 0:
            parts[cheaper] = np.clip((whole - added) / saved, 0.0, 1.0)
    return parts


@dataclass(frozen=True, slots=True)
class Ring:
    """How many calls a ring makes itself in a run of one side, and by callee and caller those from outside, with what they take in ns."""

    inner: float
    entries: Mapping[tuple[int, int], float]
    entries_ns: Mapping[tuple[int, int], float]

    @classmethod
    def of(cls, book: Book, members: Bools) -> Ring:
        """Return the medians over the runs of one side."""
        inner, entries, entries_ns = 0.0, {}, {}
        for edge, calls in book.edges.items():
            callee, caller = edge
            if not members[callee] or not (made := float(np.median(calls))):
                continue
            if caller < len(members) and members[caller]:
                inner += made
            else:
                entries[edge] = made
                entries_ns[edge] = float(np.median(book.edges_ns[edge])) if edge in book.edges_ns else 0.0
        return cls(inner, entries, entries_ns)

    def by_some(self, moved: Collection[tuple[int, int]]) -> Ring:
        """Return it with calls by some callers as if one and the same caller made them."""
        entries: dict[tuple[int, int], float] = {}
        entries_ns: dict[tuple[int, int], float] = {}
        for edge, made in self.entries.items():
            known = (edge[0], SOMEBODY) if edge in moved else edge
            entries[known] = entries.get(known, 0.0) + made
            entries_ns[known] = entries_ns.get(known, 0.0) + self.entries_ns[edge]
        return Ring(self.inner, entries, entries_ns)

    @property
    def is_timed(self) -> bool:
        """Return whether all that is called from outside is known to take time."""
        return bool(self.entries_ns) and all(self.entries_ns.values())

    def below(self, edge: tuple[int, int]) -> float:
        """Return how many calls one from outside stands for, itself included: by its part in what all of them take."""
        if edge not in self.entries:
            return 0.0
        a_call_ns = self.entries_ns[edge] / self.entries[edge]
        return a_call_ns * (self.inner + sum(self.entries.values())) / sum(self.entries_ns.values())


def _both(before: Book, after: Book, members: Bools) -> tuple[Ring, Ring]:
    """Return a ring on both sides. Where a function lost callers and got others, as by a wrapper, the new ones call it for the old ones."""
    base, head = Ring.of(before, members), Ring.of(after, members)
    gone, new = base.entries.keys() - head.entries.keys(), head.entries.keys() - base.entries.keys()
    both = {callee for callee, _ in gone} & {callee for callee, _ in new}
    moved = {edge for edge in gone | new if edge[0] in both}
    return base.by_some(moved), head.by_some(moved)


def _expected(base: Ring, head: Ring) -> float | None:
    """Return how many calls within a ring base's code would make for head's calls from outside; None where one side makes none of either.

    Each goes as deep as it does in base, or in head where base made none; equally deep all of them, where what they take is not known.
    """
    if not base.inner or not base.entries or not head.entries:
        return None
    if base.is_timed and head.is_timed:
        return sum(made * ((base.below(edge) or head.below(edge)) - 1) for edge, made in head.entries.items())
    return base.inner * sum(head.entries.values()) / sum(base.entries.values())


def _other_calls(base: Ring, head: Ring) -> float:
    """Return how many calls are made below those from outside that differ between the sides, apart from a number that rises for all."""
    if not (base.is_timed and head.is_timed):
        return 0.0
    known = base.entries
    times = sum(head.entries.get(edge, 0.0) * base.below(edge) for edge in known) / sum(known[edge] * base.below(edge) for edge in known)
    differ = sum(abs(head.entries.get(edge, 0.0) - times * known[edge]) * base.below(edge) for edge in known)
    return differ + sum(made * head.below(edge) for edge, made in head.entries.items() if edge not in known)


def _concerned(extra: Floats, within: Bools, numbers: Ints) -> Ints:
    """Return the numbers of the rings within which calls add anything."""
    return np.unique(numbers[(np.where(within, extra, 0.0) != 0).any(axis=1)])


def _average(book: Book, within: Bools, numbers: Ints) -> Floats:
    """Return what calls of a ring take on one side, by callee and caller, (f, f + 1); infinity for calls of others, and unknown ones."""
    callees, callers, made = _by_edge(book, book.edges)
    is_inner = within[callees, callers]
    of_ring = np.isin(numbers[callees], numbers[callees[is_inner]])
    *_, at_edge = _by_edge(book, book.edges_ns)
    calls = np.where(is_inner, book.medians["calls"][callees], made)
    took_ns = np.where(is_inner, book.medians["wall_ns"][callees], at_edge)
    known = of_ring & (calls > 0) & (took_ns > 0)
    found = np.full(within.shape, np.inf)
    found[callees[known], callers[known]] = took_ns[known] / calls[known]
    return found


def _within(numbers: Ints) -> Bools:
    """Return which calls by callee and caller stay within a ring, (f, f + 1); the start of a thread, the last caller, is in none."""
    found = np.zeros((len(numbers), len(numbers) + 1), dtype=bool)
    found[:, :-1] = numbers[:, None] == numbers[None, :]
    return found


def _inner(book: Book, within: Bools) -> Floats:
    """Return how often each function is called from within its ring in a run, (f,)."""
    callees, callers, made = _by_edge(book, book.edges)
    is_inner = within[callees, callers]
    found = np.zeros(len(within))
    np.add.at(found, callees[is_inner], made[is_inner])
    return found


def _by_edge(book: Book, sums: Mapping[tuple[int, int], Floats]) -> tuple[Ints, Ints, Floats]:
    """Return callees, callers and what is known of their calls in a run, each (e,), of all pairs that occurred."""
    callees, callers = np.array([*book.edges], dtype=np.int64).reshape(-1, 2).T
    absent = np.zeros(len(book.runs))
    each = np.array([sums.get(edge, absent) for edge in book.edges]).reshape(len(callees), len(book.runs))
    return callees, callers, np.median(each, axis=1)
