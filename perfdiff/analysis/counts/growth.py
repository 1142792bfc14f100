"""Growth that counts tell where time cannot: calls of few sizes that warm up, and n log n, as which a line appears that outgrows caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.compare.studied import LEARNT
from perfdiff.analysis.compare.tables import learn
from perfdiff.analysis.compare.trend import RunCounts
from perfdiff.analysis.findings import RUN, FunctionFinding, MetricFinding, Verdict
from perfdiff.analysis.sums.calls import reached
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import GROWING, Annotation, CostClass
from perfdiff.models.middle import median
from perfdiff.models.prices import DEAREST_NS, usual_ns
from perfdiff.models.regression import MATERIAL_NOISY
from perfdiff.models.workcounter import WORK_COUNTERS
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import SampleTable, Side

COUNTERS = ("bytecode_blocks", "heap_bytes")  # what a call does that takes time at least in proportion …
EXACT = ("loads",)  # … and what does so without a warm-up, the same in every run: a few sizes whose times scatter may look like a line


@dataclass(frozen=True, slots=True)
class CountSources:
    """What was counted of calls, and of runs, whose times are in the `ledger`; None where no run was counted."""

    calls: Samples
    runs: RunCounts | None
    ledger: Ledger


def with_counted_growth(
    functions: Sequence[FunctionFinding], samples: Samples, counted: CountSources, config: CompareConfig
) -> list[FunctionFinding]:
    """Return findings that tell the growth of counts where these grow faster than time shows: of calls that warm up, and of whole runs."""
    return [
        _with_growth(finding, samples, counted, config) if finding.verdict is not Verdict.UNCHANGED else finding for finding in functions
    ]


def without_bends(metrics: Mapping[str, MetricFinding], function: int, ledger: Ledger, counts: RunCounts) -> dict[str, MetricFinding]:
    """Return a function's metrics with times that grow like n log n told as lines, where the work of their runs is one.

    A line that outgrows the caches costs more and more for each element: over two decades as much as n log n, which time alone cannot
    tell from it. Counts can: of all that a function calls, where their events take a bounded time and could take all of the time.
    Costs of calls are told so where a run has one call alone.
    """
    called_once = all((book.calls[:, ledger.place[function]] == 1).all() for book in ledger.books.values())
    unbent = dict(metrics)
    for name, metric in metrics.items():
        if name == RUN or (called_once and name in LEARNT):
            base, head = (
                _unbent(annotation, side, function, ledger, counts)
                for side, annotation in ((Side.BASE, metric.base), (Side.HEAD, metric.head))
            )
            differ = metric.class_changed and (base is None or head is None or base.growth is not head.growth)
            unbent[name] = replace(metric, base=base, head=head, class_changed=differ)
    return unbent


def _unbent(annotation: Annotation | None, side: Side, function: int, ledger: Ledger, counts: RunCounts) -> Annotation | None:
    if annotation is None or annotation.growth is not CostClass.N_LOG_N:
        return annotation
    is_own = annotation.metric == "self_ns"
    functions = [function] if is_own else _below(function, side, ledger)
    for counter in (work_counter.metric for work_counter in WORK_COUNTERS if work_counter.is_bounded):
        work = counts.work(functions, side, counter)
        if work is not None and work.growth is CostClass.LINEAR:
            book = ledger.books[work.point, side]
            time_ns = median((book.self_ns if is_own else book.wall_ns)[:, ledger.place[function]])
            if DEAREST_NS[counter] * work.most >= time_ns:
                return replace(annotation, by_counts=CostClass.LINEAR)
    return annotation


def _below(function: int, side: Side, ledger: Ledger) -> list[int]:
    """Return a function and all that it leads to by calls of one side, itself first."""
    ids = (*ledger.ids, 0)  # the last is the start of a thread
    called: dict[int, set[int]] = {}
    for (_, of), book in ledger.books.items():
        for callee, caller in book.edges if of is side else ():
            called.setdefault(ids[caller], set()).add(ids[callee])
    return [function, *sorted(reached(called, function))]


def _with_growth(finding: FunctionFinding, samples: Samples, counted: CountSources, config: CompareConfig) -> FunctionFinding:
    metrics = dict(finding.metrics)
    for side, warm_up in finding.warm_up.items():
        times, counts = (_behind(load(finding.info.id, side), warm_up.calls) for load in (samples, counted.calls))
        for name in LEARNT:
            if name in metrics and times is not None and counts is not None and (learnt := _of(metrics[name], side)) is not None:
                metrics[name] = _replaced(metrics[name], side, _counted(learnt, times, counts, config))
    if RUN in metrics:
        metrics[RUN] = _of_runs(metrics[RUN], finding, counted)
    return replace(finding, metrics=metrics)


def _of_runs(metric: MetricFinding, finding: FunctionFinding, counted: CountSources) -> MetricFinding:
    """Return the growth of runs as that of what they count, where it is faster and counts are a material part of their time.

    All that a function calls counts. Where its first calls are much of a run, as many of them cost the same in runs of all sizes.
    """
    grown = metric
    for side in Side:
        annotation = _of(metric, side)
        if annotation is not None and annotation.growth in GROWING:
            counters = (*EXACT, *(COUNTERS if side in finding.warm_up else ()))
            grown = _replaced(grown, side, _by_counts(annotation, counters, finding.info.id, side, counted))
    if grown is metric or grown.base is None or grown.head is None:
        return grown
    return replace(grown, class_changed=grown.base.growth is not grown.head.growth)


def _by_counts(annotation: Annotation, counters: Sequence[str], function: int, side: Side, counted: CountSources) -> Annotation:
    if counted.runs is None:
        return annotation
    growth, functions = annotation.growth, _below(function, side, counted.ledger)
    for counter in counters:
        work = counted.runs.work(functions, side, counter)
        if work is not None and work.growth in GROWING:
            time_ns = median(counted.ledger.books[work.point, side].wall_ns[:, counted.ledger.place[function]])
            if usual_ns(counter) * work.most > MATERIAL_NOISY * time_ns > 0:
                growth = max(growth, work.growth, key=GROWING.index)
    return annotation if growth is annotation.growth else replace(annotation, by_counts=growth)


def _behind(table: SampleTable | None, calls: int) -> SampleTable | None:
    """Return the calls behind the first ones of each thread, None where there are none."""
    return table.rows(np.flatnonzero(table.call > calls)) if table is not None and (table.call > calls).any() else None


def _of(metric: MetricFinding, side: Side) -> Annotation | None:
    return metric.base if side is Side.BASE else metric.head


def _replaced(metric: MetricFinding, side: Side, annotation: Annotation) -> MetricFinding:
    return replace(metric, base=annotation) if side is Side.BASE else replace(metric, head=annotation)


def _counted(annotation: Annotation, times: SampleTable, counted: SampleTable, config: CompareConfig) -> Annotation:
    """Return the annotation of a time with the fastest growth of a count that is a material part of it, if it is faster than its own."""
    if annotation.growth not in GROWING:
        return annotation
    fastest = annotation.growth
    for counter in COUNTERS:
        if (
            counter in counted.metrics
            and np.isfinite(counted.metrics[counter]).any()
            and _is_material(annotation.metric, counter, times, counted)
        ):
            growth = learn(counted, counter, annotation.function, config).growth
            fastest = max(fastest, growth, key=GROWING.index) if growth in GROWING else fastest
    return annotation if fastest is annotation.growth else replace(annotation, by_counts=fastest)


def _is_material(metric: str, counter: str, times: SampleTable, counted: SampleTable) -> bool:
    """Return whether what a count grows by over the workload's points takes a material part of a call's time at the largest."""
    typical = {int(point): _typical(counted, counter, int(point)) for point in np.unique(counted.point)}
    largest = max(typical, key=lambda point: typical[point])
    time_ns = _typical(times, metric, largest)
    return usual_ns(counter) * (typical[largest] - min(typical.values())) > MATERIAL_NOISY * time_ns > 0


def _typical(table: SampleTable, metric: str, point: int) -> float:
    values = table.metrics[metric][table.point == point]
    finite = values[np.isfinite(values)]
    return median(finite) if len(finite) else 0.0
