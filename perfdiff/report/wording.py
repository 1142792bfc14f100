"""How findings are put into words: one place for every phrase that several formats share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from perfdiff import units
from perfdiff.analysis.findings import CostPrediction, FunctionFinding, MetricFinding, Ratio, Verdict
from perfdiff.analysis.linegrowth import LineGrowth
from perfdiff.analysis.policy import POLICY
from perfdiff.models.annotation import Annotation, Scope, Term, scaled, shape
from perfdiff.models.clock import RESOLUTION_NS
from perfdiff.records.metrics import METRICS, metric_of
from perfdiff.records.schema import FunctionInfo, Point, Revision
from perfdiff.report.blocks import Tone
from perfdiff.report.printable import shortened

ABSENT = "–"
_FARTHEST = 1e9  # ends of an interval that are so many times apart: figures of them say no more
UNKNOWN = "not known"

TONES = {
    Verdict.REGRESSION: Tone.REGRESSION,
    Verdict.IMPROVEMENT: Tone.IMPROVEMENT,
    Verdict.UNCHANGED: Tone.PLAIN,
    Verdict.INCONCLUSIVE: Tone.INCONCLUSIVE,
}

ANSWERS = {
    Verdict.REGRESSION: "Regression",
    Verdict.IMPROVEMENT: "Improvement",
    Verdict.UNCHANGED: "No regression",
    Verdict.INCONCLUSIVE: "Inconclusive",
}

# Counts that repeat exactly leave an interval of rounding errors.
_EXACT = 1e-6
_DIGITS = 10  # of a commit's id
_LONGEST_LINE = 80  # characters of a line of code that a statement quotes
_WORKLOADS = 3  # names that a sentence lists before it only counts
_NO_COST = "callee_calls"  # what more calls cost shows in their time


def finite(value: float | None) -> float | None:
    """Return a figure as JSON can hold it: None where it is not known, or infinite."""
    return value if value is not None and math.isfinite(value) else None


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: `1 run`, `2,400 runs`."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def percent(share: float) -> str:
    """Return a share in percent, without a false precision: `97 %`, `0.4 %`."""
    if not math.isfinite(share):
        return ABSENT
    return f"{share * 100:.0f} %" if abs(share) >= 0.0995 else f"{units.significant(share * 100, 2)} %"


def metric_says(metric: str) -> str:
    """Return the name of a metric in words."""
    return metric_of(metric).says


def counter_says(counter: str) -> str:
    """Return the name of a counter in words, without a remark on callees."""
    return metric_of(counter).counts


def metric_unit(metric: str) -> str:
    """Return the unit of a metric: `ns`, `bytes` or `count`."""
    return metric_of(metric).unit


def amount(metric: str, value: float | None) -> str:
    """Return a value of a metric in its unit."""
    return ABSENT if value is None or not math.isfinite(value) else units.quantity(value, metric_unit(metric))


def call_cost(metric: str, value: float | None) -> str:
    """Return what a call costs; times too short for a probe to tell from nothing are said to be so: `< 2 ns`."""
    if value is not None and metric_unit(metric) == "ns" and abs(value) < RESOLUTION_NS:
        return f"< {units.duration(RESOLUTION_NS)}"
    return amount(metric, value)


def interval(ratio: Ratio | None, metric: str = "wall_ns") -> str:
    """Return a ratio with its interval, as exact as the interval is narrow: `×5.7 [5.4, 6.1]`, `×1.00 [0.98, 1.02]`.

    Counts can be exact. A time never is: where its runs agree to the last digit, they are below what the clock can tell. A ratio of which
    the interval says nothing is no figure: `not known`.
    """
    if ratio is None or not math.isfinite(ratio.value):
        return ABSENT
    if ratio.is_unknown:
        return UNKNOWN
    if ratio.high - ratio.low < _EXACT * ratio.value:
        certain = "no spread seen" if metric_unit(metric) == "ns" else "exact"
        return f"×{units.significant(ratio.value, 4)}, {certain}"
    decimals = _decimals(ratio)
    if ratio.value < 10**-decimals:  # would be rounded to nothing
        return f"×{units.significant(ratio.value, 2)} [{units.significant(ratio.low, 2)}, {units.significant(ratio.high, 2)}]"
    return f"×{ratio.value:,.{decimals}f} [{ratio.low:,.{decimals}f}, {ratio.high:,.{decimals}f}]"


def _decimals(ratio: Ratio) -> int:
    """Return the decimals that show the first digit of the interval's width, and percents where the ratio is near 1."""
    width = ratio.high - ratio.low
    by_width = -math.floor(math.log10(width)) if math.isfinite(width) and width > 0 else 0
    by_value = 2 if ratio.value < 2 else 1 if ratio.value < 20 else 0
    return min(max(by_width, by_value), 4)


