"""Why a function's change neither adds nor saves a cost that counts: the last rules, one of which always holds."""

from __future__ import annotations

import numpy as np

from perfdiff import units
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.comparison import Comparison
from perfdiff.analysis.compare.judgement import Direction
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.rules import Rule
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change

_ONE_SIDED = {Change.REMOVED: "it was removed", Change.ADDED: "it is new, and nothing became slower through it"}


def _own(case: Case) -> Comparison | None:
    return case.study.comparisons.get("self_ns")


def _other_inputs(case: Case) -> str:
    """Say which inputs both sides were not called with alike."""
    own = _own(case)
    return f"called with other inputs than in base ({_inputs(own)}): their cost cannot be compared" if own and own.disjoint else ""


def _larger_inputs(case: Case) -> Claim | None:
    """Say which inputs grew, and by how much the cost that base would have had."""
    own = _own(case)
    largest = max(own.mix.values(), default=1.0) if own else 1.0
    if own is None or largest <= 1 + case.config.min_effect:
        return None
    return claim("larger-inputs", inputs=tuple(feature.name for feature in own.grown), ratio=largest)


def _inputs(own: Comparison) -> str:
    return ", ".join(feature.name for feature in own.grown) or "its inputs"


def _called_more(case: Case) -> str:
    calls = case.study.calls
    if calls is None or calls.low <= 1 + case.config.min_effect:
        return ""
    return f"called {units.ratio(calls.value)} as often; its cost per call did not change"


def _on_one_side(case: Case) -> str:
    own = _own(case)
    if own is not None and own.overall is not None:
        return ""
    return _ONE_SIDED.get(case.info.change, "it was not called on both sides")


def _too_little(case: Case) -> str:
    is_slower = case.info.change.is_suspect and case.direction("self_ns") is Direction.UP
    return "slower, but too little of a run to matter" if is_slower else ""


def _unexplained(case: Case) -> str:
    is_slower = case.direction("self_ns") is Direction.UP
    return "slower at equal inputs, but no change explains it: machine, layout or I/O" if is_slower else ""


def _slower_callees(case: Case) -> str:
    own = _own(case)
    if own is None or case.direction("wall_ns") is not Direction.UP:
        return ""
    elsewhere = _taken_over(case) or "what it calls became slower"
    return elsewhere if _differs(own, case.config) else f"its own cost did not grow; {elsewhere}"


def _taken_over(case: Case) -> str:
    """Say which calls a function makes now that others made before, or return "" where there are none."""
    moved = np.sum([part.frame.moved for part in case.attribution.parts], axis=0)
    own, ids = moved[:, case.ledger.place[case.info.id]], case.ledger.ids
    if not np.any(own > 0):
        return ""
    callee = int(np.argmax(own))
    givers = [ids[column] for column in np.flatnonzero(moved[callee, :-1] < 0)]
    before = case.attribution.names(givers) or "code without probes"
    return f"it makes calls of {case.attribution.names([ids[callee]])} that {before} made before"


def _no_difference(case: Case) -> str:
    """Say why a difference is none, by the interval that is told beside it."""
    own, config = _own(case), case.config
    if own is None or not own.is_material:
        return f"its own cost is less than {units.significant(100 * POLICY.material)} % of a run: no difference of a call matters"
    least, ratio = 1 + config.min_effect, own.ratio
    if _differs(own, config):
        return "its cost differs by too little of a run to matter, or by no more than layout, probes and the machine make"
    if ratio is not None and 1 / least <= ratio.low and ratio.high <= least:
        return f"its cost at equal inputs differs by less than {units.significant(100 * config.min_effect)} %"
    return "its cost at equal inputs differs by no more than chance makes"


def _differs(own: Comparison, config: CompareConfig) -> bool:
    """Return whether the interval that is told of a cost excludes that it is the same."""
    least, ratio = 1 + config.min_effect, own.ratio
    return ratio is not None and (ratio.low > least or ratio.high < 1 / least)


UNCHANGED: tuple[Rule[Case], ...] = tuple(
    Rule(name, Verdict.UNCHANGED, asks, reason)
    for name, asks, reason in (
        ("other-inputs", "called with none of base's inputs?", _other_inputs),
        ("larger-inputs", "called with inputs that cost more?", _larger_inputs),
        ("called-more", "called more often?", _called_more),
        ("on-one-side", "called on one side alone?", _on_one_side),
        ("too-little", "changed, and slower by too little of a run?", _too_little),
        ("unexplained", "slower, and does no change explain it?", _unexplained),
        ("slower-callees", "slower with its callees?", _slower_callees),
        ("no-difference", "else", _no_difference),
    )
)
