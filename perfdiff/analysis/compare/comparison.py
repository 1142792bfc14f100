"""One metric of one function, head against base at equal inputs (methods: the annotation of base says what head should have cost)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.compare.mix import (
    LARGEST,
    OCTAVE,
    Question,
    Sides,
    columns,
    expected_costs,
    grown_features,
    mix_by_point,
    points_of,
    run_means,
)
from perfdiff.analysis.compare.ratios import as_ratio, as_resolved
from perfdiff.analysis.compare.strata import Stratum, stratify
from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.policy import MATERIAL
from perfdiff.analysis.stats.inference import Bools, Contrast, Group, Pair, contrast, noise_floor
from perfdiff.analysis.sums.ledger import Book, Ledger
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import Annotation
from perfdiff.models.clock import RESOLUTION_NS, STEP_NS
from perfdiff.models.middle import median, quantiles
from perfdiff.records.schema import Feature, Floats, Ints, Point, SampleTable, metric_of

# Below twenty steps of the clock the median of equal calls is a multiple of the step, and may jump by one between two builds of the same
# code; the mean does not, as calls begin anywhere in a step.
FINE_STEPS = 20
FINE_NS = FINE_STEPS * STEP_NS
TRIMMED = 0.05  # of such calls: those that took an interrupt or a page fault
MEAN = "mean of all calls"


@dataclass(frozen=True, slots=True)
class StratumContrast:
    """What one stratum of calls shows; `name` is "" for all calls.

    `narrows`: the name says more than a value of the main feature does. `material` says that the stratum's cost is a share of a run worth
    reporting on. `point` is the id of the workload point that the stratum is.
    """

    name: str
    narrows: bool
    contrast: Contrast
    material: bool
    point: int | None = None


@dataclass(frozen=True, slots=True)
class Typical:
    """A typical call of base: its cost, and the median of each feature that has one."""

    cost: float
    inputs: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Head against base in one metric of one function.

    `overall` is over all calls, `strata` all that were tested (the first is `overall`), `worst` the one where head differs most beyond
    doubt, `typical` a call of it, and `ratio` what is judged and told of it, with an interval that holds for all strata at once and covers
    what probes cannot resolve. `p` holds for all strata at once, too. `floor` is base against base (log scale). `mix` is base's expected
    cost at head's inputs over that at base's, as a factor per workload point; 1.0 where the inputs did not clearly move. `disjoint`: no
    inputs of head are equal to any of base, and nothing can be said of the cost per input. `grown` are the features whose values moved.
    """

    function: int
    metric: str
    base: Annotation | None
    strata: tuple[StratumContrast, ...]
    worst: StratumContrast | None
    typical: Typical | None
    ratio: Ratio | None
    p: float
    floor: float
    mix: Mapping[int, float]
    mix_ratio: Ratio | None
    grown: tuple[Feature, ...]
    disjoint: bool

    @property
    def is_material(self) -> bool:
        """Return whether any stratum is a share of a run worth reporting on."""
        return any(each.material for each in self.strata)

    def p_beyond(self, least: float) -> float:
        """Return the p-value of no effect beyond `least` (log scale) in any material stratum, for all of them at once."""
        return min(1.0, _tested(self.strata) * min((each.contrast.p_beyond(least) for each in self.strata if each.material), default=1.0))

    @property
    def overall(self) -> Contrast | None:
        """Return the contrast over all calls."""
        return self.strata[0].contrast if self.strata else None


def compare(question: Question, ledger: Ledger, points: Sequence[Point], config: CompareConfig) -> Comparison | None:
    """Compare a metric at equal inputs, or return None where one side has no values of it.

    Each call's cost is divided by base's expected cost at its inputs; a run's statistic is the median over its calls, which
    preemption does not move; runs are compared within workload points. The mean over a run's calls, which sees rare
    slow calls that a median hides, is one more stratum.
    """
    ratios = _log_ratios(question)
    if ratios is None:
        return None
    expected = expected_costs(question)
    mix = mix_by_point(question, expected)
    moved = any(abs(math.log(factor)) > 0.5 * OCTAVE for factor in mix.values())
    unseen = question.unseen
    strata = [] if unseen else stratify(question.base, question.head, _sizes(question, expected), points, question.switches)
    calls = Calls(ratios, expected, _is_fine(question))
    seen = (_at_equal_inputs if moved else _within_points)(question, calls, strata, ledger)
    found = tuple(each.summary for each in seen)
    worst = _worst(found, config)
    place = None if worst is None else next(each for each in seen if each.summary is worst)
    typical = None if place is None or place.summary.name == MEAN else _typical(question, place.stratum)
    ratio = as_ratio(worst.contrast, config.confidence, _tested(found)) if worst else None
    return Comparison(
        function=question.base.function,
        metric=question.metric,
        base=question.annotation,
        strata=found,
        worst=worst,
        typical=typical,
        ratio=as_resolved(ratio, question.base.function, question.metric, ledger, typical.cost if typical else 0.0) if ratio else None,
        p=min(1.0, min((each.contrast.p for each in found if each.material), default=1.0) * _tested(found)),
        floor=noise_floor(seen[0].pairs, seed=config.seed) if seen else math.inf,
        mix=mix,
        mix_ratio=_mix_ratio(question, expected, ledger, config),
        grown=unseen or grown_features(question, mix),
        disjoint=bool(unseen) or (moved and not found),
    )


