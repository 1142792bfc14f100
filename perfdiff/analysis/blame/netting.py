"""Set the savings of one change against the extra cost of another if work moved between their functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.blame.guilt import ExtraKind, Guilt
from perfdiff.analysis.blame.links import Web, are_neighbours, work_moved
from perfdiff.analysis.blame.moved import moved_through_others
from perfdiff.analysis.policy import POLICY
from perfdiff.records.arrays import Floats


@dataclass(frozen=True, slots=True)
class Transfer:
    """Work that moved: what `cheaper` saves is set against what `dearer` costs more, up to `most` (points,) ns."""

    dearer: int
    cheaper: int
    most: Floats | float = np.inf

    @property
    def is_by_calls(self) -> bool:
        """Return whether what moved are calls, of which it is known how many."""
        return bool(np.all(np.isfinite(self.most)))


def netted(guilt: Mapping[int, Guilt], credit: Mapping[int, Floats], web: Web) -> tuple[dict[int, Guilt], tuple[Transfer, ...]]:
    """Set savings against extra cost where work moved between the two functions (split, merged, inlined, renamed, done in a loop)."""
    net, transfers = dict(guilt), []
    ns = {suspect: its_guilt.ns for suspect, its_guilt in guilt.items()}
    left = dict(credit)
    saved_by, extra_by = ({suspect: _by_calls(its_guilt, suspect, sign) for suspect, its_guilt in guilt.items()} for sign in (-1, 1))
    saves = {function: float(saved.sum()) < 0 for function, saved in {**left, **ns}.items()}
    for suspect in [guilty for guilty in sorted(net, key=lambda guilty: -net[guilty].total_ns) if net[guilty].total_ns > 0]:
        for other in sorted(function for function, is_saving in saves.items() if is_saving and function != suspect):
            most = _movable(suspect, other, saved_by.get(other), extra_by[suspect], web)
            if not np.any(most):
                continue
            transfer, before = Transfer(suspect, other, most), net[suspect]
            set_off = move(ns, left, transfer)
            saves |= {function: float((ns[function] if function in ns else left[function]).sum()) < 0 for function in (suspect, other)}
            transfers.append(transfer)
            gross, family = before.gross, before.family
            if not transfer.is_by_calls:  # counts are exact, and calls are seen against all that there were before
                gross = gross + (net[other].gross if other in net else -left[other])
                family = family | {suspect, other}
            net[suspect] = replace(before, gross=gross, set_off=before.set_off + set_off, moved=(*before.moved, other), family=family)
            if other in net:
                its = net[other]
                family = its.family if transfer.is_by_calls else family | its.family
                net[other] = replace(its, set_off=its.set_off + set_off, moved=(*its.moved, suspect), family=family)
    return {suspect: replace(its_guilt, ns=ns[suspect]) for suspect, its_guilt in net.items()}, tuple(transfers)


def _movable(dearer: int, cheaper: int, saved: Mapping[int, Floats] | None, extra: Mapping[int, Floats], web: Web) -> Floats | float:
    """Return how much of what one function saves may be set against what another costs more, (points,); 0 where no work moved.

    `saved` and `extra` are what either saves and costs more by its calls, by the function that it calls; None where that is nobody's guilt.
    """
    if work_moved(web, cheaper, dearer):
        return np.inf
    return 0.0 if not saved or not extra else moved_through_others(web, cheaper, dearer, saved, extra)


def may_move(web: Web, function: int, other: int) -> bool:
    """Return whether work of two functions may be set against each other, whatever their calls turn out to cost."""
    if work_moved(web, function, other) or work_moved(web, other, function):
        return True
    by_calls = any(
        web.new.moved_part(callee, caller) > POLICY.most for caller in (function, other) for callee in web.callees.get(caller, ())
    )
    return by_calls and are_neighbours(web, function, other)


def _by_calls(guilt: Guilt, caller: int, sign: int) -> dict[int, Floats]:
    """Return what a suspect's own calls cost more (`sign` 1) or less (-1), (points,) ns by the function that it calls."""
    ns_by_callee = {blame.at: blame.ns for blame in guilt.blames if blame.extra is ExtraKind.CALLS and blame.caller == caller}
    return {at: sign * ns for at, ns in ns_by_callee.items() if sign * ns.sum() > 0}


def move(ns: dict[int, Floats], left: dict[int, Floats], transfer: Transfer) -> Floats:
    """Net one transfer in place, and return what was set off; arrays are (…, points)."""
    purse = ns if transfer.cheaper in ns else left
    moved = np.minimum(np.maximum(ns[transfer.dearer], 0.0), np.maximum(-purse[transfer.cheaper], 0.0))
    moved = np.minimum(moved, transfer.most)
    ns[transfer.dearer] = ns[transfer.dearer] - moved
    purse[transfer.cheaper] = purse[transfer.cheaper] + moved
    return moved
