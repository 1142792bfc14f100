"""The verdicts on all functions together: which are guilty, which others they make slower, and their order in reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.policy import OWNED
from perfdiff.analysis.sums.calls import reached
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.conclusion import Evidence
from perfdiff.analysis.verdicts.contention import acquitted, held_up, put_down
from perfdiff.analysis.verdicts.elimination import eliminated
from perfdiff.analysis.verdicts.locking import with_locks
from perfdiff.analysis.verdicts.verdict import Decision, decide, grown_counts, victims
from perfdiff.records.schema import Side


@dataclass(frozen=True, slots=True)
class Ruling:
    """The decision on each function, the guilty ones, and the `order` in which all that is slower is told.

    `harmed` names the guilty ones behind a function's own cost, `waiting` those behind the lines it fetches from other threads.
    """

    decisions: Mapping[int, Decision]
    guilty: frozenset[int]
    order: tuple[int, ...]
    harmed: Mapping[int, tuple[int, ...]]
    waiting: Mapping[int, tuple[int, ...]]

    def rank(self, function: int) -> int | None:
        """Return the place of a function among those that are slower, from 1 on."""
        return self.order.index(function) + 1 if function in self.order else None

    def extra(self, case: Case) -> tuple[float, tuple[float, float] | None]:
        """Return what a function's change adds to one run of each point, ns, with its interval where the function is guilty by time."""
        function, guilt = case.info.id, case.guilt
        extra = guilt.total_ns if guilt is not None and function not in self.harmed else 0.0
        if function not in self.guilty:
            return extra, None
        if self.decisions[function].grown:
            return max(extra, case.work.total_ns) if case.work is not None else extra, None
        return extra, guilt.interval.total if guilt is not None and guilt.interval else None


def rule(cases: Sequence[Case], evidence: Evidence) -> Ruling:
    """Decide on each function, then on all together: guilty ones by rank, and behind them those that they make slower.

    Where `evidence` on the whole program says that it is slower and nobody is guilty, it is who all else speaks for.
    """
    decisions = _deepest({case.info.id: decide(case) for case in cases}, cases)
    decisions |= acquitted(decisions, cases)
    waiting = put_down(decisions, cases)
    guilty = [function for function, decision in decisions.items() if decision.verdict is Verdict.REGRESSION]
    by_time = [each for each in guilty if not decisions[each].grown]
    order = cases[0].attribution.ranked(by_time) if cases else []
    counted = {case.info.id: case.work.total_ns if case.work else 0.0 for case in cases}
    order += sorted((each for each in guilty if each not in order), key=lambda each: -counted[each])
    if not guilty:
        found = eliminated(cases, evidence)
        decisions |= found
        guilty, order = [*found], [*found]
    harmed = victims(cases, by_time)
    for function, behind in harmed.items():
        names = ", ".join(f"`{case.info.name}`" for case in cases if case.info.id in behind)
        decisions[function] = Decision(Verdict.REGRESSION, f"its code is unchanged; it is slower because of {names}")
        order.append(function)
    for function, decision in held_up(cases, waiting).items():
        if decisions[function].verdict is not Verdict.REGRESSION:
            decisions[function] = decision
            order.append(function)
    return Ruling(with_locks(decisions, cases), frozenset(guilty), tuple(order), harmed, waiting)


def _deepest(decisions: dict[int, Decision], cases: Sequence[Case]) -> dict[int, Decision]:
    """Leave more allocation with the innermost suspects that make most of it: what a callee allocates is counted in its callers as well.

    Those count whatever they are guilty by. Who calls its caller again is none of them, as both hold all that either allocates.
    """
    heavy = {case.info.id: metrics for case in cases if (metrics := grown_counts(case))}
    by_id = {case.info.id: case for case in cases}
    for function, metrics in heavy.items():
        if metrics != decisions[function].grown:
            continue
        callees = by_id[function].attribution.web.callees
        below = {each: reached(callees, each) for each in reached(callees, function) & heavy.keys()}
        below = {each: further for each, further in below.items() if function not in further}
        nested = set().union(*below.values())
        outermost = {metric: sum(_extra(by_id[each], metric) for each in below.keys() - nested) for metric in metrics}
        if below and all(more >= OWNED * _extra(by_id[function], metric) for metric, more in outermost.items()):
            decisions[function] = Decision(Verdict.UNCHANGED, "it allocates more only through what it calls")
    return decisions


def _extra(case: Case, metric: str) -> float:
    """Return what one run of each point has more of a metric in a function's calls."""
    base, head = (float(case.ledger.of_a_run(metric, side, case.info.id).sum()) for side in Side)
    return head - base
