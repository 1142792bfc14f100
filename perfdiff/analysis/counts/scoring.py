"""Reconstruction errors of calls, each by a detector that has not seen its run (AutoPerf §4.3.1).

Base's runs are dealt into folds; a detector learns on all folds but one, and judges that fold's runs of base and as many of head's. So
base's errors are what head's would be by chance. Functions may share detectors (§4.3.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.stats.rows import thinned
from perfdiff.config import CompareConfig
from perfdiff.models.detectors.clusters import share
from perfdiff.models.detectors.detector import DEVIATIONS, Detector, DetectorKind, Threshold, Training, threshold
from perfdiff.models.detectors.kinds import learn
from perfdiff.models.detectors.residuals import OUTERMOST, VOLUMES, Expectation, Residuals, ResidualScale
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import SampleTable

# With fewer calls of base, no spread of eleven counters is known.
MIN_CALLS = 20
LARGEST = 2.0**64  # no counter holds more; what is read from elsewhere may claim to
ROWS = 5000  # calls of a side that are judged at most
FOLDS = 5
# Metrics that say nothing of their own where others are read: parts of another metric, sums over callees.
DERIVED = frozenset({"self_ns", "callee_calls", "lock_hold_ns"})

Tables = tuple[SampleTable, SampleTable]
Learner = Callable[[DetectorKind, Training], Detector]


@dataclass(frozen=True, slots=True)
class ScoredCalls:
    """The calls of one side that could be judged, n rows: residuals, reconstruction errors (n,), and each counter's part (n, c).

    `grown` (n, c) is what a call's cost grew by through each counter, as a logarithm.
    """

    table: SampleTable
    residuals: Residuals
    errors: Floats
    parts: Floats
    grown: Floats

    def anomalous(self, bound: Threshold) -> Bools:
        """Return which calls are anomalous (n,)."""
        return np.asarray(self.errors > bound.value)

    @property
    def ballots(self) -> Ints:
        """Return the counter (n,) that each call votes for: of those that are clearly more than normal the one that may cost it most.

        AutoPerf's vote goes to the one that differs most in standard deviations (§4.3.2), as does that of calls with nothing more. That
        names what repeats itself best: threads that share data miss a few lines more, always alike, beside many that they fetch from each
        other, now more and now fewer.
        """
        clear = (self.parts >= DEVIATIONS) & (self.grown > 0)
        dearest = np.where(clear, self.grown, 0.0).argmax(axis=1)
        return np.asarray(np.where(clear.any(axis=1), dearest, self.parts.argmax(axis=1)))


@dataclass(frozen=True, slots=True)
class ScoredFunction:
    """Base's and head's scored calls, the counters' names and the threshold."""

    kind: DetectorKind
    counters: tuple[str, ...]
    sides: tuple[ScoredCalls, ScoredCalls]
    threshold: Threshold


@dataclass(frozen=True, slots=True)
class PreparedCalls:
    """A function's calls with what base's annotations leave of their counters, and the fold (n,) of each call; base and head."""

    counters: tuple[str, ...]
    volume: str
    tables: Tables
    residuals: tuple[Residuals, Residuals]
    folds: tuple[Ints, Ints]
    config: CompareConfig

    def scale(self, fold: int) -> ResidualScale:
        """Return the scale of base's residuals, estimated without one fold's runs."""
        seen = self.seen(fold)
        return ResidualScale.learn(self.residuals[0].rows(seen), self.tables[0].run[seen], slack=0.5 * math.log1p(self.config.min_effect))

    def training(self, fold: int) -> Training:
        """Return base's calls without one fold's runs."""
        scale, seen = self.scale(fold), self.seen(fold)
        residuals = self.residuals[0].rows(seen)
        return Training(
            rows=np.clip(scale.standardised(residuals), -OUTERMOST, OUTERMOST),
            runs=self.tables[0].run[seen],
            slack=scale.slacks(residuals),
            volume=self.counters.index(self.volume),
            seed=self.config.seed,
        )

    def seen(self, fold: int) -> Ints:
        """Return the calls of base that are learnt from to judge a fold."""
        return np.flatnonzero(self.folds[0] != fold)


def counters_of(base: SampleTable, head: SampleTable) -> tuple[str, ...]:
    """Return the counters that both sides have in most calls, without those that are 0 in all of them."""
    counters = []
    for name in base.metrics:
        both = [table.metrics[name] for table in (base, head) if name in table.metrics]
        if name in DERIVED or not metric_of(name).per_call or len(both) < 2:
            continue
        if all(2 * np.isfinite(values).sum() > len(values) for values in both) and any(np.nan_to_num(values).any() for values in both):
            counters.append(name)
    return tuple(counters)


