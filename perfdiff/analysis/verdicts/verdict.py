"""The decision on each function by itself, and the reason for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff import units
from perfdiff.analysis.blame.attribution import Attribution, sums_noise
from perfdiff.analysis.blame.guilt import Extra, Guilt
from perfdiff.analysis.blame.links import LinkKind
from perfdiff.analysis.compare.comparison import Comparison
from perfdiff.analysis.compare.judgement import Direction, hidden
from perfdiff.analysis.compare.shares import ALLOCATION
from perfdiff.analysis.counts.memory import waits
from perfdiff.analysis.findings import PointStanding, Verdict
from perfdiff.analysis.policy import CLAIMED, MATERIAL
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.doubt import doubted, shown_with_probes
from perfdiff.analysis.verdicts.proof import proved_by_counts
from perfdiff.analysis.verdicts.witnesses import moved_from_callees, moved_to_caller, unconfirmed
from perfdiff.config import CompareConfig
from perfdiff.models.prices import DEAREST_NS
from perfdiff.models.workcounter import is_bounded, work_counters
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import Change, Floats, Side

_UNEXPLAINED = "slower at equal inputs, but no change explains it: machine, layout or I/O"


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on a function with its reason; `grown` names count metrics that alone make it a regression."""

    verdict: Verdict
    reason: str
    grown: tuple[str, ...] = ()


def decide(case: Case) -> Decision:
    """Decide on one function by itself; victims of others' changes are told apart afterwards."""
    if case.ledger.points:
        return _by_calls(case)
    if case.info.change.is_suspect and not _is_answered_without_calls(case):
        return Decision(Verdict.INCONCLUSIVE, "its calls could not be timed, and whole runs and counts do not answer for it")
    return Decision(Verdict.UNCHANGED, f"its calls were not timed: {_why_not_timed(case)}")


def _is_answered_without_calls(case: Case) -> bool:
    """Return whether the program is as fast as before at all points, and a function counts about as much as before."""
    is_as_fast = all(end.standing is PointStanding.NOT_SLOWER for end in case.ends.values())
    run_ns = sum(end.base_ns for end in case.ends.values())
    return is_as_fast and len(case.run_extra_ns) > 0 and (case.work is None or abs(case.work.total_ns) <= MATERIAL * run_ns)


def _why_not_timed(case: Case) -> str:
    """Say what answered without calls; equal counts of lines bound no time, so that what they leave is what whole runs exclude."""
    if work_counters(case.counts) and not is_bounded(case.counts):
        return "whole runs exclude a slow-down of the program, and functions execute about as many lines as before"
    return "whole runs and exact counts leave no room for a slow-down"


def _by_calls(case: Case) -> Decision:
    guilt, effect = case.guilt, case.config.min_effect
    suspect = case.info.change.is_suspect
    objection = None
    if guilt is not None and case.attribution.adds(guilt, effect):
        objection = _objection(case, guilt)
        if objection is None:
            once = ", most of it in first calls" if case.study.first and case.study.first.make_most_of(guilt.total_ns) else ""
            adds = f"its change adds {units.duration(guilt.total_ns)} to one run of each workload point{once}"
            little = _loads_little(case, guilt)
            return Decision(Verdict.UNCHANGED, little) if little else Decision(Verdict.REGRESSION, adds)
    if metrics := grown_counts(case):
        return Decision(Verdict.REGRESSION, f"its time did not clearly grow, but {metric_of(metrics[0]).says} a call did", metrics)
    if suspect and (proof := proved_by_counts(case)):
        return Decision(Verdict.REGRESSION, proof.reason, proof.counters)
    if guilt is not None and case.attribution.saves(guilt, effect) and _is_seen_to_save(case, guilt):
        return _saving(case, guilt)
    return (_unseen_in_runs(case) if suspect else None) or objection or _without_effect(case)


def _objection(case: Case, guilt: Guilt) -> Decision | None:
    """Decide on a function whose extra time only moved to it, or need not be its change's; None where nothing speaks against it."""
    if moved := moved_from_callees(case, guilt):
        return Decision(Verdict.UNCHANGED, moved)
    doubt = doubted(case, guilt) or unconfirmed(case, guilt)
    return Decision(Verdict.INCONCLUSIVE, doubt) if doubt else None


def _saving(case: Case, guilt: Guilt) -> Decision:
    """Decide on a function that takes less: an improvement, unless its caller takes it instead."""
    if moved := moved_to_caller(case, guilt):
        return Decision(Verdict.UNCHANGED, moved)
    return Decision(Verdict.IMPROVEMENT, f"its change saves {units.duration(-guilt.total_ns)} in one run of each workload point")


