"""The decision on each function and on the whole, and the sentences that say it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff import units
from perfdiff.analysis.attribution import Attribution, Blame, Guilt
from perfdiff.analysis.comparison import MEAN, Comparison
from perfdiff.analysis.diagnosis import calls_per_call, times
from perfdiff.analysis.findings import Cause, EndToEnd, FunctionFinding, MetricFinding, Ratio, Verdict
from perfdiff.analysis.judgement import LAYOUT_SHIFT, Direction, Judgement, enough_runs
from perfdiff.analysis.ledger import Ledger
from perfdiff.analysis.links import LinkKind
from perfdiff.analysis.shift import dominant
from perfdiff.analysis.study import Study
from perfdiff.config import CompareConfig
from perfdiff.records.schema import METRICS, Change, FunctionInfo

CHAIN_STEPS = 3  # places where the cost shows that a chain tells of
ALLOCATION = ("alloc_bytes", "alloc_count")


@dataclass(frozen=True, slots=True)
class Case:
    """All that is known of one function when it is judged."""

    study: Study
    judgements: Mapping[str, Judgement]
    attribution: Attribution
    ledger: Ledger
    config: CompareConfig

    @property
    def info(self) -> FunctionInfo:
        """Return the function."""
        return self.study.info

    @property
    def guilt(self) -> Guilt | None:
        """Return what its change costs or saves, if anything."""
        return self.attribution.guilt.get(self.info.id)


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on a function with its reason; `heavier` names count metrics that alone make it a regression."""

    verdict: Verdict
    reason: str
    heavier: tuple[str, ...] = ()


def decide(case: Case) -> Decision:
    """Decide on one function by itself; victims of others' changes are told apart afterwards."""
    guilt, effect = case.guilt, case.config.min_effect
    suspect = case.info.change.is_suspect
    if guilt is not None and case.attribution.adds(guilt, effect):
        return Decision(Verdict.REGRESSION, f"its change adds {units.duration(guilt.total_ns)} to one run of each workload point")
    heavier = tuple(metric for metric in ALLOCATION if suspect and _direction(case, metric) is Direction.UP)
    if heavier:
        return Decision(Verdict.REGRESSION, f"its time did not clearly grow, but {METRICS[heavier[0]].says} a call did", heavier)
    if guilt is not None and case.attribution.saves(guilt, effect):
        return Decision(Verdict.IMPROVEMENT, f"its change saves {units.duration(-guilt.total_ns)} in one run of each workload point")
    if guilt is not None and guilt.moved and suspect:
        return Decision(
            Verdict.UNCHANGED, f"work moved between it and {_names(guilt.moved, case.attribution)}; together they cost the same"
        )
    if missing := _missing(case):
        return Decision(Verdict.INCONCLUSIVE, missing)
    return Decision(Verdict.UNCHANGED, _why_unchanged(case))


def _direction(case: Case, metric: str) -> Direction:
    judgement = case.judgements.get(metric)
    return judgement.direction if judgement else Direction.NONE


def _matters(case: Case) -> bool:
    """Return whether what the comparison cannot exclude would be material for a run."""
    place = case.ledger.place[case.info.id]
    cost = np.array([max(part.base[place], part.head[place]) for part in case.attribution.parts])
    own = case.study.comparisons.get("self_ns")
    hidden = 1.0
    if own is not None and own.overall is not None and enough_runs(own.overall):
        hidden = math.expm1(min(max(own.floor, own.overall.interval(case.config.confidence)[1]), 50.0))
    return case.attribution.is_material(cost * hidden, 0.0, np.zeros_like(cost))


def _missing(case: Case) -> str:
    """Say what an answer would need, or return "" where there is one."""
    guilt = case.guilt
    if guilt is not None and guilt.family and case.attribution.may_add(guilt, case.config.min_effect):
        names = _names(sorted(guilt.family), case.attribution)
        return (
            f"its change may add {units.duration(guilt.total_ns)} to one run of each workload point, but {names} vary by as much: add runs"
        )
    if not case.info.change.is_suspect or not _matters(case):
        return ""
    judgement = case.judgements.get("self_ns")
    if judgement is None:
        both = case.study.info.change not in (Change.ADDED, Change.REMOVED)
        return "no calls were recorded on one side" if both and case.study.calls is not None else ""
    return judgement.open


def _why_unchanged(case: Case) -> str:
    own = case.study.comparisons.get("self_ns")
    if own is not None and (moved := _moved_inputs(own, case.config)):
        return moved
    calls = case.study.calls
    if calls is not None and calls.low > 1 + case.config.min_effect:
        return f"called {units.ratio(calls.value)} as often; its cost per call did not change"
    if own is None or own.overall is None:
        one_sided = {Change.REMOVED: "it was removed", Change.ADDED: "it is new, and nothing became slower through it"}
        return one_sided.get(case.info.change, "it was not called on both sides")
    if _direction(case, "self_ns") is Direction.UP:
        return "slower, but too little of a run to matter" if case.info.change.is_suspect else _unexplained(case)
    if _direction(case, "wall_ns") is Direction.UP:
        return "its own cost did not grow; what it calls became slower"
    return f"its cost at equal inputs differs by less than {units.significant(100 * case.config.min_effect)} %, or no more than by chance"


