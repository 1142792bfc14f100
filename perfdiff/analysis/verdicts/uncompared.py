"""What differs between base and head and was not compared: good news says nothing of it."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.records.uncompared import ComparisonGap, UncomparedReason


def of_what_was_compared(conclusion: Conclusion, uncompared: Sequence[ComparisonGap]) -> Conclusion:
    """Return a conclusion that says nothing of what differs and was not compared."""
    if not uncompared or conclusion.verdict not in (Verdict.UNCHANGED, Verdict.IMPROVEMENT):
        return conclusion
    return conclusion.opened(_claimed(uncompared[0]))


def _claimed(difference: ComparisonGap) -> Claim:
    names = difference.names
    match difference.why:
        case UncomparedReason.BUILD:
            claimed = claim("uncompared-build", names=names)
        case UncomparedReason.ABSENT:
            claimed = claim("uncompared-absent", names=names)
        case UncomparedReason.COMMIT:
            claimed = claim("uncompared-commit")
        case UncomparedReason.SUBMODULE:
            claimed = claim("uncompared-submodule", names=names)
        case UncomparedReason.CHECKOUT:
            claimed = claim("uncompared-checkout", names=names)
        case UncomparedReason.FAILING:
            claimed = claim("uncompared-failing", names=names)
        case UncomparedReason.SUCCESSION:
            claimed = claim("uncompared-succession", names=names, ratio=difference.ratio)
        case UncomparedReason.REPEATED:
            claimed = claim("uncompared-repeated", names=names)
        case UncomparedReason.BY_HAND:
            claimed = claim("uncompared-by-hand", names=names, ratio=difference.ratio)
        case UncomparedReason.FAILING_BY_HAND:
            claimed = claim("uncompared-failing-by-hand", names=names)
        case UncomparedReason.SETUP:
            claimed = claim("uncompared-setup", names=names)
        case UncomparedReason.FIRST:
            claimed = claim("uncompared-first", names=names)
    return claimed
