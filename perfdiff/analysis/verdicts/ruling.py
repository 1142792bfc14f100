"""The verdicts on all functions together: which are guilty, which others they make slower, and their order in reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.blame.attribution import sums_noise
from perfdiff.analysis.blame.guilt import ExtraKind
from perfdiff.analysis.blame.links import LinkKind
from perfdiff.analysis.claims import claim
from perfdiff.analysis.compare.judgement import Direction
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.calls import reached
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.contention import behind_waiting, held_up, keeping_others_waiting, working_the_same
from perfdiff.analysis.verdicts.elimination import by_lines, by_most_work, by_slower_calls
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.joint import JointDecisions, JointRule
from perfdiff.analysis.verdicts.locking import with_locks
from perfdiff.analysis.verdicts.rules import Decision, Reason
from perfdiff.analysis.verdicts.verdict import ADDS_TIME, decide, grown_counts
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Side
from perfdiff.records.testfiles import sources_first


@dataclass(frozen=True, slots=True)
class Ruling:
    """The decision on each function, the guilty ones, and the `order` in which all that is slower is told.

    `waiting` names the suspects behind the lines that a function fetches from other threads.
    """

    decisions: Mapping[int, Decision]
    guilty: frozenset[int]
    order: tuple[int, ...]
    waiting: Mapping[int, tuple[int, ...]]

    def rank(self, function: int) -> int | None:
        """Return the place of a function among those that are slower, from 1 on."""
        return self.order.index(function) + 1 if function in self.order else None

    def extra(self, case: Case) -> tuple[float, tuple[float, float] | None]:
        """Return what a function's change adds to one run of each point, ns, with its interval where the function is guilty by time."""
        function, guilt = case.info.id, case.guilt
        extra = guilt.total_ns if guilt is not None and self.decisions[function].rule != _THROUGH_OTHERS else 0.0
        if function not in self.guilty:
            return extra, None
        if self.decisions[function].grown:
            return max(extra, case.work.total_ns) if case.work is not None else extra, None
        return extra, guilt.interval.total if guilt is not None and guilt.interval else None


def _allocating_below(joint: JointDecisions) -> dict[int, Reason]:
    """Return the functions whose callees make most of what they allocate more: that is theirs, counted in their callers as well.

    These count whatever they are guilty by. Who calls its caller again is none of them, as both hold all that either allocates.
    """
    heavy = {function: metrics for function, case in joint.cases.items() if (metrics := grown_counts(case))}
    return {
        function: Reason(claim("allocates-below"))
        for function, metrics in heavy.items()
        if metrics == joint.decisions[function].grown and _is_allocated_below(function, metrics, heavy.keys(), joint.cases)
    }


def _is_allocated_below(function: int, metrics: Sequence[str], heavy: Set[int], cases: Mapping[int, Case]) -> bool:
    """Return whether the outermost of the functions that allocate more, below a function, make most of what it has more of each metric."""
    callees = cases[function].attribution.web.callees
    below = {callee: reached(callees, callee) for callee in reached(callees, function) & heavy}
    below = {callee: further for callee, further in below.items() if function not in further}
    outermost = below.keys() - set().union(*below.values())
    return bool(below) and all(
        sum(_extra(cases[callee], metric) for callee in outermost) >= POLICY.most * _extra(cases[function], metric) for metric in metrics
    )


def _extra(case: Case, metric: str) -> float:
    """Return what one run of each point has more of a metric in a function's calls."""
    base, head = (float(case.ledger.of_a_run(metric, side, case.info.id).sum()) for side in Side)
    return head - base