@dataclass(frozen=True, slots=True)
class Calls:
    """Per call of both sides: log(cost / expected cost), and base's expected cost. `fine` calls are near the clock's own step."""

    ratios: Sides
    expected: Sides
    fine: bool


@dataclass(frozen=True, slots=True)
class _Seen:
    """A stratum with its runs, and what they show."""

    stratum: Stratum
    pairs: Sequence[Pair]
    summary: StratumContrast


def _within_points(question: Question, calls: Calls, strata: Sequence[Stratum], ledger: Ledger) -> list[_Seen]:
    """Return what each stratum shows, point by point, all calls first; the mean of all calls last."""
    lines = _lines(question, calls, (question.base.point, question.head.point))
    stakes = _stakes(question, ledger)
    everything = _pairs(strata[0], lines, ledger, fine=calls.fine) if strata else {}
    found = []
    for stratum in strata:
        # The calls of one point are that point's part of all calls.
        at_points = everything if stratum is strata[0] or stratum.point is not None else _pairs(stratum, lines, ledger, fine=calls.fine)
        pairs = [pair for point, pair in at_points.items() if stratum.point in (None, point)]
        found.append(_contrast(stratum, pairs, stakes))
    shown = [each for each in found if each is not None]
    return [*shown, *_mean_contrast(question, calls.expected, ledger)] if shown else []


def _at_equal_inputs(question: Question, calls: Calls, strata: Sequence[Stratum], ledger: Ledger) -> list[_Seen]:
    """Return what each stratum shows, octave by octave of expected cost; none where no inputs of head have equals in base.

    Where the inputs moved, head's calls at a point have no equals in base's calls at that point, but in those of another.
    """
    octaves = _octaves(calls.expected[0]), _octaves(calls.expected[1])
    misfit = _misfit(octaves[0], calls.ratios[0])
    lines = _lines(question, calls, octaves)
    stakes = _stakes(question, ledger)
    found = []
    for stratum in strata:
        seen = _contrast(stratum, list(_pairs(stratum, lines, ledger, fine=calls.fine).values()), stakes)
        if seen is not None:
            shown = seen.summary.contrast
            found.append(replace(seen, summary=replace(seen.summary, contrast=replace(shown, error=math.hypot(shown.error, misfit)))))
    return found


def _contrast(stratum: Stratum, pairs: Sequence[Pair], stakes: Sequence[_Stake] | None) -> _Seen | None:
    shown = contrast(pairs)
    if shown is None:
        return None
    material = stakes is None or any(stake.holds(stratum) for stake in stakes)
    return _Seen(stratum, pairs, StratumContrast(stratum.name, stratum.narrows, shown, material, stratum.point))


def tested(comparison: Comparison) -> int:
    """Return how many strata were looked at; intervals of the worst one must hold for all."""
    return _tested(comparison.strata)


def _tested(strata: Sequence[StratumContrast]) -> int:
    return max(1, sum(each.material for each in strata))


def _log_ratios(question: Question) -> Sides | None:
    """Return log(cost / expected cost) per call of both sides; NaN where the metric is absent or is zero on a side."""
    least = _least(question.metric)
    found = []
    for table, expected in zip((question.base, question.head), expected_costs(question), strict=True):
        cost = table.metrics.get(question.metric)
        if cost is None:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log(np.maximum(cost, least) / expected)
        values[~np.isfinite(values)] = np.nan
        if not np.isfinite(values).any():
            return None
        found.append(values)
    return found[0], found[1]


def _least(metric: str) -> float:
    """Return the least value that is told from zero: a time below is short, not absent; a count of zero has no ratio."""
    return 1.0 if metric_of(metric).unit == "ns" else 0.0


