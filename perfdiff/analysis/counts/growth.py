"""Growth that counts tell where time cannot: calls of few sizes, of which the first ones were slow because they were the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perfdiff.analysis.compare.study import LEARNT, learn
from perfdiff.analysis.findings import FunctionFinding, MetricFinding, Verdict
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import Annotation, CostClass
from perfdiff.models.middle import median
from perfdiff.models.prices import usual_ns
from perfdiff.models.regression import MATERIAL_NOISY
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import SampleTable, Side

COUNTERS = ("bytecode_blocks", "heap_bytes")  # what a call does that takes time at least in proportion
_RISING = (
    CostClass.CONSTANT,
    CostClass.LOGARITHMIC,
    CostClass.LINEAR,
    CostClass.N_LOG_N,
    CostClass.QUADRATIC,
    CostClass.CUBIC,
)


def with_counted_growth(
    functions: Sequence[FunctionFinding], samples: Samples, counts: Samples, config: CompareConfig
) -> list[FunctionFinding]:
    """Return findings that tell the growth of counts where these grow faster than the time of calls that warm up shows."""
    return [_with_growth(each, samples, counts, config) if each.verdict is not Verdict.UNCHANGED else each for each in functions]


def _with_growth(found: FunctionFinding, samples: Samples, counts: Samples, config: CompareConfig) -> FunctionFinding:
    metrics = dict(found.metrics)
    for side, warm_up in found.warm_up.items():
        times, counted = (_behind(load(found.info.id, side), warm_up.calls) for load in (samples, counts))
        if times is None or counted is None:
            continue
        for name in LEARNT:
            metric = metrics.get(name)
            if metric is None:
                continue
            annotation = metric.base if side is Side.BASE else metric.head
            if annotation is not None:
                metrics[name] = _replaced(metric, side, _counted(annotation, times, counted, config))
    return replace(found, metrics=metrics)


def _behind(table: SampleTable | None, calls: int) -> SampleTable | None:
    """Return the calls behind the first ones of each thread, None where there are none."""
    return table.rows(np.flatnonzero(table.call > calls)) if table is not None and (table.call > calls).any() else None


def _replaced(metric: MetricFinding, side: Side, annotation: Annotation) -> MetricFinding:
    return replace(metric, base=annotation) if side is Side.BASE else replace(metric, head=annotation)


def _counted(annotation: Annotation, times: SampleTable, counted: SampleTable, config: CompareConfig) -> Annotation:
    """Return the annotation of a time with the fastest growth of a count that is a material part of it, if it is faster than its own."""
    if annotation.growth not in _RISING:
        return annotation
    told = annotation.growth
    for counter in COUNTERS:
        if (
            counter in counted.metrics
            and np.isfinite(counted.metrics[counter]).any()
            and _is_material(annotation.metric, counter, times, counted)
        ):
            growth = learn(counted, counter, annotation.function, config).growth
            told = max(told, growth, key=_RISING.index) if growth in _RISING else told
    return annotation if told is annotation.growth else replace(annotation, by_counts=told)


def _is_material(metric: str, counter: str, times: SampleTable, counted: SampleTable) -> bool:
    """Return whether what a count grows by over the workload's points takes a material part of a call's time at the largest."""
    typical = {int(point): _typical(counted, counter, int(point)) for point in np.unique(counted.point)}
    largest = max(typical, key=lambda point: typical[point])
    time_ns = _typical(times, metric, largest)
    return usual_ns(counter) * (typical[largest] - min(typical.values())) > MATERIAL_NOISY * time_ns > 0


def _typical(table: SampleTable, metric: str, point: int) -> float:
    values = table.metrics[metric][table.point == point]
    known = values[np.isfinite(values)]
    return median(known) if len(known) else 0.0
