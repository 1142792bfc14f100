"""Where the growth of counts differs between two revisions: in which function, and at which of its lines.

What is compared are the blocks that a function executes, so that the same work in other lines is no difference; what is named is the line
whose count grew most, a new one before one that only runs more often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.trends.findings import COSTLY_SHARE, Difference, Kind
from perfdiff.analysis.trends.functions import Function, functions
from perfdiff.models.clusters import ALPHA, LEAST_SD
from perfdiff.models.powerlaw import PERCENTILE, far_values
from perfdiff.models.shift import LEAST_SHIFT, cost_ratio, exponent_shift
from perfdiff.models.trend import Fit, Interval
from perfdiff.models.trendlines import fit
from perfdiff.records.places import Place, PlaceExperiment
from perfdiff.records.schema import Floats, Ints, Side

# A new line is the cause, not what it makes run more often, where it makes up this share of the extra count of the line that grew most.
_CAUSE_SHARE = 0.5
_RANKS = {Verdict.REGRESSION: 0, Verdict.IMPROVEMENT: 1, Verdict.INCONCLUSIVE: 2, Verdict.UNCHANGED: 3}


@dataclass(frozen=True, slots=True)
class _Growth:
    """How what a function executes grew over a feature: its fits, the difference of exponents, and its costs far beyond what was measured.

    `steeper` is 1 where head grows by a higher power, -1 where base does, 0 where neither is sure.
    """

    feature: str
    base: Fit | None
    head: Fit | None
    ci: Interval | None
    steeper: int
    at: float
    base_cost: float
    head_cost: float


@dataclass(frozen=True, slots=True)
class _Judge:
    """Judges functions against whole runs: `features` (points,) are the same on both sides, `base` and `head` (points,) are all blocks."""

    features: Mapping[str, Floats]
    base: Floats
    head: Floats
    min_effect: float
    seed: int

    def growth(self, base: Floats, head: Floats) -> _Growth | None:
        """Return how costs (points,) grew, over the feature that tells most of them; None where no feature does."""
        found = [each for name in self.features if (each := self._over(name, base, head))]
        return max(found, key=lambda each: max(fit.r2 for fit in (each.base, each.head) if fit), default=None)

    def _over(self, name: str, base: Floats, head: Floats) -> _Growth | None:
        x = self.features[name]
        before, after = fit(name, x, base, seed=self.seed), fit(name, x, head, seed=self.seed)
        if before is None and after is None:
            return None
        at = far_values(x)[-1]
        shift = exponent_shift(x, base, head, seed=self.seed)
        steeper = int(np.sign(shift.exponent)) if shift and shift.is_new else 0
        return _Growth(
            feature=name,
            base=before,
            head=after,
            ci=shift.ci if shift else None,
            steeper=steeper or self._steeper_part(name, base, head),
            at=at,
            base_cost=_far_cost(before),
            head_cost=_far_cost(after),
        )

    def _steeper_part(self, name: str, base: Floats, head: Floats) -> int:
        """Return 1 where what came on top of base's cost grows by a higher power than base's cost, -1 where what went did; else 0.

        A function without any cost on one side is held against whole runs.
        """
        x = self.features[name]
        for sign, less, more in ((1, base, head), (-1, head, base)):
            extra = fit(name, x, np.maximum(more - less, 0.0), seed=self.seed)
            rest = fit(name, x, less if less.any() else (self.base if sign > 0 else self.head), seed=self.seed)
            if extra and rest and extra.ci_b[0] > rest.ci_b[1] + LEAST_SHIFT and _far_cost(extra) >= COSTLY_SHARE * _far_cost(rest):
                return sign
        return 0

    def verdict(self, function: Function, found: _Growth) -> Verdict:
        """Return whether a difference makes the program's growth worse, or better.

        It must add, or save, `COSTLY_SHARE` of base's whole run at the far value, where whole runs must not go the other way. A higher
        power is a regression. By the same power, only lines that are as they were can make one, as they run more often; of new lines,
        more may be the same work, and the answer is open.
        """
        whole = self._over(found.feature, self.base, self.head)
        if whole is None:
            return Verdict.INCONCLUSIVE
        extra = found.head_cost - found.base_cost
        if abs(extra) < COSTLY_SHARE * whole.base_cost:
            return Verdict.UNCHANGED
        worse = extra > 0
        if (whole.head_cost > whole.base_cost) != worse:
            return Verdict.INCONCLUSIVE
        x, steady = self.features[found.feature], function.is_steady
        kept = self._is_beyond(x, function.kept_base, function.kept_head, is_exact=steady, worse=worse)
        if found.steeper == (1 if worse else -1) or kept:
            return Verdict.REGRESSION if worse else Verdict.IMPROVEMENT
        is_open = self._is_beyond(x, function.base, function.head, is_exact=steady, worse=worse) or not function.base.any()
        return Verdict.INCONCLUSIVE if is_open else Verdict.UNCHANGED

    def _is_beyond(self, x: Floats, base: Floats, head: Floats, *, is_exact: bool, worse: bool) -> bool:
        """Return whether head's costs over base's lie beyond the smallest effect of interest.

        Counts that repeat exactly do so where they lie beyond it at every point that counts more than a few; others by their interval.
        """
        lowest, highest = 1 + self.min_effect, 1 - self.min_effect
        many = np.maximum(base, head) >= LEAST_SD
        if is_exact and many.any():
            return bool((head[many] > lowest * base[many]).all() if worse else (head[many] < highest * base[many]).all())
        at = float(np.percentile(x[np.isfinite(x)], PERCENTILE))
        ratio = cost_ratio(x, base, head, at, seed=self.seed)
        return ratio is not None and (ratio[1][0] > lowest if worse else ratio[1][1] < highest)


def differences(experiment: PlaceExperiment, *, min_effect: float, seed: int) -> tuple[Difference, ...]:
    """Return what differs between both sides: regressions first, then by what they add at ten times the measured size.

    A function whose own code is as it was belongs to the difference of a changed one where their extra costs vary together. Raises
    ValueError where counts differ, and no feature that both sides share varies over the points: then nothing can be said of growth.
    """
    base, head = experiment.sides[Side.BASE], experiment.sides[Side.HEAD]
    known = functions(experiment)
    differing = [each for each in known if each.differs]
    if not differing:
        return ()
    features = _shared(base.features, head.features)
    if not features:
        raise ValueError("no feature varies")
    judge = _Judge(features, _total(known, Side.BASE), _total(known, Side.HEAD), min_effect, seed)
    found = [
        (function, growth, verdict)
        for function in differing
        if (growth := judge.growth(function.base, function.head)) and (verdict := judge.verdict(function, growth)) is not Verdict.UNCHANGED
    ]
    leading = [(function, growth, verdict, [function]) for function, growth, verdict in found if function.has_changed]
    for function, growth, verdict in found:
        if function.has_changed:
            continue
        causes = [each for each in leading if each[2] is verdict and _vary_together(each[0], function)]
        if causes:
            max(causes, key=lambda each: abs(each[1].head_cost - each[1].base_cost))[3].append(function)
        else:
            leading.append((function, growth, verdict, [function]))
    told = [_difference(experiment, growth, verdict, members) for _, growth, verdict, members in leading]
    return tuple(sorted(told, key=lambda each: (_RANKS[each.verdict], -abs(each.head_cost - each.base_cost))))


def _shared(base: Mapping[str, Floats], head: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the features that are the same on both sides and have several values above 0."""
    same = {name: x for name, x in head.items() if name in base and np.array_equal(x, base[name], equal_nan=True)}
    return {name: x for name, x in same.items() if len(np.unique(x[np.isfinite(x) & (x > 0)])) > 1}


