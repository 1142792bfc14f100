"""Requests of the load, kind by kind, and runs that take longer because what they ask for takes longer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.counts.work import WorkDifference, is_same_work
from perfdiff.analysis.findings import EndToEnd, PointStanding, Ratio, RequestFinding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.config import CompareConfig
from perfdiff.records.arrays import Floats
from perfdiff.records.requests import RequestTimes
from perfdiff.records.schema import Experiment, Phase, Point, Run, Side
from perfdiff.statistics.pairs import PairedDifference, paired_difference
from perfdiff.statistics.sides import comparable, difference_of, in_blocks


def request_findings(experiment: Experiment, config: CompareConfig) -> tuple[RequestFinding, ...]:
    """Return how long requests of each kind were waited for at each point: medians over the plain runs, pair by pair."""
    findings = []
    for point in experiment.points:
        base, head = (comparable(_plain(experiment.runs, point, side)) for side in Side)
        kinds = dict.fromkeys(request.name for run in (*base[:1], *head[:1]) for request in run.requests)
        findings += [_finding(point, kind, base, head, config) for kind in kinds]
    return tuple(findings)


def without_waiting(runs: WholeRuns, experiment: Experiment, work: WorkDifference | None, config: CompareConfig) -> WholeRuns:
    """Return whole runs without the points where the same work takes longer because services outside the revisions are waited for longer.

    Who waits finds its caches cold and is woken more dearly: the CPU time of the same work grows a little with the wait.
    """
    if not is_same_work(work):
        return runs
    return runs.where(lambda end: _longer_waits(experiment, end, config) is None)


def points_that_wait(experiment: Experiment, runs: WholeRuns, config: CompareConfig) -> tuple[Point, ...]:
    """Return the points whose runs take longer in head as they wait, for services outside the revisions as far as is known."""
    return tuple(end.point for end in runs.ends if _longer_waits(experiment, end, config))


def waiting_notes(experiment: Experiment, runs: WholeRuns, work: WorkDifference | None, config: CompareConfig) -> Iterator[Claim]:
    """Yield a note where runs wait longer, and ask services that are no part of the revisions; those that may work more are left out."""
    ends = [end for end in runs.ends if is_same_work(work) or end.standing is not PointStanding.SLOWER]
    slower_ends = [(end, seen) for end in ends if (seen := _longer_waits(experiment, end, config))]
    if slower_ends:
        end, seen = max(slower_ends, key=lambda waits: waits[1].effect)
        longer, low, high = (math.exp(effect) for effect in (seen.effect, seen.lower(config.confidence), seen.upper(config.confidence)))
        more = claim("more-points", more=len(slower_ends) - 1, points=len(runs.ends)) if len(slower_ends) > 1 else None
        services = tuple(end.point.outside)
        yield claim("waiting-grown", point=end.point.label, ratio=(longer, low, high), more=more, services=services)


def _longer_waits(experiment: Experiment, end: EndToEnd, config: CompareConfig) -> PairedDifference | None:
    """Return by how much runs of a point take longer where that is waiting, for services outside the revisions as far as is known."""
    if not end.point.outside:
        return None
    base, head = (comparable(_plain(experiment.runs, end.point, side)) for side in Side)
    seen = difference_of(base, head, "wall_ns")
    if seen is None or seen.lower(config.confidence) <= math.log(end.smallest(config)):
        return None
    longer_ns, busier_ns = (
        float(np.median([getattr(run, cost) for run in head]) - np.median([getattr(run, cost) for run in base]))
        for cost in ("wall_ns", "cpu_ns")
    )
    return seen if busier_ns <= POLICY.busier * longer_ns else None


def _plain(runs: Sequence[Run], point: Point, side: Side) -> list[Run]:
    return [run for run in runs if run.phase is Phase.PLAIN and run.point == point.id and run.side is side]


def _finding(point: Point, kind: str, base: Sequence[Run], head: Sequence[Run], config: CompareConfig) -> RequestFinding:
    before, after = (in_blocks(run for run in runs if _median_ns(run, kind)) for runs in (base, head))
    both = [block for block in after if block in before]
    logs: list[Floats] = [
        np.array([np.mean([math.log(_median_ns(run, kind) or 1.0) for run in side[block]]) for block in both]) for side in (before, after)
    ]
    firsts = [after[block][0] for block in both]
    layouts, machines = (np.array([getattr(run, of) for run in firsts], dtype=np.int64) for of in ("layout", "machine"))
    seen = paired_difference(logs[0], logs[1], layouts, machines) if both else None
    times = [[request for run in runs if (request := _of(run, kind))] for runs in (base, head)]
    some = next(request for side in times for request in side)
    return RequestFinding(
        point=point,
        name=kind,
        made=some.made,
        failed=sum(some.failed.values()),
        base_ns=_over_runs([request.median_ns for request in times[0]]),
        head_ns=_over_runs([request.median_ns for request in times[1]]),
        base_tail_ns=_over_runs([request.tail_ns for request in times[0]]),
        head_tail_ns=_over_runs([request.tail_ns for request in times[1]]),
        ratio=_ratio(seen, config),
    )


def _of(run: Run, kind: str) -> RequestTimes | None:
    return next((request for request in run.requests if request.name == kind), None)


def _median_ns(run: Run, kind: str) -> float | None:
    request = _of(run, kind)
    return request.median_ns if request else None


def _over_runs(times: Sequence[float | None]) -> float | None:
    measured = [time for time in times if time is not None]
    return float(np.median(measured)) if measured else None


def _ratio(seen: PairedDifference | None, config: CompareConfig) -> Ratio | None:
    if seen is None:
        return None
    low, high = seen.lower(config.confidence), seen.upper(config.confidence)
    return Ratio(math.exp(seen.effect), math.exp(low), math.exp(high), seen.pairs, seen.pairs)