def prepare(tables: Tables, counters: tuple[str, ...], config: CompareConfig) -> PreparedCalls | None:
    """Take out of the counters what base's annotations explain, of both sides' calls.

    None where no counter tells the work of a call, base has fewer than `MIN_CALLS` calls or two runs, or head has no call with inputs
    that base has.
    """
    base, head = (_complete(thinned(table, ROWS), counters) for table in tables)
    if not any(name in VOLUMES for name in counters) or not _suffices(base) or not len(head):
        return None
    expectation = Expectation.learn(base, counters, seed=config.seed)
    of_base, of_head = expectation.residuals(base), expectation.residuals(head)
    base_rows = np.flatnonzero(of_base.known)
    head_rows = np.flatnonzero(of_head.known & np.isin(of_head.cells, of_base.cells[base_rows]))
    base, head = base.rows(base_rows), head.rows(head_rows)
    if not _suffices(base) or not len(head):
        return None
    folds = min(FOLDS, len(np.unique(base.run)))
    dealt = (_dealt(base, folds), _dealt(head, folds))
    return PreparedCalls(counters, expectation.volume, (base, head), (of_base.rows(base_rows), of_head.rows(head_rows)), dealt, config)


def judge_calls(tables: Tables, kind: DetectorKind, config: CompareConfig) -> ScoredFunction | None:
    """Score every call of a function; None as in `prepare`."""
    prepared = prepare(tables, counters_of(*tables), config)
    return None if prepared is None else judge([prepared], kind)[0]


def judge_together(functions: Mapping[int, Tables], kind: DetectorKind, config: CompareConfig, *, models: int) -> dict[int, ScoredFunction]:
    """Score the calls of many functions by at most `models` detectors; functions are left out as in `prepare`.

    Functions whose calls are alike share one. All are read by the same counters, those that any of them has.
    """
    counters = tuple(dict.fromkeys(name for tables in functions.values() for name in counters_of(*tables)))
    shared = tuple(name for name in counters if all(name in table.metrics for tables in functions.values() for table in tables))
    candidates = {function: prepare(tables, shared, config) for function, tables in functions.items()}
    prepared = {function: calls for function, calls in candidates.items() if calls is not None}
    clusters = share({function: calls.residuals[0].levels for function, calls in prepared.items()}, models, seed=config.seed)
    judged: dict[int, ScoredFunction] = {}
    for cluster in sorted(set(clusters.values())):
        members = [function for function in prepared if clusters[function] == cluster]
        judged |= dict(zip(members, judge([prepared[function] for function in members], kind), strict=True))
    return judged


def judge(group: Sequence[PreparedCalls], kind: DetectorKind, learner: Learner = learn) -> list[ScoredFunction]:
    """Score the calls of functions that share a detector, as the `learner` makes it; each has a threshold of its own."""
    folds = int(max(prepared.folds[0].max() for prepared in group)) + 1
    detectors, harmless = [], []
    for fold in range(folds):
        training = _merged([prepared.training(fold) for prepared in group])
        detectors.append(learner(kind, training))
        harmless.append(detectors[-1].errors(training.harmless()))
    return [_scored(prepared, kind, detectors, np.concatenate(harmless)) for prepared in group]


def _scored(prepared: PreparedCalls, kind: DetectorKind, detectors: Sequence[Detector], harmless: Floats) -> ScoredFunction:
    shapes = [residuals.values.shape for residuals in prepared.residuals]
    errors, parts, grown = ([np.zeros(shape) for shape in shapes] for shapes in ([shape[:1] for shape in shapes], shapes, shapes))
    for fold, detector in enumerate(detectors):
        scale = prepared.scale(fold)
        for side, residuals in enumerate(prepared.residuals):
            rows = np.flatnonzero(prepared.folds[side] == fold)
            if len(rows):
                grown[side][rows] = scale.centred(residuals.rows(rows))
                standardised = scale.standardised(residuals.rows(rows))
                errors[side][rows] = detector.errors(standardised)
                parts[side][rows] = detector.parts(standardised)
    base, head = (ScoredCalls(*of_side) for of_side in zip(prepared.tables, prepared.residuals, errors, parts, grown, strict=True))
    return ScoredFunction(kind, prepared.counters, (base, head), threshold(base.errors, harmless))


def _merged(trainings: Sequence[Training]) -> Training:
    """Return the calls of several functions as those of one; runs stay apart."""
    first = trainings[0]
    offsets = np.cumsum([0, *(int(training.runs.max()) + 1 for training in trainings)])
    return Training(
        rows=np.concatenate([training.rows for training in trainings]),
        runs=np.concatenate([training.runs + offset for training, offset in zip(trainings, offsets, strict=False)]),
        slack=np.mean([training.slack for training in trainings], axis=0),
        volume=first.volume,
        seed=first.seed,
    )


def _suffices(base: SampleTable) -> bool:
    return len(base) >= MIN_CALLS and len(np.unique(base.run)) >= 2


def _complete(table: SampleTable, counters: Sequence[str]) -> SampleTable:
    present = np.ones(len(table), dtype=bool)
    for name in counters:
        present &= (table.metrics[name] >= 0) & (table.metrics[name] <= LARGEST)
    return table.rows(np.flatnonzero(present))


def _dealt(table: SampleTable, folds: int) -> Ints:
    """Return the fold of each call (n,): whole runs are dealt in turn, point by point, so that every fold has runs of every point."""
    runs, first, index = np.unique(table.run, return_index=True, return_inverse=True)
    order = np.argsort(table.point[first], kind="stable")
    fold = np.empty(len(runs), dtype=np.int64)
    fold[order] = np.arange(len(runs)) % folds
    return np.asarray(fold[index])
