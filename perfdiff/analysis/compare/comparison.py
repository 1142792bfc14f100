"""One metric of one function, head against base at equal inputs (methods: the annotation of base says what head should have cost)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.compare.compared import Comparison, StratumContrast, Typical, tested
from perfdiff.analysis.compare.levels import TRIMMED, by_label, levels, lines, vagueness
from perfdiff.analysis.compare.mix import OCTAVE, MetricQuestion, Sides, Yardstick, cost_apart, grown_features, typical_inputs
from perfdiff.analysis.compare.ratios import as_ratio, as_resolved
from perfdiff.analysis.compare.strata import Stratum
from perfdiff.analysis.findings import BLURRED
from perfdiff.analysis.means import MEAN, is_mean
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.stats.inference import contrasts
from perfdiff.analysis.stats.panel import Panel, machines_of, noise_floor, on_machine, panel
from perfdiff.analysis.stats.runs import Contrast
from perfdiff.analysis.sums.ledger import Book, Ledger
from perfdiff.analysis.sums.rates import average_of
from perfdiff.config import CompareConfig
from perfdiff.models.clock import RESOLUTION_NS, STEP_NS
from perfdiff.models.middle import median
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import Point, SampleTable, Side

# Below twenty steps of the clock the median of equal calls is a multiple of the step, and may jump by one between two builds of the same
# code; the mean does not, as calls begin anywhere in a step.
FINE_STEPS = 20
FINE_NS = FINE_STEPS * STEP_NS
BY_MACHINE = ("self_ns", "wall_ns")  # metrics of which is told what single machines show


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """A question with what each run of either side says of it, ready to be compared together with other questions.

    `runs` (points, k + 3, runs) hold the level of each stratum of the `yardstick`, then the mean of all calls, the same at the point where
    both sides' cost most alone, by its label and base's mean cost there in `dearest`, then the input mix; `average` is what base's calls
    cost on average at all points. Where inputs moved, levels stand apart,
    by `octaves` of expected cost, which base's annotation misses by `misfit`. `material` (k,) are strata that cost a share of a run worth
    reporting on.
    """

    question: MetricQuestion
    yardstick: Yardstick
    material: Bools
    runs: Sides
    octaves: Panel | None
    misfit: float
    dearest: tuple[str, float] | None = None
    average: float | None = None

    def is_material(self, point: str) -> bool:
        """Return whether the calls of a point, by its label, cost a share of a run worth reporting on; those of any where it is ""."""
        return any(material for stratum, material in zip(self.yardstick.strata, self.material, strict=True) if stratum.name == point)


@dataclass(frozen=True, slots=True)
class _StratumRow:
    """A stratum with its runs, as a question of a panel, and what they show."""

    stratum: Stratum
    panel: Panel
    question: int
    summary: StratumContrast

    def floor(self, seed: int) -> float:
        """Return the noise floor of its runs."""
        return noise_floor(self.panel, self.question, seed=seed)

    def by_machine(self) -> dict[int, Contrast]:
        """Return what its runs on each of several machines show by themselves."""
        alone = {machine: contrasts(on_machine(self.panel, self.question, machine))[0] for machine in machines_of(self.panel)}
        return {machine: contrast for machine, contrast in alone.items() if contrast is not None}


def ask(question: MetricQuestion, ledger: Ledger, points: Sequence[Point]) -> RunStatistics | None:
    """Return the statistics of a metric at equal inputs, by run; None if one side has no values of it.

    Each call's cost is divided by base's expected cost at its inputs; a run's statistic is the median over its calls, which
    preemption does not move; runs are compared within workload points. The mean over a run's calls, which sees rare
    slow calls that a median hides, is one more stratum; so is the mean at the dearest point alone: where few calls that grew by another
    class hold the cost, and no input tells them apart, its effects at all points differ too much to be one.
    """
    if any(question.metric not in table.metrics for table in question.tables.sides):
        return None
    tables = question.tables
    yardstick = tables.yardstick(question.annotation, question.metric, points)
    ratios = _log_ratios(question, yardstick.expected)
    if ratios is None:
        return None
    by_octaves = bool(yardstick.strata) and yardstick.moved
    labels = (_octaves(yardstick.expected[0]), _octaves(yardstick.expected[1])) if by_octaves else (tables.base.point, tables.head.point)
    sides = [lines(table, of, values) for table, of, values in zip(tables.sides, labels, ratios, strict=True)]
    side_levels = [levels(of, mask, fine=_is_fine(question)) for of, mask in zip(sides, yardstick.masks, strict=True)]
    octaves = panel(*by_label(side_levels, sides, ledger)) if by_octaves else None
    shares = [ledger.grids[side].spread(of.runs, mean[None]) for side, of, mean in zip(Side, tables.members, yardstick.means, strict=True)]
    means = [_mean_costs(question, side, share, ledger) for side, share in zip(Side, shares, strict=True)]
    mixes = [np.log(share) for share in shares]
    costs = [mean + mix for mean, mix in zip(means, mixes, strict=True)]
    at = _dearest(costs)
    dearest = None if at is None else (ledger.labels.get(ledger.points[at], ""), math.exp(_middle(costs[0][at])))
    runs = []
    for side, of, of_side, mean, mix in zip(Side, sides, side_levels, means, mixes, strict=True):
        at_points = ledger.grids[side].spread(of.runs, of_side[:0] if by_octaves else of_side)
        runs.append(np.concatenate([at_points, mean, _only_at(mean, at), mix], axis=1))
    misfit = _misfit(labels[0], ratios[0]) if by_octaves else 0.0
    materials, average = _materials(question, yardstick.masks, ledger), average_of(question.base.function, question.metric, ledger)
    return RunStatistics(question, yardstick, materials, (runs[0], runs[1]), octaves, misfit, dearest, average)


def answer(questions: Sequence[RunStatistics], ledger: Ledger, config: CompareConfig) -> list[Comparison]:
    """Compare the runs of both sides in all questions at once."""
    if not questions:
        return []
    sides = (np.concatenate([statistics.runs[place] for statistics in questions], axis=1) for place in range(len(Side)))
    together = panel(*(ledger.grids[side].runs(values) for side, values in zip(Side, sides, strict=True)))
    row_contrasts, first, comparisons = contrasts(together), 0, []
    for statistics in questions:
        last = first + statistics.runs[0].shape[1]
        compared = _compared(statistics, together, first, row_contrasts[first:last], config)
        comparisons.append(replace(compared, ratio=compared.ratio and as_resolved(compared.ratio, compared, ledger)))
        first = last
    return comparisons


def _compared(
    statistics: RunStatistics, of: Panel, first: int, row_contrasts: Sequence[Contrast | None], config: CompareConfig
) -> Comparison:
    """Return the comparison of a question whose rows stand in a panel from `first` on, by the contrasts of these rows."""
    *at_points, mean, at_dearest, mix = row_contrasts
    if statistics.octaves is not None:
        seen = [
            replace(stratum_row, summary=replace(stratum_row.summary, contrast=_less_sure(stratum_row.summary.contrast, statistics.misfit)))
            for stratum_row in _stratum_rows(statistics, statistics.octaves, 0, contrasts(statistics.octaves))
        ]
    else:
        seen = [*_stratum_rows(statistics, of, first, at_points)]
        at = statistics.dearest[0] if statistics.dearest else ""
        for row, (point, shown) in enumerate([("", mean), (at, at_dearest)], first + len(at_points)):
            if seen and shown is not None:
                name = f"{MEAN} at {point}" if point else MEAN
                everything = Stratum(name, np.ones(len(statistics.question.base), bool), np.ones(len(statistics.question.head), bool))
                seen.append(_StratumRow(everything, of, row, StratumContrast(name, False, shown, statistics.is_material(point))))
    strata = tuple(stratum_row.summary for stratum_row in seen)
    worst = _worst(strata, config, {stratum_row.summary.name: stratum_row.stratum for stratum_row in seen}, statistics)
    place = None if worst is None else next(stratum_row for stratum_row in seen if stratum_row.summary is worst)
    question = statistics.question
    typical = None if place is None else _typical_of(statistics, place.stratum)
    unseen = question.tables.unseen
    return Comparison(
        function=question.base.function,
        metric=question.metric,
        base=question.annotation,
        strata=strata,
        worst=worst,
        typical=typical,
        ratio=as_ratio(worst.contrast, config.confidence, tested(strata)) if worst else None,
        p=min(1.0, min((stratum.contrast.p for stratum in strata if stratum.material), default=1.0) * tested(strata)),
        floor=seen[0].floor(config.seed) if seen else math.inf,
        mix=statistics.yardstick.mix,
        mix_ratio=as_ratio(mix, config.confidence) if mix else None,
        grown=unseen or question.tables.new or grown_features(question, statistics.yardstick.mix),
        disjoint=bool(unseen) or (statistics.yardstick.moved and not strata),
        machines=place.by_machine() if place is not None and question.metric in BY_MACHINE else {},
        apart=cost_apart(question),
    )


def _stratum_rows(statistics: RunStatistics, of: Panel, first: int, row_contrasts: Sequence[Contrast | None]) -> Iterator[_StratumRow]:
    """Yield what each stratum shows that has runs enough to show anything; in the panel they stand from `first` on."""
    for place, (stratum, shown) in enumerate(zip(statistics.yardstick.strata, row_contrasts, strict=False)):
        if shown is not None:
            material = bool(statistics.material[place])
            yield _StratumRow(stratum, of, first + place, StratumContrast(stratum.name, stratum.narrows, shown, material, stratum.point))


def _less_sure(shown: Contrast, misfit: float) -> Contrast:
    return replace(shown, error=math.hypot(shown.error, misfit))


def _log_ratios(question: MetricQuestion, expected: Sides) -> Sides | None:
    """Return log(cost / expected cost) per call of both sides; NaN where the metric is absent; None where it is on a whole side."""
    least = _least(question.metric)
    ratios = []
    for table, of in zip(question.tables.sides, expected, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log(np.maximum(table.metrics[question.metric], least) / of)
        values[~np.isfinite(values)] = np.nan
        if not np.isfinite(values).any():
            return None
        ratios.append(values)
    return ratios[0], ratios[1]


def _least(metric: str) -> float:
    """Return the least value that is told from zero: a time below is short, not absent; a count of zero has no ratio."""
    return 1.0 if metric_of(metric).unit == "ns" else 0.0


def _octaves(expected: Floats) -> Ints:
    octaves: Ints = np.floor(np.log(expected) / OCTAVE).astype(np.int64)
    return octaves


def _misfit(octaves: Ints, ratios: Floats) -> float:
    """Return by how much base's annotation misses base itself, as a standard deviation over octaves of cost (log scale)."""
    present = np.isfinite(ratios)
    octaves, ratios = octaves[present], ratios[present]
    middles = [median(ratios[octaves == octave]) for octave in np.unique(octaves)]
    return math.sqrt(float(np.mean(np.square(middles)))) if middles else 0.0


