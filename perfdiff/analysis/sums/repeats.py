"""Runs that end by the clock, as those of most frameworks for benchmarks: their sums, as if both sides repeated as often.

Such a run lasts as long however long calls take: where these take longer, it makes fewer of them. No sum over a run tells a slower call
then. Sums by what is repeated do: what one repetition costs, as often as base repeats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.sums.ledger import Book, Ledger
from perfdiff.records.arrays import Bools, Floats
from perfdiff.records.schema import Note, Point, Side

FEWEST_RUNS = 3  # a side, to tell whether calls repeat
# Of a run's CPU time at the least takes what it repeats until its time is over; a benchmark may have several such parts.
REPEATED = 0.05
# Of the logarithm of how many times fewer calls there are, at most, runs may last longer: what goes on between calls is less then.
_BETWEEN = 0.2
# Each call costs about the same: what all of a run take follows their number, unless a clock ends the run.
_STEADIER = 0.5
# Functions whose calls follow the repetitions to within this much are part of them.
_IN_STEP = 0.02


@dataclass(frozen=True, slots=True)
class Repetition:
    """What runs repeat until a clock ends it: the column of the outermost function, and of all that it does (f,)."""

    outermost: int
    parts: Bools


def by_repetitions(ledger: Ledger, min_effect: float) -> Ledger:
    """Return the ledger with sums of what runs repeat as often as base's do; points at which a clock ends runs are `clocked`."""
    books, clocked = dict(ledger.books), set()
    for point in ledger.points:
        pair = ledger.pair(point)
        for repetition in _repetitions(*pair, 1 + min_effect):
            clocked.add(point)
            usual = float(np.median(pair[0].calls[:, repetition.outermost]))
            for side, book in zip(Side, pair, strict=True):
                often = usual / book.calls[:, repetition.outermost]
                books[point, side] = _scaled(books[point, side], repetition, often)
    return replace(ledger, books=books, clocked=frozenset(clocked)) if clocked else ledger


def _repetitions(base: Book, head: Book, least: float) -> Iterator[Repetition]:
    """Yield what runs of a point repeat until a clock ends them, of several that repeat in step once."""
    if min(len(book.runs) for book in (base, head)) < FEWEST_RUNS:
        return
    parts = _takes_a_part(base) & _takes_a_part(head)
    vary = np.ptp(base.calls, axis=0) + np.ptp(head.calls, axis=0) > 0
    columns = [column for column in np.flatnonzero(parts & vary).tolist() if _ends_by_the_clock(base, head, column, least)]
    covered = np.zeros(len(parts), dtype=bool)
    for column in sorted(columns, key=lambda column: base.calls[0, column]):
        if not covered[column]:
            in_step = _in_step(base.calls, column) & _in_step(head.calls, column) & ~covered
            covered |= in_step
            yield Repetition(column, in_step)


def _takes_a_part(book: Book) -> Bools:
    """Return which functions (f,) all runs call and spend time in, most of them a part of their own."""
    cpu_ns = float(np.median([run.cpu_ns for run in book.runs]))
    in_all = (book.calls.min(axis=0) > 0) & (book.wall_ns.min(axis=0) > 0)
    return np.asarray(in_all & (book.medians["wall_ns"] >= REPEATED * cpu_ns) & (cpu_ns > 0))


def _ends_by_the_clock(base: Book, head: Book, column: int, least: float) -> bool:
    """Return whether runs call a function until a time is over.

    What a program does with given inputs it does as often in each run, but hardly two runs that a clock ends make as many calls. So its
    calls vary from run to run on the side that makes more, and all of them together take as long on both sides, and runs as well, but for
    what goes on between the calls; and either all runs of one side make materially fewer than any of the other, or they vary and the time
    of all does not. What waits takes more than the run's CPU time, and is done less often where each waits for more.
    """
    calls = [book.calls[:, column] for book in (base, head)]
    fewer, more = sorted(calls, key=np.median)
    if not np.ptp(more):
        return False
    took = [book.wall_ns[:, column] for book in (base, head)]
    ran = [np.array([run.cpu_ns for run in book.runs], dtype=np.float64) for book in (base, head)]
    if any(np.median(part) > least * np.median(whole) for part, whole in zip(took, ran, strict=True)):
        return False
    between = max(math.log(least), _BETWEEN * _apart(*calls))
    return max(_apart(*took), _apart(*ran)) <= between and (fewer.max() * least < more.min() or all(map(_is_steadier, took, calls)))