def certainty(ratio: Ratio, metric: str, confidence: float) -> str:
    """Return a ratio of a metric with its interval, confidence and the runs behind it."""
    runs = f"{ratio.runs_base} base and {ratio.runs_head} head runs"
    if ratio.is_unknown:
        is_told = ratio.low > 0 and ratio.high / ratio.low < _FARTHEST
        ends = f"{units.significant(ratio.low, 2)} to {units.significant(ratio.high, 2)}" if is_told else "from almost nothing to any size"
        return f"{UNKNOWN}: {runs} do not tell ({percent(confidence)} interval {ends})"
    return f"{interval(ratio, metric)}, {percent(confidence)} interval over {runs}"


def classes(finding: MetricFinding) -> str:
    """Return the growth on both sides: `linear → quadratic`, or one word where it is the same."""
    if finding.base is None or finding.head is None:
        only = finding.base or finding.head
        return f"{growth(only)} (only {'base' if finding.base else 'head'})" if only else ABSENT
    base, head = growth(finding.base), growth(finding.head)
    return base if base == head else f"{base} → {head}"


def growth(annotation: Annotation) -> str:
    """Return how a cost grows, and whether it is counts that say so."""
    return annotation.growth.value if annotation.by_counts is None else f"{annotation.growth.value} (by counts)"


def calls(finding: FunctionFinding) -> str:
    """Return the calls per run on both sides, as one number where they agree."""
    return counts(finding.calls_base, finding.calls_head)


def calls_a_request(finding: FunctionFinding, requests: int) -> str:
    """Return `, 2 → 41 a request` for runs that send `requests`, "" if they send none."""
    if not requests:
        return ""
    per_request = (None if value is None else value / requests for value in (finding.calls_base, finding.calls_head))
    base, head = (ABSENT if value is None else units.significant(value, 2) for value in per_request)
    return f", {base if base == head else f'{base} → {head}'} a request"


def runs(points: int) -> str:
    """Name the runs that a sum over all workload points is of."""
    return "one run of each point" if points > 1 else "a run"


def counts(before: float | None, after: float | None) -> str:
    """Return a number of things on both sides, as one number where they agree."""
    base, head = (ABSENT if value is None else units.count(value) for value in (before, after))
    return base if base == head else f"{base} → {head}"


def place(info: FunctionInfo) -> str:
    """Return where a function stands: `src/list.c:42`."""
    return f"{info.file}:{info.line}" if info.file else ABSENT


def revision(value: Revision) -> str:
    """Return a revision as people name it, with its commit; the working tree and samples have none."""
    if value.commit is None:
        return value.rev
    return value.rev[:_DIGITS] if value.commit.startswith(value.rev) else f"{value.rev} ({value.commit[:_DIGITS]})"


def threshold(min_effect: float, points: Sequence[Point]) -> str:
    """Say from which effect on a regression is told, and of workloads that have a threshold of their own: `5 % (10 % at sort)`."""
    workloads: dict[float, dict[str, None]] = {}
    for point in points:
        if point.min_effect is not None:
            workloads.setdefault(point.min_effect, {})[point.workload] = None
    others = "; ".join(f"{percent(own)} at {units.listed([*names], _WORKLOADS)}" for own, names in sorted(workloads.items()))
    return f"shifts under {percent(min_effect)}{f' ({others})' if others else ''} are not reported as a regression"


def inputs(prediction: CostPrediction) -> str:
    """Return the inputs of a prediction: `n = 10,000, depth = 3`."""
    return ", ".join(f"{name} = {units.count(value)}" for name, value in prediction.inputs.items())


def leading(finding: FunctionFinding) -> MetricFinding | None:
    """Return the metric that the verdict rests on.

    Where none is known, for a regression or an improvement the first, in the order of `METRICS`, whose interval lies on that side of 1;
    for the rest, and for unchanged code, the time without callees, since a slower callee is not this function's doing.
    """
    if finding.rests_on is not None and finding.rests_on in finding.metrics:
        return finding.metrics[finding.rests_on]
    order = list(METRICS)
    with_ratio = {metric.metric: metric for metric in finding.metrics.values() if metric.ratio is not None and metric.metric != _NO_COST}
    ordered = sorted(with_ratio.values(), key=lambda metric: order.index(metric.metric) if metric.metric in order else len(order))
    for metric in (candidate for candidate in ordered if finding.info.change.is_suspect and any(both_costs(candidate))):
        slower = finding.verdict is Verdict.REGRESSION and metric.ratio is not None and metric.ratio.low > 1
        faster = finding.verdict is Verdict.IMPROVEMENT and metric.ratio is not None and metric.ratio.high < 1
        if slower or faster:
            return metric
    return finding.metrics.get("self_ns") or next(iter([*ordered, *finding.metrics.values()]), None)


def standing(finding: FunctionFinding, min_effect: float) -> str:
    """Return the verdict on a function as a table tells it: `unchanged` does not stand beside a ratio that is clearly another one.

    A clear difference of a changed function that is no regression is `negligible`; one of unchanged code, beyond what its place in the
    program makes, that no change explains, `unexplained`.
    """
    metric = leading(finding)
    ratio = metric.ratio if metric is not None else None
    if finding.verdict is not Verdict.UNCHANGED or ratio is None:
        return finding.verdict.value
    least = 1 + POLICY.smallest(min_effect, is_laid_out_anew=not finding.info.change.is_suspect)
    if 1 / least <= ratio.high and ratio.low <= least:
        return finding.verdict.value
    return "negligible" if finding.info.change.is_suspect else "unexplained"


