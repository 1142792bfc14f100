"""Regimes that moved: a mode of a mixture that became likelier, a border between scopes that lies elsewhere (methods §2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from perfdiff.analysis.findings import BorderShift, ModeShift
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.stats.inference import contrast, false_discovery
from perfdiff.analysis.stats.runs import Contrast, Group, PointRuns
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import Annotation, Operator, Scope
from perfdiff.models.clock import HIDDEN_NS
from perfdiff.models.modes import APART, SMALLEST_MODE, members
from perfdiff.models.observations import Observations, observe
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import SampleTable

_FARTHEST = 0.95  # quantile of base's own distances: beyond lie interrupted calls


def moved_modes(annotation: Annotation, base: SampleTable, head: SampleTable, config: CompareConfig) -> tuple[ModeShift, ...]:
    """Return the modes whose share of the calls moved: by `MOVED_MODE` or more, with an interval without 0, at `fdr` over all modes.

    Each call is given to the mode it lies nearest to, by base's modes on both sides; runs are compared within workload points. Where head
    has modes of its own, shares of base's are not known. Modes of a time that probes cannot tell from none are no modes.
    """
    least = HIDDEN_NS if metric_of(annotation.metric).unit == "ns" else 0.0
    sides = [observe(table, annotation.metric) for table in (base, head)]
    candidates: list[tuple[Scope, Contrast, float, float]] = []
    for _, group in groupby(annotation.scopes, key=lambda scope: scope.conditions):
        modes = list(group)
        if len(modes) == 1 or not _keeps(modes, *sides):
            continue
        shares = [_shares(modes, rows) for rows in sides]
        for place, mode in enumerate(modes):
            seen = contrast(list(_pairs(shares, sides, place)))
            if seen is not None and _typical(annotation, mode) >= least:
                before, after = (float(np.nanmean(side_shares[place])) for side_shares in shares)
                candidates.append((mode, seen, before, after))
    q_values = false_discovery([seen.p for _, seen, *_ in candidates])
    return tuple(
        ModeShift(_typical(annotation, mode), before, after, *seen.interval(config.confidence), float(q))
        for (mode, seen, before, after), q in zip(candidates, q_values, strict=True)
        if abs(seen.effect) >= POLICY.moved_mode and q <= config.fdr and abs(seen.effect) > seen.half_width(config.confidence)
    )


def _keeps(modes: Sequence[Scope], base: Observations, head: Observations) -> bool:
    """Return whether so many of head's calls lie about base's modes that the others are no mode.

    About a mode lies what is nearer than another mode could be, or than all but the farthest of base's calls.
    """
    before, after = (_offsets(modes, rows) for rows in (base, head))
    reach = max(APART, float(np.quantile(before, _FARTHEST)) if len(before) else 0.0)
    return bool(np.mean(after > reach) < SMALLEST_MODE) if len(after) else True


def _offsets(modes: Sequence[Scope], rows: Observations) -> Floats:
    """Return how far each call that belongs to a mode lies from it, relative to what is expected there."""
    offsets = []
    for mode, index in zip(modes, members(modes, rows), strict=True):
        expected = mode.expected({name: column[index] for name, column in rows.columns.items()}, len(index))
        offsets.append(np.abs(rows.cost[index] - expected) / np.maximum(np.abs(expected), 1e-300))
    return np.concatenate(offsets)


def _shares(modes: Sequence[Scope], rows: Observations) -> list[Floats]:
    """Return per mode its share of each run's calls (runs,), in the order of the runs' numbers; NaN where a run has none of them."""
    runs, index = np.unique(rows.run, return_inverse=True)
    counts = np.array([np.bincount(index[of], minlength=len(runs)) for of in members(modes, rows)], dtype=np.float64)
    whole = counts.sum(axis=0)
    return list(np.where(whole > 0, counts / np.maximum(whole, 1.0), np.nan))


def _pairs(shares: Sequence[Sequence[Floats]], sides: Sequence[Observations], place: int) -> Iterator[PointRuns]:
    """Yield the shares of a mode in base's and head's runs, by workload point."""
    points = [_points(rows) for rows in sides]
    for point in np.intersect1d(points[0], points[1]):
        groups = []
        for values, of in zip(shares, points, strict=True):
            here = values[place][(of == point) & np.isfinite(values[place])]
            groups.append(Group(here, np.arange(len(here))))
        yield PointRuns(*groups)


def _points(rows: Observations) -> Ints:
    """Return the workload point of each run, in the order of the runs' numbers."""
    _, first = np.unique(rows.run, return_index=True)
    return rows.point[first]


def _typical(annotation: Annotation, mode: Scope) -> float:
    """Return what a call in a mode costs at the typical inputs."""
    return float(mode.expected({name: np.array([value]) for name, value in annotation.typical.items()}, 1)[0])


def moved_borders(base: Annotation, head: Annotation) -> tuple[BorderShift, ...]:
    """Return the features at which both sides change their regime once, at different values."""
    before, after = _borders(base), _borders(head)
    return tuple(
        BorderShift(name, bound, after[name]) for name, bound in before.items() if name in after and not np.isclose(bound, after[name])
    )


def _borders(annotation: Annotation) -> dict[str, float]:
    bounds_by_feature: dict[str, set[float]] = {}
    for scope in annotation.scopes:
        for condition in scope.conditions:
            if condition.operator in (Operator.AT_MOST, Operator.ABOVE) and not condition.labels:
                bounds_by_feature.setdefault(condition.feature, set()).add(condition.values[0])
    return {name: bounds.pop() for name, bounds in bounds_by_feature.items() if len(bounds) == 1}
