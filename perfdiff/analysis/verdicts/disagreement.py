"""Machines that disagree: the verdict on a function whose effect differs from machine to machine beyond chance.

It is judged on each machine by itself. What is slower on some of them is a regression there, and that is said; what is slower on one and
faster on another has no answer for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import EndToEnd, FunctionFinding, MetricFinding, Ratio, Verdict
from perfdiff.config import CompareConfig
from perfdiff.records.kinds import MachinePart, differences

_METRICS = ("self_ns", "wall_ns")  # the first one that differs is told

Alone = Mapping[str, Mapping[int, FunctionFinding]]  # the findings on single machines, by their names, by function


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Where machines disagree on a metric of a function: those that are clearly slower, clearly faster, and all others, by their names."""

    metric: MetricFinding
    slower: tuple[str, ...]
    faster: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def is_opposite(self) -> bool:
        """Return whether there is no answer for all machines."""
        return bool(self.slower and self.faster)


def disagreeing(functions: Sequence[FunctionFinding], config: CompareConfig) -> dict[int, Disagreement]:
    """Return on which functions machines disagree: changed ones and slower ones, by more than the smallest effect of interest."""
    on: dict[int, Disagreement] = {}
    for finding in functions:
        if finding.info.change.is_suspect or finding.verdict is Verdict.REGRESSION:
            seen = [disagreement for name in _METRICS if (disagreement := _of_metric(finding.metrics.get(name), config)) is not None]
            if seen:
                on[finding.info.id] = seen[0]
    return on


def _of_metric(metric: MetricFinding | None, config: CompareConfig) -> Disagreement | None:
    if metric is None or len(metric.machines) < 2 or not metric.machines_q <= config.fdr:
        return None
    values = [ratio.value for ratio in metric.machines.values()]
    least = 1 + config.min_effect
    if max(values) < least * min(values):
        return None
    slower = tuple(name for name, ratio in metric.machines.items() if ratio.low > 1 and ratio.value > least)
    faster = tuple(name for name, ratio in metric.machines.items() if ratio.high < 1 and ratio.value < 1 / least)
    others = tuple(name for name in metric.machines if name not in (*slower, *faster))
    return Disagreement(metric, slower, faster, others)


def settled(
    functions: Sequence[FunctionFinding], disagreements: Mapping[int, Disagreement], alone: Alone, parts: Sequence[MachinePart]
) -> list[FunctionFinding]:
    """Return the findings with the verdicts of single machines where these disagree, the guilty ones numbered anew from 1."""
    highest = max((finding.rank or 0 for finding in functions), default=0)
    judged = []
    for finding in functions:
        of = disagreements.get(finding.info.id)
        new = (
            _settled(finding, of, {name: by[finding.info.id] for name, by in alone.items() if finding.info.id in by}, parts)
            if of
            else finding
        )
        if new.verdict is Verdict.REGRESSION and finding.verdict is not Verdict.REGRESSION:
            highest += 1
            new = replace(new, rank=highest)
        judged.append(new)
    ranks = {rank: number for number, rank in enumerate(sorted(finding.rank for finding in judged if finding.rank is not None), start=1)}
    numbered = [replace(finding, rank=ranks[finding.rank]) if finding.rank is not None else finding for finding in judged]
    return sorted(numbered, key=lambda finding: finding.order)


def _settled(
    pooled: FunctionFinding, of: Disagreement, alone: Mapping[str, FunctionFinding], parts: Sequence[MachinePart]
) -> FunctionFinding:
    says = said(of, parts)
    if of.is_opposite:
        return replace(
            pooled,
            verdict=Verdict.INCONCLUSIVE,
            reason=claim("opposite-machines", machines=says),
            happened=claim("open-by-machines", name=pooled.info.name, machines=says),
            also=(),
            rank=None,
            share=None,
            extra_ci_ns=None,
            causes=(),
            chain=(),
            machines_say=says,
        )
    slower = [name for name, finding in alone.items() if finding.verdict is Verdict.REGRESSION]
    faster = [name for name, finding in alone.items() if finding.verdict is Verdict.IMPROVEMENT]
    if not slower and pooled.verdict is Verdict.UNCHANGED:
        slower = faster or [name for name, finding in alone.items() if finding.verdict is Verdict.INCONCLUSIVE and name in of.slower]
    elif pooled.verdict is Verdict.REGRESSION:
        slower = []
    if not slower:
        return replace(pooled, machines_say=says, also=(*pooled.also, claim("machines-differ", machines=says)))
    there = alone[max(slower, key=lambda name: abs(math.log(_ratio(of, name).value)))]
    metrics = {name: _with_machines(metric, pooled.metrics.get(name)) for name, metric in there.metrics.items()}
    return replace(there, metrics=metrics, rank=None, machines_say=says, also=(*there.also, claim("machines-differ", machines=says)))


def _with_machines(metric: MetricFinding, pooled: MetricFinding | None) -> MetricFinding:
    return metric if pooled is None else replace(metric, machines=pooled.machines, machines_q=pooled.machines_q)


def _ratio(of: Disagreement, name: str) -> Ratio:
    return of.metric.machines.get(name) or Ratio(1.0, 1.0, 1.0, 0, 0)


def said(of: Disagreement, parts: Sequence[MachinePart]) -> Claim:
    """Return how machines disagree, and in what they differ."""
    slower, faster, others = (_rated(names, of.metric.machines) for names in (of.slower, of.faster, of.others))
    return claim("unlike-machines", slower=slower, faster=faster, others=others, differ=_in_what(of, parts))


def _in_what(of: Disagreement, parts: Sequence[MachinePart]) -> Claim | None:
    """Return in what machines of either group differ, None where that is not known."""
    groups = [group for group in (of.slower, of.faster, of.others) if group]
    by_name = {part.name: part.environment for part in parts}
    pair = (groups[0][0], groups[1][0]) if len(groups) > 1 else tuple([*of.metric.machines][:2])
    if not all(name in by_name for name in pair):
        return None
    differing = tuple(differences(by_name[pair[0]], by_name[pair[1]]))
    return claim("machines-differ-in", first=pair[0], second=pair[1], differing=differing) if differing else claim("machines-alike")


def _rated(names: Iterable[str], ratios: Mapping[str, Ratio]) -> tuple[Claim, ...]:
    return tuple(claim("rated", name=name, ratio=ratios[name].value) for name in names)


def disagreement_notes(functions: Sequence[FunctionFinding], ends: Collection[EndToEnd]) -> tuple[Claim, ...]:
    """Return the notes for machines that disagree."""
    differing = [
        claim("function-differs", name=finding.info.name, machines=finding.machines_say) for finding in functions if finding.machines_say
    ]
    for end in ends:
        if end.disagree:
            differing.append(claim("runs-differ", point=end.point.label, machines=_rated(end.machines, end.machines)))
    return (claim("machines-disagree", found=tuple(differing)),) if differing else ()
