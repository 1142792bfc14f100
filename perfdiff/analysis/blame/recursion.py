"""Functions that call each other in a ring: what a call more within one costs, which rates of calls cannot say.

Rates know nothing of how deep a call is. Within a ring they multiply to nearly one, so that a call more seems to bring about as many others
as the whole run makes. gprof (Graham, Kessler and McKusick 1982) takes a ring for one function for that reason. Here each call within it
costs at most what calls of its callee take on average, and all calls together what counts say of the ring as a whole; a call into it from
outside costs at most what calls of its caller take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from perfdiff.analysis.blame import ring
from perfdiff.analysis.sums.ledger import Book
from perfdiff.records.arrays import Bools, Floats, Ints


def rings(before: Book, after: Book) -> Ints:
    """Return the number of each function's ring on both sides together, (f,): the same for functions that call each other by some way."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    width = before.calls.shape[1]
    edges = [edge for book in (before, after) for edge in book.edges if edge[1] < width]  # not from the start of a thread
    callees, callers = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(edges)), (callers, callees)), shape=(width, width))
    numbers: Ints = connected_components(graph, connection="strong")[1]
    return numbers


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
    of whose functions does anything else: by no more calls than are made below them. What the ring has more or fewer of is kept.
    """
    within, corrected = _within(numbers), more.copy()
    for members in _concerned(more, within, numbers):
        sides = ring.both(before, after, members)
        if (expected := ring.expected(*sides)) is None:
            continue
        of_ring, other, surplus = within & members[:, None], ring.other_calls(*sides), sides[1].inner - expected
        for some, real in ((of_ring & (more > 0), surplus), (of_ring & (more < 0), -surplus)):
            if total := float(np.abs(more[some]).sum()):
                corrected[some] *= max(total - other, min(total, max(real, 0.0))) / total
    return corrected


def balance(extra_ns: Floats, a_round_ns: Floats, numbers: Ints, before: Book, after: Book) -> Floats:
    """Return which part of the extra cost of calls remains, (f, f + 1), so that those within a ring come to what the ring has more of.

    `extra_ns` (f, f + 1) is the cost by callee and caller, `a_round_ns` (f,) that of one call with all that it calls outside of its ring. A
    ring has more of the calls that it makes itself, beyond those that base would make for head's calls from outside. What is too much is
    taken from those that make more, what is too little from those that make fewer.
    """
    within, parts = _within(numbers), np.ones(extra_ns.shape)
    for members in _concerned(extra_ns, within, numbers):
        sides = ring.both(before, after, members)
        if (expected := ring.expected(*sides)) is None:
            continue
        base, head = sides
        whole_ns = float(np.sum(a_round_ns * (head.called - base.called * expected / base.inner)))
        of_ring = within & members[:, None]
        dearer, cheaper = of_ring & (extra_ns > 0), of_ring & (extra_ns < 0)
        added_ns, saved_ns = float(extra_ns[dearer].sum()), float(extra_ns[cheaper].sum())
        if added_ns + saved_ns > whole_ns and added_ns > 0:
            parts[dearer] = np.clip((whole_ns - saved_ns) / added_ns, 0.0, 1.0)
        elif saved_ns < 0:
            parts[cheaper] = np.clip((whole_ns - added_ns) / saved_ns, 0.0, 1.0)
    return parts


def _concerned(extra: Floats, within: Bools, numbers: Ints) -> Iterator[Bools]:
    """Yield the members (f,) of each ring within which calls add anything."""
    for number in np.unique(numbers[(np.where(within, extra, 0.0) != 0).any(axis=1)]):
        yield numbers == number


def _average(book: Book, within: Bools, numbers: Ints) -> Floats:
    """Return what calls of a ring take on one side, by callee and caller, (f, f + 1); infinity for calls of others, and unknown ones."""
    callees, callers, edge_calls = _by_edge(book, book.edges)
    is_inner = within[callees, callers]
    of_ring = np.isin(numbers[callees], numbers[callees[is_inner]])
    *_, edge_ns = _by_edge(book, book.edges_ns)
    calls = np.where(is_inner, book.medians["calls"][callees], edge_calls)
    took_ns = np.where(is_inner, book.medians["wall_ns"][callees], edge_ns)
    timed = of_ring & (calls > 0) & (took_ns > 0)
    average = np.full(within.shape, np.inf)
    average[callees[timed], callers[timed]] = took_ns[timed] / calls[timed]
    return average


def _within(numbers: Ints) -> Bools:
    """Return which calls by callee and caller stay within a ring, (f, f + 1); the start of a thread, the last caller, is in none."""
    within = np.zeros((len(numbers), len(numbers) + 1), dtype=bool)
    within[:, :-1] = numbers[:, None] == numbers[None, :]
    return within


def _by_edge(book: Book, sums: Mapping[tuple[int, int], Floats]) -> tuple[Ints, Ints, Floats]:
    """Return callees, callers and what is known of their calls in a run, each (e,), of all pairs that occurred."""
    callees, callers = np.array([*book.edges], dtype=np.int64).reshape(-1, 2).T
    absent = np.zeros(len(book.runs))
    by_run = np.array([sums.get(edge, absent) for edge in book.edges]).reshape(len(callees), len(book.runs))
    return callees, callers, np.median(by_run, axis=1)
