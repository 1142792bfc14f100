"""Unchanged functions that wait, for other cores or nodes or for other threads, because of a change elsewhere, and whose change that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perfdiff.analysis.blame.guilt import Blame, Extra
from perfdiff.analysis.blame.links import LinkKind, behind_sharing, is_laid_out_anew
from perfdiff.analysis.counts.memory import waits
from perfdiff.analysis.counts.tallies import works_more
from perfdiff.analysis.findings import CountFinding, Verdict
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.doubt import explained_alone
from perfdiff.analysis.verdicts.verdict import Decision
from perfdiff.models.workcounter import is_bounded
from perfdiff.records.schema import Change, FunctionInfo


def put_down(decisions: dict[int, Decision], cases: Sequence[Case]) -> dict[int, tuple[int, ...]]:
    """Put the waiting of unchanged functions down to the suspects behind it, which become guilty in `decisions`.

    Return the functions that wait, with those suspects.
    """
    found = {}
    for case in cases:
        suspects = () if case.info.change.is_suspect or not case.contended else _likeliest(case)
        for suspect in suspects:
            if decisions[suspect].verdict is not Verdict.REGRESSION:
                reason = f"through it `{case.info.name}` is slower on machines with more cores or nodes: there {waits(case.contended)}"
                decisions[suspect] = Decision(Verdict.REGRESSION, reason, case.contended)
        if suspects:
            found[case.info.id] = suspects
    return found


def acquitted(decisions: Mapping[int, Decision], cases: Sequence[Case]) -> dict[int, Decision]:
    """Return new decisions on those who depend on something that changed and, by counts, do the same work as before, while others do not.

    Unchanged functions below them that take longer at the same work wait: at a barrier, for threads whose own cost grew. And what they
    seem to take longer themselves can be the time of callees that are timed now and then only. Equal counts of lines acquit nobody, for
    a line may do more.
    """
    by_id = {case.info.id: case for case in cases}
    slower = [by_id[function] for function, found in decisions.items() if found.verdict is Verdict.REGRESSION and not found.grown]
    found = {}
    for case in slower:
        shown = _shown(case)
        if case.guilt is None or not may_be_acquitted(case.info, case.counts):
            continue
        others = [each for each in slower if each is not case and any(blame.kind is LinkKind.OWN for blame in _shown(each))]
        if others and all(blame.kind is LinkKind.ANCESTOR and _works_the_same(by_id[blame.at]) for blame in shown):
            at = _names(by_id[each] for each in dict.fromkeys(blame.at for blame in shown))
            reason = (
                f"{at} below it takes longer at the same work, by counts: it waits for threads that are slower because of {_names(others)}"
            )
            found[case.info.id] = Decision(Verdict.UNCHANGED, reason)
        workers = [each for each in others if not is_laid_out_anew(each.info) and (works_more(each.counts) or _makes_calls(each))]
        if workers and all(blame.kind is LinkKind.OWN for blame in shown) and not explained_alone(case, case.guilt):
            reason = (
                f"by counts it does the same work; what it takes longer is the time of what it calls, slower because of {_names(workers)}"
            )
            found[case.info.id] = Decision(Verdict.UNCHANGED, reason)
    return found


def may_be_acquitted(info: FunctionInfo, counts: Mapping[str, CountFinding]) -> bool:
    """Return whether a function only depends on something that changed, and equal counts would tell that it does the same work."""
    return info.change is Change.AFFECTED and is_bounded(counts)


def _names(cases: Iterable[Case]) -> str:
    return ", ".join(f"`{case.info.name}`" for case in cases)


def _shown(case: Case) -> list[Blame]:
    return [blame for blame in case.guilt.blames if blame.total_ns > 0] if case.guilt else []


def _works_the_same(case: Case) -> bool:
    return is_bounded(case.counts) and not any(each.grew for each in case.counts.values())


def _makes_calls(case: Case) -> bool:
    """Return whether a function makes calls that nobody made before: exact counts say that they cost what they do."""
    web = case.attribution.web
    return any(blame.extra is Extra.CALLS and web.new.is_mostly_new(blame.at) for blame in _shown(case))


def held_up(cases: Sequence[Case], waiting: Mapping[int, tuple[int, ...]]) -> dict[int, Decision]:
    """Return the decisions on the functions that wait."""
    names = {case.info.id: case.info.name for case in cases}
    found = {}
    for case in cases:
        if case.info.id in waiting:
            behind = ", ".join(f"`{names[suspect]}`" for suspect in waiting[case.info.id])
            reason = f"its code is unchanged; {waits(case.contended)} because of {behind}"
            found[case.info.id] = Decision(Verdict.REGRESSION, reason, case.contended)
    return found


def _likeliest(case: Case) -> tuple[int, ...]:
    """Return the suspects likeliest behind a function's state: by shared data, else the nearest."""
    links = behind_sharing(case.attribution.web, case.info.id)
    most = max((link.weight for link in links), default=0.0)
    return tuple(link.suspect for link in links if link.weight == most)
