"""What differs between base and head and was not compared: good news says nothing of it."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.records.uncompared import Difference, Uncompared


def of_what_was_compared(conclusion: Conclusion, uncompared: Sequence[Difference]) -> Conclusion:
    """Return a conclusion that says nothing of what differs and was not compared."""
    if not uncompared or conclusion.verdict not in (Verdict.UNCHANGED, Verdict.IMPROVEMENT):
        return conclusion
    return conclusion.opened(_claimed(uncompared[0]))


def _claimed(difference: Difference) -> Claim:
    names, ratio = difference.names, difference.ratio
    return {
        Uncompared.BUILD: claim("uncompared-build", names=names),
        Uncompared.ABSENT: claim("uncompared-absent", names=names),
        Uncompared.PINS: claim("uncompared-pins", names=names),
        Uncompared.INTERPRETER: claim("uncompared-interpreter", names=names),
        Uncompared.HOLDINGS: claim("uncompared-holdings", names=names),
        Uncompared.COMMIT: claim("uncompared-commit"),
        Uncompared.SUBMODULE: claim("uncompared-submodule", names=names),
        Uncompared.CHECKOUT: claim("uncompared-checkout", names=names),
        Uncompared.FAILING: claim("uncompared-failing", names=names),
        Uncompared.SUCCESSION: claim("uncompared-succession", names=names, ratio=ratio),
        Uncompared.REPEATED: claim("uncompared-repeated", names=names),
        Uncompared.BY_HAND: claim("uncompared-by-hand", names=names, ratio=ratio),
        Uncompared.FAILING_BY_HAND: claim("uncompared-failing-by-hand", names=names),
        Uncompared.SETUP: claim("uncompared-setup", names=names),
        Uncompared.FIRST: claim("uncompared-first", names=names),
    }[difference.why]
