"""Extra work of changed functions by exact counts, at its lowest price: a proof if it is large, else an order of suspects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Book, Ledger
from perfdiff.models.middle import median
from perfdiff.models.prices import DEAREST_NS, WORK_NS
from perfdiff.records.arrays import Floats
from perfdiff.records.metrics import MISSES, included, metric_of
from perfdiff.records.schema import FunctionInfo, Side

_CALL_NS = 1.0  # of a call, for the order in which counts are told
CALLS_OF = "calls of "  # begins the name of a count of calls to a function outside of the project
TOLD = 2  # counters named in a sentence, those that cost most


@dataclass(frozen=True, slots=True)
class ExtraWork:
    """What a function itself counts more in head, in one run of each point (points,): it takes `priced_ns` at least, `dearest_ns` at most.

    Where head counts less, `priced_ns` is below 0: the least that base's work took more.
    `by_counter` are the counts, in one run of each point, with base's and head's sums; `repeats` tells that every side's runs counted the
    same, at least two of them.
    """

    function: int
    name: str
    points: tuple[int, ...]
    priced_ns: Floats
    dearest_ns: Floats
    by_counter: Mapping[str, tuple[float, float]]
    repeats: bool

    @property
    def total_ns(self) -> float:
        """Return the sum over the points."""
        return float(self.priced_ns.sum())

    @property
    def grown(self) -> tuple[str, ...]:
        """Return the counters that head counts more of."""
        return tuple(counter for counter, (base, head) in self.by_counter.items() if head > base)

    @property
    def beyond_rewriting(self) -> tuple[str, ...]:
        """Return the counters, atomic operations first, that another way to write the same, or to compile it, does not explain."""
        counts = [(counter, factor, self.by_counter.get(counter, (0.0, 0.0))) for counter, factor in POLICY.rewritten.items()]
        return tuple(counter for counter, factor, (base, head) in counts if head > base * factor)

    @property
    def says(self) -> Claim:
        """Return a claim that names the counters that grew, or fell if the work fell in sum, the dearest first.

        Some misses beside millions of blocks are no part of that, however dear they are.
        """
        is_more = self.total_ns >= 0
        differing = [(head - base if is_more else base - head, counter) for counter, (base, head) in self.by_counter.items()]
        dearest = sorted((pair for pair in differing if pair[0] > 0), key=lambda pair: -pair[0] * WORK_NS.get(pair[1], _CALL_NS))[:TOLD]
        least_ns = POLICY.material * max((extra * WORK_NS.get(counter, _CALL_NS) for extra, counter in dearest), default=0.0)
        material = [(extra, counter) for extra, counter in dearest if extra * DEAREST_NS.get(counter, math.inf) >= least_ns]
        counts = tuple(claim("further-count", count=extra, counter=counter, more=is_more) for extra, counter in material)
        return claim("executes-otherwise", counts=counts, more=is_more)


def work_by_counts(
    counted: Ledger, ledger: Ledger, functions: Iterable[FunctionInfo], departures: Mapping[int, Sequence[Departure]]
) -> tuple[ExtraWork, ...]:
    """Return the changed functions that execute more or less in a run, by the least that it takes, those that execute most more first.

    `counted` holds the sums of counted runs, of which one a side says enough for an order, `ledger` the calls from function to function,
    `departures` those that leave the project's code.
    What a function executes in more calls of its own is its callers' doing: base's counts are taken at head's number of calls, and each
    call that it makes more often per call of its own counts with what that callee itself executes. Suspects that ran on one side alone
    have all that they execute as their own.
    """
    suspected = [info for info in functions if info.change.is_suspect and info.id in counted.place]
    own = {info.id for info in suspected if None in (counted.calls(info.id, side) for side in Side)}
    priced = {function: _price(function, counted) for function in counted.ids if function not in own}
    calling = Calling(ledger)
    works = [_extra(info, counted, calling, priced, departures.get(info.id, ())) for info in suspected]
    return tuple(sorted((work for work in works if work.total_ns), key=lambda work: (-work.total_ns, work.function)))


def run_extra_ns(counted: Ledger) -> Floats:
    """Return what all functions together execute more in head, (points,), at the least that it takes: work that only moved is none."""
    return _extra_ns(counted, counted.ids, WORK_NS)


def work_extra_ns(counted: Ledger, functions: Iterable[int]) -> Floats:
    """Return what some functions together execute more in head, (points,), at the least that it takes, but for what caches miss."""
    return _extra_ns(counted, functions, {counter: price for counter, price in WORK_NS.items() if counter not in MISSES})


def _extra_ns(counted: Ledger, functions: Iterable[int], prices: Mapping[str, float]) -> Floats:
    columns = [counted.place[function] for function in functions if function in counted.place]
    counters = [counter for counter in prices if _is_counted(counter, counted)]
    return np.array([sum(prices[counter] * _sum(counted, point, counter, columns) for counter in counters) for point in counted.points])


def _sum(counted: Ledger, point: int, counter: str, columns: Sequence[int]) -> float:
    before, after = (float(np.median(book.other[counter][:, columns].sum(axis=1))) for book in counted.pair(point))
    return after - before


def _is_counted(counter: str, counted: Ledger) -> bool:
    return all(counter in book.other for book in counted.books.values())


def _price(function: int, counted: Ledger) -> float:
    """Return the least that a call takes in head without its callees, in ns."""
    column = counted.place[function]
    books = [counted.pair(point)[1] for point in counted.points]
    calls = sum(float(book.medians["calls"][column]) for book in books)
    spent = sum(
        price * float(book.medians[counter][column])
        for counter, price in WORK_NS.items()
        if _is_counted(counter, counted)
        for book in books
    )
    return spent / calls if calls else 0.0


def _extra(
    info: FunctionInfo, counted: Ledger, calling: Calling, price_of: Mapping[int, float], departures: Sequence[Departure]
) -> ExtraWork:
    column = counted.place[info.id]
    priced, dearest, repeats = np.zeros(len(counted.points)), np.zeros(len(counted.points)), True
    sums: dict[str, tuple[float, float]] = {}
    for place, point in enumerate(counted.points):
        before, after = counted.pair(point)
        alike = _ratio_of_calls(float(before.medians["calls"][column]), float(after.medians["calls"][column]))
        for counter, price in WORK_NS.items():
            if not _is_counted(counter, counted):
                continue
            values = [_apart(book, counter, column) for book in (before, after)]
            base, head = (median(run_counts) for run_counts in values)
            base *= alike
            priced[place] += (head - base) * price
            dearest[place] += max(head - base, 0.0) * DEAREST_NS[counter]
            had = sums.get(counter, (0.0, 0.0))
            sums[counter] = (had[0] + base, had[1] + head)
            repeats &= metric_of(counter).noisy or all(len(run_counts) > 1 and not np.ptp(run_counts) for run_counts in values)
        for callee, more in calling.more_calls(info.id, point).items():
            if callee in price_of:
                priced[place] += more * price_of[callee]
                dearest[place] += max(more, 0.0) * price_of[callee]
                had = sums.get("callee_calls", (0.0, 0.0))
                sums["callee_calls"] = (had[0], had[1] + max(more, 0.0))
    for departure in (departure for departure in departures if departure.grew):
        priced += departure.least_ns
        dearest += departure.dearest_ns
        sums[f"{CALLS_OF}{departure.name}"] = 0.0, float(departure.extra.sum())
    return ExtraWork(info.id, info.name, counted.points, priced, dearest, sums, repeats)


def _apart(book: Book, counter: str, column: int) -> Floats:
    """Return what each run counted of a function, (r,): lines that it took from other threads are no misses of its own doing."""
    counted = book.other[counter][:, column]
    shared = book.other.get("hitm") if "hitm" in included(counter) else None
    return counted if shared is None else counted - shared[:, column]


def _ratio_of_calls(base: float, head: float) -> float:
    """Return head's calls over base's, 1 where there were none on one side: then all that it does is the change's."""
    return head / base if base and head else 1.0


