"""Annotations as assertions: whether recorded calls cost what the annotations say (Freud §6.1; HotCloud §5).

The run is the unit. Its level, learnt from the probability-integral transforms of its calls (`models.levels`), is held against the
levels of the runs that the annotation was learnt from, which are part of the annotation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.ratios import as_ratio
from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.series import Standing
from perfdiff.analysis.stats.inference import false_discovery
from perfdiff.analysis.stats.runs import Contrast
from perfdiff.config import RUNS_FOR_TIME, CompareConfig
from perfdiff.models.annotation import Annotation, Levels, blocks, membership
from perfdiff.models.clock import RESOLUTION_NS
from perfdiff.models.forecast import cdf
from perfdiff.models.levels import NONE_A_CALL, AnnotatedCalls, RunLevels, calls_of, judged, run_levels, summary
from perfdiff.models.middle import median
from perfdiff.models.noise import OUTLIER
from perfdiff.records.arrays import Bools, Floats
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import Point, SampleTable

LEAST_RUNS = RUNS_FOR_TIME
_ROUNDING = 1e-9  # of a feature's bound

# An annotation with the calls of its function, or the reason why there are none.
Case = tuple[Annotation, SampleTable | Claim]


@dataclass(frozen=True, slots=True)
class AssertionSetting:
    """What an assertion is judged by besides its own calls: the workload points, and what whole runs cost, by metric and run."""

    points: Sequence[Point]
    whole: Mapping[str, Mapping[int, float]]
    config: CompareConfig


@dataclass(frozen=True, slots=True)
class Outside:
    """Calls beyond the annotated inputs: their share of all calls, and the feature with the most of them, with both ranges."""

    share: float
    feature: str
    annotated: tuple[float, float]
    seen: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Assertion:
    """An annotation, and how the calls of other runs compare with it.

    `overall` is the factor on the annotated cost over all calls, `worst` that of `stratum`, a scope or a workload point where the
    annotation is exceeded clearly more; "" where that is all calls. `annotated` is the expected cost of a call of the stratum.
    `passed` tells for each run, by id, whether its own level is one that the annotation's runs may have. `distance` is Kolmogorov's
    between the calls' transforms and what the annotation says, 0 to 1; `outliers` the share of calls far above the rest of their run,
    to be held against the annotation's `trimmed`. `reason` says why there is no answer, `visible` the smallest ratio over all calls
    that would be a violation.
    """

    annotation: Annotation
    standing: Standing
    reason: Claim | None = None
    calls: int = 0
    annotated: float | None = None
    overall: Ratio | None = None
    worst: Ratio | None = None
    stratum: str = ""
    p: float = 1.0
    q: float | None = None
    visible: float | None = None
    passed: tuple[tuple[int, bool], ...] = ()
    distance: float | None = None
    outliers: float | None = None
    trimmed: float = 0.0
    outside: Outside | None = None

    @property
    def pass_rate(self) -> float | None:
        """Return the share of runs that pass."""
        return sum(passes for _, passes in self.passed) / len(self.passed) if self.passed else None


@dataclass(frozen=True, slots=True)
class _Stratum:
    """Some of the calls, by name, with their contrast; `material` says that they are a share of a run worth reporting on."""

    name: str
    calls: AnnotatedCalls
    contrast: Contrast
    material: bool


@dataclass(frozen=True, slots=True)
class _TestedAssertion:
    """An assertion before the correction for their number, with what decides; intervals of `worst` must hold for all that was `tested`."""

    assertion: Assertion
    overall: Contrast
    worst: Contrast
    tested: int
    material: bool
    resolved: bool


def check(cases: Iterable[Case], setting: AssertionSetting) -> list[Assertion]:
    """Hold tables against annotations, all of them under one rate of false discoveries."""
    seen = [
        Assertion(annotation, Standing.NOT_JUDGED, table) if isinstance(table, Claim) else _tested_assertion(annotation, table, setting)
        for annotation, table in cases
    ]
    q = iter(false_discovery([outcome.assertion.p for outcome in seen if isinstance(outcome, _TestedAssertion)]).tolist())
    return [_judged(outcome, next(q), setting.config) if isinstance(outcome, _TestedAssertion) else outcome for outcome in seen]


def least_effect(metric: str, config: CompareConfig) -> float:
    """Return the effect (log scale) from which on an annotation counts as violated: `min_effect`, for times `DRIFT` at least."""
    noisy = metric_of(metric).noisy
    return math.log1p(max(config.min_effect, POLICY.drift) if noisy else config.min_effect)


def _judged(tested: _TestedAssertion, q: float, config: CompareConfig) -> Assertion:
    """Judge by both, practice and statistics: a violation is beyond the least effect with its whole interval, and beyond chance."""
    assertion = replace(tested.assertion, q=q)
    least = least_effect(assertion.annotation.metric, config)
    low, high = tested.overall.interval(config.confidence)
    sure = q <= config.fdr and assertion.p <= POLICY.evidence and tested.resolved
    if sure and tested.material and tested.worst.interval(config.confidence, tested.tested)[0] > least:
        return replace(assertion, standing=Standing.VIOLATED)
    if sure and high < -least:
        return replace(assertion, standing=Standing.FASTER)
    if high <= least or not tested.resolved:
        return replace(assertion, standing=Standing.HOLDS)
    if not tested.material:
        return replace(assertion, standing=Standing.NEGLIGIBLE)
    reason = _too_coarse(assertion) if low <= least else claim("exceeded-by-chance")
    return replace(assertion, standing=Standing.OPEN, reason=reason)


def _too_coarse(assertion: Assertion) -> Claim:
    learnt = assertion.annotation.levels
    if learnt is not None and assertion.overall is not None and learnt.runs < assertion.overall.runs_head:
        return claim("learnt-from-few-runs")
    return claim("runs-differ-too-much")


def _tested_assertion(annotation: Annotation, table: SampleTable, setting: AssertionSetting) -> _TestedAssertion | Assertion:
    """Return what a table shows of an annotation, or an assertion that cannot be judged."""
    if annotation.metric not in table.metrics:
        return Assertion(annotation, Standing.NOT_JUDGED, claim("metric-not-recorded", metric=annotation.metric))
    calls = calls_of(table, annotation.metric)
    absent = [name for name in annotation.features if name not in calls.values]
    if absent:
        return Assertion(annotation, Standing.NOT_JUDGED, claim("input-not-recorded", feature=absent[0]))
    calls = calls.rows(np.isfinite(calls.cost))
    within, outside = _within(annotation, calls)
    judged_calls = calls.rows(within & judged(annotation, calls))
    assertion = Assertion(annotation, Standing.NOT_JUDGED, calls=len(judged_calls), outside=outside)
    if len(judged_calls) < POLICY.most * len(calls) or not len(judged_calls):
        return replace(assertion, reason=claim("other-inputs-than-annotated"))
    if (runs := len(np.unique(judged_calls.run))) < LEAST_RUNS:
        return replace(assertion, reason=claim("few-runs", runs=runs))
    return _contrasted(assertion, judged_calls, table, setting)


def _contrasted(assertion: Assertion, calls: AnnotatedCalls, table: SampleTable, setting: AssertionSetting) -> _TestedAssertion:
    annotation, config = assertion.annotation, setting.config
    levels = run_levels(annotation, calls, seed=config.seed)
    overall = _Stratum("", calls, against(levels, annotation.levels), _is_material(annotation.metric, calls, setting))
    tested = [overall, *_strata(annotation, calls, setting)]
    least = least_effect(annotation.metric, config)
    worst = _worst(tested, least, config)
    annotated = float(np.average(annotation.predict(worst.calls.values), weights=worst.calls.weight))
    assertion = replace(
        assertion,
        annotated=annotated,
        overall=as_ratio(overall.contrast, config.confidence),
        worst=as_ratio(worst.contrast, config.confidence, len(tested)),
        stratum=worst.name,
        p=min(1.0, min(stratum.contrast.p for stratum in tested) * len(tested)),
        visible=math.exp(least + overall.contrast.half_width(config.confidence, len(tested))),
        passed=tuple(zip(levels.run.tolist(), _passing(levels, annotation.levels, least, config).tolist(), strict=True)),
        distance=_distance(cdf(annotation, calls.values, calls.cost, seed=config.seed)),
        outliers=_outliers(annotation, calls, levels, config.seed),
        trimmed=sum(scope.share * scope.trimmed for scope in annotation.scopes),
    )
    resolved = _is_resolved(annotation.metric, annotated, worst.contrast, table)
    return _TestedAssertion(assertion, overall.contrast, worst.contrast, len(tested), worst.material, resolved)


def _worst(tested: Sequence[_Stratum], least: float, config: CompareConfig) -> _Stratum:
    """Return the stratum that is clearly above the annotation, and clearly more so than all calls are; else all calls."""

    def low(stratum: _Stratum) -> float:
        return stratum.contrast.interval(config.confidence, len(tested))[0]

    overall, *strata = tested
    best = max(strata, key=low, default=overall)
    enough = least if low(overall) <= least or not overall.material else low(overall) + least
    return best if low(best) > enough else overall


def _is_material(metric: str, calls: AnnotatedCalls, setting: AssertionSetting) -> bool:
    """Return whether calls cost a share of a run, at some point, that is worth reporting on."""
    whole = setting.whole.get(metric)
    if whole is None:
        return True
    runs, first, place = np.unique(calls.run, return_index=True, return_inverse=True)
    own = np.bincount(place, calls.weight * calls.cost)
    share = np.array([cost / whole[run] if whole.get(run) else 1.0 for run, cost in zip(runs.tolist(), own.tolist(), strict=True)])
    points = calls.point[first]
    return any(median(share[points == point]) >= POLICY.material for point in np.unique(points))


def against(levels: RunLevels, learnt: Levels | None) -> Contrast:
    """Return runs against those that the annotation was learnt from; an annotation that tells of none is taken as exact.

    Welch's two-sample test on the runs of a point. Where the points cannot be the same ones, what the annotation misses at single
    points comes on top.
    """
    own = summary(levels)
    parts = [_mean_error(own, learnt)]
    if learnt is not None:
        parts.append(_mean_error(learnt, own))
        if own.points != learnt.points:
            misfit = max(own.misfit, learnt.misfit) ** 2
            parts += [(misfit / side.points, max(side.points - 1, 1)) for side in (own, learnt)]
    return _contrast(levels, learnt, own.mean - (learnt.mean if learnt else 0.0), parts)


def _mean_error(own: Levels, other: Levels | None) -> tuple[float, int]:
    """Return the squared error of the mean level of own runs, with its degrees of freedom.

    Where no point ran twice, the other side tells how far runs scatter, or else the points do.
    """
    for levels in filter(None, (own, other)):
        if levels.runs > levels.points:
            return levels.spread**2 / own.runs, levels.runs - levels.points
    return own.misfit**2 / own.runs, max(own.points - 1, 1)


def _contrast(levels: RunLevels, learnt: Levels | None, effect: float, parts: Sequence[tuple[float, float]]) -> Contrast:
    """Return a contrast whose error is made of squared parts, each with its degrees of freedom (Welch and Satterthwaite)."""
    variance = sum(part for part, _ in parts)
    return Contrast(
        effect=effect,
        error=math.sqrt(variance),
        freedom=variance**2 / sum(part**2 / freedom for part, freedom in parts) if variance else parts[0][1],
        agreement=float(np.mean(levels.level > (learnt.mean if learnt else 0.0))),
        chance=0.5 / math.sqrt(len(levels.level)),
        runs_base=learnt.runs if learnt else 0,
        runs_head=len(levels.level),
    )


def _strata(annotation: Annotation, calls: AnnotatedCalls, setting: AssertionSetting) -> Iterator[_Stratum]:
    """Yield each scope and each workload point that is material, where there are several.

    What the annotation misses there without any change is not known, only how much it does so on average: `misfit`, in full.
    """
    for name, rows in _parts(annotation, calls, setting.points):
        part = calls.rows(rows)
        if len(np.unique(part.run)) < LEAST_RUNS or not _is_material(annotation.metric, part, setting):
            continue
        levels = run_levels(annotation, part, seed=setting.config.seed)
        own, learnt = summary(replace(levels, point=np.zeros_like(levels.point))), annotation.levels
        errors: list[tuple[float, float]] = [_mean_error(own, learnt)]
        if learnt is not None:
            # The runs that it was learnt from are spread over the points as those of head are.
            errors.append((learnt.spread**2 * learnt.points / learnt.runs, max(learnt.runs - learnt.points, 1)))
            errors.append((learnt.misfit**2, max(learnt.points - 1, 1)))
        yield _Stratum(name, part, _contrast(levels, learnt, own.mean - (learnt.mean if learnt else 0.0), errors), True)


def _parts(annotation: Annotation, calls: AnnotatedCalls, points: Sequence[Point]) -> Iterator[tuple[str, Bools]]:
    scopes = blocks(annotation)
    if len(scopes) > 1:
        for block in scopes:
            yield block[0].condition, membership(block, calls.values, len(calls)) > 0
    labels = {point.id: point.label for point in points}
    ran = np.unique(calls.point).tolist()
    if len(ran) > 1:
        for point in ran:
            yield labels.get(point, f"point {point}"), calls.point == point


def _passing(levels: RunLevels, learnt: Levels | None, least: float, config: CompareConfig) -> Bools:
    """Return which runs (r,) lie no further above the annotation than `least`, or than a further one of its own runs would."""
    from scipy.special import stdtrit

    if learnt is None:
        return np.asarray(levels.level <= least)
    freedom = max(learnt.runs - learnt.points, 1)
    deviation = math.hypot(learnt.spread * math.sqrt(1 + 1 / learnt.runs), learnt.misfit)
    return np.asarray(levels.level - learnt.mean <= max(least, float(stdtrit(freedom, (1 + config.confidence) / 2)) * deviation))


def _distance(transformed: Floats) -> float:
    """Return Kolmogorov's distance of transforms (n,) from a uniform distribution."""
    n = len(transformed)
    ordered = np.sort(transformed)
    return float(max((np.arange(1, n + 1) / n - ordered).max(), (ordered - np.arange(n) / n).max()))


