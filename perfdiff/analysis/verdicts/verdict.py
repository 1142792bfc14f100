"""The rules that decide on each function by itself, in the order in which they are asked, and what they ask."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from perfdiff.analysis.blame.guilt import Guilt
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.judgement import Direction, hidden
from perfdiff.analysis.compare.shares import ALLOCATION
from perfdiff.analysis.counts.memory import waits
from perfdiff.analysis.findings import PointStanding, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.doubt import doubted, shown_with_probes
from perfdiff.analysis.verdicts.drift import may_be_drift, seems_faster
from perfdiff.analysis.verdicts.proof import proved_by_counts
from perfdiff.analysis.verdicts.rules import Decision, Reason, Rule, decided
from perfdiff.analysis.verdicts.unchanged import UNCHANGED
from perfdiff.analysis.verdicts.witnesses import moved_from_callees, moved_to_caller, unconfirmed
from perfdiff.models.prices import DEAREST_NS
from perfdiff.models.workcounter import is_bounded, work_counters
from perfdiff.records.schema import Change, Side


def _not_timed(case: Case) -> Claim | None:
    is_open = not case.ledger.points and case.is_suspect and not _is_answered_without_calls(case)
    return claim("not-timed") if is_open else None


def _answered_without_calls(case: Case) -> Claim | None:
    """Say what answered without calls; equal counts of lines bound no time, so that what they leave is what whole runs exclude."""
    if case.ledger.points:
        return None
    is_of_lines = work_counters(case.counts) and not is_bounded(case.counts)
    return claim("answered-by-lines" if is_of_lines else "answered-by-counts")


def _is_answered_without_calls(case: Case) -> bool:
    """Return whether the program is as fast as before at all points, and a function counts about as much as before."""
    is_as_fast = all(end.standing is PointStanding.NOT_SLOWER for end in case.ends.values())
    run_ns = sum(end.base_ns for end in case.ends.values())
    return is_as_fast and len(case.run_extra_ns) > 0 and (case.work is None or abs(case.work.total_ns) <= POLICY.material * run_ns)


def _adding(case: Case) -> Guilt | None:
    """Return what a function's change costs, where that counts."""
    return case.guilt if case.guilt is not None and case.attribution.adds(case.guilt, case.effects) else None


def _undisputed(case: Case) -> Guilt | None:
    """Return what a function's change costs, where that counts and nothing speaks against it."""
    guilt = _adding(case)
    return None if guilt is None or any(against(case, guilt) for against in _OBJECTIONS) else guilt


def _loads_little(case: Case) -> Claim | None:
    """Say that what loads a part of the program takes more by too little of any run, None where it does not load, or runs are slower.

    Of other functions a slow-down counts that the program does not feel, as another use may call them more often. A part is loaded once.
    """
    guilt = _undisputed(case) if case.info.loads and not case.runs_are_slower else None
    if guilt is None or any(share >= case.effect(point) for point, share in case.claimed(guilt).items()):
        return None
    return claim("loads-little", extra_ns=float(guilt.ns.max()), share=case.config.min_effect)


def _adds_time(case: Case) -> Claim | None:
    guilt = _undisputed(case)
    if guilt is None:
        return None
    ns, interval = case.attribution.in_a_run(guilt.ns), case.attribution.interval_in_a_run(guilt)
    surely = claim("surely", confidence=case.config.confidence, ns=interval) if interval else None
    if case.attribution.is_by_cpu:
        return claim("adds-cpu-time", ns=ns, surely=surely)
    is_in_first = case.study.first is not None and case.study.first.make_most_of(guilt.total_ns)
    return claim("adds-time-in-first-calls" if is_in_first else "adds-time", ns=ns, surely=surely)


def _allocates_more(case: Case) -> Reason | None:
    metrics = grown_counts(case)
    return Reason(claim("allocates-more", metric=metrics[0]), metrics) if metrics else None


def _saving(case: Case) -> Guilt | None:
    """Return what a function's change saves, where that counts and is seen."""
    guilt = case.guilt
    is_saving = guilt is not None and case.attribution.saves(guilt, case.effects) and _is_seen_to_save(case, guilt)
    return guilt if is_saving else None


def _may_be_drift(case: Case) -> Claim | None:
    differs = _undisputed(case) is not None or _saving(case) is not None or seems_faster(case)
    return may_be_drift(case) if differs else None