def _loads_little(case: Case, guilt: Guilt) -> str:
    """Say that what loads a part of the program takes more by too little of any run, "" where it does not load, or runs are slower.

    Of other functions a slow-down counts that the program does not feel, as another use may call them more often. A part is loaded once.
    """
    if not case.info.loads or case.runs_are_slower or max(case.claimed(guilt).values()) >= case.config.min_effect:
        return ""
    extra, share = units.duration(float(guilt.ns.max())), units.significant(100 * case.config.min_effect)
    return f"loading it takes {extra} more, once in a process, and less than {share} % of any run"


def _unseen_in_runs(case: Case) -> Decision | None:
    """Decide on a changed function whose slow-down no sum over runs shows, as nothing waits on this machine."""
    if case.contended:
        return Decision(
            Verdict.REGRESSION, f"{waits(case.contended)}, which its time does not clearly show on this machine", case.contended
        )
    return None


def is_open_alone(case: Case) -> bool:
    """Return whether a changed function is open by what it shows itself, before anybody is blamed: only blame could decide on it."""
    is_decided = grown_counts(case) or proved_by_counts(case) or case.contended
    return bool(case.ledger.points and case.info.change.is_suspect and not is_decided and _missing(case))


def grown_counts(case: Case) -> tuple[str, ...]:
    """Return what a changed function allocates more, and the run with it."""
    suspect = case.info.change.is_suspect
    return tuple(each for each in ALLOCATION if suspect and case.direction(each) is Direction.UP and _grows_the_run(case, each))


def _grows_the_run(case: Case, metric: str) -> bool:
    """Return whether runs as a whole have materially more of a metric that callers share, and materially much of it is the function's.

    Where runs have less than half of what the function has more, it has moved: a function does now what another one did before. One call
    that allocates once more is no share of a run, however much else others allocate, or how little: what all of it takes at the dearest
    must be a material part of a run's time, too.
    """
    if not any(_may_cost(case, each) for each in ALLOCATION):
        return False
    ledger = case.ledger
    roots = [function for function in ledger.ids if case.attribution.web.is_root(function)]
    base, head = (sum(float(ledger.of_a_run(metric, side, root).sum()) for root in roots) for side in Side)
    own = [float(ledger.of_a_run(metric, side, case.info.id).sum()) for side in Side]
    if head < own[1]:  # then the callers are not all there
        return True
    more = own[1] - own[0]
    return more >= MATERIAL * base and head - base >= max(more / 2, MATERIAL * base)


def _may_cost(case: Case, metric: str) -> bool:
    """Return whether what a function has more of a metric takes a material part of some run's time at the dearest."""
    ledger, column = case.ledger, case.ledger.place[case.info.id]
    for point in ledger.points:
        base, head = (book.medians.get(metric) for book in ledger.pair(point))
        more = 0.0 if base is None or head is None else float(head[column] - base[column])
        if more * DEAREST_NS[metric] >= MATERIAL * ledger.cost_ns(point):
            return True
    return False


def _is_seen_to_save(case: Case, guilt: Guilt) -> bool:
    """Return whether a saving shows in the function's calls, in all of them or in whole runs.

    These must not exclude half of it where probed runs show it, too: what others take more instead speaks against no saving. Runs that end
    by the clock show none, and what is saved is by what they repeat.
    """
    if case.info.change in (Change.ADDED, Change.REMOVED) or case.ledger.clocked:
        return True
    ends = {point: end.ratio for point, end in case.ends.items() if end.ratio is not None}
    saved = {point: share for point, share in case.claimed(guilt).items() if share < 0 and point in ends}
    if any(ends[point].low > 1 + CLAIMED * share and shown_with_probes(point, share, case) for point, share in saved.items()):
        return False
    totals = [case.study.totals[metric] for metric in ("self_ns", "wall_ns") if metric in case.study.totals]
    own = any(case.direction(metric) is Direction.DOWN for metric in ("self_ns", "wall_ns"))
    return own or any(ratio.high < 1 for ratio in (*totals, *ends.values()))


def _without_effect(case: Case) -> Decision:
    """Decide on a function whose change neither adds nor saves a cost that counts."""
    guilt = case.guilt
    if guilt is not None and case.info.change.is_suspect and _has_moved(guilt, case) and not _may_slow_the_run(guilt, case):
        names = _names(guilt.moved, case.attribution)
        return Decision(Verdict.UNCHANGED, f"work moved between it and {names}; together they {_together(case, guilt)}")
    if missing := _missing(case):
        return Decision(Verdict.INCONCLUSIVE, missing)
    return Decision(Verdict.UNCHANGED, _why_unchanged(case))


