"""The decision on each function and on the whole, and the sentences that say it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff import units
from perfdiff.analysis.attribution import Attribution, Blame, Extra, Guilt, sums_noise
from perfdiff.analysis.comparison import MATERIAL, MEAN, RESOLUTION_NS, Comparison
from perfdiff.analysis.diagnosis import calls_per_call, calls_per_run, times, too_short
from perfdiff.analysis.findings import Cause, CountFinding, EndToEnd, FunctionFinding, MetricFinding, Ratio, Verdict
from perfdiff.analysis.inference import Contrast
from perfdiff.analysis.judgement import LAYOUT_SHIFT, Direction, Judgement, enough_runs
from perfdiff.analysis.ledger import Ledger
from perfdiff.analysis.links import LinkKind
from perfdiff.analysis.memory import Place, contended, waits
from perfdiff.analysis.shift import dominant
from perfdiff.analysis.study import Study
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import CostClass
from perfdiff.records.schema import Change, Floats, FunctionInfo, Side, metric_of

# Probes that cost more than the program itself (tiny functions, called by one another) measure another program: caches, inlining and the
# order of instructions are not the user's.
DISTORTED = 1.0
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
    place: Place
    ends: Mapping[int, EndToEnd]  # by point

    @property
    def info(self) -> FunctionInfo:
        """Return the function."""
        return self.study.info

    @property
    def counts(self) -> Mapping[str, CountFinding]:
        """Return what was counted of it, by counter."""
        return self.place.counts

    @property
    def contended(self) -> tuple[str, ...]:
        """Return the counters that say that its calls wait for other cores or nodes."""
        return contended(self.info.id, self.counts, self.ledger, self.config)

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
        if _is_distorted(case, guilt):
            return Decision(
                Verdict.INCONCLUSIVE, "the probes cost more than the program itself, and whole runs without them are not slower"
            )
        return Decision(Verdict.REGRESSION, f"its change adds {units.duration(guilt.total_ns)} to one run of each workload point")
    heavier = tuple(metric for metric in ALLOCATION if suspect and _direction(case, metric) is Direction.UP)
    if heavier:
        return Decision(Verdict.REGRESSION, f"its time did not clearly grow, but {metric_of(heavier[0]).says} a call did", heavier)
    if guilt is not None and case.attribution.saves(guilt, effect):
        return Decision(Verdict.IMPROVEMENT, f"its change saves {units.duration(-guilt.total_ns)} in one run of each workload point")
    if suspect and case.contended:
        return Decision(
            Verdict.REGRESSION, f"{waits(case.contended)}, which its time does not clearly show on this machine", case.contended
        )
    return _without_effect(case)


def _is_distorted(case: Case, guilt: Guilt) -> bool:
    """Return whether extra time was seen only where probes distort all times, while neither whole plain runs nor counts grew."""
    blocks = case.counts.get("blocks")
    if blocks is not None and blocks.grew and blocks.ratio.low > 1 + case.config.min_effect:
        return False
    material = guilt.ns >= MATERIAL * case.attribution.run_ns
    ends = [case.ends.get(point) for point, counts in zip(case.attribution.points, material, strict=True) if counts]
    return bool(ends) and all(
        end is not None and end.overhead is not None and end.overhead > DISTORTED and (end.ratio is None or end.ratio.low <= 1)
        for end in ends
    )


def _without_effect(case: Case) -> Decision:
    """Decide on a function whose change neither adds nor saves a cost that counts."""
    guilt = case.guilt
    if guilt is not None and guilt.moved and case.info.change.is_suspect:
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
    return _how_little(own.overall, case.config)


def _how_little(seen: Contrast, config: CompareConfig) -> str:
    """Say why a difference is none."""
    low, high = seen.interval(config.confidence)
    if low > math.log1p(config.min_effect) or high < -math.log1p(config.min_effect):
        return "its cost differs by too little of a run to matter, or by no more than layout, probes and the machine make"
    return f"its cost at equal inputs differs by less than {units.significant(100 * config.min_effect)} %, or no more than by chance"


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
    """Return unchanged functions whose own code is clearly and materially slower because of others' changes, with the guilty ones."""
    found: dict[int, tuple[int, ...]] = {}
    for case in cases:
        function = case.info.id
        if case.info.change.is_suspect or _direction(case, "self_ns") is not Direction.UP:
            continue
        blames = [
            blame
            for guilt in case.attribution.guilt.values()
            for blame in guilt.blames
            if blame.at == function and blame.extra is Extra.COST and blame.kind is not LinkKind.CALLS
        ]
        behind = tuple(suspect for suspect in guilty if any(blame.by == suspect and blame.total_ns > 0 for blame in blames))
        if behind and _is_material_in_all(case, np.sum([blame.ns for blame in blames], axis=0)):
            found[function] = behind
    return found


def _is_material_in_all(case: Case, extra: Floats) -> bool:
    """Return whether extra own time is a material share of a run, clear of what the function's time varies by from run to run."""
    own = np.array([part.base[case.ledger.place[case.info.id]] for part in case.attribution.parts])
    clear = extra - sums_noise(frozenset({case.info.id}), case.ledger)
    return case.attribution.is_material(clear, case.config.min_effect, own)


