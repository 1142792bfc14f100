"""Whether what was found so far is settled, or more runs could change it."""

from __future__ import annotations

from perfdiff.analysis.counts.work import Work
from perfdiff.analysis.findings import RUN, Findings, Standing, Verdict
from perfdiff.analysis.policy import CLASS_CALLS, SETTLED
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.config import CompareConfig


def settled(findings: Findings, config: CompareConfig) -> bool:
    """Return whether more runs could not change the answer: every function is clearly one thing or the other.

    Regressions must stand well clear of the threshold, so that looking several times finds no more of them by chance; functions without
    one must have been measured finely enough to see it. The rest gets all its runs, and so does a slower program whose guilty function is
    not found.
    """
    if findings.verdict is Verdict.REGRESSION and not any(each.verdict is Verdict.REGRESSION for each in findings.functions):
        return False
    margin = 1 + SETTLED * config.min_effect
    for function in findings.functions:
        if function.verdict is Verdict.INCONCLUSIVE:
            return False
        if function.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT):
            ratios = [metric.ratio for metric in function.metrics.values() if metric.ratio is not None]
            if not any(ratio.low > margin or ratio.high < 1 / margin for ratio in ratios):
                return False
            learnt = [each for metric in function.metrics.values() for each in (metric.base, metric.head) if metric.metric != RUN and each]
            if any(annotation.n < CLASS_CALLS for annotation in learnt):
                return False
    return findings.verdict is not Verdict.INCONCLUSIVE


def is_as_fast(runs: WholeRuns) -> bool:
    """Return whether whole runs say at every point that the program is neither slower nor faster."""
    return runs.are_not_slower and not runs.of(Standing.FASTER)


def answered(runs: WholeRuns, work: Work | None) -> bool:
    """Return whether no single call has to be timed: the program is neither slower nor faster, and no function works more or less."""
    return is_as_fast(runs) and work is not None and work.is_same
