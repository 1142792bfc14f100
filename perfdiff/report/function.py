"""The section of a report on one function: the answer first, then the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from perfdiff import units
from perfdiff.analysis.claims import Claim
from perfdiff.analysis.findings import RUN, Cause, Findings, FunctionFinding, MetricFinding, Ratio, Verdict, is_mean
from perfdiff.models.annotation import Annotation, CostClass
from perfdiff.models.clock import RESOLUTION_NS
from perfdiff.models.language import readable
from perfdiff.models.selection import MAX_FEATURES
from perfdiff.records.differences import ReasonKind
from perfdiff.records.schema import FunctionInfo, Point
from perfdiff.report import wording
from perfdiff.report.blocks import Block, Cell, Column, Fact, Facts, FunctionSection, Items, Plot, RatioSpan, Table, TextListing, Tone
from perfdiff.report.counts import anomaly_blocks, count_tables
from perfdiff.report.diff import MOST_LINES, LineRunCounts, source_diff
from perfdiff.report.sentences.catalogue import say

# Of more reasons the first tell enough: those of the function's own text come first.
_REASONS = 3
# What a reader works out of the figures that are told may be off by so much; beyond, it is said what the others are of.
SPEAKS_FOR_ALL = 0.2
MOSTLY_OTHERS = 1.5  # from so many times the extra time on that is put down to a function, what its calls take more is told beside it


def function_section(
    finding: FunctionFinding, findings: Findings, plot: Plot | None = None, most_lines: int = MOST_LINES
) -> FunctionSection:
    """Return the section of one function of `findings`; `most_lines` of its source are shown.

    Its texts, and those of the points, must be printable.
    """
    metric, standing = wording.leading(finding), wording.standing(finding, findings.min_effect)
    ratio = metric.ratio if metric else None
    return FunctionSection(
        id=f"function-{finding.info.id}",
        name=finding.info.name,
        place=wording.place(finding.info),
        verdict=finding.verdict,
        standing=standing,
        rank=finding.rank,
        figure=wording.interval(ratio, metric.metric) if metric else wording.ABSENT,
        span=RatioSpan(ratio.value, ratio.low, ratio.high) if ratio and _drawable(ratio) else None,
        headline=say(finding.headline),
        facts=Facts((*answer_facts(finding, findings.confidence, len(findings.points)).facts, *_verdict(finding, standing))),
        chain=chain(finding),
        plot=plot,
        diff=source_diff(
            finding.info,
            guilty=finding.rank is not None and finding.info.change.is_suspect,
            most=most_lines,
            counted=LineRunCounts(finding.lines[0].point, finding.line_counts) if finding.lines else None,
        ),
        details=tuple(_details(finding, metric, {point.id: point for point in findings.points})),
    )


def extra(finding: FunctionFinding, confidence: float) -> str:
    """Return the extra time that a function's change is guilty of, with its interval where there is one."""
    if finding.extra_ci_ns is None:
        return units.duration(finding.extra_ns)
    low, high = (units.duration(bound) for bound in finding.extra_ci_ns)
    return f"{units.duration(finding.extra_ns)}, {units.significant(100 * confidence)} % CI {low} to {high}"


def answer_facts(finding: FunctionFinding, confidence: float, points: int = 1, requests: int = 0, claims: Sequence[Claim] = ()) -> Facts:
    """Return which inputs, how much, how sure and why, as labelled statements in this order, but for what `claims` say already.

    `points` are summed over where one says so; a run of each sends so many `requests`.
    """
    metric = wording.leading(finding)
    facts: list[Fact] = []
    if metric is not None:
        facts += _cost_facts(finding, metric, confidence)
    if finding.machines_say and finding.machines_say not in claims:
        facts.append(Fact("machines", say(finding.machines_say), Tone.INCONCLUSIVE))
    if finding.share is not None and finding.rank is not None:
        share = f"{wording.percent(finding.share)} of the extra cost of {wording.runs(points)}"
        facts.append(Fact("share", f"{share} ({extra(finding, confidence)}{_of_more(finding, metric)})"))
    calls = wording.calls(finding)
    if calls != wording.ABSENT:
        facts.append(Fact("calls", f"{calls} in {wording.runs(points)}{wording.calls_a_request(finding, requests)}"))
    if metric is not None and (in_all := _in_all(finding, metric)):
        facts.append(Fact("in all", f"{in_all} for all calls of {wording.runs(points)}; not all cost as much as the one above"))
    if requests and finding.rank is not None:
        facts.append(Fact("request", f"{units.duration(finding.extra_ns / requests)} more a request, over all kinds"))
    facts += [Fact("cause", say(cause.says)) for cause in finding.causes[:1] if cause.says not in claims]
    facts += [Fact("line", wording.line_growth(line, finding.info)) for line in finding.lines]
    if finding.verdict is Verdict.INCONCLUSIVE:
        facts += [Fact("unclear", say(finding.reason), Tone.INCONCLUSIVE)] if finding.reason not in claims else []
        facts += [Fact("remedy", text) for text in _remedy(metric)]
    facts.append(Fact("code", change(finding.info)))
    return Facts(tuple(facts))