def _moved_to_caller(case: Case) -> Claim | None:
    guilt = _saving(case)
    return moved_to_caller(case, guilt) if guilt is not None else None


def _saves_time(case: Case) -> Claim | None:
    guilt = _saving(case)
    return claim("saves-time", ns=-guilt.total_ns) if guilt is not None else None


def _waits(case: Case) -> Reason | None:
    """Say that a changed function waits for others, which no sum over runs shows, as nothing waits on this machine."""
    if not case.is_suspect or not case.contended:
        return None
    return Reason(claim("waits", waits=waits(case.contended)), case.contended)


def _of_what_it_adds(says: Callable[[Case, Guilt], Claim | None]) -> Callable[[Case], Claim | None]:
    """Return the same reason, asked only of a function whose change adds time that counts."""

    def reason(case: Case) -> Claim | None:
        guilt = _adding(case)
        return says(case, guilt) if guilt is not None else None

    return reason


def _work_moved(case: Case) -> Claim | None:
    guilt = case.guilt
    if guilt is None or not case.is_suspect or not _has_moved(guilt, case) or _may_slow_the_run(guilt, case):
        return None
    together = claim("costs-the-same")
    if case.attribution.is_material(np.abs(guilt.ns), case.effects, guilt.gross):
        together = claim("costs-more" if guilt.total_ns >= 0 else "costs-less", ns=abs(guilt.total_ns))
    return claim("work-moved", names=case.attribution.names(guilt.moved), together=together)


def _may_add(case: Case) -> Claim | None:
    guilt = case.guilt
    if guilt is None or not guilt.family or not case.attribution.may_add(guilt, case.effects):
        return None
    return claim("may-add", ns=guilt.total_ns, names=case.attribution.names(sorted(guilt.family)))


def _unevenly_called(case: Case) -> Claim | None:
    """Say that a changed function is slower, and that only fewer calls, whose number varies from run to run, keep runs from showing it."""
    own = case.study.comparisons.get("self_ns")
    if own is None or own.ratio is None or not case.uneven_points:
        return None
    return claim("unevenly-called", ratio=own.ratio.value)


def _too_little_known(case: Case) -> Claim | None:
    """Say what an answer about a changed function's own time would need, None where there is one, or where it cannot matter."""
    if not case.is_suspect or not _matters(case):
        return None
    judgement = case.judgements.get("self_ns")
    if judgement is not None:
        return judgement.open
    both = case.info.change not in (Change.ADDED, Change.REMOVED)
    return claim("recorded-on-one-side") if both and case.study.calls is not None else None


ADDS_TIME = "adds-time"
_OBJECTIONS = (moved_from_callees, doubted, unconfirmed)
RULES: tuple[Rule[Case], ...] = (
    Rule("not-timed", Verdict.INCONCLUSIVE, "changed, no call was timed, and nothing else answers?", _not_timed),
    Rule("answered-without-calls", Verdict.UNCHANGED, "no call was timed, as whole runs and counts answer?", _answered_without_calls),
    Rule("loads-little", Verdict.UNCHANGED, "loads a part of the program once, for little more?", _loads_little),
    Rule("may-be-drift", Verdict.INCONCLUSIVE, "measured one after the other, and may the machine make the difference?", _may_be_drift),
    Rule(ADDS_TIME, Verdict.REGRESSION, "does its change add time that counts, with nothing against it?", _adds_time),
    Rule("allocates-more", Verdict.REGRESSION, "changed, and makes the run allocate more?", _allocates_more),
    Rule("counts-prove", Verdict.REGRESSION, "changed, and do exact counts prove that it takes more?", proved_by_counts),
    Rule("moved-to-caller", Verdict.UNCHANGED, "does its caller take more by what it saves?", _moved_to_caller),
    Rule("saves-time", Verdict.IMPROVEMENT, "does its change save time that counts, and is that seen?", _saves_time),
    Rule("waits", Verdict.REGRESSION, "changed, and waits for other cores or nodes, by counts?", _waits),
    Rule(
        "unevenly-called",
        Verdict.INCONCLUSIVE,
        "changed, slower a call, and hidden by fewer calls of a number that varies?",
        _unevenly_called,
    ),
    Rule("moved-from-callees", Verdict.UNCHANGED, "do its callees take less by what it adds?", _of_what_it_adds(moved_from_callees)),
    Rule("doubted", Verdict.INCONCLUSIVE, "may probes or another layout make what it adds?", _of_what_it_adds(doubted)),
    Rule("unconfirmed", Verdict.INCONCLUSIVE, "does its own time alone show what it adds?", _of_what_it_adds(unconfirmed)),
    Rule("work-moved", Verdict.UNCHANGED, "changed, and do others take less by what it adds?", _work_moved),
    Rule("may-add", Verdict.INCONCLUSIVE, "may its change add time that counts, but for what others vary by?", _may_add),
    Rule("too-little-known", Verdict.INCONCLUSIVE, "changed, and could its own time hide what counts?", _too_little_known),
    *UNCHANGED,
)


