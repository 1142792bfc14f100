"""Which functions are so small a part of a run that they need no closer look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.records.arrays import Bools, Floats
from perfdiff.records.schema import FunctionInfo

PRIMARY = "self_ns"  # a function's own time, by which it is guilty
ALLOCATION = ("alloc_bytes", "alloc_count")
# Of more functions than this, those that each are no material share of a run are not studied further than verdicts need: they are most
# of an interpreter's, say, and take most of the time. Fewer take some seconds in any case.
MANY = 100


def trifles_of(functions: Sequence[FunctionInfo], ledger: Ledger) -> set[int]:
    """Return functions that all together cost less than a material share of a run, at any point and on either side.

    Suspects stay where they allocate: more of that is a regression without time.
    """
    stays = np.zeros(len(ledger.ids), dtype=bool)
    for book in ledger.books.values():
        for metric in ALLOCATION:
            stays |= _are_suspects(functions, ledger) & (book.medians.get(metric, np.zeros(1)) > 0)
    shares = _shares(functions, ledger)
    return _light(
        {function: share for function, share in zip(ledger.ids, shares.tolist(), strict=True) if not stays[ledger.place[function]]}
    )


def _light(shares: Mapping[int, float]) -> set[int]:
    """Return the functions whose shares of a run are the least, as far as all together are no material one."""
    order = sorted(shares, key=lambda function: shares[function])
    together = np.cumsum([shares[function] for function in order])
    return {*order[: int(np.searchsorted(together, POLICY.material))]}


def small_of(functions: Sequence[FunctionInfo], ledger: Ledger) -> dict[int, float]:
    """Return those of many functions that each cost no material share of a run, with their shares; none of few."""
    if len(functions) <= MANY:
        return {}
    return {
        function: share for function, share in zip(ledger.ids, _shares(functions, ledger).tolist(), strict=True) if share < POLICY.material
    }


def alike_of(small: Mapping[int, float], ledger: Ledger) -> set[int]:
    """Return the small functions whose own times, of all of them together, differ by no material share of a run at any point."""
    differences = np.zeros(len(ledger.ids))
    for point in ledger.points:
        base, head = (book.medians[PRIMARY] for book in ledger.pair(point))
        differences = np.maximum(differences, np.abs(head - base) / max(ledger.cost_ns(point), 1.0))
    return _light({function: float(differences[ledger.place[function]]) for function in small})


def _shares(functions: Sequence[FunctionInfo], ledger: Ledger) -> Floats:
    """Return what part of a run each function costs at most, (f,), at any point and on either side; suspects with what they call.

    The dearest run speaks, for a function that varies much may matter more than its median says.
    """
    shares = np.zeros(len(ledger.ids))
    for book in ledger.books.values():
        cost = np.where(_are_suspects(functions, ledger), book.wall_ns.max(axis=0), book.self_ns.max(axis=0))
        shares = np.maximum(shares, cost / max(book.cost_ns, 1.0))
    return shares


def _are_suspects(functions: Sequence[FunctionInfo], ledger: Ledger) -> Bools:
    return np.isin(ledger.ids, [info.id for info in functions if info.change.is_suspect])