def telling(finding: MetricFinding) -> CostPrediction | None:
    """Return the prediction within the measured inputs at which base and head differ most."""
    within = [prediction for prediction in finding.predictions if not prediction.beyond]
    return max(within or finding.predictions, key=lambda prediction: abs(prediction.head - prediction.base), default=None)


def per_what(metric: str, function: str = "") -> str:
    """Return what a value of a metric belongs to: a call, or all calls of a run; of a function where one is named."""
    of = f" of `{function}`" if function else ""
    return f"a call{of}" if metric_of(metric).per_call else f"all calls{of} in a run"


def costs(finding: MetricFinding) -> str:
    """Return what a call costs on both sides, as `both_costs` has it: `80 µs → 456 µs`."""
    base, head = (call_cost(finding.metric, cost) for cost in both_costs(finding))
    if base != ABSENT and finding.ratio is not None and finding.ratio.is_unknown:
        head = UNKNOWN
    return ABSENT if base == head == ABSENT else f"{base} → {head}"


def costs_of(finding: MetricFinding) -> str:
    """Return the same for a table of what calls cost, and whose it is: without callees, or that of all calls of a run."""
    said = costs(finding)
    if said == ABSENT:
        return said
    whose = " (own)" if finding.metric == "self_ns" else "" if metric_of(finding.metric).per_call else " (a run)"
    return f"{said}{whose}"


def both_costs(finding: MetricFinding) -> tuple[float | None, float | None]:
    """Return base's and head's cost of the calls that the ratio is of; where it is of none, at the telling input, or at typical ones.

    Head's is None where runs do not tell it from base's.
    """
    base: float | None
    head: float | None
    if finding.typical is not None and finding.ratio is not None:
        base, head = finding.typical, finding.typical * finding.ratio.value
    elif (prediction := telling(finding)) is not None:
        base, head = prediction.base, prediction.head
    else:
        fitted = finding.base or finding.head
        return _typical(finding.base, fitted), _typical(finding.head, fitted)
    return base, None if finding.ratio is not None and finding.ratio.is_unknown else head


def cost_at(finding: MetricFinding) -> str:
    """Return the inputs at which calls have the costs of `both_costs`, "" if these are typical calls."""
    if finding.typical is not None and finding.ratio is not None:
        return finding.typical_at
    prediction = telling(finding)
    return inputs(prediction) if prediction is not None else ""


def _typical(annotation: Annotation | None, at: Annotation | None) -> float | None:
    """Return the cost by an annotation at the typical inputs of another one; over all scopes where only their conditions need others."""
    if annotation is None or at is None:
        return None
    needed = {name for scope in annotation.scopes for term in scope.terms for name, _ in term.factors}
    if not needed <= {*annotation.typical, *at.typical}:
        return None
    return float(annotation.predict({name: np.array([value]) for name, value in at.typical.items()})[0])


def _term(term: Term, unit: str) -> str:
    return scaled(units.quantity(abs(term.coefficient), unit), shape(term))


def _scope(scope: Scope, unit: str) -> str:
    text = ""
    for term in scope.terms or (Term(0.0),):
        sign = "-" if term.coefficient < 0 else "+"
        text += f" {sign} {_term(term, unit)}" if text else f"{'-' if sign == '-' else ''}{_term(term, unit)}"
    return f"{text} ± {units.quantity(scope.sigma, unit)}"


def formulas(annotation: Annotation) -> tuple[str, ...]:
    """Return an annotation as formulas with units, one line a scope, with its condition, probability and share of calls."""
    unit = metric_unit(annotation.metric)
    lines = []
    for scope in annotation.scopes:
        condition = f"[{scope.condition}] " if scope.condition else ""
        chance = f"in {percent(scope.probability)} of them: " if scope.probability < 1 else ""
        share = f"   ({percent(scope.share)} of calls)" if len(annotation.scopes) > 1 else ""
        lines.append(f"{condition}{chance}{_scope(scope, unit)}{share}")
    return tuple(lines)


def line_growth(line: LineGrowth, info: FunctionInfo) -> str:
    """Return a line that runs more often, with its growth: ``list.c:18, `while (*end)`, new: 0.5·n²; 32,000,000 times at n=8000``."""
    elsewhere = "" if line.is_of(info) else f", in `{line.function}`"
    where = f"{line.file}:{line.line}, `{shortened(line.text, _LONGEST_LINE)}`{elsewhere}{', new' if line.is_new else ''}"
    grows = " → ".join(filter(None, (line.base_says, line.head_says))) if line.head_says else ""
    before = "" if line.is_new else f", {units.count(line.base)} before"
    return f"{where}: {f'{grows}; ' if grows else ''}{units.count(line.head)} times at {line.point}{before}"