def chain(finding: FunctionFinding) -> Items | None:
    """Return the way from the change to where its cost shows, or None where the function itself is all of it."""
    return Items("From the change to the cost", tuple(map(say, finding.chain)), ordered=True) if len(finding.chain) > 1 else None


def shows_elsewhere(finding: FunctionFinding) -> bool:
    """Return whether a function is not slower, or faster, itself: its change costs or saves time in others."""
    metric = wording.leading(finding)
    if metric is None or metric.ratio is None:
        return False
    if finding.verdict is Verdict.IMPROVEMENT:
        return not any(timed.ratio.value < 1 for timed in finding.metrics.values() if timed.ratio is not None)
    return finding.verdict is Verdict.REGRESSION and metric.ratio.low <= 1 and chain(finding) is not None


def change(info: FunctionInfo) -> str:
    """Return how a function's code differs, with the first reasons: `changed: body changed`."""
    reasons = [str(reason) for reason in info.reasons if reason.kind is not ReasonKind.ONE_SIDED]
    if not reasons:
        return info.change.value
    return f"{info.change.value}: {units.listed(reasons, _REASONS, ';')}"


def _verdict(finding: FunctionFinding, standing: str) -> Iterator[Fact]:
    if finding.reason and finding.verdict is not Verdict.INCONCLUSIVE:
        yield Fact("verdict", f"{standing}: {say(finding.reason)}", wording.TONES[finding.verdict])
    for entry in finding.accepted:
        yield Fact("accepted", f"{entry.metric} {units.ratio(entry.ratio)}{f' until {entry.until}' if entry.until else ''}: {entry.reason}")


def _drawable(ratio: Ratio) -> bool:
    return all(math.isfinite(value) and value > 0 for value in (ratio.value, ratio.low, ratio.high))


def _cost_facts(finding: FunctionFinding, metric: MetricFinding, confidence: float) -> Iterator[Fact]:
    if metric.ratio is not None and shows_elsewhere(finding):
        where = "not slower; where its change costs time is told below" if finding.chain else "not faster; its change saves time in others"
        yield Fact("itself", f"{wording.interval(metric.ratio, metric.metric)}: {where}")
        return
    costs = wording.costs(metric)
    if costs != wording.ABSENT:
        at = f" at {where}" if (where := wording.cost_at(metric)) else ""
        yield Fact("cost", f"{costs} {wording.per_what(metric.metric)}{at} ({wording.metric_says(metric.metric)})", Tone.STRONG)
    if metric.ratio is not None:
        where = f" ({metric.stratum})" if metric.stratum else "" if _is_of_these(metric) else " (over all inputs)"
        yield Fact("ratio", f"{wording.certainty(metric.ratio, metric.metric, confidence)}{where}", wording.TONES[finding.verdict])
        if metric.stratum and metric.overall is not None and not metric.overall.is_unknown:
            label, whose = ("typical", "of a typical call") if is_mean(metric.stratum) else ("overall", "over all calls")
            yield Fact(label, f"{wording.interval(metric.overall, metric.metric)} {whose}")
    for label, grown in (("growth", metric), ("of a run", finding.metrics.get(RUN))):
        growth = wording.classes(grown) if grown is not None else wording.ABSENT
        if grown is not None and growth != wording.ABSENT:
            yield Fact(label, f"{growth}{_measured_range(grown)}")
    if metric.crosses is not None and metric.feature:
        yield Fact("doubled", f"from {metric.feature} = {units.count(metric.crosses)} on, head costs twice what base costs")
    for shift in metric.modes:
        cost = wording.amount(metric.metric, shift.cost)
        yield Fact("mode", f"{wording.percent(shift.base)} of the calls took about {cost}, now {wording.percent(shift.head)}")
    for border in metric.borders:
        yield Fact("border", f"another regime began at {border.feature} = {units.count(border.base)}, now at {units.count(border.head)}")


