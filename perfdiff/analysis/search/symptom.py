"""The symptom that a bisect follows from commit to commit: one ratio of one function, or of whole runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

from perfdiff import units
from perfdiff.analysis.findings import RUN, CountFinding, Findings, FunctionFinding, MetricFinding, PointStanding, Ratio, Rung
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.search.posterior import LAYOUT, Reading
from perfdiff.analysis.trends.findings import GrowthDifference
from perfdiff.models.workcounter import WORK_METRICS
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import Source

FunctionName = tuple[str, str]  # file and function
WORK = (*WORK_METRICS, "loads", "stores")  # counts that repeat to the last digit, the plainest first


class Figure(StrEnum):
    """Which ratio of a metric is followed."""

    CALL = "a call, at equal inputs"
    STRATUM = "a call, at the inputs where it differs most"
    RUN = "all calls of a run"
    COUNT = "a call, counted"
    WHOLE = "whole runs"


@dataclass(frozen=True, slots=True)
class FunctionStart:
    """Where a function begins in one commit."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Symptom:
    """What is followed: a figure of `metric` of a function, or of whole runs at the point with the label `name`.

    `place` is the function's in the good end, by which every comparison with that end knows it. `expected` is what the bad end shows;
    `exact` readings repeat to the last digit.
    """

    name: str
    file: str
    place: FunctionStart | None
    metric: str
    figure: Figure
    expected: Reading
    exact: bool

    @property
    def says(self) -> str:
        """Return the symptom in words."""
        if self.figure is Figure.WHOLE:
            return f"time of whole runs at {self.name}"
        return f"{metric_of(self.metric).says} of `{self.name}`, {self.figure.value}"


@dataclass(frozen=True, slots=True)
class GrowthSymptom:
    """A regression of growth between the ends, which is looked for in the commits between.

    It is followed in the function that the good end has as `base`, the bad end as `head`; `base` is None where it has none.
    """

    difference: GrowthDifference
    base: FunctionName | None
    head: FunctionName

    @property
    def says(self) -> str:
        """Return the symptom in words."""
        return f"growth of `{self.head[1]}`"


def symptoms(findings: Findings, function: FunctionFinding, metric: str | None) -> list[Symptom]:
    """Return what differs of a function between the ends, the best to follow first: exact counts, then what stands out most from noise.

    With `metric`, only that. Differences in both directions are returned; those smaller than `min_effect`, or within chance, are not.
    """
    least = math.log1p(findings.min_effect)
    by_ratio = [
        Symptom(function.info.name, function.info.file, place_of(function.info.base), name, figure, reading, exact=False)
        for name, figure, ratio in _ratios(function)
        if (reading := reading_of(ratio, findings.confidence)) is not None and _stands_out(ratio, least)
    ]
    by_ratio.sort(key=lambda symptom: -abs(symptom.expected.effect) / math.hypot(symptom.expected.error, LAYOUT))
    slower = max((abs(symptom.expected.effect) for symptom in by_ratio if metric_of(symptom.metric).unit == "ns"), default=0.0)
    counts = [
        Symptom(function.info.name, function.info.file, place_of(function.info.base), count.counter, Figure.COUNT, reading, count.exact)
        for count in _counts(function)
        if (reading := reading_of(count.ratio, findings.confidence)) is not None and (count.grew or count.shrank)
    ]
    work = [
        symptom
        for symptom in counts
        if symptom.exact and symptom.metric in WORK and abs(symptom.expected.effect) >= max(least, POLICY.most * slower)
    ]
    ordered = [*work, *by_ratio, *(symptom for symptom in counts if symptom not in work)]
    return [symptom for symptom in ordered if metric is None or metric in (symptom.metric, _plain(symptom))]


def whole_runs(findings: Findings) -> list[Symptom]:
    """Return the points at which whole runs, without probes, clearly take longer in the bad end, the clearest first."""
    slower = [end for end in findings.end_to_end if end.standing is PointStanding.SLOWER]
    at_points = []
    for end in sorted(slower, key=lambda end: -(end.ratio.low if end.ratio else 0.0)):
        reading = reading_of(end.ratio, findings.confidence)
        if reading is not None:
            at_points.append(Symptom(end.point.label, "", None, "wall_ns", Figure.WHOLE, reading, exact=False))
    return at_points


