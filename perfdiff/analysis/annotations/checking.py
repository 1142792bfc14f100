"""A file of annotations against what was recorded of a revision: which annotation stands for which function, and what has none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from perfdiff.analysis.annotations.annotating import MOST_ROWS
from perfdiff.analysis.annotations.assertion import Assertion, AssertionSetting, Case, check
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.phases import with_phase_as_learnt
from perfdiff.analysis.series import CheckedAssertions
from perfdiff.analysis.stats.rows import thinned
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import PHASE, Annotation
from perfdiff.records.metrics import METRICS, metric_of
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import FunctionInfo, SampleTable, Side, Totals

# Where so many functions are slower, and so large a share of them, it is rarely their code.
_COMMON = 5
_COMMON_SHARE = 0.8


def check_recorded(
    annotations: Sequence[Annotation], recorded: RecordedExperiment, side: Side, config: CompareConfig
) -> CheckedAssertions[Assertion]:
    """Hold one side of what was recorded against annotations; functions are the same where their names are."""
    experiment = recorded.experiment
    called = _called(recorded, side)
    named: dict[str, list[Annotation]] = defaultdict(list)
    for annotation in annotations:
        named[annotation.function].append(annotation)
    assertions = check(_cases(named, called, recorded, side), AssertionSetting(experiment.points, whole_runs(experiment.totals), config))
    return CheckedAssertions(
        revision=experiment.base if side is Side.BASE else experiment.head,
        assertions=tuple(assertions),
        unannotated=tuple(info.name for name, those in called.items() if name not in named for info in those),
        notes=(*experiment.notes, *_notes(assertions)),
        config=config,
    )


def _called(recorded: RecordedExperiment, side: Side) -> Mapping[str, list[FunctionInfo]]:
    """Return the functions that a side calls, by name."""
    runs = {run.id for run in recorded.experiment.runs if run.side is side}
    totals = recorded.experiment.totals
    called = {
        int(function) for run, function, calls in zip(totals.run, totals.function, totals.calls, strict=True) if calls and run in runs
    }
    named: dict[str, list[FunctionInfo]] = defaultdict(list)
    for info in recorded.experiment.functions:
        if info.id in called:
            named[info.name].append(info)
    return named


def _cases(
    named: Mapping[str, list[Annotation]], called: Mapping[str, list[FunctionInfo]], recorded: RecordedExperiment, side: Side
) -> Iterator[Case]:
    """Yield each annotation with the calls of its function, one table at a time, or with the reason why there are none."""
    for name, learnt in named.items():
        those = called.get(name, [])
        tables = (recorded.samples(info.id, side) for info in those)
        metrics: dict[str, list[Annotation]] = defaultdict(list)
        for annotation in learnt:
            metrics[annotation.metric].append(annotation)
        for same in metrics.values():
            if len(same) != len(those):
                reason = claim("namesakes", functions=len(those), annotated=len(same)) if those else _absence(name, recorded)
                yield from ((annotation, reason) for annotation in same)
        # Namesakes, such as overloads, stand in the order of the program in both.
        for place, table in enumerate(tables):
            for same in metrics.values():
                if len(same) == len(those):
                    yield same[place], calls_against(table, same[place])


def calls_against(table: SampleTable | None, annotation: Annotation) -> SampleTable | Claim:
    """Return calls to hold against an annotation, with their phase where it tells of phases, or the reason why there are none."""
    if table is None or not len(table):
        return claim("no-calls-kept")
    sample = some(table)
    return with_phase_as_learnt(sample, annotation) if PHASE in annotation.features else sample


def some(table: SampleTable) -> SampleTable:
    """Return a sample of a table's calls, as large as those that annotations are learnt from."""
    some = thinned(table, MOST_ROWS)
    return replace(some, weight=some.weight * (len(table) / len(some)))


def whole_runs(totals: Totals) -> dict[str, dict[int, float]]:
    """Return what whole runs cost, by metric and run: what the function that costs most does, callees included."""
    sums = {metric.name: totals.wall_ns for metric in METRICS.values() if metric.unit == "ns"} | dict(totals.other)
    runs, place = np.unique(totals.run, return_inverse=True)
    whole = {}
    for metric, values in sums.items():
        most = np.zeros(len(runs))
        np.maximum.at(most, place, np.nan_to_num(values))
        whole[metric] = dict(zip(runs.tolist(), most.tolist(), strict=True))
    return whole


def _absence(function: str, recorded: RecordedExperiment) -> Claim:
    """Return why nothing was recorded of a function."""
    reasons = [skipped.reason for skipped in recorded.experiment.skipped if skipped.name == function]
    if reasons:
        return claim("given", reason=reasons[0])
    if any(info.name == function for info in recorded.experiment.functions):
        return claim("never-called")
    return claim("absent-function")


def _notes(assertions: Sequence[Assertion]) -> Iterator[Claim]:
    timed = [assertion for assertion in assertions if assertion.overall is not None and metric_of(assertion.annotation.metric).unit == "ns"]
    if timed:
        yield claim("recorded-apart", drift=None)
    ratios = sorted(assertion.overall.value for assertion in timed if assertion.overall is not None and assertion.overall.low > 1)
    if len(timed) >= _COMMON and len(ratios) >= _COMMON_SHARE * len(timed):
        yield claim("slower-throughout", slower=len(ratios), times=len(timed), low=ratios[0], high=ratios[-1])
