"""What differs between base and head and was not compared: good news says nothing of it."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.analysis.claims import claim
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.records.uncompared import Difference


def of_what_was_compared(conclusion: Conclusion, uncompared: Sequence[Difference]) -> Conclusion:
    """Return a conclusion that says nothing of what differs and was not compared."""
    if not uncompared or conclusion.verdict not in (Verdict.UNCHANGED, Verdict.IMPROVEMENT):
        return conclusion
    first = uncompared[0]
    return conclusion.opened(claim(f"uncompared-{first.why}", names=first.names))
