"""Why a function's change neither adds nor saves a cost that counts: the last rules, one of which always holds."""

from __future__ import annotations

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.compare.judgement import Direction
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.rules import Rule
from perfdiff.config import CompareConfig


def _own(case: Case) -> Comparison | None:
    return case.study.comparisons.get("self_ns")


def _other_inputs(case: Case) -> Claim | None:
    """Say which inputs both sides were not called with alike."""
    own = _own(case)
    return claim("other-inputs", inputs=_inputs(own)) if own and own.disjoint else None


def _larger_inputs(case: Case) -> Claim | None:
    """Say which inputs grew, and by how much the cost that base would have had."""
    own = _own(case)
    largest = max(own.mix.values(), default=1.0) if own else 1.0
    if own is None or largest <= 1 + case.config.min_effect:
        return None
    return claim("larger-inputs", inputs=_inputs(own), ratio=largest)


def _inputs(own: Comparison) -> tuple[str, ...]:
    return tuple(feature.name for feature in own.grown)


def _called_more(case: Case) -> Claim | None:
    calls = case.study.calls
    return claim("called-more", ratio=calls.value) if calls is not None and calls.low > 1 + case.config.min_effect else None


def _on_one_side(case: Case) -> Claim | None:
    own = _own(case)
    is_on_both = own is not None and own.overall is not None
    return None if is_on_both else claim("on-one-side", change=case.info.change)


def _too_little(case: Case) -> Claim | None:
    is_slower = case.is_suspect and case.direction("self_ns") is Direction.UP
    return claim("too-little") if is_slower else None


def _unexplained(case: Case) -> Claim | None:
    return claim("unexplained") if case.direction("self_ns") is Direction.UP else None


def _slower_callees(case: Case) -> Claim | None:
    own = _own(case)
    if own is None or case.direction("wall_ns") is not Direction.UP:
        return None
    elsewhere = _taken_over(case) or claim("slower-callees")
    return elsewhere if _differs(own, case.config) else claim("own-cost-the-same", elsewhere=elsewhere)


def _taken_over(case: Case) -> Claim | None:
    """Say which calls a function makes now that others made before, None where there are none."""
    moved = np.sum([part.frame.moved for part in case.attribution.parts], axis=0)
    own, ids = moved[:, case.ledger.place[case.info.id]], case.ledger.ids
    if not np.any(own > 0):
        return None
    callee = int(np.argmax(own))
    givers = [ids[column] for column in np.flatnonzero(moved[callee, :-1] < 0)]
    return claim("taken-over", callees=case.attribution.names([ids[callee]]), before=case.attribution.names(givers))


def _no_difference(case: Case) -> Claim:
    """Say why a difference is none, by the interval that is told beside it."""
    own, config = _own(case), case.config
    if own is None or not own.is_material:
        return claim("immaterial", share=POLICY.material)
    least, ratio = 1 + config.min_effect, own.ratio
    if _differs(own, config):
        return claim("differs-too-little")
    if ratio is not None and 1 / least <= ratio.low and ratio.high <= least:
        return claim("differs-by-less", share=config.min_effect)
    return claim("differs-by-chance")


def _differs(own: Comparison, config: CompareConfig) -> bool:
    """Return whether the interval that is told of a cost excludes that it is the same."""
    least, ratio = 1 + config.min_effect, own.ratio
    return ratio is not None and (ratio.low > least or ratio.high < 1 / least)


_SAME = Verdict.UNCHANGED
UNCHANGED: tuple[Rule[Case], ...] = (
    Rule("other-inputs", _SAME, "called with none of base's inputs?", _other_inputs),
    Rule("larger-inputs", _SAME, "called with inputs that cost more?", _larger_inputs),
    Rule("called-more", _SAME, "called more often?", _called_more),
    Rule("on-one-side", _SAME, "called on one side alone?", _on_one_side),
    Rule("too-little", _SAME, "changed, and slower by too little of a run?", _too_little),
    Rule("unexplained", _SAME, "slower, and does no change explain it?", _unexplained),
    Rule("slower-callees", _SAME, "slower with its callees?", _slower_callees),
    Rule("no-difference", _SAME, "else", _no_difference),
)