def _moved_inputs(own: Comparison, config: CompareConfig) -> str:
    """Say how the inputs moved, or return "" where they did not grow."""
    names = ", ".join(feature.name for feature in own.grown) or "its inputs"
    if own.disjoint:
        return f"called with other inputs than in base ({names}): their cost cannot be compared"
    largest = max(own.mix.values(), default=1.0)
    if largest > 1 + config.min_effect:
        return f"called with larger inputs ({names}; expected cost {units.ratio(largest)}); its cost per input did not change"
    return ""


def _unexplained(case: Case) -> str:
    return "slower at equal inputs, but no change explains it: machine, layout or I/O"


def victims(cases: Sequence[Case], guilty: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return unchanged functions that are clearly slower because of others' changes: function -> the guilty ones."""
    found: dict[int, tuple[int, ...]] = {}
    for case in cases:
        if case.info.change.is_suspect or _direction(case, "self_ns") is not Direction.UP:
            continue
        behind = [
            suspect
            for suspect in guilty
            if any(blame.at == case.info.id and blame.kind is not LinkKind.CALLS and blame.total_ns > 0 for blame in _blames(case, suspect))
        ]
        if behind:
            found[case.info.id] = tuple(behind)
    return found


def _blames(case: Case, suspect: int) -> tuple[Blame, ...]:
    return case.attribution.guilt[suspect].blames


def _names(functions: Sequence[int], attribution: Attribution) -> str:
    return ", ".join(f"`{attribution.web.functions[each].name}`" for each in functions)


def chain(case: Case, metrics: Mapping[int, Mapping[str, MetricFinding]]) -> tuple[str, ...]:
    """Tell the way from a guilty change to where its cost shows; `metrics` are the findings by function and metric."""
    guilt = case.guilt
    if guilt is None:
        return ()
    steps: list[str] = []
    name = f"`{case.info.name}` ({case.info.change})"
    for blame in [blame for blame in guilt.blames if blame.total_ns > 0][:CHAIN_STEPS]:
        at = case.attribution.web.functions[blame.at]
        victim = f"`{at.name}` ({_standing(at)})"
        cost = units.duration(blame.total_ns)
        match blame.kind:
            case LinkKind.OWN:
                steps.append(f"{name} itself: {_per_call(metrics.get(at.id, {}), case, at)}, {cost} more in all")
            case LinkKind.CALLS:
                base, head = calls_per_call(case.info.id, at.id, case.ledger, int(np.argmax(blame.ns)))
                steps += [
                    f"{name} calls {victim} {times(head)} per call, {times(base)} before",
                    f"{victim} and what it calls: {cost} more in all",
                ]
            case LinkKind.DATA:
                steps += [f"{name} writes {blame.through}", f"{victim} reads it: {_per_call(metrics.get(at.id, {}), case, at)}"]
            case LinkKind.INPUTS:
                steps += [f"{name} hands larger inputs on", f"{victim} gets them: {cost} more in all"]
            case LinkKind.CALLEE | LinkKind.ANCESTOR:
                way = "is called by" if blame.kind is LinkKind.CALLEE else "leads to"
                steps += [f"{name} {way} {victim}", f"{victim}: {_per_call(metrics.get(at.id, {}), case, at)}"]
    return tuple(steps)


def _standing(info: FunctionInfo) -> str:
    return "unchanged" if info.change in (Change.CALLER, Change.UNCHANGED) else str(info.change)


def _per_call(metrics: Mapping[str, MetricFinding], case: Case, at: FunctionInfo) -> str:
    """Return the own cost of a call on both sides, where the difference is largest."""
    found = metrics.get("self_ns")
    place = case.ledger.place[at.id]
    part = max(case.attribution.parts, key=lambda part: part.head[place] - part.base[place])
    means = [
        sums[place] / calls[place] if calls[place] else 0.0 for sums, calls in ((part.base, part.calls_base), (part.head, part.calls_head))
    ]
    ratio = f" ({units.ratio(found.ratio.value)} at equal inputs)" if found and found.ratio and math.isfinite(found.ratio.value) else ""
    return f"{units.duration(means[0])} → {units.duration(means[1])} a call{ratio}"


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a metric differs most: its median on base there, the switch that selects these calls, the main feature's median."""

    base: float
    switch: str
    feature: str | None
    x: float | None


def headline(
    case: Case, decision: Decision, metrics: Mapping[str, MetricFinding], spots: Mapping[str, Spot], causes: Sequence[Cause]
) -> str:
    """Say in one sentence what happened to a function."""
    name = f"`{case.info.name}`"
    if decision.verdict in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE):
        return f"{name}: {decision.reason}"
    cause = f"; cause: {causes[0].says}" if causes and decision.verdict is Verdict.REGRESSION else ""
    main = decision.heavier[0] if decision.heavier else main_metric(metrics, decision.verdict)
    if main is None or metrics[main].ratio is None:
        return f"{name} {case.info.change}: {decision.reason}{cause}"
    return f"{name} {_sentence(metrics[main], spots.get(main), case.config)}{cause}"