def _has_moved(guilt: Guilt, case: Case) -> bool:
    """Return whether what was set off between functions is a material share of a run, and more than their sums vary by."""
    return case.attribution.is_material(guilt.set_off - guilt.noise, 0.0, np.zeros_like(guilt.ns))


def _may_slow_the_run(guilt: Guilt, case: Case) -> bool:
    """Return whether functions in or out of which work moved seem to take so much more together that a run is slower, but for noise."""
    return bool(guilt.family) and bool(np.any(guilt.ns - guilt.blur >= case.config.min_effect * case.attribution.run_ns))


def _together(case: Case, guilt: Guilt) -> str:
    """Say what functions cost together between which work moved."""
    if not case.attribution.is_material(np.abs(guilt.ns), case.config.min_effect, guilt.gross):
        return "cost the same"
    less_or_more = "less" if guilt.total_ns < 0 else "more"
    return f"take {units.duration(abs(guilt.total_ns))} {less_or_more} in one run of each workload point, within what runs vary by"


def _matters(case: Case) -> bool:
    """Return whether what the comparison cannot exclude would be material for a run."""
    cost = np.maximum(*(case.ledger.at_points("self_ns", side, case.info.id) for side in Side))
    own = case.study.comparisons.get("self_ns")
    return case.attribution.is_material(cost * (hidden(own, case.config) if own else 1.0), 0.0, np.zeros_like(cost))


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
    if case.direction("self_ns") is Direction.UP:
        return "slower, but too little of a run to matter" if case.info.change.is_suspect else _UNEXPLAINED
    if case.direction("wall_ns") is Direction.UP:
        elsewhere = _taken_over(case) or "what it calls became slower"
        return elsewhere if _differs(own, case.config) else f"its own cost did not grow; {elsewhere}"
    return _how_little(own, case.config)


def _taken_over(case: Case) -> str:
    """Say which calls a function makes now that others made before, or return "" where there are none."""
    moved = np.sum([part.frame.moved for part in case.attribution.parts], axis=0)
    own, ids = moved[:, case.ledger.place[case.info.id]], case.ledger.ids
    if not np.any(own > 0):
        return ""
    callee = int(np.argmax(own))
    givers = [ids[column] for column in np.flatnonzero(moved[callee, :-1] < 0)]
    before = _names(givers, case.attribution) or "code without probes"
    return f"it makes calls of {_names([ids[callee]], case.attribution)} that {before} made before"


def _how_little(own: Comparison, config: CompareConfig) -> str:
    """Say why a difference is none, by the interval that is told beside it."""
    if not own.is_material:
        return f"its own cost is less than {units.significant(100 * MATERIAL)} % of a run: no difference of a call matters"
    least, ratio = 1 + config.min_effect, own.ratio
    if _differs(own, config):
        return "its cost differs by too little of a run to matter, or by no more than layout, probes and the machine make"
    if ratio is not None and 1 / least <= ratio.low and ratio.high <= least:
        return f"its cost at equal inputs differs by less than {units.significant(100 * config.min_effect)} %"
    return "its cost at equal inputs differs by no more than chance makes"


def _differs(own: Comparison, config: CompareConfig) -> bool:
    """Return whether the interval that is told of a cost excludes that it is the same."""
    least, ratio = 1 + config.min_effect, own.ratio
    return ratio is not None and (ratio.low > least or ratio.high < 1 / least)


def _moved_inputs(own: Comparison, config: CompareConfig) -> str:
    """Say how the inputs moved, or return "" where they did not grow."""
    names = ", ".join(feature.name for feature in own.grown) or "its inputs"
    if own.disjoint:
        return f"called with other inputs than in base ({names}): their cost cannot be compared"
    largest = max(own.mix.values(), default=1.0)
    if largest > 1 + config.min_effect:
        return f"called with larger inputs ({names}; expected cost {units.ratio(largest)}); its cost per input did not change"
    return ""


def victims(cases: Sequence[Case], guilty: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return unchanged functions whose own code is clearly and materially slower because of others' changes, with the guilty ones."""
    found: dict[int, tuple[int, ...]] = {}
    for case in cases:
        function = case.info.id
        if case.info.change.is_suspect or case.direction("self_ns") is not Direction.UP:
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
    (noise,) = sums_noise([frozenset({case.info.id})], case.ledger)
    clear = extra - noise
    return case.attribution.is_material(clear, case.config.min_effect, own)


def _names(functions: Sequence[int], attribution: Attribution) -> str:
    return ", ".join(f"`{attribution.web.functions[each].name}`" for each in functions)
