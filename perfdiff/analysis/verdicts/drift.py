"""What a machine alone may make where base and head were measured one after the other: shifts of all runs, and other speeds now and then.

On a shared machine, one benchmark took half as long in four of ten repetitions, and in nine of ten of the next file, though nothing had
changed. Where a single run of head comes near to what base's take, the same code may do so, and how often it does tells of the machine.
"""

from __future__ import annotations

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.verdicts.case import Case


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


def _stands_apart(case: Case, point: int, *, is_slower: bool) -> bool:
    """Return whether every run of head at a point is slower, or faster, than base's are in the median, by more than times drift."""
    column, least = case.ledger.place[case.info.id], 1 + case.drift
    base, head = (book.self_ns[:, column] for book in case.ledger.pair(point))
    usual_ns = float(np.median(base))
    return bool(head.min() > least * usual_ns) if is_slower else bool(least * head.max() < usual_ns)