def _is_fine(question: MetricQuestion) -> bool:
    """Return whether a typical call, on either side, lasts so few steps of the clock that a median would only name a step."""
    if metric_of(question.metric).unit != "ns":
        return False
    tables = (question.base, question.head)
    fine_ns = max(FINE_NS, *(FINE_STEPS * table.resolution_ns for table in tables))
    costs = (table.metrics[question.metric] for table in tables)
    return min(median(cost[np.isfinite(cost)]) for cost in costs) < fine_ns


def _mean_costs(question: MetricQuestion, side: Side, shares: Floats, ledger: Ledger) -> Floats:
    """Return the logarithm of the mean cost of a run's calls (points, 1, runs), out of the exact sums, corrected for the input mix.

    `shares` are the mean expected costs of its recorded calls. NaN where no sums are kept, and where calls are set apart, which sums have.
    """
    if question.tables.apart is not None:
        return np.full_like(shares, np.nan)
    column, costs = ledger.place[question.base.function], []
    for point in ledger.points:
        book = ledger.books[point, side]
        sums = book.sums(question.metric)
        if sums is None:
            return np.full_like(shares, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            costs.append((sums[:, column] / book.calls[:, column])[None])
    with np.errstate(divide="ignore"):
        means = np.log(ledger.runs(side, costs).values / shares) if costs else shares
    return np.where(np.isfinite(means), means, np.nan)


def _dearest(costs: Sequence[Floats]) -> int | None:
    """Return at which of several points calls cost most on average, given the logarithms of each side's runs' means (points, 1, runs).

    Points with one run of a side can show nothing. The mean of both sides chooses: it says nothing of how they differ, so that chance alone
    does not choose a point at which head happens to be slower.
    """
    runs = np.min([np.isfinite(of_side).sum(axis=(1, 2)) for of_side in costs], axis=0)
    if np.count_nonzero(runs) < 2 or runs.max() < 2:
        return None
    return int(max(np.flatnonzero(runs > 1), key=lambda point: sum(_middle(of_side[point]) for of_side in costs)))


def _middle(costs: Floats) -> float:
    return median(costs[np.isfinite(costs)])


def _only_at(values: Floats, point: int | None) -> Floats:
    """Return the values (points, k, runs) of one point, NaN at all others."""
    at_point = np.full_like(values, np.nan)
    if point is not None:
        at_point[point] = values[point]
    return at_point


def _materials(question: MetricQuestion, masks: Sequence[Bools], ledger: Ledger) -> Bools:
    """Return which strata, `masks` (k, rows) of either side's table, cost a material share of a run at some point on some side.

    All do where no sums are kept, for then nothing can be called immaterial.
    """
    metric, column = question.metric, ledger.place[question.base.function]
    material = np.zeros(len(masks[0]), dtype=bool)
    if any(metric not in book.medians for book in ledger.books.values()):
        return ~material
    for side, (table, mask, (points, at)) in enumerate(zip(question.tables.sides, masks, question.tables.at_points, strict=True)):
        costs = np.where(at, np.nan_to_num(table.metrics[metric]) * table.weight, 0.0)
        of_strata = mask.astype(np.float64) @ costs.T
        for point, cost, whole in zip(points.tolist(), of_strata.T, costs.sum(axis=1).tolist(), strict=True):
            book = ledger.pair(point)[side] if point in ledger.points else None
            if book is not None and (own := float(book.medians[metric][column])) > 0:
                material |= (cost > 0) & (cost >= POLICY.material * _whole_run(book, metric) / own * whole)
    return material


def _whole_run(book: Book, metric: str) -> float:
    """Return what a whole run costs in a metric: its time, or the count of the function that has most of it, callees included."""
    return book.cost_ns if metric_of(metric).unit == "ns" else book.largest[metric]


def _worst(
    summaries: Sequence[StratumContrast], config: CompareConfig, strata: Mapping[str, Stratum], statistics: RunStatistics
) -> StratumContrast | None:
    """Return the stratum that differs most beyond doubt; all calls where none does.

    Where its calls do not tell how much, it is the one whose calls do among those that differ by more than the smallest effect of interest.
    """
    if not summaries:
        return None
    count = tested(summaries)

    def beyond(summary: StratumContrast) -> float:
        low, high = summary.contrast.interval(config.confidence, count)
        # The mean says the same as the medians, but not for which inputs; it is for what they do not see.
        handicap = math.log1p(config.min_effect) if is_mean(summary.name) else 0.0
        return max(low, -high) - handicap if summary.material else -math.inf

    def is_blurred(summary: StratumContrast) -> bool:
        half = summary.contrast.half_width(config.confidence, count)
        return half > math.log(BLURRED) or (not is_mean(summary.name) and _vagueness(strata[summary.name], statistics) > math.log(BLURRED))

    best = max(summaries, key=beyond)
    if beyond(best) <= 0 or not is_blurred(best):
        return best if beyond(best) > 0 else summaries[0]
    clear = (summary for summary in summaries if beyond(summary) > math.log1p(config.min_effect) and not is_blurred(summary))
    return max(clear, key=beyond, default=best)


def _vagueness(stratum: Stratum, statistics: RunStatistics) -> float:
    """Return how far from each other the ends lie between which the calls of a stratum have their median (log scale), on the worse side."""
    ratios = _log_ratios(statistics.question, statistics.yardstick.expected)
    if ratios is None or _is_fine(statistics.question):
        return 0.0
    masks, tables = (stratum.base, stratum.head), statistics.question.tables.sides
    return max(vagueness(values[mask], table.point[mask]) for values, mask, table in zip(ratios, masks, tables, strict=True))


def _typical_of(statistics: RunStatistics, stratum: Stratum) -> Typical | None:
    """Return a typical call of a stratum; of the mean of all calls, at one point or at all, what base's calls cost there on average."""
    if not is_mean(stratum.name):
        return _typical(statistics.question, stratum)
    if stratum.name == MEAN:
        return Typical(statistics.average, {}) if statistics.average else None
    return Typical(statistics.dearest[1], {}) if statistics.dearest else None


def _typical(question: MetricQuestion, stratum: Stratum) -> Typical | None:
    """Return a typical call of a stratum: the median cost, or the trimmed mean of times near the clock's step; None where none is known."""
    rows = stratum.base
    cost = question.base.metrics[question.metric][rows]
    sorted_costs = np.sort(np.maximum(cost[np.isfinite(cost)], _least(question.metric)))
    if not len(sorted_costs):
        return None
    middle = float(sorted_costs[(len(sorted_costs) - 1) // 2])  # of a call that was made, as the inputs are that are told beside it
    if metric_of(question.metric).unit == "ns" and middle < FINE_NS:
        middle = float(sorted_costs[: len(sorted_costs) - int(len(sorted_costs) * TRIMMED)].mean())
    return Typical(middle, question.tables.typical if rows.all() else typical_inputs(question.base, rows))


def resolved(comparison: Comparison, base: SampleTable) -> bool:
    """Return whether the difference of a typical call's time is large enough for the clock."""
    if metric_of(comparison.metric).unit != "ns" or comparison.worst is None:
        return True
    cost = base.metrics[comparison.metric]
    # The calls that make most of the cost, not the typical ones.
    typical = float(np.nansum(cost * cost) / max(float(np.nansum(cost)), 1.0))
    return typical * abs(math.expm1(min(comparison.worst.contrast.effect, 50.0))) >= max(RESOLUTION_NS, base.resolution_ns)
