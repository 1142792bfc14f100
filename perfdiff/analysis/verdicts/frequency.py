"""How often head does what got dearer: a program that takes less for doing so less often may do less work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfdiff.analysis.claims import claim
from perfdiff.analysis.findings import CountFinding, FunctionFinding, Verdict
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.analysis.witnessed import PointBehaviour
from perfdiff.config import CompareConfig
from perfdiff.records.metrics import METRICS


def of_what_is_done_as_often(
    conclusion: Conclusion, functions: Sequence[FunctionFinding], witnessed: Sequence[PointBehaviour], config: CompareConfig
) -> Conclusion:
    """Return a conclusion that is no improvement where a changed function is called less, and each call executes more by exact counts.

    A benchmark with fewer rounds, or a smaller file of data, hides a slower function so. Where it is meant, as of calls that are put
    together, a `check` of the workload or `[compare] outputs` says so.
    """
    is_meant = config.outputs == "differ" or (bool(witnessed) and all(point.checked for point in witnessed))
    if conclusion.verdict is not Verdict.IMPROVEMENT or is_meant:
        return conclusion
    dearer = [(finding, count) for finding in functions for count in _dearer(finding, config)]
    if not dearer:
        return conclusion
    finding, count = max(dearer, key=lambda pair: pair[1].ratio.value)
    return conclusion.opened(
        claim(
            "fewer-dearer-calls",
            name=finding.info.name,
            base=finding.calls_base,
            head=finding.calls_head,
            ratio=count.ratio.value,
            counter=count.counter,
        )
    )


def _dearer(finding: FunctionFinding, config: CompareConfig) -> Iterator[CountFinding]:
    """Yield what a call of a changed function executes more of, by more than is of interest, where all calls together execute less."""
    base, head = finding.calls_base, finding.calls_head
    if not finding.info.change.is_suspect or not base or not head or head >= base:
        return
    for name, count in finding.counts.items():
        is_more = METRICS[name].executed and count.exact and count.grew and count.ratio.low > 1 + config.min_effect
        if is_more and head * count.head < base * count.base:
            yield count
