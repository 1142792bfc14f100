"""Calls of head whose counters, read together, are not like base's: how many, which, and by which counters (AutoPerf §4.3).

What a detector adds to the comparison of single counters: it names the calls that differ, with their inputs, and the counter that
differs most in each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.ratios import as_ratio
from perfdiff.analysis.compare.tables import both_tables
from perfdiff.analysis.counts.scoring import ScoredCalls, ScoredFunction, Tables, judge_calls, judge_together
from perfdiff.analysis.findings import Anomaly, FunctionFinding, Verdict, Vote
from perfdiff.analysis.oddcalls import OddCall, RunErrors
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.stats.inference import contrast
from perfdiff.analysis.stats.runs import Contrast, Group, PointRuns
from perfdiff.config import CompareConfig
from perfdiff.engines.engine import Engine
from perfdiff.engines.serial import Serial
from perfdiff.engines.tables import chosen
from perfdiff.models.detectors.detector import DetectorKind, Threshold
from perfdiff.models.detectors.residuals import Residuals
from perfdiff.records.arrays import Floats
from perfdiff.records.metrics import included
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import SampleTable, Side

DEFAULT = DetectorKind.MAHALANOBIS
SERIAL = Serial()
# Kinds that take about a second a function, and how many of them are trained at most: F1 of one to seven that are shared was
# within 0.05 of that of one a function.
COSTLY = frozenset({DetectorKind.AUTOENCODER, DetectorKind.ISOLATION})
MODELS = 7
# Six runs a side are the fewest whose ranks alone can reach one in a thousand: 1 of 924 ways to deal them.
MIN_RUNS = 6
# Of all pairs of a base run and a head run, so many must agree on the direction: an effect carried by a few runs is theirs.
AGREEMENT = 0.8
RANK_DEVIATIONS = 2.33  # one in a hundred by chance, whatever the tails of the noise
SHOWN_CALLS = 5
SHOWN_VOTES = 5
MOST_ANOMALIES = 20  # functions whose calls are judged by all counters together, guilty ones first: some tenths of a second each …
AS_COMPARISONS = 2  # … or as many comparisons of a function


def with_anomalies(
    functions: Sequence[FunctionFinding], counts: Samples, config: CompareConfig, engine: Engine | None
) -> list[FunctionFinding]:
    """Add which calls' counters, read together, are not like base's, where a function is reported on or a counter moved."""
    reported = [finding.info.id for finding in functions if finding.verdict is not Verdict.UNCHANGED or moved(finding)][:MOST_ANOMALIES]
    tables = {function: pair for function in reported if (pair := both_tables(function, counts)) is not None}
    anomalies = find_all(tables, config, kind=DetectorKind(config.detector), engine=chosen(engine, AS_COMPARISONS * len(tables)))
    return [replace(finding, anomaly=anomalies.get(finding.info.id)) for finding in functions]


def moved(finding: FunctionFinding) -> bool:
    """Return whether any count of a function grew or shrank."""
    return any(count.grew or count.shrank for count in finding.counts.values())


def find(base: SampleTable, head: SampleTable, config: CompareConfig, *, kind: DetectorKind = DEFAULT) -> Anomaly | None:
    """Judge the calls of a function in head by those in base, tables with the same features.

    None where nothing can be said: no counter tells the work of a call, base has fewer than `MIN_CALLS` calls or two runs, or head has
    no call with inputs that base has.
    """
    judged = judge_calls((base, head), kind, config)
    return None if judged is None else concluded(judged, config)


def find_all(
    functions: Mapping[int, Tables], config: CompareConfig, *, kind: DetectorKind = DEFAULT, models: int = MODELS, engine: Engine = SERIAL
) -> dict[int, Anomaly]:
    """Judge the calls of many functions, by id; functions of which nothing can be said are left out.

    Of a costly kind, at most `models` are trained: functions share them with those that are alike (AutoPerf §4.3.3).
    """
    if kind not in COSTLY or len(functions) <= models:
        anomalies = zip(functions, engine.map(_anomaly, functions.values(), config, kind), strict=True)
        return {function: anomaly for function, anomaly in anomalies if anomaly is not None}
    judged = judge_together(functions, kind, config, models=models)
    return {function: concluded(scored, config) for function, scored in judged.items()}


def _anomaly(tables: Tables, config: CompareConfig, kind: DetectorKind) -> Anomaly | None:
    return find(*tables, config, kind=kind)


def concluded(scored: ScoredFunction, config: CompareConfig) -> Anomaly:
    """Return the anomaly that the scores of a function's calls show."""
    tested = _tested(scored)
    shares = [float(side.anomalous(scored.threshold).mean()) for side in scored.sides]
    runs = [len(np.unique(side.table.run)) for side in scored.sides]
    return Anomaly(
        detector=scored.kind,
        threshold=scored.threshold.value,
        normal=scored.threshold.normal,
        quantile=scored.threshold.quantile,
        anomalous_base=shares[0],
        anomalous_head=shares[1],
        runs_base=runs[0],
        runs_head=runs[1],
        p=tested.p,
        is_anomalous=tested.is_anomalous,
        open=tested.open,
        votes=_votes(scored, config),
        calls=_odd_calls(scored),
        errors=tuple(run_errors for side in scored.sides for run_errors in _by_run(side, scored.threshold)),
    )


