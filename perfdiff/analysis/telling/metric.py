"""What a report says about one metric of one function: how it differs, how certainly, and at a typical call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiff import units
from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.compare.ratios import as_ratio, as_resolved
from perfdiff.analysis.compare.strata import is_of_a_phase
from perfdiff.analysis.compare.studied import Shift
from perfdiff.analysis.findings import MEAN, MetricFinding, Ratio
from perfdiff.analysis.telling.headline import MetricSpot
from perfdiff.analysis.verdicts.case import Case
from perfdiff.models.annotation import Annotation
from perfdiff.records.metrics import metric_of
from perfdiff.records.schema import Side


@dataclass(frozen=True, slots=True)
class Machines:
    """The `names` of machines by the numbers of runs' machines, and the q-values of no difference between them, by function and metric."""

    names: tuple[str, ...] = ()
    q: Mapping[tuple[int, str], float] = field(default_factory=dict)

    def differing(self, rate: float) -> set[int]:
        """Return the functions on which machines disagree at a false discovery rate."""
        return {function for (function, _), q in self.q.items() if q <= rate}


def of_one_side(annotation: Annotation, side: Side) -> MetricFinding:
    """Return the finding on a metric of a function that one side has alone."""
    return MetricFinding(
        metric=annotation.metric,
        base=annotation if side is Side.BASE else None,
        head=annotation if side is Side.HEAD else None,
        feature=annotation.features[0] if annotation.features else None,
        ratio=None,
        stratum="",
        overall=None,
        q=math.nan,
        mix=None,
        calls=None,
        total=None,
        floor=math.nan,
    )


def with_shift(metric_finding: MetricFinding, shift: Shift) -> MetricFinding:
    """Return a finding with how the cost function moved."""
    return replace(
        metric_finding,
        base=shift.base,
        head=shift.head,
        feature=shift.feature,
        coefficients=shift.coefficients,
        predictions=shift.predictions,
        crosses=shift.crosses,
        class_changed=shift.class_changed,
        modes=shift.modes,
        borders=shift.borders,
    )


def finding(case: Case, comparison: Comparison, q: float, machines: Machines) -> MetricFinding:
    """Return the finding on a metric that both sides have."""
    worst, overall = comparison.worst, comparison.overall
    stratum = worst.name if worst and not case.sums_tell(comparison.metric) else ""
    return MetricFinding(
        metric=comparison.metric,
        base=comparison.base,
        head=None,
        feature=None,
        ratio=case.ratio(comparison.metric),
        stratum=stratum,
        overall=as_resolved(as_ratio(overall, case.config.confidence), comparison, case.ledger) if overall else None,
        q=q,
        mix=comparison.mix_ratio,
        calls=case.study.calls,
        total=case.study.totals.get(comparison.metric),
        floor=float(np.expm1(comparison.floor)),
        in_all=_in_all(case, comparison.metric),
        points={
            stratum.point: as_resolved(as_ratio(stratum.contrast, case.config.confidence, comparison.tested), comparison, case.ledger)
            for stratum in comparison.strata
            if stratum.point is not None
        },
        machines=_by_machine(case, comparison, machines),
        machines_q=machines.q.get((case.info.id, comparison.metric), math.nan),
    )


def _in_all(case: Case, metric: str) -> tuple[float, float] | None:
    """Return what all calls take in one run of each point on both sides, None for what is no time."""
    if metric_of(metric).unit != "ns":
        return None
    base, head = (float(case.ledger.of_a_run(metric, side, case.info.id)[0]) for side in Side)
    return base, head


def _by_machine(case: Case, comparison: Comparison, machines: Machines) -> dict[str, Ratio]:
    """Return the ratios of the stratum that is told on single machines, with intervals that hold for all of these at once."""
    count = comparison.tested * max(1, len(comparison.machines))
    return {
        machines.names[machine]: as_resolved(as_ratio(seen, case.config.confidence, count), comparison, case.ledger)
        for machine, seen in comparison.machines.items()
    }


def with_spot(case: Case, metric_finding: MetricFinding, at: MetricSpot | None) -> MetricFinding:
    """Return a finding with the typical call that its ratio is of; without one where sums over runs tell the ratio."""
    if at is None or case.sums_tell(metric_finding.metric):
        return metric_finding
    inputs = f"{at.feature} = {units.count(at.x)}" if at.feature and at.x is not None else ""
    calls = at.switch if inputs else metric_finding.stratum.removeprefix(MEAN).removeprefix(" at ")
    where = ", ".join(part for part in (calls, inputs) if part and not is_of_a_phase(part))
    return replace(metric_finding, typical=at.base, typical_at=where)


def spot(comparison: Comparison, metric_finding: MetricFinding) -> MetricSpot | None:
    """Return a typical call of the stratum that is told, None where there is none."""
    worst, typical = comparison.worst, comparison.typical
    if worst is None or typical is None:
        return None
    feature, switch = metric_finding.feature, worst.name if worst.narrows else ""
    x = typical.inputs.get(feature) if feature else None
    is_said = x is not None and not {f"{feature}={x}", f"{feature}={round(x)}"}.isdisjoint(switch.split())  # by a point's label
    return MetricSpot(typical.cost, switch, None if is_said else feature, None if is_said else x)
