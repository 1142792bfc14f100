"""What the counters of work say of one function; whoever reports it needs none of what counts are judged by."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.analysis.findings import CountFinding
from perfdiff.models.prices import WORK_NS
from perfdiff.models.workcounter import work_counters


def work_finding(counts: Mapping[str, CountFinding]) -> CountFinding | None:
    """Return the finding on a function's work, None where none was counted; of several counters of work the one that differs by most time.

    `counts` are the findings on all of its counters.
    """
    findings = [counts[counter.metric] for counter in work_counters(counts)]
    return max(findings, key=lambda finding: abs(finding.extra) * WORK_NS[finding.counter], default=None)


def works_more(counts: Mapping[str, CountFinding]) -> bool:
    """Return whether a function clearly works more a call."""
    finding = work_finding(counts)
    return finding is not None and finding.grew