def _of_more(finding: FunctionFinding, metric: MetricFinding | None) -> str:
    """Say how much more all calls of a guilty function take where much of that is put down to others, or to calls within them."""
    if metric is None or metric.in_all is None or finding.extra_ci_ns is None:
        return ""
    more_ns = metric.in_all[1] - metric.in_all[0]
    return f"; its calls take {units.duration(more_ns)} more in all" if more_ns > MOSTLY_OTHERS * finding.extra_ns > 0 else ""


def _is_of_these(metric: MetricFinding) -> bool:
    """Return whether the ratio is that of the costs of a call that are told beside it, as far as a reader sees."""
    base, head = wording.both_costs(metric)
    if base is None or head is None or metric.ratio is None or base < RESOLUTION_NS:
        return True
    return abs(head / base - metric.ratio.value) <= SPEAKS_FOR_ALL * metric.ratio.value


def _in_all(finding: FunctionFinding, metric: MetricFinding) -> str:
    """Return what all calls of a guilty function take, where the call that is told, times the calls, says another thing; else ""."""
    if finding.rank is None or metric.in_all is None or metric.ratio is None or not min(metric.in_all) > 0:
        return ""
    counts = (finding.calls_base or 0.0, finding.calls_head or 0.0)
    multiplied = [(cost or 0.0) * calls for cost, calls in zip(wording.both_costs(metric), counts, strict=True)]
    if all(abs(ns - all_ns) <= SPEAKS_FOR_ALL * all_ns for ns, all_ns in zip(multiplied, metric.in_all, strict=True)):
        return ""
    return " → ".join(map(units.duration, metric.in_all))


def _measured_range(metric: MetricFinding) -> str:
    feature = metric.feature
    ranges = [
        annotation.ranges[feature] for annotation in (metric.base, metric.head) if annotation and feature and feature in annotation.ranges
    ]
    if not ranges:
        return ""
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    return f" in {feature}, measured from {units.count(low)} to {units.count(high)}"


def _remedy(metric: MetricFinding | None) -> Iterator[str]:
    """Say what would settle an open question. The noise floor falls with the square root of the number of runs."""
    if metric is None or metric.ratio is None:
        return
    runs = min(metric.ratio.runs_base, metric.ratio.runs_head)
    visible = metric.floor if metric.ratio.is_unknown else max(metric.floor, metric.ratio.high / metric.ratio.value - 1)
    yield (
        f"effects from {wording.percent(visible)} on are visible with {runs} runs a side; four times as many halve that, "
        "larger inputs and a quieter machine also help"
    )


def _details(finding: FunctionFinding, leading: MetricFinding | None, points: Mapping[int, Point]) -> Iterator[Block]:
    yield from _causes(finding.causes)
    yield from count_tables(finding)
    if finding.anomaly is not None and finding.anomaly.is_anomalous and points:
        yield from anomaly_blocks(finding.anomaly, points)
    if leading is not None:
        yield from _parts(leading)
        yield from _coefficients(leading)
        yield from _predictions(leading)
    if len(finding.metrics) > 1:
        yield _metrics(tuple(finding.metrics.values()))
    for metric in finding.metrics.values():
        yield from annotation_listings(metric)


def _causes(causes: tuple[Cause, ...]) -> Iterator[Block]:
    if len(causes) > 1:
        yield Items("Why", tuple(say(cause.says) for cause in causes))
    rows = tuple(
        (Cell(cause.name), Cell(item.counter), Cell(wording.amount(item.counter, item.base)), Cell(wording.amount(item.counter, item.head)))
        for cause in causes
        for item in cause.evidence
    )
    if rows:
        yield Table("Evidence, a call", (Column("cause"), Column("count"), Column("base", right=True), Column("head", right=True)), rows)


def _parts(metric: MetricFinding) -> Iterator[Table]:
    """Keep the three changes apart: cost per input, input mix, number of calls."""
    stratum = f" ({metric.stratum})" if metric.stratum else ""
    parts = [
        (f"cost of a call at equal inputs{stratum}", metric.ratio, metric.metric),
        (
            "the same of a typical call" if is_mean(metric.stratum) else "the same over all calls",
            metric.overall if metric.stratum else None,
            metric.metric,
        ),
        ("inputs: cost of head's inputs by base's model", metric.mix, metric.metric),
        ("number of calls", metric.calls, "calls"),
        (f"{wording.metric_says(metric.metric)}, sum of a run", metric.total, metric.metric),
    ]
    rows = tuple((Cell(says), Cell(wording.interval(ratio, of))) for says, ratio, of in parts if ratio is not None)
    if rows:
        yield Table("What changed, and what did not", (Column("head against base"), Column("ratio", right=True)), rows)