def main_metric(metrics: Mapping[str, MetricFinding], verdict: Verdict) -> str | None:
    """Return the time that shows the change best: with callees where that clearly moved, else without."""
    for metric in ("wall_ns", "self_ns"):
        found = metrics.get(metric)
        if found is not None and found.ratio is not None:
            moved = found.ratio.low > 1 if verdict is Verdict.REGRESSION else found.ratio.high < 1
            if moved:
                return metric
    return None


def _sentence(found: MetricFinding, spot: Spot | None, config: CompareConfig) -> str:
    unit = METRICS[found.metric].unit
    ratio = found.ratio
    assert ratio is not None
    growth = ""
    if found.base is not None and found.head is not None:
        before, after = dominant(found.base, found.feature), dominant(found.head, found.feature)
        if before and after and (found.class_changed or before[1] == after[1]) and (before[1] or after[1]):
            growth = f"cost {_term(before, unit)}, now {_term(after, unit)}: "
    where = f"at {found.stratum}, " if found.stratum and found.stratum != MEAN else ""
    if spot is not None and spot.feature and spot.x is not None:
        where = f"at {spot.feature} = {units.count(spot.x)}, "
    if spot is not None and spot.switch:
        where = f"for {spot.switch}, {where}"
    change = ""
    if spot is not None:
        change = f"{units.quantity(spot.base, unit)} became {units.quantity(spot.base * ratio.value, unit)} a call "
    told = f"{where}{change}" or "a call "
    return f"{growth}{told}({_interval(ratio, config)})"


def _term(term: tuple[float, str], unit: str) -> str:
    return units.quantity(term[0], unit) + (f"·{term[1]}" if term[1] else "")


def _interval(ratio: Ratio, config: CompareConfig) -> str:
    ends = f"{units.significant(ratio.low)}-{units.significant(ratio.high)}"
    percent = units.significant(100 * config.confidence)
    runs = f"{ratio.runs_base} runs a side" if ratio.runs_base == ratio.runs_head else f"{ratio.runs_base} and {ratio.runs_head} runs"
    return f"{units.ratio(ratio.value)}, {percent} % CI {ends}, {runs}"


def whole(functions: Sequence[FunctionFinding], slower: Sequence[EndToEnd]) -> tuple[Verdict, str]:
    """Return the verdict on the whole comparison with its sentence; `slower` are points whose plain runs are clearly slower."""
    by: dict[Verdict, list[FunctionFinding]] = {verdict: [each for each in functions if each.verdict is verdict] for verdict in Verdict}
    guilty = by[Verdict.REGRESSION]
    if guilty:
        others = f" ({len(guilty) - 1} more)" if len(guilty) > 1 else ""
        return Verdict.REGRESSION, f"Regression: {guilty[0].headline}{others}"
    if slower and not any(each.info.change.is_suspect for each in functions):
        return (
            Verdict.INCONCLUSIVE,
            f"Inconclusive: whole runs at {slower[0].point.label} take {_times(slower[0])}, and no function that ran has changed",
        )
    if slower:
        worst = max(slower, key=lambda each: each.ratio.low if each.ratio else 0.0)
        return (
            Verdict.REGRESSION,
            f"Regression: whole runs at {worst.point.label} take {_times(worst)}; no probed function explains it (not attributed)",
        )
    if by[Verdict.IMPROVEMENT]:
        return Verdict.IMPROVEMENT, f"Improvement: {by[Verdict.IMPROVEMENT][0].headline}"
    if by[Verdict.INCONCLUSIVE]:
        first = by[Verdict.INCONCLUSIVE][0]
        return Verdict.INCONCLUSIVE, f"Inconclusive: {first.headline}"
    return Verdict.UNCHANGED, f"No regression: {_looked_at(functions)}"


def _times(end: EndToEnd) -> str:
    return f"{units.ratio(end.ratio.value)} as long" if end.ratio else "longer"


def _looked_at(functions: Sequence[FunctionFinding]) -> str:
    suspects = sum(each.info.change.is_suspect for each in functions)
    if not suspects:
        return "no function that ran has changed"
    ran = "1 changed function" if suspects == 1 else f"{suspects} changed functions"
    return f"{ran} compared, none makes the program slower"


def clearly_slower(ratio: Ratio | None, config: CompareConfig, floor: float) -> bool:
    """Return whether whole runs are slower beyond what the layout of another binary does by itself."""
    least = 1 + max(config.min_effect, LAYOUT_SHIFT)
    return ratio is not None and ratio.low > least and math.log(ratio.value) > floor


def grown_workload(end: EndToEnd, attribution: Attribution) -> bool:
    """Return whether most of what whole runs take longer is work that the workload itself asks for."""
    return bool(attribution.workload[attribution.points.index(end.point.id)] > (end.head_ns - end.base_ns) / 2)