def _total(known: Sequence[Function], side: Side) -> Floats:
    totals: Floats = np.array([each.base if side is Side.BASE else each.head for each in known]).sum(axis=0)
    return totals


def _vary_together(one: Function, other: Function) -> bool:
    """Return whether the extra costs of two functions fit each other linearly, as members of a cluster do (trend-prof §4.1)."""
    extra = np.array([one.head - one.base, other.head - other.base])
    if not extra.std(axis=1).all():
        return False
    return float(np.corrcoef(extra)[0, 1]) ** 2 > 1 - ALPHA


def _far_cost(found: Fit | None) -> float:
    return found.predictions[-1].cost if found and found.predictions else 0.0


def _difference(experiment: PlaceExperiment, growth: _Growth, verdict: Verdict, members: Sequence[Function]) -> Difference:
    worse = growth.head_cost >= growth.base_cost
    side = Side.HEAD if worse or not any(len(each.gone) for each in members) else Side.BASE
    place, members_ = _grown(experiment, members) if side is Side.HEAD else _gone(experiment, members)
    if growth.base is None:
        kind = Kind.NEW
    elif growth.head is None:
        kind = Kind.GONE
    else:
        kind = Kind.EXPONENT if growth.steeper else Kind.COEFFICIENT
    return Difference(
        kind, place, members_, growth.feature, growth.base, growth.head, growth.ci, growth.at, growth.base_cost, growth.head_cost, verdict
    )


def _grown(experiment: PlaceExperiment, members: Sequence[Function]) -> tuple[Place, tuple[int, ...]]:
    """Return the place of head whose count grew most at the point that grew most, and all that grew or shrank, by how much."""
    head = experiment.sides[Side.HEAD]
    numbers = np.concatenate([each.places for each in members])
    extra = head.counts[numbers] - np.concatenate([each.before for each in members])
    is_new = np.isin(np.arange(len(numbers)), _joined([each.new for each in members], [len(each.places) for each in members]))
    change = np.abs(extra[:, int(np.argmax(np.abs(extra).sum(axis=0)))])
    lead = int(np.argmax(change))
    fresh = np.where(is_new, change, 0.0)
    if fresh.max() >= _CAUSE_SHARE * change[lead]:
        lead = int(np.argmax(fresh))
    moved = numbers[np.argsort(-change, kind="stable")][: int((change > 0).sum())]
    return head.places[numbers[lead]], tuple(moved.tolist())


def _gone(experiment: PlaceExperiment, members: Sequence[Function]) -> tuple[Place, tuple[int, ...]]:
    """Return the place of base that ran most often of those that are gone, and all of these."""
    base = experiment.sides[Side.BASE]
    numbers = np.concatenate([each.base_places[each.gone] for each in members])
    largest = base.counts[numbers].max(axis=1)
    ordered = numbers[np.argsort(-largest, kind="stable")]
    return base.places[ordered[0]], tuple(ordered.tolist())


def _joined(parts: Sequence[Ints], lengths: Sequence[int]) -> Ints:
    """Return indices into parts as indices into all parts one after the other."""
    starts = np.cumsum([0, *lengths[:-1]])
    return np.concatenate([start + part for start, part in zip(starts, parts, strict=True)])
