"""What a machine alone may make where base and head were measured one after the other: shifts of all runs, and other speeds now and then.

On a shared machine, one benchmark took half as long in four of ten repetitions, and in nine of ten of the next file, though nothing had
changed. Where a single run of head comes near to what base's take, the same code may do so, and how often it does tells of the machine.
"""

from __future__ import annotations

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.case import Case
from perfdiff.records.arrays import Floats
from perfdiff.records.recorded import RECORDED_APART
from perfdiff.records.schema import ComparedUnit, Experiment, Phase, Side


def drift(experiment: Experiment) -> float:
    """Return by what share times of both sides may differ though nothing changed: 0 but for sides that one machine measured apart.

    Where these are of several sessions, what sessions differ by is in every interval. What named machines recorded has rules of its own.
    """
    if RECORDED_APART not in experiment.notes or experiment.machines or experiment.compared is ComparedUnit.FLEET:
        return 0.0
    timed = [run for run in experiment.runs if run.phase is Phase.TIMED]
    sessions = {side: {run.layout for run in timed if run.side is side} for side in Side}
    if min(map(len, sessions.values())) >= POLICY.layouts_known:
        return 0.0
    ns: dict[tuple[int, Side], list[float]] = {}
    for run in timed:
        ns.setdefault((run.point, run.side), []).append(run.wall_ns)
    shifts = [_shift(np.array(of_one)) for of_one in ns.values()]
    return max(POLICY.drift, float(np.quantile(shifts, 1 - POLICY.drift_beyond, method="higher")))


def _shift(ns: Floats) -> float:
    """Return by what share the slowest stretch of a benchmark's runs (n,) takes longer than the quickest, in their medians."""
    medians = [float(np.median(stretch)) for stretch in np.array_split(ns, min(POLICY.drift_stretches, len(ns)))]
    return max(medians) / min(medians) - 1 if min(medians) > 0 else 0.0


def may_be_drift(case: Case) -> Claim | None:
    """Say that a difference need not be the code's, None where all runs of head show it at some point, and by more than times drift."""
    own = case.study.comparisons.get("self_ns")
    if not case.drift or own is None or own.ratio is None:
        return None
    least, is_slower = 1 + case.drift, own.ratio.value > 1
    is_beyond = own.ratio.low > least if is_slower else own.ratio.high < 1 / least
    if is_beyond and any(_stands_apart(case, point, is_slower=is_slower) for point in case.ledger.points):
        return None
    return claim("may-be-drift" if not is_beyond else "runs-overlap", ratio=own.ratio.figures, drift=case.drift)


def seems_faster(case: Case) -> bool:
    """Return whether head seems to be faster: if that is the machine, it may hide that the code is slower."""
    own = case.study.comparisons.get("self_ns")
    return own is not None and own.ratio is not None and own.ratio.value < 1 / (1 + case.config.min_effect)


def _stands_apart(case: Case, point: int, *, is_slower: bool) -> bool:
    """Return whether every run of head at a point is slower, or faster, than base's are in the median, by more than times drift."""
    column, least = case.ledger.place[case.info.id], 1 + case.drift
    base, head = (book.self_ns[:, column] for book in case.ledger.pair(point))
    usual_ns = float(np.median(base))
    return bool(head.min() > least * usual_ns) if is_slower else bool(least * head.max() < usual_ns)