@dataclass(frozen=True, slots=True)
class _AnomalyTest:
    p: float
    is_anomalous: bool
    open: Claim | None = None


def _tested(scored: ScoredFunction) -> _AnomalyTest:
    """Test whether head's runs hold a larger share of anomalous calls than base's held-out runs, over all points and at each alone."""
    groups = [_shares(side, scored.threshold) for side in scored.sides]
    points = sorted(groups[0].keys() & groups[1].keys())
    pairs = [PointRuns(groups[0][point], groups[1][point]) for point in points]
    asked = [pairs] if len(pairs) < 2 else [pairs, *([pair] for pair in pairs)]
    seen = [contrast for tested_pairs in asked if (contrast := _contrast(tested_pairs, scored)) is not None]
    enough = [contrast for contrast in seen if min(contrast.runs_base, contrast.runs_head) >= MIN_RUNS]
    if not enough:
        runs = [sum(len(getattr(pair, side).values) for pair in pairs) for side in Side]
        return _AnomalyTest(1.0, is_anomalous=False, open=claim("few-runs-alike", base=runs[0], head=runs[1]))
    p = min(1.0, len(enough) * min((contrast.p for contrast in enough if contrast.effect > 0), default=1.0))
    alarms = [contrast for contrast in enough if len(enough) * contrast.p <= POLICY.evidence and _stands(contrast)]
    return _AnomalyTest(p, bool(alarms))


def _shares(side: ScoredCalls, bound: Threshold) -> dict[int, Group]:
    """Return the share of anomalous calls of every run, by point."""
    index = np.unique(side.table.run, return_inverse=True)[1]
    return _by_point(side.table, np.bincount(index, side.anomalous(bound)) / np.bincount(index))


def _by_point(table: SampleTable, values: Floats) -> dict[int, Group]:
    """Return a value of every run, in the order of their numbers, by point.

    Counts do not drift as times do, so that runs are not paired: every run is a block of its own.
    """
    runs, first = np.unique(table.run, return_index=True)
    points = table.point[first]
    return {int(point): Group(values[points == point], runs[points == point]) for point in np.unique(points)}


def _contrast(pairs: Sequence[PointRuns], scored: ScoredFunction) -> Contrast | None:
    """Return the difference of shares over runs; its error is at least that of as many independent calls, which equal runs would hide."""
    seen = contrast(pairs)
    if seen is None:
        return None
    calls = [len(side.errors) for side in scored.sides]
    anomalous = sum(float(side.anomalous(scored.threshold).sum()) for side in scored.sides)
    share = (anomalous + 0.5) / (sum(calls) + 1.0)
    return replace(seen, error=max(seen.error, math.sqrt(share * (1 - share) * (1 / calls[0] + 1 / calls[1]))))


