"""Saved trends as assertions: the exponent of each costly cluster must not grow, and none that is steeper may come.

A cluster's lines are found again by function and text, and the blocks that they lie in now are fitted over the same feature, at inputs
within the range that was saved: beyond it, what is no power law has another exponent without any change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.series import CheckedAssertions, Standing
from perfdiff.analysis.trends.again import found_again
from perfdiff.analysis.trends.blocks import block_starts
from perfdiff.analysis.trends.features import varying
from perfdiff.analysis.trends.findings import PlaceCluster, TrendFindings
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import CostClass
from perfdiff.models.threads import one_thread
from perfdiff.models.trend import LEAST_SHIFT, Interval, Law
from perfdiff.models.trendlines import fit
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.places import Place, PlaceCounts
from perfdiff.records.schema import Revision, Side


@dataclass(frozen=True, slots=True)
class SavedExponent:
    """The exponent `b` of a saved cluster over a feature, with its 95 % interval."""

    feature: str
    b: float
    ci: Interval


@dataclass(frozen=True, slots=True)
class SavedCluster:
    """A cluster as it was saved: called `name`, with its cost at each saved point (points,), NaN where absent.

    `exponents` are those of fits that tell its growth, the best first.
    """

    name: str
    is_costly: bool
    places: tuple[Place, ...]
    costs: Floats
    exponents: tuple[SavedExponent, ...]


@dataclass(frozen=True, slots=True)
class SavedTrends:
    """The trends of a revision as they were saved: points by their labels, `features` (points,) by name; `constant` places never varied.

    `instances` tells that those of templates are apart.
    """

    revision: Revision
    labels: tuple[str, ...]
    features: Mapping[str, Floats]
    clusters: tuple[SavedCluster, ...]
    constant: tuple[Place, ...]
    instances: bool = False


@dataclass(frozen=True, slots=True)
class GrowthAssertion:
    """A saved cluster with what became of its growth; or, without `saved`, a cluster that grows by a higher power than every saved one.

    `fit` is over the saved feature, of the blocks of its `places` that were `found` again, of which `place` runs most often now. The
    exponent may be `limit` at most. `reason` says why there is no answer.
    """

    name: str
    standing: Standing
    saved: SavedExponent | None
    places: int
    found: int
    limit: float | None = None
    place: Place | None = None
    fit: Law | None = None
    largest: float | None = None
    reason: Claim | None = None

    @property
    def is_in_part(self) -> bool:
        """Return whether some of the saved lines are not there any more."""
        return self.saved is not None and self.found < self.places


@one_thread()
def check_trends(saved: SavedTrends, findings: TrendFindings, config: CompareConfig) -> CheckedAssertions[GrowthAssertion]:
    """Hold one revision against saved trends: an assertion for each costly cluster, and one for each new one that is steeper than all."""
    held = _SavedTrendCheck(saved, findings.experiment.sides[Side.BASE], config.seed)
    judged = [held.judged(cluster) for cluster in saved.clusters if cluster.is_costly]
    higher = [blocks for assertion, blocks in judged if assertion.standing in {Standing.VIOLATED, Standing.OPEN}]
    assessed = np.concatenate([np.empty(0, dtype=np.int64), *higher])
    steeper = held.steeper(findings.sides[Side.BASE].clusters, assessed)
    assertions = (*(assertion for assertion, _ in judged), *steeper)
    return CheckedAssertions(findings.experiment.revisions[Side.BASE], assertions, findings.experiment.notes, config, saved=saved.revision)


class _SavedTrendCheck:
    """Counts of a revision that are held against saved trends."""

    def __init__(self, saved: SavedTrends, counted: PlaceCounts, seed: int) -> None:
        self._saved, self._counted, self._seed = saved, counted, seed
        self._starts = block_starts(counted)
        saved_places = (*(place for cluster in saved.clusters for place in cluster.places), *saved.constant)
        self._now = found_again(saved_places, counted.places)

    def judged(self, cluster: SavedCluster) -> tuple[GrowthAssertion, Ints]:
        """Return what became of a cluster, and the blocks of its lines that were found again."""
        places = np.array([self._now[place] for place in cluster.places if place in self._now], dtype=np.int64)
        blocks = np.unique(self._starts[places])
        exponent = next(iter(cluster.exponents), None)

        def unjudged(reason: Claim) -> tuple[GrowthAssertion, Ints]:
            return GrowthAssertion(cluster.name, Standing.NOT_JUDGED, exponent, len(cluster.places), len(places), reason=reason), blocks

        if exponent is None:
            return unjudged(claim("no-feature-told"))
        if exponent.feature not in varying(self._counted.features):
            return unjudged(claim("feature-does-not-vary", feature=exponent.feature))
        if not len(places):
            return unjudged(claim("lines-are-gone"))
        costs = self._counted.counts[blocks].sum(axis=0)
        now = fit(exponent.feature, self._within_range(exponent.feature), costs, seed=self._seed)
        if now is None:
            return unjudged(claim("few-sizes-in-range", feature=exponent.feature))
        standing, reason = self._standing(cluster, exponent, now, costs)
        place = self._counted.places[places[int(np.argmax(self._counted.counts[places].max(axis=1)))]]
        return GrowthAssertion(
            name=cluster.name,
            standing=standing,
            saved=exponent,
            places=len(cluster.places),
            found=len(places),
            limit=exponent.ci[1] + LEAST_SHIFT,
            place=place,
            fit=now,
            largest=float(costs.max()),
            reason=reason,
        ), blocks

    def steeper(self, clusters: Sequence[PlaceCluster], assessed: Ints) -> list[GrowthAssertion]:
        """Return the costly clusters that grow by a higher power than every saved one; not those with `assessed` blocks alone."""
        assertions = []
        for cluster in clusters:
            best = next((law for law in cluster.fits if law.growth is not CostClass.NONE), None)
            limit = self._steepest(best.feature) if best else None
            blocks = np.unique(self._starts[list(cluster.members)])
            if not cluster.is_costly or best is None or limit is None or np.isin(blocks, assessed).all():
                continue
            now = fit(best.feature, self._within_range(best.feature), cluster.costs, seed=self._seed)
            if now is not None and now.ci_b[0] > limit:
                place = self._counted.places[cluster.members[0]]
                places = len(cluster.members)
                name = cluster.name if cluster.place is None else f"{cluster.place.function} ({cluster.name})"
                assertions.append(GrowthAssertion(name, Standing.VIOLATED, None, places, 0, limit, place, now, cluster.largest))
        return assertions

    def _steepest(self, feature: str) -> float | None:
        """Return the exponent over a feature that no cluster may exceed, None where none was saved.

        Clusters that were not costly are no assertions and little is known of them, but where one of them costs more at larger inputs,
        it is no new one: their exponents count without intervals, which may be wide.
        """
        bounds = [
            exponent.ci[1] if cluster.is_costly else exponent.b
            for cluster in self._saved.clusters
            for exponent in cluster.exponents
            if exponent.feature == feature
        ]
        return max(bounds) + LEAST_SHIFT if bounds else None

    def _standing(self, cluster: SavedCluster, exponent: SavedExponent, now: Law, costs: Floats) -> tuple[Standing, Claim | None]:
        low, high = exponent.ci
        limit = high + LEAST_SHIFT
        if now.ci_b[0] > limit:
            if self._costs_more(cluster, exponent.feature, costs):
                return Standing.VIOLATED, None
            return Standing.OPEN, claim("lower-order-is-gone")
        if now.ci_b[1] < low - LEAST_SHIFT:
            return Standing.LESS, None
        if now.ci_b[1] <= limit:
            return Standing.HOLDS, None
        return Standing.OPEN, claim("exponent-may-be", exponent=now.ci_b[1])

    def _costs_more(self, cluster: SavedCluster, feature: str, costs: Floats) -> bool:
        """Return whether it costs more than was saved at the largest point of both; so it is taken to where they have none in common."""
        now = {point.label: cost for point, cost in zip(self._counted.points, costs.tolist(), strict=True)}
        before = zip(self._saved.labels, self._saved.features[feature].tolist(), cluster.costs.tolist(), strict=True)
        common = [(x, cost, now[label]) for label, x, cost in before if label in now and np.isfinite(x) and np.isfinite(cost)]
        if not common:
            return True
        _, saved, measured = max(common)
        return bool(measured > saved)

    def _within_range(self, feature: str) -> Floats:
        """Return a feature (points,), NaN where it lies outside of the values that were saved, and where counts were lost."""
        x, saved = self._counted.features[feature], self._saved.features[feature]
        finite = saved[np.isfinite(saved)]
        is_known = np.isin(np.arange(len(x)), self._counted.known)
        return np.where(is_known & (x >= np.min(finite, initial=np.inf)) & (x <= np.max(finite, initial=-np.inf)), x, np.nan)
