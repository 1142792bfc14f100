"""Unchanged functions that wait, for other cores or nodes or for other threads, because of a change elsewhere, and whose change that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perfdiff.analysis.blame.guilt import Blame, ExtraKind
from perfdiff.analysis.blame.links import LinkKind, behind_sharing, is_laid_out_anew
from perfdiff.analysis.claims import claim
from perfdiff.analysis.counts.memory import waits
from perfdiff.analysis.counts.own_work import works_more
from perfdiff.analysis.findings import CountFinding
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.doubt import explained_alone
from perfdiff.analysis.verdicts.joint import JointDecisions
from perfdiff.analysis.verdicts.rules import Reason
from perfdiff.models.workcounter import is_bounded
from perfdiff.records.schema import Change, FunctionInfo


def behind_waiting(cases: Iterable[Case]) -> dict[int, tuple[int, ...]]:
    """Return the unchanged functions that wait for other cores or nodes, with the suspects likeliest behind that, where there are any."""
    waiting = {case.info.id: _likeliest(case) for case in cases if not case.is_suspect and case.contended}
    return {function: suspects for function, suspects in waiting.items() if suspects}


def keeping_others_waiting(joint: JointDecisions) -> dict[int, Reason]:
    """Return the suspects because of whom unchanged functions wait, and that are not slower by anything else."""
    slower = {case.info.id for case in joint.regressions}
    reasons: dict[int, Reason] = {}
    for function, suspects in joint.waiting.items():
        case = joint.cases[function]
        keeps = claim("keeps-others-waiting", name=case.info.name, waits=waits(case.contended))
        reasons = {suspect: Reason(keeps, case.contended) for suspect in suspects if suspect not in slower} | reasons
    return reasons


def held_up(joint: JointDecisions) -> dict[int, Reason]:
    """Return the unchanged functions that wait because of a suspect, and are not slower by anything else."""
    slower, reasons = {case.info.id for case in joint.regressions}, {}
    for function, suspects in joint.waiting.items():
        if function not in slower:
            contended = joint.cases[function].contended
            held = claim("waits-for-others", waits=waits(contended), names=joint.names(suspects))
            reasons[function] = Reason(held, contended)
    return reasons


def working_the_same(joint: JointDecisions) -> dict[int, Reason]:
    """Return slower functions that depend on something that changed and, by counts, do the same work as before, while others do not.

    Unchanged functions below them that take longer at the same work wait: at a barrier, for threads whose own cost grew. And what they
    seem to take longer themselves can be the time of callees that are timed now and then only. Equal counts of lines acquit nobody, for
    a line may do more.
    """
    slower = [case for case in joint.regressions if not joint.decisions[case.info.id].grown]
    reasons = {}
    for case in slower:
        shown = _extra_cost(case)
        if case.guilt is None or not may_be_acquitted(case.info, case.counts):
            continue
        others = [other for other in slower if other is not case and any(blame.kind is LinkKind.OWN for blame in _extra_cost(other))]
        workers = [
            other.info.id for other in others if not is_laid_out_anew(other.info) and (works_more(other.counts) or _makes_calls(other))
        ]
        if workers and all(blame.kind is LinkKind.OWN for blame in shown) and not explained_alone(case, case.guilt):
            reasons[case.info.id] = Reason(claim("works-the-same", names=joint.names(workers)))
        elif others and all(blame.kind is LinkKind.ANCESTOR and _works_the_same(joint.cases[blame.at]) for blame in shown):
            at, names = joint.names(dict.fromkeys(blame.at for blame in shown)), joint.names(other.info.id for other in others)
            reasons[case.info.id] = Reason(claim("waits-for-threads", at=at, names=names))
    return reasons


def may_be_acquitted(info: FunctionInfo, counts: Mapping[str, CountFinding]) -> bool:
    """Return whether a function only depends on something that changed, and equal counts would tell that it does the same work."""
    return info.change is Change.AFFECTED and is_bounded(counts)


def _extra_cost(case: Case) -> list[Blame]:
    return [blame for blame in case.guilt.blames if blame.total_ns > 0] if case.guilt else []


def _works_the_same(case: Case) -> bool:
    return is_bounded(case.counts) and not any(count.grew for count in case.counts.values())


def _makes_calls(case: Case) -> bool:
    """Return whether a function makes calls that nobody made before: exact counts say that they cost what they do."""
    web = case.attribution.web
    return any(blame.extra is ExtraKind.CALLS and web.new.is_mostly_new(blame.at) for blame in _extra_cost(case))


def _likeliest(case: Case) -> tuple[int, ...]:
    """Return the suspects likeliest behind a function's state: by shared data, else the nearest."""
    links = behind_sharing(case.attribution.web, case.info.id)
    most = max((link.weight for link in links), default=0.0)
    return tuple(link.suspect for link in links if link.weight == most)