def decide(case: Case) -> Decision:
    """Decide on one function by itself; victims of others' changes are told apart afterwards."""
    return decided(RULES, case)


def is_open_alone(case: Case) -> bool:
    """Return whether a changed function is open by what it shows itself, before anybody is blamed: only blame could decide on it."""
    is_decided = grown_counts(case) or proved_by_counts(case) or case.contended
    return bool(case.ledger.points and case.is_suspect and not is_decided and (_may_add(case) or _too_little_known(case)))


def grown_counts(case: Case) -> tuple[str, ...]:
    """Return the counters by which a changed function allocates more, and the run as a whole too."""
    suspect = case.is_suspect
    return tuple(metric for metric in ALLOCATION if suspect and case.direction(metric) is Direction.UP and _grows_the_run(case, metric))


def _grows_the_run(case: Case, metric: str) -> bool:
    """Return whether runs as a whole have materially more of a metric that callers share, and materially much of it is the function's.

    Where runs have less than half of what the function has more, it has moved: a function does now what another one did before. One call
    that allocates once more is no share of a run, however much else others allocate, or how little: what all of it takes at the dearest
    must be a material part of a run's time, too.
    """
    if not any(_may_cost(case, allocation) for allocation in ALLOCATION):
        return False
    ledger = case.ledger
    roots = [function for function in ledger.ids if case.attribution.web.is_root(function)]
    base, head = (sum(float(ledger.of_a_run(metric, side, root).sum()) for root in roots) for side in Side)
    own = [float(ledger.of_a_run(metric, side, case.info.id).sum()) for side in Side]
    if head < own[1]:  # then the callers are not all there
        return True
    more = own[1] - own[0]
    return more >= POLICY.material * base and head - base >= max(more / 2, POLICY.material * base)


def _may_cost(case: Case, metric: str) -> bool:
    """Return whether what a function has more of a metric takes a material part of some run's time at the dearest."""
    ledger, column = case.ledger, case.ledger.place[case.info.id]
    for point in ledger.points:
        base, head = (book.medians.get(metric) for book in ledger.pair(point))
        more = 0.0 if base is None or head is None else float(head[column] - base[column])
        if more * DEAREST_NS[metric] >= POLICY.material * ledger.cost_ns(point):
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
    if any(ends[point].low > 1 + POLICY.most * share and shown_with_probes(point, share, case) for point, share in saved.items()):
        return False
    totals = [case.study.totals[metric] for metric in ("self_ns", "wall_ns") if metric in case.study.totals]
    own = any(case.direction(metric) is Direction.DOWN for metric in ("self_ns", "wall_ns"))
    return own or any(ratio.high < 1 for ratio in (*totals, *ends.values()))


def _has_moved(guilt: Guilt, case: Case) -> bool:
    """Return whether what was set off between functions is a material share of a run, and more than their sums vary by."""
    return case.attribution.is_material(guilt.set_off - guilt.noise, 0.0, np.zeros_like(guilt.ns))


def _may_slow_the_run(guilt: Guilt, case: Case) -> bool:
    """Return whether functions in or out of which work moved seem to take so much more together that a run is slower, but for noise."""
    return bool(guilt.family) and bool(np.any(guilt.ns - guilt.blur >= case.effects * case.attribution.run_ns))


def _matters(case: Case) -> bool:
    """Return whether what the comparison cannot exclude would be material for a run."""
    cost = np.maximum(*(case.ledger.at_points("self_ns", side, case.info.id) for side in Side))
    own = case.study.comparisons.get("self_ns")
    return case.attribution.is_material(cost * (hidden(own, case.config) if own else 1.0), 0.0, np.zeros_like(cost))
