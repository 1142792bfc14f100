"""Whether threads and processes ran at the same time as they would on a quiet machine: what could not happen was not excluded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.counts.work import WorkDifference
from perfdiff.analysis.findings import EndToEnd, Rung, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.analysis.verdicts.waiting import has_several
from perfdiff.analysis.witnessed import PointBehaviour
from perfdiff.records.behaviour import Concurrency
from perfdiff.records.schema import Phase, Run, Side
from perfdiff.statistics.sides import comparable


def average(runs: Sequence[Run]) -> Concurrency | None:
    """Return how much of an average run was done at the same time.

    None where nobody looked, or where most runs took turns on one CPU with the other side's, as only those of a single task do.
    """
    judged = comparable(runs)
    seen = [run.concurrency for run in judged if run.concurrency is not None]
    if not seen or all(run.together for run in judged):
        return None
    return Concurrency(*(float(np.mean([getattr(concurrency, of) for concurrency in seen])) for of in ("several", "wanted", "ran")))


def is_met(concurrency: Concurrency) -> bool:
    """Return whether tasks ran at the same time about as much as they would have on a quiet machine."""
    return concurrency.ran >= POLICY.met * concurrency.wanted


def apart_in_time(witnessed: Sequence[PointBehaviour]) -> tuple[PointBehaviour, ...]:
    """Return the points where several tasks could have worked at the same time, and other work on the machine kept them from it."""
    return tuple(behaviour for behaviour in witnessed if any(_kept_apart(side.concurrency) for side in (behaviour.base, behaviour.head)))


def allowed(conclusion: Conclusion, apart: Sequence[PointBehaviour], work: WorkDifference | None, runs: Sequence[Run]) -> Conclusion:
    """Return a conclusion that says no more than could be seen: what tasks do to each other shows only where they meet.

    Exact counts of what they take from each other answer where counted runs met.
    """
    if conclusion.verdict is not Verdict.UNCHANGED or conclusion.rung is Rung.CODE or not apart:
        return conclusion
    if work is not None and work.adds_nothing and _have_met(runs, {behaviour.point.id for behaviour in apart}):
        return conclusion
    return conclusion.opened(_hardly_met(apart))


def of_fewer_tasks(conclusion: Conclusion, witnessed: Sequence[PointBehaviour], ends: Sequence[EndToEnd]) -> Conclusion:
    """Return a conclusion that calls no head faster which works on fewer tasks at a time than base, whose tasks other work kept apart.

    Where base's would have met, by the clock it takes its CPU time by as many CPUs as its tasks want. Times by the clock tell nothing
    here: what threads and children wait for a CPU is in them.
    """
    if conclusion.verdict is not Verdict.IMPROVEMENT:
        return conclusion
    behaviour_by_point = {behaviour.point.id: behaviour for behaviour in witnessed}
    for end in ends:
        behaviour = behaviour_by_point.get(end.point.id)
        if behaviour is None or end.ratio is None or behaviour.base.concurrency is None or not _kept_apart(behaviour.base.concurrency):
            continue
        base_tasks = behaviour.base.concurrency.wanted
        head_tasks = behaviour.head.concurrency.wanted if behaviour.head.concurrency else 1.0
        may_take_longer = end.by != "cpu_ns" or end.ratio.high * base_tasks >= head_tasks
        if may_take_longer and head_tasks < POLICY.met * base_tasks:
            return conclusion.opened(claim("fewer-tasks", point=end.point.label, base=base_tasks, head=head_tasks))
    return conclusion


def apart_note(apart: Sequence[PointBehaviour]) -> Iterator[Claim]:
    """Yield a note on points where tasks hardly met."""
    if apart:
        yield claim("tasks-hardly-met", hardly_met=_hardly_met(apart))


def _kept_apart(concurrency: Concurrency | None) -> bool:
    return concurrency is not None and has_several(concurrency) and not is_met(concurrency)


def _hardly_met(apart: Sequence[PointBehaviour]) -> Claim:
    sides = (side.concurrency for behaviour in apart for side in (behaviour.base, behaviour.head))
    worst = max(
        (concurrency for concurrency in sides if concurrency is not None and _kept_apart(concurrency)),
        key=lambda concurrency: concurrency.wanted - concurrency.ran,
    )
    return claim("tasks-apart", points=tuple(behaviour.point.label for behaviour in apart), ran=worst.ran, wanted=worst.wanted)


def _have_met(runs: Sequence[Run], points: set[int]) -> bool:
    """Return whether counted runs of some points show what threads take from each other: on both sides they ran at the same time."""
    counted = [run for run in runs if run.phase is Phase.COUNTED and run.point in points]
    seen = {(run.point, run.side) for run in counted if run.concurrency is not None and is_met(run.concurrency)}
    return all((point, side) in seen for point in points for side in Side)
