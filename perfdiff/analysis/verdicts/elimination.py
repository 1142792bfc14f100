"""The guilty function by elimination: the only candidate if whole runs are slower and no function stands out.

Whole runs have judged *whether*; what is left is *where*, and a witness of that need not prove it alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from perfdiff.analysis.claims import claim
from perfdiff.analysis.counts.suspects import ExtraWork
from perfdiff.analysis.findings import EndToEnd
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.joint import JointDecisions
from perfdiff.analysis.verdicts.rules import Reason
from perfdiff.analysis.verdicts.witnesses import moved_from_callees
from perfdiff.models.prices import DEAREST_NS
from perfdiff.models.workcounter import is_bounded, work_counters
from perfdiff.records.schema import Side


def _candidates(joint: JointDecisions) -> dict[int, Case]:
    """Return the changed functions that may make whole runs slower, none where these are not, or where somebody is guilty already.

    What takes longer because its callees take less makes nobody's runs slower.
    """
    if not joint.evidence.runs.slower or joint.regressions:
        return {}
    return {function: case for function, case in joint.cases.items() if case.info.change.is_suspect and not _has_moved(case)}


def by_most_work(joint: JointDecisions) -> dict[int, Reason]:
    """Return the function that by exact counts executes most of what changed functions execute more, where that makes runs slower.

    It does if that is certainly a material part of a run at a point where runs are slower, or could explain a telling part of the slow-down
    there; where lines are counted, which others may make do more, that part must be certain, and no other way of writing the same. What
    only could explain it does not stand against slower calls of other changed functions.
    """
    candidates, evidence = _candidates(joint), joint.evidence
    if not candidates or not evidence.suspects:
        return {}
    work, total_ns = evidence.suspects[0], sum(suspect.total_ns for suspect in evidence.suspects)
    sees_all = all(is_bounded(case.counts) for case in candidates.values() if work_counters(case.counts))
    slower = [function for function, case in candidates.items() if _is_slower(case)]
    is_most = work.function in candidates and work.repeats and work.total_ns >= POLICY.most_work * total_ns
    is_told_otherwise = slower and work.function not in slower and not _is_certain(work, evidence)
    if not is_most or is_told_otherwise or not _is_enough(work, evidence, sees_all):
        return {}
    return {work.function: Reason(claim("most-work", work=work.says, share=work.total_ns / total_ns), work.grown)}


def by_slower_calls(joint: JointDecisions) -> dict[int, Reason]:
    """Return the only changed function whose own calls are slower beyond chance, by however little, where whole runs are slower."""
    slower = [function for function, case in _candidates(joint).items() if _is_slower(case)]
    return {slower[0]: Reason(claim("only-one-slower"))} if len(slower) == 1 else {}


def by_lines(joint: JointDecisions) -> dict[int, Reason]:
    """Return the only changed function whose lines run so much more often that this can explain slower whole runs."""
    candidates = list(_candidates(joint).values())
    grown = _grown(candidates, joint.evidence) if not any(map(_is_slower, candidates)) else None
    if grown is None:
        return {}
    return {grown.info.id: Reason(claim("only-lines-grown"), ("blocks",))}


def _is_enough(work: ExtraWork, evidence: Evidence, sees_all: bool) -> bool:
    """Return whether extra work is a material part of a run where runs are slower, or could explain a telling part of the difference.

    Unless counts see all work, it must certainly explain such a part.
    """
    telling = [(least, most, POLICY.telling * (end.head_ns - end.base_ns)) for end, least, most in _where_slower(work, evidence)]
    if sees_all:
        return _is_certain(work, evidence) or any(most >= ns > 0 for _, most, ns in telling)
    return bool(work.beyond_rewriting) and any(least >= ns > 0 for least, _, ns in telling)


def _is_certain(work: ExtraWork, evidence: Evidence) -> bool:
    """Return whether extra work is a material part of a run where runs are slower, at the least that it can take."""
    return any(least >= POLICY.material * end.base_ns for end, least, _ in _where_slower(work, evidence))


def _where_slower(work: ExtraWork, evidence: Evidence) -> Iterator[tuple[EndToEnd, float, float]]:
    """Yield the points at which runs are slower, with what extra work takes there at least and at most."""
    slower = {end.point.id: end for end in evidence.runs.slower}
    for point, least, most in zip(work.points, work.priced_ns.tolist(), work.dearest_ns.tolist(), strict=True):
        if point in slower:
            yield slower[point], least, most


def _grown(suspects: Sequence[Case], evidence: Evidence) -> Case | None:
    """Return the only suspect whose lines explain slower runs: at each such point where lines were counted, its blocks

    - are more than another way of writing the same executes, and new to the run, not moved from elsewhere;
    - could take a telling part of the difference, as compiled code; of an interpreter that is about the least that they take, and more is
      not believed, for the lines of another suspect may each do more;
    - make up most of what all suspects execute more.
    """
    lines, slower = evidence.lines, {end.point.id: end for end in evidence.runs.slower}
    if lines is None or not suspects:
        return None
    points = [(column, slower[point.id]) for column, point in enumerate(lines.experiment.points) if point.id in slower]
    columns = [column for column, _ in points]
    slower_ns = np.array([end.head_ns - end.base_ns for _, end in points])
    base, head = (np.array([lines.blocks_of(lines.of([case.info]), side)[columns] for case in suspects]) for side in Side)
    of_run = (lines.blocks_of_run(Side.HEAD) - lines.blocks_of_run(Side.BASE))[columns]
    extra, all_extra = head - base, np.maximum(head - base, 0.0).sum(axis=0)
    explains = (
        (head > POLICY.rewritten["blocks"] * base)
        & (of_run >= POLICY.most * extra)
        & (extra * DEAREST_NS["blocks"] >= POLICY.telling * slower_ns)
    )
    explaining = np.flatnonzero(np.logical_and.reduce(explains & (slower_ns > 0) & (extra >= POLICY.most_work * all_extra), axis=1))
    return suspects[int(explaining[0])] if points and len(explaining) else None  # no two make up most


def _has_moved(case: Case) -> bool:
    """Return whether a function's own time grew by what its callees take less: then nobody's runs are slower because of it."""
    return case.guilt is not None and bool(moved_from_callees(case, case.guilt))


def _is_slower(case: Case) -> bool:
    own = case.study.comparisons.get("self_ns")
    worst = own.worst if own is not None else None
    if own is None or worst is None or not worst.material:
        return False
    if min(worst.contrast.runs_base, worst.contrast.runs_head) < POLICY.locating_runs:
        return False
    return worst.contrast.interval(case.config.confidence, own.tested)[0] > 0