def _apart(first: Floats, second: Floats) -> float:
    """Return the logarithm of how many times the median of one is that of the other."""
    return abs(math.log(float(np.median(first)) / float(np.median(second))))


def _is_steadier(took: Floats, calls: Floats) -> bool:
    """Return whether what all calls of a run (r,) take varies by much less than their number."""
    return float(np.std(np.log(took))) < _STEADIER * float(np.std(np.log(calls)))


def _in_step(calls: Floats, column: int) -> Bools:
    """Return which functions (f,) make as many calls (r, f) for each of one function's, to within what a run begins and does not end."""
    ratios = calls / calls[:, [column]]
    within = np.maximum(_IN_STEP * np.median(ratios, axis=0), 2 / calls[:, column].min())
    return np.asarray((np.median(calls, axis=0) > 0) & (np.ptp(ratios, axis=0) <= within) & (np.ptp(calls, axis=0) > 0))


def _scaled(book: Book, repetition: Repetition, often: Floats) -> Book:
    """Return a book as if each run (r,) repeated so many times as `often`; who repeats has the time of what it calls with it."""
    times = np.where(repetition.parts, often[:, None], 1.0)
    top = repetition.outermost
    more = book.wall_ns[:, top] * (often - 1)
    above = _above(book, top)
    wall_ns = book.wall_ns * times
    for column in above:
        wall_ns[:, column] += more
    scaled = {pair: often if repetition.parts[pair[0]] else 1.0 for pair in book.edges}
    return replace(
        book,
        calls=book.calls * times,
        self_ns=book.self_ns * times,
        wall_ns=wall_ns,
        other={name: values * times for name, values in book.other.items()},
        edges={pair: values * scaled[pair] for pair, values in book.edges.items()},
        edges_ns={pair: values * scaled[pair] + _passed_on(book, pair, above, more) for pair, values in book.edges_ns.items()},
    )


def _above(book: Book, column: int) -> frozenset[int]:
    """Return who calls a function, directly or not, itself left out."""
    start = book.calls.shape[1]
    seen, frontier = {column}, {column}
    while frontier:
        frontier = {caller for callee, caller in book.edges if callee in frontier and caller != start} - seen
        seen |= frontier
    return frozenset(seen - {column})


def _passed_on(book: Book, pair: tuple[int, int], above: frozenset[int], more: Floats) -> Floats | float:
    """Return what calls of those who repeat take more, by who makes them."""
    callee = pair[0]
    return more * book.edges[pair] / np.maximum(book.calls[:, callee], 1) if callee in above else 0.0


def in_all_points(clocked: Set[int], points: Sequence[Point]) -> frozenset[int]:
    """Return all points of the workloads of which some are `clocked`: what ends runs at one does so at all, however clearly that shows."""
    workloads = {point.workload for point in points if point.id in clocked}
    return frozenset(point.id for point in points if point.workload in workloads)


def told_of_the_clock(ledger: Ledger, notes: Iterable[Note]) -> tuple[Note | Claim, ...]:
    """Return notes on runs with one that tells at which points a clock ends them: then it is no wonder that sizes are not felt."""
    shown = tuple(ledger.labels[point] for point in ledger.points if point in ledger.clocked)
    if not shown:
        return tuple(notes)
    return (claim("ends-by-the-clock", points=shown), *(note for note in notes if note.slug != "sizes-not-felt"))
