"""Requests of the load, kind by kind, and runs that take longer because what they ask for takes longer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from perfdiff.analysis.findings import EndToEnd, Ratio, RequestFinding, Standing
from perfdiff.analysis.stats.pairs import Shift, shift
from perfdiff.analysis.verdicts.wholeruns import shift_of
from perfdiff.config import CompareConfig
from perfdiff.records.requests import RequestTimes
from perfdiff.records.schema import Experiment, Floats, Ints, Note, Phase, Point, Run, Side


def request_findings(experiment: Experiment, config: CompareConfig) -> tuple[RequestFinding, ...]:
    """Return how long requests of each kind were waited for at each point: medians over the plain runs, pair by pair."""
    found = []
    for point in experiment.points:
        base, head = (_plain(experiment.runs, point, side) for side in Side)
        kinds = dict.fromkeys(each.name for run in (*base[:1], *head[:1]) for each in run.requests)
        found += [_finding(point, kind, base, head, config) for kind in kinds]
    return tuple(found)


def waiting_notes(experiment: Experiment, ends: Sequence[EndToEnd], config: CompareConfig) -> Iterator[Note]:
    """Yield a note where runs take longer at the same CPU time and ask services that are no part of the revisions."""
    for end in ends:
        if not end.point.outside or end.standing in (Standing.SLOWER, Standing.OPEN):
            continue
        base, head = (_plain(experiment.runs, end.point, side) for side in Side)
        seen = shift_of(base, head, "wall_ns")
        if seen is None or seen.lower(config.confidence) <= math.log1p(config.min_effect):
            continue
        longer, bounds = math.exp(seen.effect), [math.exp(bound(config.confidence)) for bound in (seen.lower, seen.upper)]
        services = " or ".join(end.point.outside)
        yield Note(
            "waiting-grown",
            f"runs of {end.point.label} take ×{longer:.2f} as long [{bounds[0]:.2f}, {bounds[1]:.2f}] at the same CPU time: they wait "
            f"longer, as where {services}, which is outside the revisions, got slower; that is not put down to the program",
        )


def _plain(runs: Sequence[Run], point: Point, side: Side) -> list[Run]:
    return [run for run in runs if run.phase is Phase.PLAIN and run.point == point.id and run.side is side]


def _finding(point: Point, kind: str, base: Sequence[Run], head: Sequence[Run], config: CompareConfig) -> RequestFinding:
    before, after = ({run.block: _of(run, kind) for run in runs} for runs in (base, head))
    blocks = [block for block in after if _median(after, block) and _median(before, block)]
    logs: list[Floats] = [np.log([_median(side, block) or 1.0 for block in blocks]) for side in (before, after)]
    layouts: Ints = np.array([run.layout for run in head if run.block in blocks], dtype=np.int64)
    seen = shift(logs[0], logs[1], layouts) if blocks else None
    some = next(each for each in (*before.values(), *after.values()) if each is not None)
    return RequestFinding(
        point=point,
        name=kind,
        made=some.made,
        failed=sum(some.failed.values()),
        base_ns=_over_runs([each.median_ns for each in before.values() if each]),
        head_ns=_over_runs([each.median_ns for each in after.values() if each]),
        base_tail_ns=_over_runs([each.tail_ns for each in before.values() if each]),
        head_tail_ns=_over_runs([each.tail_ns for each in after.values() if each]),
        ratio=_ratio(seen, config),
    )


def _of(run: Run, kind: str) -> RequestTimes | None:
    return next((each for each in run.requests if each.name == kind), None)


def _median(runs: dict[int, RequestTimes | None], block: int) -> float | None:
    found = runs.get(block)
    return found.median_ns if found else None


def _over_runs(times: Sequence[float | None]) -> float | None:
    known = [each for each in times if each is not None]
    return float(np.median(known)) if known else None


def _ratio(seen: Shift | None, config: CompareConfig) -> Ratio | None:
    if seen is None:
        return None
    low, high = seen.lower(config.confidence), seen.upper(config.confidence)
    return Ratio(math.exp(seen.effect), math.exp(low), math.exp(high), seen.pairs, seen.pairs)
