"""Whether what was found so far is settled, or more runs could change it."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.analysis.blame.links import Web
from perfdiff.analysis.blame.netting import may_move
from perfdiff.analysis.findings import RUN, CountFinding, Findings, Ratio, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.contention import may_be_acquitted
from perfdiff.analysis.verdicts.verdict import is_open_alone
from perfdiff.config import CompareConfig
from perfdiff.records.schema import FunctionInfo


def settled(findings: Findings, config: CompareConfig) -> bool:
    """Return whether more runs could not change the answer: every function is clearly one thing or the other.

    Regressions must stand well clear of the threshold, so that looking several times finds no more of them by chance; functions without
    one must have been measured finely enough to see it. The rest gets all its runs, and so does a slower program whose guilty function is
    not found.
    """
    if findings.verdict is Verdict.REGRESSION and not any(finding.verdict is Verdict.REGRESSION for finding in findings.functions):
        return False
    for function in findings.functions:
        if function.verdict is Verdict.INCONCLUSIVE:
            return False
        if function.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT):
            ratios = [metric.ratio for metric in function.metrics.values() if metric.ratio is not None]
            if not any(_stands_clear(ratio, config) for ratio in ratios):
                return False
            learnt = [
                annotation
                for metric in function.metrics.values()
                for annotation in (metric.base, metric.head)
                if metric.metric != RUN and annotation
            ]
            if any(annotation.n < POLICY.class_calls for annotation in learnt):
                return False
    return findings.verdict is not Verdict.INCONCLUSIVE


def _stands_clear(ratio: Ratio, config: CompareConfig) -> bool:
    margin = 1 + POLICY.settled * config.min_effect
    return ratio.low > margin or ratio.high < 1 / margin


def stands_alone(info: FunctionInfo, counts: Mapping[str, CountFinding], web: Web) -> bool:
    """Return whether nothing that others show can leave a changed function unchanged that is open by its own calls.

    They could where it only depends on what changed and does the same work, which would take its guilt back, and where what it costs
    may be set against what another one saves. No call is looked at for that.
    """
    others = (suspect for suspect, other in web.functions.items() if other.change.is_suspect and suspect != info.id)
    return not may_be_acquitted(info, counts) and not any(may_move(web, info.id, suspect) for suspect in others)


def keeps_open(case: Case) -> bool:
    """Return whether a function that stands alone has the findings not settled, whatever is found of all others; of one machine's runs.

    The case is judged as favourably as any others could have it, and before anybody is blamed. Then it is open. What others show can
    still have it guilty, or have it save a cost: it does not stand clear of the threshold, so that its runs go on all the same.
    """
    ratios = (case.ratio(metric) for metric in case.study.comparisons)
    return is_open_alone(case) and not any(ratio and _stands_clear(ratio, case.config) for ratio in ratios)
