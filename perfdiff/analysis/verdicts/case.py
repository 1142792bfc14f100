"""The evidence about one function when it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from perfdiff.analysis.blame.guilt import Attribution, Guilt
from perfdiff.analysis.compare.judgement import Direction, Judgement
from perfdiff.analysis.compare.ratios import as_resolved
from perfdiff.analysis.compare.shares import PRIMARY
from perfdiff.analysis.compare.studied import Study
from perfdiff.analysis.compare.uneven import uneven_points
from perfdiff.analysis.counts.memory import MemoryEvidence, contended
from perfdiff.analysis.counts.suspects import ExtraWork
from perfdiff.analysis.findings import CountFinding, EndToEnd, Ratio
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.analysis.sums.rates import too_short
from perfdiff.config import CompareConfig
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import FunctionInfo


@dataclass(frozen=True, slots=True)
class Case:
    """The evidence on one function: comparisons, judgements, the cost of its change, counts, and the whole runs (`ends`, by point).

    `work` is what it executes more, by counts of runs as a whole, and `run_extra_ns` (points of the counted runs,) the least that all
    functions together execute more. `counted` are the sums of these runs, None where nothing was counted. `config` judges what all its
    calls show, `effect_at` is the smallest effect of interest at each point. Where another tool measured both sides, one after the other,
    times may `drift` by this share from one to the other though nothing changed.
    """

    study: Study
    judgements: Mapping[str, Judgement]
    attribution: Attribution
    ledger: Ledger
    config: CompareConfig
    place: MemoryEvidence
    ends: Mapping[int, EndToEnd]
    work: ExtraWork | None = None
    run_extra_ns: Floats = field(default_factory=lambda: np.empty(0))
    counted: Ledger | None = None
    effect_at: Mapping[int, float] = field(default_factory=dict)
    drift: float = 0.0

    @property
    def effects(self) -> Floats:
        """Return the smallest effects of interest at the attribution's points, (points,), as shares."""
        return np.array([self.effect(point) for point in self.attribution.points])

    def effect(self, point: int) -> float:
        """Return the smallest effect of interest at a point, as a share."""
        return self.effect_at.get(point, self.config.min_effect)

    @property
    def info(self) -> FunctionInfo:
        """Return the function."""
        return self.study.info

    @property
    def counts(self) -> Mapping[str, CountFinding]:
        """Return the findings on the function's counts, by counter."""
        return self.place.counts

    @property
    def contended(self) -> tuple[str, ...]:
        """Return the counters that say that its calls wait for other cores or nodes."""
        return contended(self.info.id, self.counts, self.ledger, self.config)

    @property
    def guilt(self) -> Guilt | None:
        """Return the guilt of the function's change, None if it neither costs nor saves anything."""
        return self.attribution.guilt.get(self.info.id)

    @property
    def runs_are_slower(self) -> bool:
        """Return whether whole runs without probes are slower beyond chance at some point, by however little."""
        return any(end.ratio is not None and end.ratio.low > 1 for end in self.ends.values())

    def claimed(self, guilt: Guilt) -> dict[int, float]:
        """Return by point what part of a run a change costs; below 0 what it saves."""
        return dict(zip(self.attribution.points, (guilt.ns / self.attribution.run_ns).tolist(), strict=True))

    def direction(self, metric: str) -> Direction:
        """Return where a metric clearly went at equal inputs; nowhere where it was not judged."""
        judgement = self.judgements.get(metric)
        return judgement.direction if judgement else Direction.NONE

    @property
    def uneven_points(self) -> frozenset[int]:
        """Return the points where only fewer calls, of a number that varies from run to run, hide that a changed function is slower."""
        own = self.study.comparisons.get(PRIMARY)
        if own is None or not self.info.change.is_suspect or self.direction(PRIMARY) is not Direction.UP:
            return frozenset()
        return uneven_points(self.info.id, own, self.ledger, self.config)

    def sums_tell(self, metric: str) -> bool:
        """Return whether calls are too short to be timed one by one, so that a metric is told by sums over runs."""
        return too_short(self.info.id, metric, self.ledger)

    def ratio(self, metric: str) -> Ratio | None:
        """Return head over base of a metric that was compared, as it is told; None where that is not known."""
        comparison = self.study.comparisons[metric]
        if not self.sums_tell(metric):
            return comparison.ratio
        total = self.study.totals.get(metric)
        return as_resolved(total, comparison, self.ledger) if total else None
