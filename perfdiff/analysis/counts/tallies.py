"""What counted runs tell of each function: its own counts per call, head against base, point by point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.compare.ratios import as_ratio
from perfdiff.analysis.findings import CountFinding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.stats.inference import contrasts, false_discovery
from perfdiff.analysis.stats.panel import panel
from perfdiff.analysis.stats.runs import Contrast, Runs
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig
from perfdiff.models.middle import median
from perfdiff.records.arrays import Floats
from perfdiff.records.metrics import ACCESSES, metric_of
from perfdiff.records.schema import Point, Side

_TIME_OF = {"collections": "collecting_ns"}  # counters whose time the runs that count take, too


@dataclass(frozen=True, slots=True)
class _PointCount:
    """A counter of a function at one point: sums (r,) of each side's runs, and what their counts per call show.

    `exact`: all runs of a side counted the same.
    """

    function: int
    counter: str
    point: Point
    sums: tuple[Floats, Floats]
    calls: tuple[Floats, Floats]
    contrast: Contrast
    exact: bool

    @property
    def extra(self) -> float:
        """Return what head counts more in one run."""
        return median(self.sums[1]) - median(self.sums[0])


def count_all(ledger: Ledger, points: Mapping[int, Point], config: CompareConfig) -> dict[int, dict[str, CountFinding]]:
    """Return the findings on every counter of every function that was counted on both sides, by function and counter.

    Points are tested one by one, for threads that meet at one need not meet at another; the false discovery rate holds over all tests.
    """
    counters = [name for name in _counters(ledger) if metric_of(name).unit != "ns"]
    seen = [count for number in ledger.points for count in _at_point(points[number], counters, ledger)]
    seen.sort(key=lambda count: (ledger.place[count.function], counters.index(count.counter)))
    q_values = false_discovery([count.contrast.p for count in seen])
    grouped: dict[tuple[int, str], list[tuple[_PointCount, int]]] = {}
    for count, q in zip(seen, q_values, strict=True):
        grouped.setdefault((count.function, count.counter), []).append((count, _direction(count, float(q), config)))
    findings: dict[int, dict[str, CountFinding]] = {}
    for (function, counter), at_points in grouped.items():
        findings.setdefault(function, {})[counter] = _finding(*max(at_points, key=_standing), ledger, config)
    return findings


def _counters(ledger: Ledger) -> list[str]:
    """Return the counters that all runs have."""
    books = list(ledger.books.values())
    return [name for name in books[0].other if all(name in book.other for book in books)] if books else []


def _at_point(point: Point, counters: Sequence[str], ledger: Ledger) -> Iterator[_PointCount]:
    """Yield what each counter shows of each function that ran in all runs of a point, where it counted anything."""
    books = ledger.pair(point.id)
    if not all(book.runs for book in books):
        return
    ran = np.flatnonzero(np.logical_and.reduce([book.calls.all(axis=0) for book in books]))
    asked: list[tuple[int, str]] = []
    levels: tuple[list[Floats], list[Floats]] = ([], [])
    for column in ran.tolist():
        for counter in counters:
            sums = [book.other[counter][:, column] for book in books]
            half = 0.0 if all(side_counts.all() for side_counts in sums) else 0.5
            if half and not any(side_counts.any() for side_counts in sums):
                continue
            asked.append((column, counter))
            for side, counted, book in zip(levels, sums, books, strict=True):
                side.append(np.log((counted + half) / book.calls[:, column]))
    if not asked:
        return
    together = panel(
        *(Runs(np.array(side)[None], book.blocks[None], np.zeros(1, dtype=bool)) for side, book in zip(levels, books, strict=True))
    )
    exact = np.logical_and.reduce([np.ptp(side, axis=1) == 0 for side in map(np.array, levels)])
    for question, ((column, counter), seen) in enumerate(zip(asked, contrasts(together), strict=True)):
        if seen is not None:
            base, head = ((book.other[counter][:, column], book.calls[:, column]) for book in books)
            yield _PointCount(ledger.ids[column], counter, point, (base[0], head[0]), (base[1], head[1]), seen, bool(exact[question]))


def _direction(point_count: _PointCount, q: float, config: CompareConfig) -> int:
    """Return 1 where the counts clearly grew, -1 where they shrank, else 0."""
    # Misses, even where they repeat, move with the addresses of unrelated data.
    is_work = point_count.exact and not metric_of(point_count.counter).noisy
    least = math.log1p(POLICY.least_work if is_work else config.at(point_count.point.min_effect).min_effect)
    low, high = point_count.contrast.interval(config.confidence)
    clear = point_count.exact or (
        point_count.contrast.runs >= POLICY.min_runs and q <= config.fdr and point_count.contrast.p <= POLICY.evidence
    )
    return (low > least) - (high < -least) if clear else 0


def _standing(directed: tuple[_PointCount, int]) -> tuple[bool, float]:
    """Order what is seen at several points: clear differences first, then by how many counts they are."""
    seen, direction = directed
    return direction != 0, abs(seen.extra)


def _finding(point_count: _PointCount, direction: int, ledger: Ledger, config: CompareConfig) -> CountFinding:
    base, head = (median(sums / calls) for sums, calls in zip(point_count.sums, point_count.calls, strict=True))
    return CountFinding(
        counter=point_count.counter,
        point=point_count.point,
        base=base,
        head=head,
        ratio=as_ratio(point_count.contrast, config.confidence),
        exact=point_count.exact,
        grew=direction > 0,
        shrank=direction < 0,
        extra=point_count.extra,
        rate=_rate(point_count, ledger),
        took_ns=_took_ns(point_count, ledger),
    )


def _took_ns(point_count: _PointCount, ledger: Ledger) -> tuple[float, float] | None:
    """Return what the counts of a call take on both sides, None where the runs that count do not tell."""
    name, column = _TIME_OF.get(point_count.counter, ""), ledger.place[point_count.function]
    books = ledger.pair(point_count.point.id)
    if not all(name in book.other for book in books):
        return None
    base, head = (float(np.min(book.other[name][:, column] / book.calls[:, column])) for book in books)
    return base, head


def _rate(point_count: _PointCount, ledger: Ledger) -> float:
    """Return head over base in counts per access to memory, NaN where that is no number."""
    rates = []
    for side, sums in zip(Side, point_count.sums, strict=True):
        book = ledger.books[point_count.point.id, side]
        if any(name not in book.other for name in ACCESSES):
            return math.nan
        accesses = median(np.sum([book.other[name][:, ledger.place[point_count.function]] for name in ACCESSES], axis=0))
        rates.append(median(sums) / accesses if accesses else math.nan)
    return rates[1] / rates[0] if rates[0] else math.nan