def _sizes(question: Question, expected: Sides) -> Sides:
    """Return a size of each call by which to group calls: base's expected cost; where that is constant, the feature that varies most.

    A cost that did not depend on its inputs in base may do so in head.
    """
    if np.ptp(expected[0]) > 0:
        return expected
    widest, sizes = 1.0, expected
    of_head = columns(question.head)
    for name, column in columns(question.base).items():
        if name not in of_head or min(np.nanmin(column, initial=np.inf), np.nanmin(of_head[name], initial=np.inf)) < 0:
            continue
        base, head = np.fmin(column, LARGEST), np.fmin(of_head[name], LARGEST)
        known = base[np.isfinite(base)]
        low, high = quantiles(known, (0.05, 0.95)) if len(known) else (0.0, 0.0)
        if (spread := (1 + high) / (1 + low)) > widest:
            widest, sizes = float(spread), (1 + np.nan_to_num(base), 1 + np.nan_to_num(head))
    return sizes


def _mix_ratio(question: Question, expected: Sides, ledger: Ledger, config: CompareConfig) -> Ratio | None:
    groups = []
    for table, values in zip((question.base, question.head), expected, strict=True):
        runs, means = run_means(table, values)
        groups.append((runs, points_of(table, runs), np.log(means)))
    seen = contrast(list(_paired_groups(groups[0], groups[1], ledger).values()))
    return as_ratio(seen, config.confidence) if seen else None


def _octaves(expected: Floats) -> Ints:
    octaves: Ints = np.floor(np.log(expected) / OCTAVE).astype(np.int64)
    return octaves


def _misfit(octaves: Ints, ratios: Floats) -> float:
    """Return by how much base's annotation misses base itself, as a standard deviation over octaves of cost (log scale)."""
    present = np.isfinite(ratios)
    octaves, ratios = octaves[present], ratios[present]
    middles = [median(ratios[octaves == octave]) for octave in np.unique(octaves)]
    return math.sqrt(float(np.mean(np.square(middles)))) if middles else 0.0


def _is_fine(question: Question) -> bool:
    """Return whether a typical call, on either side, lasts so few steps of the clock that a median would only name a step."""
    if metric_of(question.metric).unit != "ns":
        return False
    tables = (question.base, question.head)
    fine_ns = max(FINE_NS, *(FINE_STEPS * table.resolution_ns for table in tables))
    return min(float(np.nanmedian(table.metrics[question.metric])) for table in tables) < fine_ns


@dataclass(frozen=True, slots=True)
class _Lines:
    """The calls of one side that have a value, sorted by run, label (workload point, or octave of cost) and value; `rows` of the table."""

    rows: Ints
    runs: Ints
    labels: Ints
    values: Floats


def _lines(question: Question, calls: Calls, labels: tuple[Ints, Ints]) -> tuple[_Lines, _Lines]:
    found = []
    for table, of, values in zip((question.base, question.head), labels, calls.ratios, strict=True):
        present = np.flatnonzero(np.isfinite(values))
        rows = present[np.lexsort((values[present], of[present], table.run[present]))]
        found.append(_Lines(rows, table.run[rows], of[rows], values[rows]))
    return found[0], found[1]


def _pairs(stratum: Stratum, lines: tuple[_Lines, _Lines], ledger: Ledger, *, fine: bool) -> dict[int, Pair]:
    """Return the stratum's runs as pairs by label."""
    base, head = (_run_levels(side, mask, fine=fine) for side, mask in zip(lines, (stratum.base, stratum.head), strict=True))
    return _paired_groups(base, head, ledger)