def _outliers(annotation: Annotation, calls: AnnotatedCalls, levels: RunLevels, seed: int) -> float:
    """Return the share of calls that lie as far above the level of their run as outliers do that no annotation is learnt from."""
    from scipy.special import ndtr

    level = levels.level[np.searchsorted(levels.run, calls.run)]
    transformed = cdf(annotation, calls.values, calls.cost * np.exp(-level), seed=seed)
    return float(np.average(transformed > ndtr(OUTLIER), weights=calls.weight))


def _within(annotation: Annotation, calls: AnnotatedCalls) -> tuple[Bools, Outside | None]:
    """Return which calls (n,) have inputs within the annotated ranges, and what the others are."""
    within = np.ones(len(calls), dtype=bool)
    worst: tuple[int, str] | None = None
    for name, (low, high) in annotation.ranges.items():
        column, reach = calls.values[name], _ROUNDING * max(abs(low), abs(high))
        beyond = (column < low - reach) | (column > high + reach)
        within &= ~beyond
        if beyond.any() and (worst is None or beyond.sum() > worst[0]):
            worst = int(beyond.sum()), name
    if worst is None:
        return within, None
    column = calls.values[worst[1]]
    seen = float(np.nanmin(column)), float(np.nanmax(column))
    return within, Outside(float(np.average(~within, weights=calls.weight)), worst[1], annotation.ranges[worst[1]], seen)


def _is_resolved(metric: str, annotated: float, seen: Contrast, table: SampleTable) -> bool:
    """Return whether a difference is large enough for the clock, or for a count."""
    difference = abs(annotated * math.expm1(seen.effect))
    if metric_of(metric).unit == "ns":
        return difference >= max(RESOLUTION_NS, table.resolution_ns)
    return difference >= NONE_A_CALL or annotated < NONE_A_CALL
