"""Locks that a change holds or waits for longer: told beside the time, which shows it only where threads happen to meet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.judgement import Direction
from perfdiff.analysis.findings import FunctionFinding, Verdict
from perfdiff.analysis.sums.calls import reached
from perfdiff.analysis.sums.rates import grew, per_call
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.rules import Decision

_OF_LOCKS = ("lock_hold_ns", "lock_wait_ns")


def with_locks(decisions: Mapping[int, Decision], cases: Sequence[Case]) -> dict[int, Decision]:
    """Add to the reasons of what is no regression which locks are held or waited for longer. No verdict rests on locks alone."""
    amended = dict(decisions)
    for case in _holders(cases):
        before = decisions[case.info.id]
        if before.verdict in (Verdict.INCONCLUSIVE, Verdict.UNCHANGED):
            amended[case.info.id] = replace(before, reason=claim("locks-longer", longer=_longer(case), time=before.reason))
        for waiting in _waiting(case, cases):
            if (theirs := amended[waiting.info.id]).verdict in (Verdict.INCONCLUSIVE, Verdict.UNCHANGED):
                reason = claim("waits-for-locks", time=theirs.reason, name=case.info.name, longer=_longer(case))
                amended[waiting.info.id] = replace(theirs, reason=reason)
    return amended


def lock_notes(cases: Sequence[Case], functions: Sequence[FunctionFinding]) -> Iterator[Claim]:
    """Yield a note on each changed function that holds or waits for locks longer and is no regression by its time, with who waits."""
    guilty = {finding.info.id for finding in functions if finding.verdict is Verdict.REGRESSION}
    for case in _holders(cases):
        if case.info.id not in guilty:
            waiting = tuple(map(_waits, _waiting(case, cases)))
            yield claim("locks-held-longer", name=case.info.name, longer=_longer(case), waiting=waiting)


def _holders(cases: Sequence[Case]) -> list[Case]:
    """Return the changed functions that hold or wait for locks longer beyond doubt, without those that do so through another one."""
    longer = [case for case in cases if case.is_suspect and _grown(case)]
    ids = {case.info.id for case in longer}
    through = {caller for case in longer for caller in _above(case)}
    return [case for case in longer if case.info.id in ids - through]


def _grown(case: Case) -> str:
    """Return the metric of locks that clearly grew, "" where none did."""
    return next((metric for metric in _OF_LOCKS if case.direction(metric) is Direction.UP), "")


def _above(case: Case) -> set[int]:
    return reached(case.attribution.web.callers, case.info.id)


def _waiting(holder: Case, cases: Sequence[Case]) -> list[Case]:
    """Return the unchanged functions that lead to a holder and wait for locks longer than before."""
    above = _above(holder)
    return [case for case in cases if case.info.id in above and not case.is_suspect and grew(case.info.id, "lock_wait_ns", case.ledger)]


def _longer(case: Case) -> Claim:
    metric = _grown(case)
    comparison = case.study.comparisons[metric]
    assert comparison.worst is not None
    ratio, typical = math.exp(comparison.worst.contrast.effect), comparison.typical
    return claim("longer", metric=metric, ratio=ratio, base_ns=typical.cost if typical else None)


def _waits(case: Case) -> Claim:
    base, head = per_call(case.info.id, "lock_wait_ns", case.ledger)
    return claim("waits-longer", name=case.info.name, base_ns=base, head_ns=head)