def _victims(joint: JointDecisions) -> dict[int, tuple[int, ...]]:
    """Return unchanged functions whose own code is clearly and materially slower because of others' changes, with the guilty ones."""
    victims: dict[int, tuple[int, ...]] = {}
    guilty = [case.info.id for case in joint.by_rule(ADDS_TIME)]
    for function, case in joint.cases.items():
        if case.info.change.is_suspect or case.direction("self_ns") is not Direction.UP:
            continue
        blames = [
            blame
            for guilt in case.attribution.guilt.values()
            for blame in guilt.blames
            if blame.at == function and blame.extra is ExtraKind.COST and blame.kind is not LinkKind.CALLS
        ]
        behind = tuple(suspect for suspect in guilty if any(blame.by == suspect and blame.total_ns > 0 for blame in blames))
        if behind and _is_material_in_all(case, np.sum([blame.ns for blame in blames], axis=0)):
            victims[function] = behind
    return victims


def _is_material_in_all(case: Case, extra: Floats) -> bool:
    """Return whether extra own time is a material share of a run, clear of what the function's time varies by from run to run."""
    own = np.array([part.base[case.ledger.place[case.info.id]] for part in case.attribution.parts])
    (noise,) = sums_noise([frozenset({case.info.id})], case.ledger)
    return case.attribution.is_material(extra - noise, case.effects, own)


def _slower_through_others(joint: JointDecisions) -> dict[int, Reason]:
    victims = _victims(joint).items()
    return {victim: Reason(claim("slower-through", names=joint.names(behind))) for victim, behind in victims}


_THROUGH_OTHERS = "slower-through-others"
JOINT_RULES = (
    JointRule("allocates-below", Verdict.UNCHANGED, "do callees make most of what it allocates more?", _allocating_below),
    JointRule("works-the-same", Verdict.UNCHANGED, "does it work the same, and wait for others or for callees?", working_the_same),
    JointRule("keeps-others-waiting", Verdict.REGRESSION, "do unchanged functions wait because of it?", keeping_others_waiting),
    JointRule("most-work", Verdict.REGRESSION, "runs slower, nobody guilty: has it most of the new work?", by_most_work),
    JointRule("only-one-slower", Verdict.REGRESSION, "runs slower, nobody guilty: is it alone slower?", by_slower_calls),
    JointRule("only-lines-grown", Verdict.REGRESSION, "runs slower, nobody guilty: do its lines alone run more often?", by_lines),
    JointRule(_THROUGH_OTHERS, Verdict.REGRESSION, "unchanged, and slower by a change elsewhere?", _slower_through_others),
    JointRule("waits-for-others", Verdict.REGRESSION, "unchanged, and waits because of a change elsewhere?", held_up),
)
_BEHIND = (_THROUGH_OTHERS, "waits-for-others")  # whom these decide on is slower, and others are guilty of it


def rule(cases: Sequence[Case], evidence: Evidence) -> Ruling:
    """Decide on each function by itself, then on all together, and order those that are slower: guilty ones, then those behind others.

    Of guilty ones those of tests come behind those of sources, which a project is made for. Where `evidence` on the whole program says that
    it is slower and nobody is guilty, it is who all else speaks for.
    """
    decisions = {case.info.id: decide(case) for case in cases}
    joint = JointDecisions({case.info.id: case for case in cases}, decisions, evidence, behind_waiting(cases))
    for joint_rule in JOINT_RULES:
        joint = joint_rule.applied(joint)
    slower = {case.info.id: joint.decisions[case.info.id] for case in joint.regressions}
    guilty = [function for function, decision in slower.items() if decision.rule not in _BEHIND]
    behind = sorted(slower.keys() - {*guilty}, key=lambda function: (_BEHIND.index(slower[function].rule), [*slower].index(function)))
    by_time = [function for function in guilty if slower[function].rule == ADDS_TIME]
    order = cases[0].attribution.ranked(by_time) if cases else []
    counted = {case.info.id: case.work.total_ns if case.work else 0.0 for case in cases}
    order += sorted((function for function in guilty if function not in order), key=lambda function: -counted[function])
    order = sources_first(order, lambda function: joint.cases[function].info.file)
    return Ruling(with_locks(joint.decisions, cases), frozenset(guilty), (*order, *behind), joint.waiting)