def read(findings: Findings, symptom: Symptom, place: FunctionStart | None = None) -> Reading | None:
    """Return a comparison's reading of the symptom, None if it lacks the function.

    The function is the one at the symptom's place in base; with `place` the one that begins there in head.
    """
    if findings.rung is Rung.CODE:
        return Reading(0.0, 0.0)
    if symptom.figure is Figure.WHOLE:
        ratio = next((end.ratio for end in findings.end_to_end if end.point.label == symptom.name), None)
        return reading_of(ratio, findings.confidence)
    function = find(findings, symptom, place)
    if function is None:
        return None
    if symptom.figure is Figure.COUNT:
        count = function.counts.get(symptom.metric)
        if count is None and symptom.metric in WORK and function.counts.keys() & set(WORK):
            return Reading(0.0, 0.0)  # it was counted, and neither side did any
        return reading_of(count.ratio if count else None, findings.confidence)
    ratios = {(name, figure): ratio for name, figure, ratio in _ratios(function)}
    return reading_of(ratios.get((symptom.metric, symptom.figure)), findings.confidence)


def find(findings: Findings, symptom: Symptom, place: FunctionStart | None = None) -> FunctionFinding | None:
    """Return the function that the symptom is of, by its place in head if that is given, else by that in base, else by its name."""
    for function in findings.functions:
        if place is not None:
            if place_of(function.info.head) == place:
                return function
        elif symptom.place is not None:
            if place_of(function.info.base) == symptom.place:
                return function
        elif (function.info.name, function.info.file) == (symptom.name, symptom.file):
            return function
    return None


def callers(findings: Findings, function: FunctionFinding) -> list[FunctionFinding]:
    """Return the functions that call this one, directly first, then those that call them, as far as both ends have them."""
    all_above: list[FunctionFinding] = []
    below = {function.info.id}
    while True:
        above = [finding for finding in findings.functions if finding.info.calls & below and finding.info.id not in below]
        if not above:
            return [finding for finding in all_above if finding.info.base and finding.info.head]
        all_above += above
        below |= {finding.info.id for finding in above}


def place_of(source: Source | None) -> FunctionStart | None:
    """Return where a function begins, None where a side lacks it."""
    return None if source is None else FunctionStart(source.file, source.line)


def reading_of(ratio: Ratio | None, confidence: float) -> Reading | None:
    """Return a ratio as logarithm with its standard error, by its interval; None where there is none.

    The interval is Student's: dividing by the normal quantile makes the error of few runs as much larger as they deserve.
    """
    if ratio is None or not all(0 < value < math.inf for value in (ratio.value, ratio.low, ratio.high)):
        return None
    error = math.log(ratio.high / ratio.low) / (2 * NormalDist().inv_cdf(0.5 + confidence / 2))
    return Reading(math.log(ratio.value), error)


def ratio_of(reading: Reading, runs: int) -> Ratio:
    """Return a reading as a factor with its 95 % interval."""
    half = NormalDist().inv_cdf(0.975) * reading.error
    low, high = math.exp(reading.effect - half), math.exp(reading.effect + half)
    return Ratio(math.exp(reading.effect), low, high, runs, runs)


def figures(reading: Reading) -> str:
    """Return a reading in words: `×1.31 [1.28, 1.35]`, without the interval where its ends read the same."""
    ratio = ratio_of(reading, 0)
    is_point = units.significant(ratio.low) == units.significant(ratio.high)
    return units.ratio(ratio.value) if is_point else f"{units.ratio(ratio.value)} {interval(ratio)}"


def interval(ratio: Ratio) -> str:
    """Return a ratio's interval: `[1.28, 1.35]`."""
    return f"[{units.significant(ratio.low)}, {units.significant(ratio.high)}]"


def _ratios(function: FunctionFinding) -> Iterator[tuple[str, Figure, Ratio]]:
    for name, metric in function.metrics.items():
        for figure, ratio in _figures(metric):
            if ratio is not None:
                yield name, figure, ratio


def _figures(metric: MetricFinding) -> Sequence[tuple[Figure, Ratio | None]]:
    if metric.metric == RUN:  # the same as the sum of `wall_ns`, which every comparison has
        return ()
    return ((Figure.CALL, metric.overall), (Figure.STRATUM, metric.ratio), (Figure.RUN, metric.total))


def _counts(function: FunctionFinding) -> list[CountFinding]:
    order = {name: number for number, name in enumerate(WORK)}
    return sorted(
        function.counts.values(), key=lambda count: (order.get(count.counter, len(order)), -abs(math.log(count.ratio.value or 1)))
    )


def _plain(symptom: Symptom) -> str:
    """Return the other name of a symptom's metric: the time of all calls of a run is `run_ns`."""
    return RUN if (symptom.metric, symptom.figure) == ("wall_ns", Figure.RUN) else symptom.metric


def _stands_out(ratio: Ratio, least: float) -> bool:
    return math.log(ratio.low) > least or math.log(ratio.high) < -least
