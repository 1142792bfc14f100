"""Calls whose number varies from run to run and hides what each of them takes: then no run as a whole tells what a change costs."""

from __future__ import annotations

import math

from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig
from perfdiff.records.arrays import Floats


def uneven_points(function: int, own: Comparison, ledger: Ledger, config: CompareConfig) -> frozenset[int]:
    """Return the points where a function that is slower at equal inputs takes no more of a run, as it is called less often.

    What a program does with given inputs it does as often in each run. Where the runs of a side make another number of calls each, by more
    than the smallest effect of interest, a clock, other work or chance may end them. Had head made as many calls as base, a run would have
    taken materially longer: so what runs take as a whole says nothing of the change.
    """
    ratio = own.ratio
    if ratio is None or ratio.low <= 1:
        return frozenset()
    return frozenset(point for point in ledger.points if _hides(function, point, ratio.low - 1, ledger, config))


def _hides(function: int, point: int, slower: float, ledger: Ledger, config: CompareConfig) -> bool:
    """Return whether an uneven number of calls hides that each is slower by this share, as more of a run than matters."""
    column = ledger.place[function]
    base, head = ledger.pair(point)
    before_ns, after_ns = (float(book.medians["self_ns"][column]) for book in (base, head))
    more_ns, least = slower * before_ns, ledger.judging(config, [point]).min_effect
    is_hidden = more_ns >= least * ledger.cost_ns(point) and after_ns - before_ns < POLICY.most * more_ns
    return is_hidden and all(_varies(book.calls[:, column], least) for book in (base, head))


def _varies(calls: Floats, least: float) -> bool:
    return bool(calls.min() > 0 and math.log(calls.max() / calls.min()) > math.log1p(least))