def _run_levels(lines: _Lines, mask: Bools, *, fine: bool) -> tuple[Ints, Ints, Floats]:
    """Return (run, label, level of the values) per combination that occurs where `mask` (rows of the table) holds.

    The level is the median; of `fine` calls it is the logarithm of the mean ratio without the largest `TRIMMED` share.
    """
    inside = mask[lines.rows]
    runs, labels, values = lines.runs[inside], lines.labels[inside], lines.values[inside]
    first = np.flatnonzero(np.r_[True, (np.diff(runs) != 0) | (np.diff(labels) != 0)]) if len(runs) else np.empty(0, np.int64)
    counts = np.diff(np.r_[first, len(runs)])
    if fine:
        kept = counts - np.floor(counts * TRIMMED).astype(np.int64)
        rank = np.arange(len(values)) - np.repeat(first, counts)
        ratios = np.where(rank < np.repeat(kept, counts), np.exp(values), 0.0)
        return runs[first], labels[first], np.log((np.add.reduceat(ratios, first) if len(first) else ratios) / kept)
    medians = 0.5 * (values[first + (counts - 1) // 2] + values[first + counts // 2])
    return runs[first], labels[first], medians


def _paired_groups(base: tuple[Ints, Ints, Floats], head: tuple[Ints, Ints, Floats], ledger: Ledger) -> dict[int, Pair]:
    return {
        int(label): Pair(*(Group(values[of == label], ledger.blocks(runs[of == label])) for runs, of, values in (base, head)))
        for label in np.intersect1d(base[1], head[1])
    }


def _mean_contrast(question: Question, expected: Sides, ledger: Ledger) -> list[_Seen]:
    """Return the contrast of mean costs, out of the exact sums where they are kept, corrected for the input mix."""
    pairs = []
    column = ledger.place[question.base.function]
    for point in ledger.points:
        groups = []
        for book, table, values in zip(ledger.pair(point), (question.base, question.head), expected, strict=True):
            sums = book.sums(question.metric)
            if sums is None:
                return []
            runs, means = run_means(table, values)
            by_run = dict(zip(runs.tolist(), means.tolist(), strict=True))
            calls = book.calls[:, column]
            share = np.array([by_run.get(run.id, np.nan) for run in book.runs])
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = np.log(sums[:, column] / calls / share)
            groups.append(book.group(mean))
        pairs.append(Pair(*groups))
    seen = contrast(pairs)
    everything = Stratum(MEAN, np.ones(len(question.base), bool), np.ones(len(question.head), bool))
    return [_Seen(everything, pairs, StratumContrast(MEAN, False, seen, True))] if seen else []


@dataclass(frozen=True, slots=True)
class _Stake:
    """The calls of one side at one point, `rows` of its table: their cost, and the least sum that is a material share of a run."""

    is_base: bool
    rows: Ints
    costs: Floats
    least: float

    def holds(self, stratum: Stratum) -> bool:
        """Return whether the stratum's calls cost a material share of a run."""
        cost = float(self.costs[(stratum.base if self.is_base else stratum.head)[self.rows]].sum())
        return cost > 0 and cost >= self.least


def _stakes(question: Question, ledger: Ledger) -> list[_Stake] | None:
    """Return what is at stake on either side at each point; None where no sums are kept, so that nothing can be called immaterial."""
    found = []
    column = ledger.place[question.base.function]
    for point in ledger.points:
        for book, table, is_base in zip(ledger.pair(point), (question.base, question.head), (True, False), strict=True):
            if question.metric not in book.medians:
                return None
            rows = np.flatnonzero(table.point == point)
            costs = np.nan_to_num(table.metrics[question.metric][rows]) * table.weight[rows]
            own = float(book.medians[question.metric][column])
            share = MATERIAL * _whole_run(book, question.metric) / own if own > 0 else math.inf
            found.append(_Stake(is_base, rows, costs, share * float(costs.sum()) if len(rows) else math.inf))
    return found


def _whole_run(book: Book, metric: str) -> float:
    """Return what a whole run costs in a metric: its time, or the count of the function that has most of it, callees included."""
    return book.cost_ns if metric_of(metric).unit == "ns" else book.largest[metric]


def _worst(found: Sequence[StratumContrast], config: CompareConfig) -> StratumContrast | None:
    """Return the stratum that differs most beyond doubt; all calls where none does."""
    if not found:
        return None
    count = _tested(found)

    def beyond(each: StratumContrast) -> float:
        low, high = each.contrast.interval(config.confidence, count)
        # The mean says the same as the medians, but not for which inputs; it is for what they do not see.
        handicap = math.log1p(config.min_effect) if each.name == MEAN else 0.0
        return max(low, -high) - handicap if each.material else -math.inf

    best = max(found, key=beyond)
    return best if beyond(best) > 0 else found[0]


def _typical(question: Question, stratum: Stratum) -> Typical | None:
    """Return a typical call of a stratum: the median cost, or the trimmed mean of times near the clock's step; None where none is known."""
    rows = stratum.base
    cost = question.base.metrics[question.metric][rows]
    known = np.sort(np.maximum(cost[np.isfinite(cost)], _least(question.metric)))
    if not len(known):
        return None
    middle = median(known)
    if metric_of(question.metric).unit == "ns" and middle < FINE_NS:
        middle = float(known[: len(known) - int(len(known) * TRIMMED)].mean())
    values = {name: column[rows] for name, column in columns(question.base).items()}
    return Typical(middle, {name: median(inside[np.isfinite(inside)]) for name, inside in values.items() if np.isfinite(inside).any()})


def resolved(comparison: Comparison, base: SampleTable) -> bool:
    """Return whether the difference of a typical call's time is large enough for the clock."""
    if metric_of(comparison.metric).unit != "ns" or comparison.worst is None:
        return True
    cost = base.metrics[comparison.metric]
    # The calls that make most of the cost, not the typical ones.
    typical = float(np.nansum(cost * cost) / max(float(np.nansum(cost)), 1.0))
    return typical * abs(math.expm1(min(comparison.worst.contrast.effect, 50.0))) >= max(RESOLUTION_NS, base.resolution_ns)
