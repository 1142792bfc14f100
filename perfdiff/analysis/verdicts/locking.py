"""Locks that a change holds or waits for longer: told beside the time, which shows it only where threads happen to meet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from perfdiff import units
from perfdiff.analysis.compare.judgement import Direction
from perfdiff.analysis.findings import FunctionFinding, Verdict
from perfdiff.analysis.sums.calls import reached
from perfdiff.analysis.sums.rates import grew, per_call
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.rules import Decision
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import Note

_NAMED = 3  # functions that wait, in a sentence
_LONGER = {"lock_hold_ns": "holds locks", "lock_wait_ns": "waits for locks"}


def with_locks(decisions: Mapping[int, Decision], cases: Sequence[Case]) -> dict[int, Decision]:
    """Add to the reasons of what is no regression which locks are held or waited for longer. No verdict rests on locks alone."""
    found = dict(decisions)
    for case in _holders(cases):
        before = decisions[case.info.id]
        if before.verdict in (Verdict.INCONCLUSIVE, Verdict.UNCHANGED):
            reason = f"it {_says(case)}; threads that wait for each other there are slower the more they meet. Its time: {before.reason}"
            found[case.info.id] = replace(before, reason=reason)
        for waiting in _waiting(case, cases):
            if (theirs := found[waiting.info.id]).verdict in (Verdict.INCONCLUSIVE, Verdict.UNCHANGED):
                found[waiting.info.id] = replace(
                    theirs, reason=f"{theirs.reason}; it waits for locks, and `{case.info.name}` {_says(case)}"
                )
    return found


def lock_notes(cases: Sequence[Case], functions: Sequence[FunctionFinding]) -> Iterator[Note]:
    """Yield a note on each changed function that holds or waits for locks longer and is no regression by its time, with who waits."""
    guilty = {each.info.id for each in functions if each.verdict is Verdict.REGRESSION}
    for case in _holders(cases):
        if case.info.id not in guilty:
            waiting = "".join(f"; `{each.info.name}` waits {_waits(each)}" for each in _waiting(case, cases)[:_NAMED])
            text = f"`{case.info.name}` {_says(case)}{waiting}: threads are slower where they meet more often than in these runs"
            yield Note("locks-held-longer", text)


def _holders(cases: Sequence[Case]) -> list[Case]:
    """Return the changed functions that hold or wait for locks longer beyond doubt, without those that do so through another one."""
    longer = [case for case in cases if case.info.change.is_suspect and _longer(case)]
    found = {case.info.id for case in longer}
    through = {caller for case in longer for caller in _above(case)}
    return [case for case in longer if case.info.id in found - through]


def _longer(case: Case) -> str:
    """Return the metric of locks that clearly grew, "" where none did."""
    return next((each for each in _LONGER if case.direction(each) is Direction.UP), "")


def _above(case: Case) -> set[int]:
    return reached(case.attribution.web.callers, case.info.id)


def _waiting(holder: Case, cases: Sequence[Case]) -> list[Case]:
    """Return the unchanged functions that lead to a holder and wait for locks longer than before."""
    above = _above(holder)
    return [
        case
        for case in cases
        if case.info.id in above and not case.info.change.is_suspect and grew(case.info.id, "lock_wait_ns", case.ledger)
    ]


def _says(case: Case) -> str:
    metric = _longer(case)
    comparison = case.study.comparisons[metric]
    assert comparison.worst is not None
    ratio, typical = math.exp(comparison.worst.contrast.effect), comparison.typical
    figures = f", {units.duration(typical.cost)} → {units.duration(typical.cost * ratio)} a call" if typical else ""
    return f"{_LONGER[metric]} {units.ratio(ratio)} as long as before{figures}"


def _waits(case: Case) -> str:
    base, head = (units.quantity(value, metric_of("lock_wait_ns").unit) for value in per_call(case.info.id, "lock_wait_ns", case.ledger))
    return f"{base} → {head} a call for locks"
