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
    match difference.why:
        case Uncompared.BUILD:
            return claim("uncompared-build", names=difference.names)
        case Uncompared.ABSENT:
            return claim("uncompared-absent", names=difference.names)
        case Uncompared.COMMIT:
            return claim("uncompared-commit")
        case Uncompared.SUBMODULE:
            return claim("uncompared-submodule", names=difference.names)
        case Uncompared.SETUP:
            return claim("uncompared-setup", names=difference.names)
        case Uncompared.FIRST:
            return claim("uncompared-first", names=difference.names)