def _stands(seen: Contrast) -> bool:
    """Return whether a difference of shares is material, and one that the runs agree on."""
    return seen.effect >= POLICY.anomalous and _agree(seen)


def _votes(scored: ScoredFunction, config: CompareConfig) -> tuple[Vote, ...]:
    """Return the counters that anomalous calls of head vote for, each for the one that differs most, by falling share."""
    head = scored.sides[1]
    ballots = head.ballots[head.anomalous(scored.threshold)]
    counts = np.bincount(ballots, minlength=len(scored.counters))
    order = [int(place) for place in np.argsort(-counts, kind="stable")[:SHOWN_VOTES] if counts[place]]
    return tuple(_vote(scored, place, float(counts[place] / len(ballots)), config) for place in order)


def _vote(scored: ScoredFunction, place: int, share: float, config: CompareConfig) -> Vote:
    counter = scored.counters[place]
    parts = [at for at, name in enumerate(scored.counters) if name in included(counter)]
    groups, means = [], []
    for side in scored.sides:
        usual = np.sum([_usual(scored.sides[0].residuals, side.residuals, at) for at in parts], axis=0)
        groups.append(_levels(side.table, side.table.metrics[counter], usual))
        means.append((float(usual.mean()), float(side.table.metrics[counter].mean())))
    seen = contrast([PointRuns(groups[0][point], groups[1][point]) for point in sorted(groups[0].keys() & groups[1].keys())])
    ratio = as_ratio(seen, config.confidence) if seen else None
    return Vote(counter, share, base=means[1][0], head=means[1][1], ratio=ratio)


def _levels(table: SampleTable, counted: Floats, usual: Floats) -> dict[int, Group]:
    """Return each run's counts over what is usual at its inputs, as logarithms, by point."""
    index = np.unique(table.run, return_inverse=True)[1]
    return _by_point(table, np.log((np.bincount(index, counted) + 0.5) / (np.bincount(index, usual) + 0.5)))


def _usual(base: Residuals, calls: Residuals, place: int) -> Floats:
    """Return base's mean count at each call's inputs (n,): what its annotation says, levelled to base's mean in every cell.

    Annotations of counters with outliers follow the many calls, and may be 0 where the mean is not.
    """
    usual = calls.expected[:, place].copy()
    for cell in np.unique(calls.cells):
        inside, here = base.cells == cell, calls.cells == cell
        counted, foretold = float(base.counts[inside, place].sum()), float(base.expected[inside, place].sum())
        usual[here] = usual[here] * counted / foretold if foretold > 0 else counted / inside.sum()
    return usual


def _odd_calls(scored: ScoredFunction) -> tuple[OddCall, ...]:
    """Return the most anomalous calls of head, worst first."""
    head = scored.sides[1]
    table = head.table
    order = np.argsort(-head.errors, kind="stable")[:SHOWN_CALLS]
    return tuple(
        OddCall(
            run=int(table.run[row]),
            point=int(table.point[row]),
            thread=int(table.thread[row]),
            call=int(table.call[row]),
            inputs={f.name: float(x) for f, x in zip(table.features, table.values[row], strict=True) if np.isfinite(x)},
            error=float(head.errors[row]),
            counter=scored.counters[int(head.ballots[row])],
        )
        for row in order.tolist()
        if head.errors[row] > scored.threshold.value
    )


def _by_run(side: ScoredCalls, bound: Threshold) -> list[RunErrors]:
    errors = []
    for run in np.unique(side.table.run).tolist():
        here = side.table.run == run
        middle, high = np.quantile(side.errors[here], (0.5, 0.95))
        share = float(side.anomalous(bound)[here].mean())
        errors.append(RunErrors(run, int(side.table.point[here][0]), side.table.side, float(middle), float(high), share))
    return errors


def _agree(seen: Contrast) -> bool:
    """Return whether the runs agree on the effect's direction, by more than chance lets ranks agree."""
    needed = min(1.0, max(AGREEMENT, 0.5 + RANK_DEVIATIONS * seen.chance))
    return (seen.agreement if seen.effect > 0 else 1 - seen.agreement) >= needed
