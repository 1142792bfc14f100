"""Where the growth of counts differs between two revisions: in which function, and at which of its lines.

What is compared are the blocks that a function executes, so that the same work in other lines is no difference; what is named is the line
whose count grew most, a new one before one that only runs more often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.trends.features import shared, varying
from perfdiff.analysis.trends.findings import COSTLY_SHARE, GrowthCause, GrowthDifference, GrowthDifferenceKind
from perfdiff.analysis.trends.functions import FunctionCounts, functions
from perfdiff.models.clusters import ALPHA, LEAST_SD
from perfdiff.models.shift import cost_ratio, exponent_shift
from perfdiff.models.trend import LEAST_SHIFT, PERCENTILE, Interval, Law, far_values
from perfdiff.models.trendlines import fit
from perfdiff.records.arrays import Floats
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.schema import Side

# What grows by two powers more than the whole run gains a factor of 100 on it by ten times the size: less than this share of every run
# cannot become costly there.
_SLIGHT_SHARE = COSTLY_SHARE / 100
_RANKS = {Verdict.REGRESSION: 0, Verdict.IMPROVEMENT: 1, Verdict.INCONCLUSIVE: 2, Verdict.UNCHANGED: 3}


@dataclass(frozen=True, slots=True)
class _CostGrowth:
    """How what a function executes grew over a feature: its fits, the difference of exponents, and its costs far beyond what was measured.

    `steeper` is 1 where head grows by a higher power, -1 where base does, 0 where neither is sure.
    """

    feature: str
    base: Law | None
    head: Law | None
    ci: Interval | None
    steeper: int
    at: float
    base_cost: float
    head_cost: float


@dataclass(frozen=True, slots=True)
class _GrowthJudge:
    """Judges functions against whole runs: `features` (points,) are the same on both sides, `base` and `head` (points,) are all blocks.

    `far_costs` are what whole runs of base and head cost at the far value of each feature that tells of both.
    """

    features: Mapping[str, Floats]
    base: Floats
    head: Floats
    far_costs: Mapping[str, tuple[float, float]]
    min_effect: float
    seed: int

    @classmethod
    def of(cls, features: Mapping[str, Floats], base: Floats, head: Floats, *, min_effect: float, seed: int) -> _GrowthJudge:
        """Return the judge of programs that execute so many blocks."""
        whole = {name: [fit(name, x, cost, seed=seed) for cost in (base, head)] for name, x in features.items()}
        far_costs = {name: (_far_cost(before), _far_cost(after)) for name, (before, after) in whole.items() if before and after}
        return cls(features, base, head, far_costs, min_effect, seed)

    def share(self, function: FunctionCounts) -> float:
        """Return the largest share of any run by which a function differs."""
        return float(np.max(np.abs(function.head - function.base) / np.maximum(np.maximum(self.base, self.head), 1.0)))

    def growth(self, base: Floats, head: Floats) -> _CostGrowth | None:
        """Return how costs (points,) grew, over the feature that tells most of them; None where no feature does."""
        growths = [growth for name in self.features if (growth := self._over(name, base, head))]
        return max(growths, key=lambda growth: max(fit.r2 for fit in (growth.base, growth.head) if fit), default=None)

    def _over(self, name: str, base: Floats, head: Floats) -> _CostGrowth | None:
        x = self.features[name]
        before, after = fit(name, x, base, seed=self.seed), fit(name, x, head, seed=self.seed)
        if before is None and after is None:
            return None
        at = far_values(x)[-1]
        shift = exponent_shift(x, base, head, seed=self.seed)
        steeper = int(np.sign(shift.exponent)) if shift and shift.is_new else 0
        return _CostGrowth(
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

    def verdict(self, function: FunctionCounts, growth: _CostGrowth) -> Verdict:
        """Return whether a difference makes the program's growth worse, or better.

        It must add, or save, `COSTLY_SHARE` of base's whole run at the far value, where whole runs must not go the other way. A higher
        power is a regression. By the same power, only lines that are as they were can make one, as they run more often; of new lines,
        more may be the same work, and the answer is open.
        """
        if growth.feature not in self.far_costs:
            return Verdict.INCONCLUSIVE
        whole_base, whole_head = self.far_costs[growth.feature]
        extra = growth.head_cost - growth.base_cost
        if abs(extra) < COSTLY_SHARE * whole_base:
            return Verdict.UNCHANGED
        worse = extra > 0
        if (whole_head > whole_base) != worse:
            return Verdict.INCONCLUSIVE
        x, steady = self.features[growth.feature], function.is_steady
        kept_differ = self._is_beyond(x, function.kept_base, function.kept_head, is_exact=steady, worse=worse)
        if growth.steeper == (1 if worse else -1) or kept_differ:
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


def differences(experiment: PlaceExperiment, *, min_effect: float, seed: int) -> tuple[GrowthDifference, ...]:
    """Return what differs between both sides: regressions first, then by what they add at ten times the measured size.

    A function whose own code is as it was belongs to the difference of a changed one where their extra costs vary together. Points at which
    a side lost counts are left out. Raises ValueError where none is left, or counts differ by a costly share of a run and nothing can be
    said of growth: no feature that both sides share varies, or too few points are there.
    """
    experiment = experiment.complete
    if not experiment.points:
        raise ValueError("no point has all of its counts")
    all_functions = functions(experiment)
    features = varying(shared(experiment))
    judge = _GrowthJudge.of(features, _total(all_functions, Side.BASE), _total(all_functions, Side.HEAD), min_effect=min_effect, seed=seed)
    differing = [function for function in all_functions if function.differs and judge.share(function) >= _SLIGHT_SHARE]
    grown = [(function, judge.growth(function.base, function.head)) for function in differing]
    material = [
        _FunctionVerdict(function, growth, verdict)
        for function, growth in grown
        if growth and (verdict := judge.verdict(function, growth)) is not Verdict.UNCHANGED
    ]
    if not material and any(growth is None and judge.share(function) >= COSTLY_SHARE for function, growth in grown):
        raise ValueError("nothing tells of growth")
    unordered = [_difference(experiment, *caused_group) for caused_group in _with_causes(_grouped(material), differing)]
    return tuple(sorted(unordered, key=lambda difference: (_RANKS[difference.verdict], -abs(difference.head_cost - difference.base_cost))))


@dataclass(frozen=True, slots=True)
class _FunctionVerdict:
    """A function whose growth differs, and what that means."""

    function: FunctionCounts
    growth: _CostGrowth
    verdict: Verdict

    @property
    def extra(self) -> float:
        """Return by how much its cost at the far value differs."""
        return abs(self.growth.head_cost - self.growth.base_cost)


def _grouped(material: Sequence[_FunctionVerdict]) -> list[list[_FunctionVerdict]]:
    """Return what belongs together, what leads it first: functions that changed, then those of the largest difference."""
    groups: list[list[_FunctionVerdict]] = []
    for member in sorted(material, key=lambda member: (not member.function.has_changed, -member.extra)):
        own = () if member.function.has_changed else groups
        group = next(
            (group for group in own if group[0].verdict is member.verdict and _vary_together(group[0].function, member.function)), None
        )
        if group:
            group.append(member)
        else:
            groups.append([member])
    return groups


def _with_causes(
    groups: Sequence[Sequence[_FunctionVerdict]], differing: Sequence[FunctionCounts]
) -> Iterator[tuple[Sequence[_FunctionVerdict], FunctionCounts | None]]:
    """Yield groups, those whose code is as it was with a changed function whose cost differs along with theirs; that is no group itself."""
    causes = {}
    for number, (lead, *_) in enumerate(groups):
        if not lead.function.has_changed:
            changed = (function for function in differing if function.has_changed and _vary_together(function, lead.function))
            causes[number] = max(changed, key=lambda function: float(np.abs(function.head - function.base).max()), default=None)
    explained = {id(cause) for cause in causes.values() if cause is not None}
    for number, group in enumerate(groups):
        if not (group[0].verdict is Verdict.INCONCLUSIVE and id(group[0].function) in explained):
            yield group, causes.get(number)


def _total(all_functions: Sequence[FunctionCounts], side: Side) -> Floats:
    totals: Floats = np.array([function.base if side is Side.BASE else function.head for function in all_functions]).sum(axis=0)
    return totals


def _vary_together(function: FunctionCounts, other: FunctionCounts) -> bool:
    """Return whether the extra costs of two functions fit each other linearly, as members of a cluster do (trend-prof §4.1)."""
    extra = np.array([function.head - function.base, other.head - other.base])
    if not extra.std(axis=1).all():
        return False
    return float(np.corrcoef(extra)[0, 1]) ** 2 > 1 - ALPHA


def _far_cost(law: Law | None) -> float:
    return law.predictions[-1].cost if law and law.predictions else 0.0


def _difference(experiment: PlaceExperiment, group: Sequence[_FunctionVerdict], cause: FunctionCounts | None) -> GrowthDifference:
    lead, growth = group[0].function, group[0].growth
    side = Side.BASE if growth.head_cost < growth.base_cost and len(lead.gone) else Side.HEAD
    grown = [_grown(experiment, member.function) if side is Side.HEAD else _gone(experiment, member.function) for member in group]
    if growth.base is None and not lead.base.any():
        kind = GrowthDifferenceKind.NEW
    elif growth.head is None and not lead.head.any():
        kind = GrowthDifferenceKind.GONE
    else:
        kind = GrowthDifferenceKind.EXPONENT if growth.steeper else GrowthDifferenceKind.COEFFICIENT
    return GrowthDifference(
        kind=kind,
        place=experiment.sides[side].places[grown[0][0]],
        members=tuple(dict.fromkeys(place for places in grown for place in places)),
        feature=growth.feature,
        base_counts=lead.base,
        head_counts=lead.head,
        base=growth.base,
        head=growth.head,
        ci=growth.ci,
        at=growth.at,
        base_cost=growth.base_cost,
        head_cost=growth.head_cost,
        verdict=group[0].verdict,
        side=side,
        ratios=_ratios(lead),
        cause=None if cause is None else _cause(experiment, cause),
    )


def _ratios(function: FunctionCounts) -> Interval | None:
    if not function.base.all():
        return None
    ratios = function.head / function.base
    return float(ratios.min()), float(ratios.max())


def _cause(experiment: PlaceExperiment, function: FunctionCounts) -> GrowthCause:
    """Return the line of a changed function that ran most often: a new one, else one that is gone."""
    side = Side.HEAD if len(function.new) else Side.BASE
    numbers = function.places[function.new] if len(function.new) else function.base_places[function.gone]
    counted = experiment.sides[side]
    return GrowthCause(side, counted.places[numbers[int(np.argmax(counted.counts[numbers].max(axis=1)))]])


def _grown(experiment: PlaceExperiment, function: FunctionCounts) -> list[int]:
    """Return the places of head whose counts differ at the point that differs most, the one to be named first."""
    extra = experiment.sides[Side.HEAD].counts[function.places] - function.before
    change = np.abs(extra[:, int(np.argmax(np.abs(extra).sum(axis=0)))])
    fresh = np.where(np.isin(np.arange(len(change)), function.new), change, 0.0)
    telling = fresh if fresh.max() >= POLICY.most * change.max() else change
    most = np.flatnonzero(telling == telling.max()).tolist()
    texts = [experiment.sides[Side.HEAD].places[function.places[number]].text for number in most]
    lead = next(
        (number for number, text in zip(most, texts, strict=True) if "(" in text), most[0]
    )  # rather a loop, test or call than a name
    rest = [number for number in np.argsort(-change, kind="stable").tolist() if change[number] > 0 and number != lead]
    return function.places[[lead, *rest]].tolist()  # type: ignore[no-any-return]


def _gone(experiment: PlaceExperiment, function: FunctionCounts) -> list[int]:
    """Return the places of base that are gone, the one that ran most often first."""
    numbers = function.base_places[function.gone]
    largest = experiment.sides[Side.BASE].counts[numbers].max(axis=1)
    return numbers[np.argsort(-largest, kind="stable")].tolist()  # type: ignore[no-any-return]
