"""Guilt that exact counts prove where calls are too short to be timed: the least that the extra work takes is much of a run."""

from __future__ import annotations

import math

import numpy as np

from perfdiff.analysis.claims import claim
from perfdiff.analysis.compare.studied import LEARNT
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.rates import too_short
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.rules import Reason


def proved_by_counts(case: Case) -> Reason | None:
    """Return the reason by which counts alone prove a changed function guilty, None if they do not.

    Its own counts repeat exactly, grew by more than another way of writing or compiling the same can make, are new to the run as a whole,
    and take a material part of a run at the least that such events take. Either whole runs without probes are slower at such a point, or
    the part is beyond the smallest effect of interest and whole runs do not exclude it. The function's own time, where it can be measured,
    must not exclude it either.
    """
    work = case.work
    if work is None or not work.repeats or not work.beyond_rewriting or not case.attribution.web.has_new_text(case.info.id):
        return None
    extra_ns = np.minimum(work.priced_ns, case.run_extra_ns / POLICY.most)
    if not any(_counts_at(point, ns, case) for point, ns in zip(work.points, extra_ns.tolist(), strict=True)):
        return None
    proved = claim("counts-prove", work=work.says, ns=work.total_ns)
    return Reason(proved if _is_told_by_time(case) else claim("counts-alone-prove", proved=proved), work.beyond_rewriting)


def _is_told_by_time(case: Case) -> bool:
    """Return whether a time of its calls is told beside it that is clearly longer."""
    ratios = (case.ratio(metric) for metric in LEARNT if metric in case.study.comparisons)
    return any(ratio is not None and ratio.low > 1 for ratio in ratios)


def _counts_at(point: int, extra_ns: float, case: Case) -> bool:
    end = case.ends.get(point)
    run_ns = end.base_ns if end is not None else case.ledger.cost_ns(point) if point in case.ledger.points else np.inf
    if extra_ns < POLICY.material * run_ns or _is_excluded(point, extra_ns, case):
        return False
    if end is None or end.ratio is None:
        return extra_ns > case.effect(point) * run_ns
    if end.ratio.low > 1:
        return True
    return extra_ns > case.effect(point) * run_ns and end.ratio.high >= 1 + POLICY.most * extra_ns / run_ns


def _is_excluded(point: int, extra_ns: float, case: Case) -> bool:
    """Return whether the function's own time, where a call is long enough to be timed, excludes so much more at a point."""
    own = case.study.comparisons.get("self_ns")
    seen = own.overall if own is not None else None
    if seen is None or seen.runs < POLICY.min_runs or too_short(case.info.id, "self_ns", case.ledger) or point not in case.ledger.points:
        return False
    before = case.ledger.pair(point)[0].medians["self_ns"][case.ledger.place[case.info.id]]
    return bool(math.expm1(seen.interval(case.config.confidence)[1]) * before < POLICY.most * extra_ns)