def _names(functions: Sequence[int], attribution: Attribution) -> str:
    return ", ".join(f"`{attribution.web.functions[each].name}`" for each in functions)


def chain(case: Case, metrics: Mapping[int, Mapping[str, MetricFinding]]) -> tuple[str, ...]:
    """Tell the way from a guilty change to where its cost shows; `metrics` are the findings by function and metric."""
    guilt = case.guilt
    if guilt is None:
        return ()
    steps: list[str] = []
    for blame in [blame for blame in guilt.blames if blame.total_ns > 0][:CHAIN_STEPS]:
        steps += _way(blame, case, metrics)
    return tuple(steps)


def _way(blame: Blame, case: Case, metrics: Mapping[int, Mapping[str, MetricFinding]]) -> list[str]:
    """Tell the way to one place where cost shows."""
    web = case.attribution.web
    at = web.functions[blame.at]
    name, shown = f"`{case.info.name}` ({case.info.change})", f"`{at.name}` ({_standing(at)})"
    cost = f"{units.duration(blame.total_ns)} more in all"
    if blame.kind is LinkKind.OWN:
        return [f"{name} itself: {_per_call(metrics.get(at.id, {}), case, at)}, {cost}"]
    place = int(np.argmax(blame.ns))
    if blame.kind is LinkKind.CALLS:
        base, head = calls_per_call(case.info.id, at.id, case.ledger, place)
        return [f"{name} calls {shown} {times(head)} per call, {times(base)} before", f"{shown} and what it calls: {cost}"]
    start = {
        LinkKind.DATA: f"writes {blame.through}",
        LinkKind.INPUTS: "hands larger inputs on",
        LinkKind.CALLEE: "is called by",
        LinkKind.ANCESTOR: "leads to",
    }[blame.kind]
    near = blame.kind in (LinkKind.CALLEE, LinkKind.ANCESTOR)
    if blame.extra is Extra.CALLS and blame.caller is not None:
        caller = web.functions[blame.caller]
        base, head = calls_per_run(at.id, case.attribution, case.ledger, place)
        first = f"{name} {start} `{caller.name}` ({_standing(caller)})" if near else f"{name} {start}"
        return [first, f"`{caller.name}` ({_standing(caller)}) calls {shown} {times(head)} a run, {times(base)} before: {cost}"]
    if blame.extra is Extra.INPUTS:
        return [f"{name} {start}", f"{shown} gets larger inputs: {cost}"]
    if near:
        return [f"{name} {start} {shown}", f"{shown}: {_per_call(metrics.get(at.id, {}), case, at)}"]
    return [f"{name} {start}", f"{shown} reads it: {_per_call(metrics.get(at.id, {}), case, at)}"]


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
    told = found is not None and found.ratio is not None and not too_short(at.id, "self_ns", case.ledger)
    ratio = f" ({units.ratio(found.ratio.value)} at equal inputs)" if told and found and found.ratio else ""
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
    if main is None or main not in metrics or metrics[main].ratio is None:
        return f"{name} {case.info.change}: {decision.reason}{cause}"
    if too_short(case.info.id, main, case.ledger):
        return f"{name} {_in_all(case, main)}{cause}"
    return f"{name} {_sentence(metrics[main], spots.get(main), case.config)}{cause}"


def _in_all(case: Case, metric: str) -> str:
    """Say what all calls of a run take, where a single one is too short for a ratio."""
    place = case.ledger.place[case.info.id]
    found = []
    for point in case.ledger.points:
        sums = [(case.ledger.books[point, side].sums(metric), case.ledger.books[point, side].calls) for side in Side]
        found.append([(float(np.median(ns[:, place])), float(np.median(calls[:, place]))) for ns, calls in sums if ns is not None])
    base, head = max(found, key=lambda sides: abs(sides[1][0] - sides[0][0]))
    before, after = (
        units.duration(ns) if ns >= RESOLUTION_NS * calls else f"less than {units.duration(RESOLUTION_NS * calls)}"
        for ns, calls in (base, head)
    )
    return f"takes {after} in all its {units.count(head[1])} calls of a run, {before} before"


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
    unit = metric_of(found.metric).unit
    ratio = found.ratio
    assert ratio is not None
    growth = _growth(found, unit)
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


def _growth(found: MetricFinding, unit: str) -> str:
    """Tell the cost functions by their leading terms where these are what the classes say, a change of class in any case."""
    if found.base is None or found.head is None:
        return ""
    before, after = (dominant(side, found.feature) for side in (found.base, found.head))
    if before and after and (found.class_changed or before[1] == after[1]) and (before[1] or after[1]):
        return f"cost {_term(before, unit)}, now {_term(after, unit)}: "
    classes = (found.base.cost_class, found.head.cost_class)
    if found.class_changed and found.feature and not {CostClass.MIXTURE, CostClass.PIECEWISE} & set(classes):
        return f"was {classes[0]} in {found.feature}, now {classes[1]}: "
    return ""


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
        return Verdict.REGRESSION, f"Regression: {guilty[0].headline}{_others(len(guilty) - 1)}"
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


def _others(count: int) -> str:
    if not count:
        return ""
    return "; 1 more function is slower" if count == 1 else f"; {count} more functions are slower"


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