class Calling:
    """The calls between functions, by point and side."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._callees: dict[tuple[int, int], set[int]] = {}
        for (point, _), book in ledger.books.items():
            for callee, caller in book.edges:
                self._callees.setdefault((point, caller), set()).add(callee)

    def more_calls(self, caller: int, point: int) -> dict[int, float]:
        """Return by callee the calls that a function makes in a run beyond those of base at head's number of its own calls.

        They are those in which all runs of the sides differ: where calls pass the gate, who made them is an estimate, and varies.
        """
        if point not in self._ledger.points:
            return {}
        column, books = self._ledger.place[caller], self._ledger.pair(point)
        more = {}
        for callee in sorted(self._callees.get((point, column), set()) - {column}):
            base, head = (_calls_per_call(book, callee, column) for book in books)
            if base.max() < head.min() or head.max() < base.min():
                own_calls = float(books[1].medians["calls"][column])
                more[self._ledger.ids[callee]] = (median(head) - median(base)) * own_calls
        return more


def _calls_per_call(book: Book, callee: int, caller: int) -> Floats:
    """Return how often each run's calls of a function call another, (r,)."""
    calls = book.calls[:, caller]
    return np.divide(book.edges.get((callee, caller), np.zeros(len(calls))), calls, out=np.zeros(len(calls)), where=calls > 0)