def _coefficients(metric: MetricFinding) -> Iterator[Table]:
    rows = tuple(
        (
            Cell(shift.term, code=True),
            Cell(wording.amount(metric.metric, shift.base)),
            Cell(wording.amount(metric.metric, shift.head)),
            Cell(f"{wording.amount(metric.metric, shift.low)} to {wording.amount(metric.metric, shift.high)}"),
            Cell(q_value(shift.q)),
        )
        for shift in metric.coefficients
    )
    if rows:
        columns = (
            Column("term"),
            Column("base", right=True),
            Column("head", right=True),
            Column("head − base", right=True),
            Column("q", right=True),
        )
        yield Table(f"Coefficients ({wording.metric_says(metric.metric)})", columns, rows)


def _predictions(metric: MetricFinding) -> Iterator[Table]:
    rows = tuple(
        (
            Cell(wording.inputs(prediction) or "any"),
            Cell(wording.call_cost(metric.metric, prediction.base)),
            Cell(wording.call_cost(metric.metric, prediction.head)),
            Cell(units.ratio(prediction.head / prediction.base) if prediction.base > 0 else wording.ABSENT),
            Cell("beyond it" if prediction.beyond else "inside", Tone.MUTED),
        )
        for prediction in metric.predictions
    )
    if rows:
        columns = (
            Column("input"),
            Column("base", right=True),
            Column("head", right=True),
            Column("ratio", right=True),
            Column("measured range"),
        )
        yield Table(f"Cost of a call ({wording.metric_says(metric.metric)})", columns, rows)


def _metrics(metrics: tuple[MetricFinding, ...]) -> Table:
    columns = (
        Column("metric"),
        Column("a call, base → head", right=True),
        Column("ratio", right=True),
        Column("growth"),
        Column("q", right=True),
        Column("smallest visible", right=True, minor=True),
    )
    rows = tuple(
        (
            Cell(wording.metric_says(metric.metric)),
            Cell(wording.costs_of(metric)),
            Cell(wording.interval(metric.ratio, metric.metric)),
            Cell(wording.classes(metric)),
            Cell(q_value(metric.q)),
            Cell(wording.percent(metric.floor)),
        )
        for metric in metrics
    )
    return Table("All metrics", columns, rows)


def annotation_listings(metric: MetricFinding) -> Iterator[TextListing]:
    """Return both sides' annotations of a metric: with units, how well they fit, and in Freud's language."""
    lines: list[str] = []
    for side, annotation in (("base", metric.base), ("head", metric.head)):
        if annotation is not None:
            first, *rest = (*wording.formulas(annotation), *_quality(annotation), *readable(annotation).split("\n"))
            lines += [f"{side}  {first}", *(f"      {line}" for line in rest)]
    if lines:
        yield TextListing(f"Annotation: {wording.metric_says(metric.metric)}", tuple(lines))


def _quality(annotation: Annotation) -> Iterator[str]:
    # Of a constant nothing is left to explain: its R² is 0 however well it fits.
    constant = annotation.cost_class is CostClass.CONSTANT
    fit = "" if constant else f"R² {annotation.r2:.4f}, cross-validated {annotation.cv_r2:.4f}; "
    yield f"{annotation.cost_class.value}; {fit}{wording.plural(annotation.n, 'call')}"
    for name in annotation.features:
        low, high = annotation.ranges.get(name, (math.nan, math.nan))
        measured = f" measured from {units.count(low)} to {units.count(high)}" if math.isfinite(low) else ""
        twins = annotation.twins.get(name, ())
        alike = f"; cannot be told from {', '.join(twins)}" if twins else ""
        if measured or alike:
            yield f"{name}{measured}{alike}"
    if annotation.further is not None:
        yield f"{annotation.further} would tell more of the cost, but no model has more than {MAX_FEATURES} inputs"


def q_value(q: float) -> str:
    """Return a false discovery rate as shown in tables."""
    if not math.isfinite(q):
        return wording.ABSENT
    return "< 0.001" if q < 0.001 else units.significant(q, 2)
