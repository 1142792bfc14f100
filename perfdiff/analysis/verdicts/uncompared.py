"""What differs between base and head and was not compared: good news says nothing of it."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.records.uncompared import ComparisonGap, UncomparedReason


def of_what_was_compared(conclusion: Conclusion, uncompared: Sequence[ComparisonGap]) -> Conclusion:
    """Return a conclusion that says nothing of what differs and was not compared."""
    if not uncompared or not conclusion.is_good_news:
        return conclusion
    return conclusion.opened(_claimed(uncompared[0]))


def _claimed(difference: ComparisonGap) -> Claim:
    names, ratio = difference.names, difference.ratio
    return {
        UncomparedReason.BUILD: claim("uncompared-build", names=names),
        UncomparedReason.ABSENT: claim("uncompared-absent", names=names),
        UncomparedReason.PINS: claim("uncompared-pins", names=names),
        UncomparedReason.LISTED: claim("uncompared-listed", names=names),
        UncomparedReason.INTERPRETER: claim("uncompared-interpreter", names=names),
        UncomparedReason.HOLDINGS: claim("uncompared-holdings", names=names),
        UncomparedReason.COMMANDS: claim("uncompared-commands", names=names),
        UncomparedReason.STARTED: claim("uncompared-started", names=names),
        UncomparedReason.COMMIT: claim("uncompared-commit"),
        UncomparedReason.SUBMODULE: claim("uncompared-submodule", names=names),
        UncomparedReason.CHECKOUT: claim("uncompared-checkout", names=names),
        UncomparedReason.FAILING: claim("uncompared-failing", names=names),
        UncomparedReason.KILLED: claim("uncompared-killed", names=names),
        UncomparedReason.RANK: claim("uncompared-rank"),
        UncomparedReason.SUCCESSION: claim("uncompared-succession", names=names, ratio=ratio),
        UncomparedReason.REPEATED: claim("uncompared-repeated", names=names),
        UncomparedReason.BY_HAND: claim("uncompared-by-hand", names=names, ratio=ratio),
        UncomparedReason.FAILING_BY_HAND: claim("uncompared-failing-by-hand", names=names),
        UncomparedReason.SETUP: claim("uncompared-setup", names=names),
        UncomparedReason.FIRST: claim("uncompared-first", names=names),
    }[difference.why]
