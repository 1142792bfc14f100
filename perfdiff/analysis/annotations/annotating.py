"""Annotations of a function's recorded calls (Freud §3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from perfdiff.analysis.compare.clocks import clocks
from perfdiff.analysis.compare.phases import with_phase
from perfdiff.analysis.stats.rows import without_features
from perfdiff.models.annotation import Annotation, Levels
from perfdiff.models.digits import six_digits
from perfdiff.models.fitting import fit
from perfdiff.models.levels import AnnotatedCalls, calls_of, judged, run_levels, summary
from perfdiff.records.schema import SampleTable

# Metrics that are annotated where none are asked for, as far as they tell something.
USUAL = ("wall_ns", "self_ns", "alloc_bytes")
# Calls to learn from, evenly over all runs: with more, coefficients change by less than runs differ.
MOST_ROWS = 10_000


def annotate(function: str, table: SampleTable, metrics: Sequence[str], *, seed: int) -> Iterator[Annotation]:
    """Yield the annotation of each of the metrics that the calls have; where they warm up, both phases may have a scope.

    No `metrics` means the usual ones without those that tell nothing: a count that is always 0, and own time where it is all the time.
    """
    yield from annotate_prepared(function, prepared(table), metrics, seed=seed)


def annotate_prepared(function: str, table: SampleTable, metrics: Sequence[str], *, seed: int) -> Iterator[Annotation]:
    """Yield the same of calls that are `prepared`."""
    for metric in metrics or telling(table):
        if metric in table.metrics and np.isfinite(table.metrics[metric]).any():
            annotation = fit(table, metric, seed=seed, function=function)
            yield replace(annotation, levels=_levels(annotation, calls_of(table, metric), seed))


def prepared(table: SampleTable) -> SampleTable:
    """Return calls as they are annotated: with the phase of each where they warm up, without features that only count up."""
    return with_phase(without_features(table, clocks([table])))


def _levels(annotation: Annotation, calls: AnnotatedCalls, seed: int) -> Levels | None:
    """Return how the runs that it was learnt from lie about an annotation, with six digits."""
    judged_calls = calls.rows(judged(annotation, calls))
    if not len(judged_calls):
        return None
    levels = summary(run_levels(annotation, judged_calls, seed=seed))
    return replace(levels, mean=six_digits(levels.mean), spread=six_digits(levels.spread), misfit=six_digits(levels.misfit))


def telling(table: SampleTable) -> list[str]:
    """Return the usual metrics that tell something of these calls."""
    metrics = [name for name in USUAL if name in table.metrics and np.nan_to_num(table.metrics[name]).any()]
    if "self_ns" in metrics and np.array_equal(table.metrics["self_ns"], table.metrics.get("wall_ns", []), equal_nan=True):
        metrics.remove("self_ns")
    return metrics
