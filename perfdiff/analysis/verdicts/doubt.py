"""Extra time that is beyond chance and still need not be the change's: what probes, or another layout of the code, may have made.

It counts where something else confirms it: counts that can explain it, or whole runs without probes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from perfdiff.analysis.blame.guilt import ExtraKind, Guilt
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.judgement import Direction
from perfdiff.analysis.compare.shares import ALLOCATION
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.calls import reached
from perfdiff.analysis.verdicts.case import Case
from perfdiff.models.workcounter import WORK_METRICS, is_bounded, work_counters

WORK = (*WORK_METRICS, "atomics")  # what is the same however a program is laid out and probed
_TIMES = frozenset(("wall_ns", "self_ns", "cpu_ns", "run_ns"))


def doubted(case: Case, guilt: Guilt) -> Claim | None:
    """Say why the extra time of a function need not be its change's, None where nothing speaks against it."""
    if case.runs_are_slower:
        return None
    if _is_distorted(case, guilt):
        return claim("distorted")
    if excluded := _excluded(case, guilt):
        if not explained(case, guilt):
            return claim("excluded-but-for-layout" if is_bounded(case.counts) else "excluded-but-for-probes")
        if any(shown_with_probes(place, share, case) for place, share in excluded.items()):
            return claim("excluded-without-probes")
    ratio = _may_be_layout(case, guilt)
    return claim("may-be-layout", ratio=ratio) if ratio else None


def _is_distorted(case: Case, guilt: Guilt) -> bool:
    """Return whether extra time was seen only where probes distort all times, while the work did not grow."""
    work = [case.counts[counter] for counter in WORK if counter in case.counts]
    if any(count.grew and count.ratio.low > 1 + case.config.min_effect for count in work):
        return False
    material = case.attribution.material_at(guilt.ns)
    ends = [case.ends.get(point) for point, counts in zip(case.attribution.points, material, strict=True) if counts]
    return bool(ends) and all(end is not None and end.overhead is not None and end.overhead > POLICY.distorted for end in ends)


def _excluded(case: Case, guilt: Guilt) -> dict[int, float]:
    """Return what a change seems to add of interest where counts were made and whole runs exclude half of it: shares of a run, by point."""
    if not work_counters(case.counts):
        return {}
    claimed = case.claimed(guilt)
    return {
        point: claimed[point]
        for point, end in case.ends.items()
        if claimed.get(point, 0.0) > case.effect(point) and end.high - 1 < POLICY.most * claimed[point]
    }


def shown_with_probes(point: int, share: float, case: Case) -> bool:
    """Return whether all functions together take half of that share of a run longer, less time where it is negative.

    Then nothing else became as much faster, or slower, instead: runs without probes that exclude that share contradict those with them.
    """
    place = case.attribution.points.index(point)
    part = case.attribution.parts[place]
    return bool(float(part.head.sum() - part.base.sum()) / share > POLICY.most * case.attribution.run_ns[place])


def _may_be_layout(case: Case, guilt: Guilt) -> float:
    """Return how many times as long a call takes, where that is all there is, it is little, and counts were made and do not explain it.

    An interpreter's own code is laid out alike on both sides.
    """
    own = case.study.comparisons.get("self_ns")
    shown = [blame for blame in guilt.blames if blame.total_ns > 0]
    if own is None or own.worst is None or not is_bounded(case.counts):
        return 0.0
    if any(blame.at != case.info.id or blame.extra is not ExtraKind.COST for blame in shown) or explained(case, guilt):
        return 0.0
    effect = own.worst.contrast.effect
    return math.exp(effect) if POLICY.may_be_layout(effect) else 0.0


def is_time(metric: str) -> bool:
    """Return whether a metric is the time of a call under another name, such as the hardware's cycles."""
    return metric in _TIMES or "CYC" in metric.upper()


def explained(case: Case, guilt: Guilt) -> bool:
    """Return whether any count clearly grew that can explain a part of the extra time."""
    if any(judgement.direction is Direction.UP and not is_time(name) for name, judgement in case.judgements.items()):
        return True
    return explained_by_counts(case, _extra_ns(case, guilt), case.counts)


def explained_alone(case: Case, guilt: Guilt) -> bool:
    """Return the same for the function without its callees, whose resources are part of those of its calls."""
    locks = case.judgements.get("lock_wait_ns")
    if locks is not None and locks.direction is Direction.UP:
        return True
    web, function = case.attribution.web, case.info.id
    others = ALLOCATION if web.new.allocates_below(function, reached(web.callees, function)) else ()
    return explained_by_counts(case, _extra_ns(case, guilt), [counter for counter in case.counts if counter not in others])


def _extra_ns(case: Case, guilt: Guilt) -> dict[int, float]:
    return dict(zip(case.attribution.points, guilt.ns.tolist(), strict=True))


def explained_by_counts(case: Case, extra_ns: Mapping[int, float], counters: Iterable[str]) -> bool:
    """Return whether one of a function's `counters` grew by what can explain a telling part of extra time, in ns by point."""
    total_ns = sum(extra_ns.values())
    grown = (case.counts[counter] for counter in counters)
    return any(count.explains(extra_ns.get(count.point.id, total_ns)) for count in grown)
